// Sections without slack (docs/algorithms/exact.md, "Full sections").
//
// Where neighbouring sections are full, what ends between them leaves exactly the addresses that
// what begins takes up. If no part of the one is as large as a part of the other, these addresses
// are one interval. So the address orders of the live items that a plan may have are those of a
// PQ-tree, and a sweep over the boundaries keeps all of them at once. Only where sizes allow
// several ways to match what ends with what begins is there a choice.
//
//     address   ... section j | section j + 1
//                   +--------+-------+
//                   |   a2   |  b3   |         a1, a2 are neighbours in every plan, and so are
//                   +--------+-------+         b1, b2, b3. Where exactly they lie is left open,
//                   |   a1   |  b1   |         and so is their order.
//                   |        +-------+
//                   |        |  b2   |
//                   +--------+-------+
//
// PQ-trees are those of Booth and Lueker (1976).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "exact/any_search.h"
#include "exact/pq_tree.h"
#include "exact/task.h"
#include "memplan/budget.h"

namespace memplan::exact {

class Tiling final : public AnySearch {
 public:
  // `task` must outlive it.
  explicit Tiling(const Task& task);

  // Whether two neighbouring sections are full, without which the sweep has nothing to do.
  static bool applies(const Task& task);

  // Resumes where the last call stopped; the strategy changes nothing. Returns kBudget also if
  // nothing can be decided here.
  Verdict run(const Strategy& strategy, std::int64_t node_budget, Stopper* stopper,
              const std::atomic<bool>* cancel) override;

  bool exhausted() const override { return exhausted_; }
  std::int64_t nodes() const override { return nodes_; }  // exchanges tried
  const std::vector<Bytes>& offsets() const override { return offsets_; }
  bool in_conflict(int id) const override { return conflict_[id] != 0; }

  // The leaves of the tree are the items live at the boundary to cross, and fill the section; ways
  // and steps belong to this window.
  bool check_invariants() const;

 private:
  using Way = std::vector<PqTree::Exchange>;  // one exchange for each interval

  // The end of section `at` (and the begin of the next).
  struct Boundary {
    std::vector<int> ending, beginning;
    std::vector<Way> ways;  // listed when first needed; the likeliest first
    bool all_ways = true;   // no way is missing
    int way = 0;            // the one at work
    int reach = 0;          // the ways refuted so far fail by what lies between here and there
    PqTree before;          // kept only where there is a choice
    std::size_t steps_before = 0;
  };

  // Maximal runs of full sections, inclusive.
  struct Window {
    int first;
    int last;
  };

  bool must_stop();
  Verdict step();
  bool cross(PqTree& tree, int at, std::vector<PqTree::Exchange>* steps);
  bool fails_from(int first, int at);
  int find_reach(int at);
  Verdict repair(int reach);
  int leads_to(int from, int end);
  Verdict go_back();
  Verdict finish_window();
  void list_ways(Boundary& boundary) const;
  std::vector<int> live_in(int section) const;
  void place();

  const Task& task_;
  std::vector<Boundary> boundaries_;
  std::vector<Window> windows_;
  std::size_t window_ = 0;
  int at_ = 0;             // the boundary to cross next
  bool repairing_ = true;  // before the systematic search
  int repairs_ = 0;
  int highest_ = 0;       // the last boundary that could not be crossed
  bool complete_ = true;  // every way was tried: a refutation counts
  bool exhausted_ = false;
  Stopper* stopper_ = nullptr;
  const std::atomic<bool>* cancel_ = nullptr;
  PqTree tree_;
  std::vector<PqTree::Exchange> steps_;
  std::vector<char> marked_;
  std::vector<char> conflict_;
  std::vector<Bytes> offsets_;
  std::int64_t nodes_ = 0;
};

}  // namespace memplan::exact
