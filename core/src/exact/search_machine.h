// Part of search_narrow.cpp and search_wide.cpp, which instantiate everything: the machine that
// opens nodes, advances them and takes in their verdicts.
#pragma once

#include <algorithm>
#include <limits>

#include "exact/search.h"
#include "exact/search_branching.h"
#include "exact/search_reductions.h"
#include "util/invariants.h"
#include "util/random.h"

namespace memplan::exact {

template <typename V>
Search<V>::Search(const Task& task, const ExactOptions& options)
    : options_(options),
      words_(static_cast<int>((task.items.size() + 63) / 64)),
      root_sections_(task.sections),
      root_ceiling_(static_cast<V>(task.ceiling)),
      world_(task.world),
      restricted_(task.restricted),
      source_(task.source),
      conflict_bits_(words_, 0),
      conflict_(conflict_bits_.data(), words_),
      nogoods_(static_cast<int>(task.items.size())),
      offsets_(task.items.size(), kNoOffset) {
  const std::size_t n = task.items.size();
  for (const Item<Bytes>& item : task.items) {
    root_.push_back(
        {static_cast<V>(item.floor), static_cast<V>(item.size), item.first, item.last, item.id});
  }
  for (const Item<Bytes>& item : task.items) {
    MEMPLAN_ASSERT(static_cast<Bytes>(static_cast<V>(item.floor)) == item.floor);
    MEMPLAN_ASSERT(static_cast<Bytes>(static_cast<V>(item.size)) == item.size);
  }
  MEMPLAN_ASSERT(static_cast<Bytes>(root_ceiling_) == task.ceiling);
  for (std::size_t i = 0; i < n; ++i) zobrist_.push_back(mix(i + 1));
  const std::size_t s = static_cast<std::size_t>(task.sections) + 1;
  for (auto* column : {&load_, &floor_, &top_}) column->resize(s);
  for (auto* column : {&begins_, &ends_, &map_, &choices_, &lowest_, &weight_}) column->resize(s);
  is_lowest_.resize(n);
  noise_.resize(n);
  index_.resize(n);
  held_.resize(n);
  by_floor_.resize(n);
  sort_by_floor(root_.data(), static_cast<int>(n));
}

// A tree of problems, depth first. A Step says what comes next:
//
//     kChild    open() takes a problem: it decides it at once (empty, over the bound, refuted
//               before, one section), or leaves a frame with its children
//     kAdvance  the frame on top makes its next child; without one, it is refuted
//     kSat, kUnsat  absorb() applies the verdict on a child to the frame on top
//
// A frame's problem has a plan if and only if one of its children has one (for parts between times
// that no item crosses: all of them). After kUnsat, conflict_ has ids of items of the problem which
// have no plan by themselves. That is what backjumping and nogoods live on: if the child raised
// none of them, they are in conflict in its parent too.
template <typename V>
Verdict Search<V>::run(const Strategy& strategy, std::int64_t node_budget, Stopper* stopper,
                       const std::atomic<bool>* cancel) {
  strategy_ = strategy;
  node_limit_ = node_budget > std::numeric_limits<std::int64_t>::max() - nodes_
                    ? std::numeric_limits<std::int64_t>::max()
                    : nodes_ + node_budget;
  stopper_ = stopper;
  cancel_ = cancel;
  std::fill(weight_.begin(), weight_.end(), 1);
  for (std::size_t i = 0; i < noise_.size(); ++i) {
    noise_[i] = 1 + strategy.noise * (2 * unit_interval(mix(strategy.seed) + i) - 1);
  }
  frames_.clear();
  arena_.release({});

  Child root;
  root.mark = arena_.mark();
  root.count = static_cast<int>(root_.size());
  root.sections = root_sections_;
  root.ceiling = root_ceiling_;
  root.risen_last = root_sections_ - 1;
  root.items = arena_.take<Node>(root_.size());
  std::copy(root_.begin(), root_.end(), root.items);
  root.section = arena_.take<std::int32_t>(root_sections_);
  for (int j = 0; j < root_sections_; ++j) root.section[j] = j;

  // The stack is our own, since its depth grows with the number of items, which could overflow the
  // thread's.
  Step step = open(root);
  while (true) {
    switch (step) {
      case Step::kAdvance:
        step = advance();
        break;
      case Step::kChild:
        step = open(child_);
        break;
      case Step::kBudget:
        return Verdict::kBudget;
      case Step::kSat:
      case Step::kUnsat:
        if (frames_.empty()) {
          MEMPLAN_ASSERT(step == Step::kUnsat || is_plan());
          MEMPLAN_ASSERT(arena_.check_invariants() && nogoods_.check_invariants());
          return step == Step::kSat ? Verdict::kSat : Verdict::kUnsat;
        }
        step = absorb(step);
        break;
    }
  }
}

template <typename V>
bool Search<V>::out_of_budget() {
  if (nodes_ >= node_limit_ || arena_.reserved_bytes() > kMaxArena) return true;
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return true;
  return stopper_ != nullptr && (nodes_ % 16 == 0 ? stopper_->look() : stopper_->stopped());
}

// ---- the machine: open a problem, advance a frame, absorb a verdict

// Takes in a new problem: decides it at once, or leaves a frame that advance() continues.
template <typename V>
typename Search<V>::Step Search<V>::open(Child child) {
  if (out_of_budget()) return Step::kBudget;
  ++nodes_;
  MEMPLAN_ASSERT(nodes_ <= node_limit_);
  IdSet resolved(arena_, words_);
  const auto decided = [&](Step verdict) {
    if (verdict == Step::kUnsat) conflict_.add(resolved);
    arena_.release(child.mark);
    return verdict;
  };
  switch (reduce(child, resolved)) {
    case Reduction::kUnsat:
      return decided(Step::kUnsat);
    case Reduction::kEmpty:
      return decided(Step::kSat);
    case Reduction::kSplit:
      return open_split(child, resolved);
    case Reduction::kDone:
      break;
  }
  if (!bound_holds(child)) return decided(Step::kUnsat);
  MEMPLAN_ASSERT(check_invariants(child) && holds_everywhere(child));
  if (!restricted() && options_.release_dates && child.sections == 1) {
    place_stack(child);
    return decided(Step::kSat);
  }
  Frame frame;
  frame.problem = child;
  frame.resolved = resolved;
  if (options_.nogoods) {
    frame.key = key_of(child);
    if (nogoods_.refutes(frame.key, child.items, child.count, child.ceiling, conflict_)) {
      MEMPLAN_ASSERT(is_within(conflict_, child));
      return decided(Step::kUnsat);
    }
  }
  choose_section(frame);
  order_options(frame);
  find_jump(frame);
  MEMPLAN_ASSERT(frame.option_count > 0 && (frame.jump == kNoJump || frame.jump > frame.floor));
  frame.learned = IdSet(arena_, words_);
  frame.raised = IdSet(arena_, words_);
  frames_.push_back(frame);
  return Step::kAdvance;
}

// Makes the next child of the top frame, or gives the frame's verdict when none is left.
template <typename V>
typename Search<V>::Step Search<V>::advance() {
  Frame& frame = frames_.back();
  if (frame.split) {
    if (frame.next == frame.part_count) return close(Step::kSat);
    child_ = frame.parts[frame.next++];
    MEMPLAN_ASSERT(child_.ceiling == frame.problem.ceiling);
    child_.mark = arena_.mark();
    return Step::kChild;
  }
  while (frame.next < frame.option_count) {
    const Node placed = frame.problem.items[frame.options[frame.next++]];
    if (place_child(frame, placed)) return Step::kChild;
    if (absorb(Step::kUnsat) == Step::kUnsat) return Step::kUnsat;
  }
  if (frame.next == frame.option_count) {
    ++frame.next;
    if (frame.jump != kNoJump) {
      if (raise_section(frame)) return Step::kChild;
      if (absorb(Step::kUnsat) == Step::kUnsat) return Step::kUnsat;
    } else if (frame.explain_gap) {
      const Child& p = frame.problem;
      for (int i = 0; i < p.count; ++i) {
        const Node& item = p.items[i];
        if (item.first <= frame.section && frame.section <= item.last) frame.learned.add(item.id);
      }
    }
  }
  MEMPLAN_ASSERT(is_within(frame.learned, frame.problem));
  if (options_.nogoods) {
    const Child& p = frame.problem;
    nogoods_.learn(frame.key, p.items, p.count, p.ceiling, frame.learned);
  }
  conflict_.clear();
  conflict_.add(frame.learned);
  return close(Step::kUnsat);
}

// Applies the verdict on a child to its parent frame.
template <typename V>
typename Search<V>::Step Search<V>::absorb(Step verdict) {
  Frame& frame = frames_.back();
  MEMPLAN_ASSERT(frame.next > 0);
  if (frame.split) return verdict == Step::kUnsat ? close(verdict) : Step::kAdvance;
  if (verdict == Step::kSat) return close(verdict);
  // Backjump: the child raised no item of its conflict, so the same items are in conflict here,
  // whatever is decided here.
  if (options_.backjumping && !conflict_.meets(frame.raised)) return close(verdict);
  frame.learned.add(conflict_);
  if (frame.next <= frame.option_count) {
    frame.learned.add(frame.problem.items[frame.options[frame.next - 1]].id);
  }
  return Step::kAdvance;
}

template <typename V>
typename Search<V>::Step Search<V>::close(Step verdict) {
  MEMPLAN_ASSERT(!frames_.empty());
  const Frame& frame = frames_.back();
  if (verdict == Step::kUnsat) conflict_.add(frame.resolved);
  arena_.release(frame.problem.mark);
  frames_.pop_back();
  return verdict;
}

// ---- what must hold

template <typename V>
bool Search<V>::check_invariants(const Child& problem) const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(0 <= problem.count && problem.count <= static_cast<int>(root_.size()));
  MEMPLAN_ASSERT(0 <= problem.sections && problem.sections <= root_sections_);
  MEMPLAN_ASSERT(problem.ceiling <= root_ceiling_);
  for (int j = 0; j < problem.sections; ++j) {
    MEMPLAN_ASSERT(problem.section[j] >= (j == 0 ? 0 : problem.section[j - 1] + 1));
    MEMPLAN_ASSERT(problem.section[j] < root_sections_);
  }
  MEMPLAN_ASSERT(problem.risen_first > problem.risen_last ||
                 (0 <= problem.risen_first && problem.risen_last < problem.sections));
  std::vector<const Node*> seen(root_.size(), nullptr);  // by id
  for (int i = 0; i < problem.count; ++i) {
    const Node& item = problem.items[i];
    MEMPLAN_ASSERT(i == 0 || problem.items[i - 1].floor >= item.floor);
    MEMPLAN_ASSERT(item.id >= 0 && item.id < static_cast<int>(seen.size()));
    MEMPLAN_ASSERT(seen[item.id] == nullptr);
    MEMPLAN_ASSERT(0 <= item.first && item.first <= item.last && item.last < problem.sections);
    MEMPLAN_ASSERT(item.floor >= 0 && item.size > 0);
    MEMPLAN_ASSERT(legal_floor(item.floor, item.id) == item.floor);
    seen[item.id] = &item;
  }
  for (const Node& item : root_) {  // floors only rise; sizes never change
    const Node* const now = seen[item.id];
    MEMPLAN_ASSERT(now == nullptr || (now->floor >= item.floor && now->size == item.size));
  }
  return true;
}

