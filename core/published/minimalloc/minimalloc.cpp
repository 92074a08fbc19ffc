#include "memplan/minimalloc.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memplan/problem.h"
#include "model/answers.h"
#include "published/minimalloc/rules.h"
#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int64_t kAllTurns = std::numeric_limits<std::int64_t>::max();

// A word of keys (minimalloc.h). Items are sorted by them, all descending, ties by row.
class StaticOrder {
 public:
  // Throws std::invalid_argument for a letter that is no key.
  StaticOrder(const Problem& problem, const Items& items, const Overlaps& overlaps,
              const std::string& word);

  // T is the most of `unallocated`, bytes by section, where the item lives: it is computed again in
  // each call, since it changes with what is placed. All other keys are the items' own.
  void sort(std::vector<ItemIdx>::iterator begin, std::vector<ItemIdx>::iterator end,
            const std::vector<Bytes>& unallocated);

 private:
  const Items& items_;
  std::string word_;
  std::vector<double> keys_;  // a row of as many as the word has letters, by item
};

double sections_of(const Items& items, ItemIdx i) {
  double count = 0;
  for (const Span* span = items.begin(i); span != items.end(i); ++span) {
    count += span->last - span->first + 1;
  }
  return count;
}

double fullest_section(const Items& items, const std::vector<Bytes>& total, ItemIdx i) {
  Bytes most = 0;
  for (const Span* span = items.begin(i); span != items.end(i); ++span) {
    most = std::max(most,
                    *std::max_element(total.begin() + span->first, total.begin() + span->last + 1));
  }
  return static_cast<double>(most);
}

// Keys are doubles because areas pass 2^63; two that differ only beyond 53 bits are a tie.
double key_of(char key, const Problem& problem, const Items& items, const Overlaps& overlaps,
              ItemIdx i) {
  const BufferIdx b = items.buffer[i];
  const auto start = static_cast<double>(problem.start[b]);
  const auto end = static_cast<double>(problem.end[b]);
  const auto size = static_cast<double>(problem.size[b]);
  switch (key) {
    case 'W':
      return end - start;
    case 'A':
      return size * (end - start);
    case 'T':
      return 0;  // it changes: see sort
    case 'Z':
      return size;
    case 'L':
      return start;
    case 'U':
      return end;
    case 'C':
      return sections_of(items, i);
    case 'O':
      return static_cast<double>(overlaps.of[i].size());
    default:
      fail(std::string("minimalloc order: '") + key +
           "' is not one of the keys W, A, T, Z, L, U, C, O");
  }
}

StaticOrder::StaticOrder(const Problem& problem, const Items& items, const Overlaps& overlaps,
                         const std::string& word)
    : items_(items), word_(word) {
  keys_.reserve(items.size.size() * word.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const char key : word) keys_.push_back(key_of(key, problem, items, overlaps, i));
  }
}

void StaticOrder::sort(std::vector<ItemIdx>::iterator begin, std::vector<ItemIdx>::iterator end,
                       const std::vector<Bytes>& unallocated) {
  const std::size_t width = word_.size();
  if (word_.find('T') != std::string::npos) {
    for (auto at = begin; at != end; ++at) {
      const double fullest = fullest_section(items_, unallocated, *at);
      for (std::size_t k = 0; k < width; ++k) {
        if (word_[k] == 'T') keys_[*at * width + k] = fullest;
      }
    }
  }
  std::sort(begin, end, [this, width](ItemIdx a, ItemIdx b) {
    const double* row_a = keys_.data() + a * width;
    const double* row_b = keys_.data() + b * width;
    for (std::size_t k = 0; k < width; ++k) {
      if (row_a[k] != row_b[k]) return row_a[k] > row_b[k];
    }
    return a < b;
  });
}

enum class SearchVerdict { kSolved, kExhausted, kCutShort };

// Items that are still to be placed, independent of all others: a slice of
// MinimallocSearch::slots_.
struct Partition {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  SectionRange sections;
  CanonicalPlace floor;  // canonical: everything is placed after this step
};

