// The exact search on one temporal component (docs/algorithms/exact.md).
//
// Every node is a complete problem of its own: items with floors, and a ceiling. Placing an item
// removes it and raises the floors of those that overlap it, so a node need not remember its past,
// and every rule below is local to it.
//
// A conflict is a set of ids such that the node restricted to them is infeasible. Restriction
// keeps every rule sound: with fewer items fewer things can slip below an item or carry it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "exact/any_search.h"
#include "exact/arena.h"
#include "exact/id_set.h"
#include "exact/nogoods.h"
#include "exact/rules.h"
#include "exact/task.h"
#include "memplan/budget.h"
#include "memplan/exact.h"
#include "util/ranked.h"

namespace memplan::exact {

// A key that sorts the greatest value first. Doubles above 0, as `value` is, are ordered as their
// bits.
std::int64_t descending(double value);

double unit_interval(std::uint64_t x);  // [0, 1)

// V: std::int32_t where all values fit, otherwise (and where the task is restricted) std::int64_t.
template <typename V>
class Search final : public AnySearch {
 public:
  Search(const Task& task, const ExactOptions& options);

  // One run from the root. Nogoods are kept from run to run, section weights are not.
  Verdict run(const Strategy& strategy, std::int64_t node_budget, Stopper* stopper,
              const std::atomic<bool>* cancel) override;

  std::int64_t nodes() const override { return nodes_; }
  const std::vector<Bytes>& offsets() const override { return offsets_; }
  bool in_conflict(int id) const override { return conflict_.has(id); }

 private:
  using Node = Item<V>;

  // A problem on its way into open(). Its arrays lie on the arena above `mark`.
  struct Child {
    Node* items = nullptr;
    std::int32_t* section = nullptr;  // the root's name for each section, for the weights
    int count = 0;
    int sections = 0;
    V ceiling = 0;
    // The sections in which floors rose since the bound was last checked: only there can it fail.
    // May be empty.
    std::int32_t risen_first = 0;
    std::int32_t risen_last = -1;
    Arena::Mark mark;
  };

  struct Frame {
    Child problem;   // reduced: contracted, in one part, no item over all sections
    IdSet resolved;  // ids that the full-span rule placed here; they join every conflict
    bool split = false;
    // split: the parts, solved one after the other
    Child* parts = nullptr;
    int part_count = 0;
    // branch: the items that may rest on the floor of the section, then the gap
    int* options = nullptr;
    int option_count = 0;
    int next = 0;
    int section = 0;
    V floor = 0;
    V jump = 0;                // the floor if no item rests on this one; kNoJump: none can
    bool explain_gap = false;  // the ceiling shuts the gap: all items of the section are the reason
    std::uint64_t key = 0;
    IdSet learned;  // the conflict in the making
    IdSet raised;   // ids whose floor the child at work raised
  };

  enum class Step { kAdvance, kChild, kSat, kUnsat, kBudget };
  enum class Reduction { kDone, kSplit, kUnsat, kEmpty };

  Step open(Child child);
  Step advance();
  Step absorb(Step verdict);
  Step close(Step verdict);

  Reduction reduce(Child& problem, IdSet& resolved);
  int contract(Child& problem);
  bool place_full_span(Child& problem, IdSet& resolved, bool& changed);
  Step open_split(const Child& problem, const IdSet& resolved);
  bool bound_holds(const Child& problem);
  void sum_loads(const Child& problem);
  bool floors_hold(const Child& problem);
  void place_stack(const Child& problem);
  void count_lowest(const Child& problem);
  void find_floors(const Child& p);
  void count_at_floors(const Child& p);
  bool is_eligible(const Child& p, int section) const;
  void choose_section(Frame& frame);
  void order_options(Frame& frame);
  void find_jump(Frame& frame);
  bool place_child(const Frame& frame, const Node& placed);
  bool raise_section(const Frame& frame);
  bool raise(const Child& problem, int skip, V floor, int first, int last, IdSet raised);
  std::uint64_t key_of(const Child& problem) const;
  double value_key(const Node& item) const;
  bool out_of_budget();

  void sort_by_floor(Node* items, int count);

  // Checks the node at work: the order by floor, ids, sections, the ceiling, and what rose.
  bool check_invariants(const Child& problem) const;
  // Checks the bound in every section, and the loads that it leaves.
  bool holds_everywhere(const Child& problem) const;
  // Whether a set names items of the problem only.
  bool is_within(const IdSet& set, const Child& problem) const;
  // Whether the offsets are a plan of the whole task.
  bool is_plan() const;

  // Known to be false where values are not bytes, so that the compiler drops the restricted code.
  bool restricted() const { return sizeof(V) == sizeof(Bytes) && restricted_; }

  // The least floor at or above `value` that is a legal offset of the item.
  V legal_floor(V value, int id) const {
    return restricted() ? static_cast<V>(world_->legal_above(source_[id], value)) : value;
  }

  bool same_legal_offsets(int a, int b) const {
    const ItemIdx i = source_[a], k = source_[b];
    return world_->alignment[i] == world_->alignment[k] &&
           world_->earliest[i] == world_->earliest[k] && world_->latest[i] == world_->latest[k];
  }

  static constexpr V kNoJump = -1;
  static constexpr std::size_t kMaxArena = std::size_t{1} << 31;

  ExactOptions options_;
  int words_;
  std::vector<Node> root_;
  int root_sections_;
  V root_ceiling_;
  const Items* world_;
  bool restricted_;
  std::vector<ItemIdx> source_;
  std::vector<std::uint64_t> zobrist_;

  Arena arena_;
  std::vector<Frame> frames_;
  Child child_;
  std::vector<std::uint64_t> conflict_bits_;
  IdSet conflict_;
  Nogoods<V> nogoods_;
  std::vector<Bytes> offsets_;

  // Scratch of one node, per section.
  std::vector<V> load_, floor_, top_;
  std::vector<std::int32_t> begins_, ends_, map_, choices_, lowest_;
  std::vector<std::int32_t> weight_;  // failures per root section
  std::vector<double> noise_;         // per id, of this run
  // Scratch of one node, per item.
  std::vector<char> is_lowest_;  // of a section
  std::vector<Node> held_;
  std::vector<Ranked> by_floor_;
  std::vector<Ranked> candidates_;   // ids
  std::vector<std::int32_t> index_;  // in the node, by id; of candidates only

  Strategy strategy_;
  std::int64_t nodes_ = 0;
  std::int64_t node_limit_ = 0;
  Stopper* stopper_ = nullptr;
  const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace memplan::exact