template <typename V>
bool Search<V>::holds_everywhere(const Child& problem) const {
  if (!kAssertions) return true;
  std::vector<V> load(problem.sections, V{0});
  for (int i = 0; i < problem.count; ++i) {
    const Node& item = problem.items[i];
    for (int j = item.first; j <= item.last; ++j) {
      load[j] = static_cast<V>(load[j] + item.size);
      MEMPLAN_ASSERT(!options_.release_dates || load[j] <= problem.ceiling - item.floor);
    }
  }
  for (int j = 0; j < problem.sections; ++j) {
    MEMPLAN_ASSERT(load[j] <= problem.ceiling && load[j] == load_[j]);
  }
  return true;
}

template <typename V>
bool Search<V>::is_within(const IdSet& set, const Child& problem) const {
  if (!kAssertions) return true;
  std::vector<char> seen(root_.size(), 0);
  for (int i = 0; i < problem.count; ++i) seen[problem.items[i].id] = 1;
  for (int id = 0; id < static_cast<int>(seen.size()); ++id) {
    if (set.has(id) && !seen[id]) return false;
  }
  return true;
}

template <typename V>
bool Search<V>::is_plan() const {
  if (!kAssertions) return true;
  for (const Node& a : root_) {
    const Bytes at = offsets_[a.id];
    MEMPLAN_ASSERT(a.floor <= at && at <= root_ceiling_ - a.size);
    for (const Node& b : root_) {
      if (a.id >= b.id || a.last < b.first || b.last < a.first) continue;
      MEMPLAN_ASSERT(at + a.size <= offsets_[b.id] || offsets_[b.id] + b.size <= at);
    }
  }
  return true;
}

}  // namespace memplan::exact