// One call of the search function. It has placed `item`, the first of its slice, and its children
// are the partitions that are left of the slice: all must be solved.
//
//   slots_        | item | child   | child        | ...
//   partition     begin                           end
struct SearchFrame {
  Partition partition;
  CanonicalPlace tried;     // the candidates up to this one have failed
  Bytes highest_start = 0;  // none above this offset can succeed
  ItemIdx item = kNoItem;
  bool overhead = false;  // something unallocated overlaps item
  PartialSolution::Mark mark = {0, 0};
  std::size_t ranks_mark = 0;      // in MinimallocSearch::rank_trail_
  std::size_t children_begin = 0;  // in MinimallocSearch::partitions_
  std::size_t children_end = 0;
  std::size_t child = 0;  // the one that is being solved
};

// The depth-first search of section 7. It has a stack of its own, since it is as deep as there are
// buffers.
class MinimallocSearch {
 public:
  MinimallocSearch(const Items& items, const Overlaps& overlaps, const Rules& rules,
                   Stopper& stopper)
      : items_(items),
        rules_(rules.on),
        solution_(items, overlaps, rules),
        stopper_(stopper),
        rank_(items.size.size(), 0) {}

  // The problem cut at the times that nothing crosses.
  std::vector<std::vector<ItemIdx>> parts();

  // Solves one part from the start, in at most `limit` calls of the search function. What it
  // places stays placed.
  SearchVerdict run(const std::vector<ItemIdx>& part, StaticOrder* order, std::int64_t limit);

  std::int64_t nodes() const { return nodes_; }
  const PartialSolution& solution() const { return solution_; }

 private:
  SearchVerdict descend();
  bool enter(const Partition& partition);
  bool fail();
  bool advance(SearchFrame* frame);
  bool place(SearchFrame* frame);
  void take_back(SearchFrame* frame);
  std::int32_t next_candidate(const SearchFrame& frame) const;
  bool eligible(const SearchFrame& frame, ItemIdx i) const;
  bool alternatives_are_dead(const SearchFrame& frame) const;
  void add_children(SearchFrame* frame, bool divides);
  void split(const Partition& rest);
  void rank(const Partition& partition);
  CanonicalPlace step_of(ItemIdx i) const { return {solution_.offset(i), rank_[i]}; }

  const Items& items_;
  const MiniMallocOptions rules_;
  PartialSolution solution_;
  Stopper& stopper_;
  StaticOrder* order_ = nullptr;
  std::vector<std::int32_t> rank_;  // by item: the static index, unique within a partition
  std::vector<std::pair<ItemIdx, std::int32_t>> rank_trail_;
  std::vector<ItemIdx> slots_;
  std::vector<Partition> partitions_;
  std::vector<SearchFrame> frames_;
  std::int64_t nodes_ = 0;
  std::int64_t nodes_end_ = 0;
};

std::vector<std::vector<ItemIdx>> MinimallocSearch::parts() {
  slots_.resize(items_.size.size());
  std::iota(slots_.begin(), slots_.end(), 0);
  split({0, items_.count(), {0, items_.section_count - 1}, CanonicalPlace()});
  std::vector<std::vector<ItemIdx>> parts;
  for (const Partition& p : partitions_) {
    parts.emplace_back(slots_.begin() + p.begin, slots_.begin() + p.end);
  }
  return parts;
}

SearchVerdict MinimallocSearch::run(const std::vector<ItemIdx>& part, StaticOrder* order,
                                    std::int64_t limit) {
  const PartialSolution::Mark before = solution_.mark();
  order_ = order;
  nodes_end_ = limit < kAllTurns - nodes_ ? nodes_ + limit : kAllTurns;
  slots_ = part;
  SectionRange sections = {items_.section_count, 0};
  for (const ItemIdx i : part) {
    sections.first = std::min(sections.first, items_.first(i));
    sections.last = std::max(sections.last, items_.last(i));
  }
  partitions_ = {{0, static_cast<std::int32_t>(part.size()), sections, CanonicalPlace()}};
  rank(partitions_.front());
  rank_trail_.clear();
  frames_.assign(1, SearchFrame());  // it places nothing, and its only child is the whole part
  frames_.back().children_end = 1;
  const SearchVerdict verdict = descend();
  if (verdict != SearchVerdict::kSolved) solution_.undo(before);
  return verdict;
}

SearchVerdict MinimallocSearch::descend() {
  for (;;) {
    SearchFrame& top = frames_.back();
    if (top.child < top.children_end) {
      if (nodes_ >= nodes_end_) return SearchVerdict::kCutShort;
      // A node looks at every item left, so that 64 nodes may take long.
      if (items_.count() > 4096 ? stopper_.look() : stopper_.expired())
        return SearchVerdict::kCutShort;
      if (!enter(partitions_[top.child]) && !fail()) return SearchVerdict::kExhausted;
      continue;
    }
    MEMPLAN_ASSERT(partitions_.size() >= top.children_end && top.child == top.children_end);
    if (frames_.size() == 1) return SearchVerdict::kSolved;
    partitions_.resize(top.children_begin);
    frames_.pop_back();
    ++frames_.back().child;
  }
}

// Calls the search function. Returns false if nothing can be placed.
bool MinimallocSearch::enter(const Partition& partition) {
  MEMPLAN_ASSERT(partition.begin < partition.end && solution_.check_invariants());
  ++nodes_;
  SearchFrame frame;
  frame.partition = partition;
  frame.highest_start = solution_.highest_start(partition.sections);
  frame.tried = rules_.canonical && rules_.dynamic_ordering ? partition.floor : CanonicalPlace();
  frames_.push_back(frame);
  return advance(&frames_.back());
}

// The top frame has no candidates left. Goes back to the last choice that has an alternative: false
// if there is none. The partitions that were solved next to the failed one are taken back with it.
bool MinimallocSearch::fail() {
  for (;;) {
    frames_.pop_back();
    SearchFrame& parent = frames_.back();
    if (frames_.size() == 1) return false;
    take_back(&parent);
    if (alternatives_are_dead(parent)) continue;
    if (advance(&parent)) return true;
  }
}

// Places the next candidate that the rules let pass.
bool MinimallocSearch::advance(SearchFrame* frame) {
  for (;;) {
    const std::int32_t at = next_candidate(*frame);
    if (at < 0) return false;
    std::swap(slots_[at], slots_[frame->partition.begin]);
    if (place(frame)) return true;
    take_back(frame);
    if (alternatives_are_dead(*frame)) return false;
  }
}

bool MinimallocSearch::place(SearchFrame* frame) {
  frame->item = slots_[frame->partition.begin];
  frame->tried = step_of(frame->item);
  frame->mark = solution_.mark();
  frame->ranks_mark = rank_trail_.size();
  frame->children_begin = frame->children_end = frame->child = partitions_.size();
  MEMPLAN_ASSERT(eligible(*frame, frame->item) && frame->tried.offset <= frame->highest_start);
  const PartialSolution::Effect effect = solution_.place(frame->item);
  frame->overhead = effect.overhead;
  if (effect.stuck) return false;
  if (rules_.section_inference &&
      !solution_.sections_fit(frame->partition.sections, frame->tried.offset)) {
    return false;
  }
  add_children(frame, effect.divides);
  return true;
}

void MinimallocSearch::take_back(SearchFrame* frame) {
  MEMPLAN_ASSERT(frame->ranks_mark <= rank_trail_.size() &&
                 frame->children_begin <= partitions_.size());
  solution_.undo(frame->mark);
  for (; rank_trail_.size() > frame->ranks_mark; rank_trail_.pop_back()) {
    rank_[rank_trail_.back().first] = rank_trail_.back().second;
  }
  partitions_.resize(frame->children_begin);
}

// Lines 5 to 13 of the pseudocode, and equation 2 for the one buffer.
bool MinimallocSearch::eligible(const SearchFrame& frame, ItemIdx i) const {
  if (!solution_.fits(i)) return false;
  return !rules_.canonical || frame.partition.floor < step_of(i);
}

// The slot of the next candidate, or -1. It is found by a scan rather than in a sorted list of
// the node, as the state is again what it was when the node was entered: the least step (or index)
// above the one tried last comes next. So a node takes no space of its own.
std::int32_t MinimallocSearch::next_candidate(const SearchFrame& frame) const {
  std::int32_t best = -1;
  CanonicalPlace best_step;
  Bytes lowest_height = std::numeric_limits<Bytes>::max();  // h_min of section 6.3
  for (std::int32_t k = frame.partition.begin; k < frame.partition.end; ++k) {
    const ItemIdx i = slots_[k];
    lowest_height = std::min(lowest_height, solution_.height(i));
    if (!rules_.dynamic_ordering) continue;
    const CanonicalPlace step = step_of(i);
    if (frame.tried < step && solution_.fits(i) && (best < 0 || step < best_step)) {
      best = k;
      best_step = step;
    }
  }
  Bytes highest = frame.highest_start;
  if (rules_.dominance) highest = std::min(highest, lowest_height - 1);
  // Later candidates start no lower: if this one is too high, so are they.
  if (rules_.dynamic_ordering) return best >= 0 && best_step.offset <= highest ? best : -1;
  for (std::int32_t k = frame.partition.begin; k < frame.partition.end; ++k) {
    const ItemIdx i = slots_[k];
    if (rank_[i] <= frame.tried.index || !eligible(frame, i)) continue;
    if (solution_.offset(i) <= highest && (best < 0 || rank_[i] < rank_[slots_[best]])) best = k;
  }
  return best;
}

// Hatless (section 7): nothing unallocated overlaps the item that has just failed, so that its
// offset is final and it raises no other. If order is free, whatever is placed instead of it must
// fail for the same reason. A canonical alternative after it in (offset, index) can never be
// followed by it: dead. One before it would be allowed more below the item's own step: alive. In
// the dynamic order those have been tried already.
bool MinimallocSearch::alternatives_are_dead(const SearchFrame& frame) const {
  if (!rules_.hatless || frame.overhead) return false;
  if (!rules_.canonical || rules_.dynamic_ordering) return true;
  for (std::int32_t k = frame.partition.begin; k < frame.partition.end; ++k) {
    const ItemIdx i = slots_[k];
    const bool untried = rank_[i] > frame.tried.index;
    if (untried && eligible(frame, i) && step_of(i) < frame.tried) return false;
  }
  return true;
}

void MinimallocSearch::add_children(SearchFrame* frame, bool divides) {
  Partition rest = frame->partition;
  ++rest.begin;
  if (rest.begin < rest.end && divides && rules_.dynamic_decomposition) {
    split(rest);
    for (std::size_t k = frame->children_begin; k < partitions_.size(); ++k) rank(partitions_[k]);
  } else if (rest.begin < rest.end) {
    if (rules_.canonical) rest.floor = frame->tried;
    partitions_.push_back(rest);
  }
  // The partitions fill the rest of the slice.
  std::int32_t at = frame->partition.begin + 1;
  for (std::size_t k = frame->children_begin; k < partitions_.size(); ++k) {
    MEMPLAN_ASSERT(partitions_[k].begin == at && at < partitions_[k].end);
    at = partitions_[k].end;
  }
  MEMPLAN_ASSERT(at == frame->partition.end);
  frame->children_end = partitions_.size();
}

// Dynamic decomposition (section 7): items are cut apart at the times that none of them crosses.
// Each part is a problem of its own, which depends on the rest only by minimum viable offsets.
// Canonical solutions start again in it, without a floor and with indexes of its own (see rank).
void MinimallocSearch::split(const Partition& rest) {
  const std::size_t parts_begin = partitions_.size();
  std::sort(slots_.begin() + rest.begin, slots_.begin() + rest.end,
            [this](ItemIdx a, ItemIdx b) { return items_.first(a) < items_.first(b); });
  for (std::int32_t k = rest.begin; k < rest.end; ++k) {
    const ItemIdx i = slots_[k];
    if (partitions_.size() == parts_begin || items_.first(i) > partitions_.back().sections.last) {
      partitions_.push_back({k, k, {items_.first(i), items_.last(i)}, CanonicalPlace()});
    }
    partitions_.back().end = k + 1;
    partitions_.back().sections.last = std::max(partitions_.back().sections.last, items_.last(i));
  }
}

// Gives the items of a part their indexes, by the static order as of now. That keeps canonical
// search complete: "sorted by (offset, index)" is enough with any indexes that stand still while
// steps are compared. If the sequence of the problem above continues in this part, then the part
// has a solution, and so one of least sum, whose own sequence is canonical by the new indexes.
// Steps on both sides of the cut are never compared, as floors start again here, and backtracking
// above the cut restores the old indexes.
void MinimallocSearch::rank(const Partition& partition) {
  order_->sort(slots_.begin() + partition.begin, slots_.begin() + partition.end,
               solution_.unallocated());
  for (std::int32_t k = partition.begin; k < partition.end; ++k) {
    const ItemIdx i = slots_[k];
    if (rank_[i] == k) continue;
    rank_trail_.emplace_back(i, rank_[i]);
    rank_[i] = k;
  }
}

Plan fitting(const Problem& problem, std::vector<Bytes> offsets, const char* note) {
  Plan plan = unknown(note);
  plan.status = Status::kFits;
  plan.peak = peak_of(problem, offsets);
  plan.offsets = std::move(offsets);
  return plan;
}

std::vector<StaticOrder> orders_of(const Problem& problem, const Items& items,
                                   const Overlaps& overlaps, const MiniMallocOptions& options,
                                   Stopper& stopper) {
  std::vector<StaticOrder> orders;
  if (options.static_ordering) {
    for (const std::string& word : options.orders) {
      if (stopper.look()) break;
      orders.emplace_back(problem, items, overlaps, word);
    }
  }
  if (orders.empty()) orders.emplace_back(problem, items, overlaps, "");
  return orders;
}

// Runs the orders in turn, with limits that double, so that an order which is bad for the part at
// hand wastes little. Each part has its own turns, since the order that is good for one may be bad
// for its neighbour.
SearchVerdict round_robin(const std::vector<ItemIdx>& part, std::vector<StaticOrder>* orders,
                          std::int64_t node_budget, MinimallocSearch* search, std::int64_t* runs,
                          const Stopper& stopper) {
  std::int64_t limit = orders->size() == 1 ? kAllTurns : 2 * static_cast<std::int64_t>(part.size());
  for (;;) {
    for (StaticOrder& order : *orders) {
      if (search->nodes() >= node_budget || stopper.stopped()) return SearchVerdict::kCutShort;
      ++*runs;
      const std::int64_t left = node_budget - search->nodes();
      const SearchVerdict verdict = search->run(part, &order, std::min(limit, left));
      if (verdict != SearchVerdict::kCutShort) return verdict;
    }
    if (limit <= kAllTurns / 2) limit *= 2;
  }
}

Plan exhausted(const Items& items, const std::vector<ItemIdx>& part) {
  if (items.windowed) {
    // A sequence puts v wholly above u; windows of v could also lie between those of u.
    return unknown("the search is exhausted, but that is no proof where gaps have windows");
  }
  std::vector<BufferIdx> conflict;
  for (const ItemIdx i : part) conflict.push_back(items.buffer[i]);
  std::sort(conflict.begin(), conflict.end());
  return infeasible(std::move(conflict), "the search is exhausted");
}

Plan place_parts(const Problem& problem, const Items& items, const Overlaps& overlaps,
                 const MiniMallocOptions& options, std::int64_t node_budget, Stopper& stopper) {
  std::vector<StaticOrder> orders = orders_of(problem, items, overlaps, options, stopper);
  MinimallocSearch search(items, overlaps, Rules(options, overlaps), stopper);
  std::int64_t runs = 0;
  Plan plan;
  SearchVerdict verdict = SearchVerdict::kSolved;
  for (const std::vector<ItemIdx>& part : search.parts()) {
    verdict = round_robin(part, &orders, node_budget, &search, &runs, stopper);
    if (verdict == SearchVerdict::kExhausted) plan = exhausted(items, part);
    if (verdict == SearchVerdict::kCutShort) plan = unknown("the budget ran out");
    if (verdict != SearchVerdict::kSolved) break;
  }
  if (verdict == SearchVerdict::kSolved) {
    std::vector<Bytes> offsets = items.offsets;
    for (ItemIdx i = 0; i < items.count(); ++i) {
      offsets[items.buffer[i]] = search.solution().offset(i);
    }
    MEMPLAN_ASSERT(is_plan(items, search.solution().offsets()));
    plan = fitting(problem, std::move(offsets), "the search found a solution");
  }
  plan.stats.nodes = search.nodes();
  plan.stats.restarts = runs;
  return plan;
}

Plan answer_by_minimalloc(const Problem& problem, const Items& items,
                          const MiniMallocOptions& options, std::int64_t node_budget,
                          Stopper& stopper) {
  if (std::optional<Plan> none = refuted_by_a_misfit(items)) return *std::move(none);
  if (items.count() == 0) return fitting(problem, items.offsets, "no buffer ever holds anything");
  // Without it, equation 3 prunes at the first node.
  if (options.section_inference) {
    if (std::optional<Plan> none = refuted_by_load(items)) return *std::move(none);
  }
  Overlaps overlaps;
  if (const char* refusal = overlaps.build(items, stopper)) return unknown(refusal);
  return place_parts(problem, items, overlaps, options, node_budget, stopper);
}

}  // namespace

Plan minimalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const MiniMallocOptions& options, std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  return found_by("minimalloc",
                  answer_by_minimalloc(problem, items, options, node_budget, stopper));
}

}  // namespace memplan
