#include "exact/pair_propagation.h"

#include <algorithm>
#include <functional>

#include "util/invariants.h"

namespace memplan {

namespace {

// Bounds that move so often in one call creep around a cycle in which only rounding raises them.
constexpr std::int64_t kMaxChanges = std::int64_t{1} << 20;
constexpr std::int32_t kRisesBeforeCycleCheck = 32;

}  // namespace

Propagation::Propagation(const Items& items, const Relations& relations, Stopper& stopper)
    : items_(items),
      relations_(relations),
      stopper_(stopper),
      lower_(items.earliest),
      upper_(items.latest),
      is_awake_(items.size.size(), 0),
      cause_(items.size.size()),
      visited_(items.size.size(), 0),
      in_section_(static_cast<std::size_t>(items.section_count)),
      touched_(static_cast<std::size_t>(items.section_count), 0) {
  for (const Relation& r : relations.all) {
    first_.push_back(r.begin);
    last_.push_back(r.end - 1);
  }
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        in_section_[s].push_back({i, span->lower, span->upper});
      }
    }
  }
  // The first call looks at everything.
  for (ItemIdx i = 0; i < items.count(); ++i) wake(i);
  for (SectionIdx s = 0; s < items.section_count; ++s) touch(s);
}

bool Propagation::check_invariants() const {
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    MEMPLAN_ASSERT(items_.earliest[i] <= lower_[i] && lower_[i] <= upper_[i] &&
                   upper_[i] <= items_.latest[i]);
    MEMPLAN_ASSERT(items_.legal_above(i, lower_[i]) == lower_[i]);
    MEMPLAN_ASSERT(items_.legal_below(i, upper_[i]) == upper_[i]);
  }
  for (std::size_t r = 0; r < relations_.all.size(); ++r) {
    MEMPLAN_ASSERT(relations_.all[r].begin <= first_[r] && first_[r] <= last_[r] &&
                   last_[r] < relations_.all[r].end);
  }
  MEMPLAN_ASSERT(awake_.size() ==
                 static_cast<std::size_t>(std::count(is_awake_.begin(), is_awake_.end(), 1)));
  MEMPLAN_ASSERT(touched_list_.size() ==
                 static_cast<std::size_t>(std::count(touched_.begin(), touched_.end(), 1)));
  return true;
}
void Propagation::restrict(std::int32_t relation, std::int32_t first, std::int32_t last) {
  range_trail_.push_back({relation, first_[relation], last_[relation]});
  MEMPLAN_ASSERT(first_[relation] <= first && first <= last && last <= last_[relation]);
  first_[relation] = first;
  last_[relation] = last;
  wake(relations_.all[relation].i);
}

void Propagation::wake(ItemIdx i) {
  if (is_awake_[i]) return;
  is_awake_[i] = 1;
  awake_.push_back(i);
}

bool Propagation::fixpoint() {
  ++calls_;
  changes_ = 0;
  // The test of sections changes no bound, so it runs once, at the end.
  const bool holds = relations_hold() && sections_hold();
  for (const ItemIdx i : awake_) is_awake_[i] = 0;
  awake_.clear();
  for (const SectionIdx s : touched_list_) touched_[s] = 0;
  MEMPLAN_ASSERT(!holds || is_fixpoint());
  touched_list_.clear();
  return holds;
}

bool Propagation::is_fixpoint() const {
  for (std::size_t r = 0; r < relations_.all.size(); ++r) {
    const auto& [i, j, begin, end] = relations_.all[r];
    const Differences& first = relations_.allowed[first_[r]];
    const Differences& last = relations_.allowed[last_[r]];
    MEMPLAN_ASSERT(first.to >= lower_[j] - upper_[i] && last.from <= upper_[j] - lower_[i]);
    MEMPLAN_ASSERT(lower_[j] >= lower_[i] + first.from && lower_[i] >= lower_[j] - last.to);
    MEMPLAN_ASSERT(upper_[i] <= upper_[j] - first.from && upper_[j] <= upper_[i] + last.to);
  }
  return true;
}
bool Propagation::relations_hold() {
  for (std::size_t head = 0; head < awake_.size(); ++head) {
    const ItemIdx i = awake_[head];
    is_awake_[i] = 0;
    for (const std::int32_t r : relations_.of_item[i]) {
      if (!revise(r)) return false;
    }
    if (changes_ > kMaxChanges || stopper_.expired()) {
      gave_up_ = true;
      return false;
    }
  }
  return true;
}

// Closes the ranges that the bounds exclude, at either end only, since the ranges that are left
// must be contiguous and bounds depend on their hull.
bool Propagation::revise(std::int32_t relation) {
  const Relation& r = relations_.all[relation];
  const std::vector<Differences>& allowed = relations_.allowed;
  std::int32_t first = first_[relation];
  std::int32_t last = last_[relation];
  while (first <= last && allowed[first].to < lower_[r.j] - upper_[r.i]) ++first;
  while (first <= last && allowed[last].from > upper_[r.j] - lower_[r.i]) --last;
  if (first > last) return false;
  if (first != first_[relation] || last != last_[relation]) {
    range_trail_.push_back({relation, first_[relation], last_[relation]});
    first_[relation] = first;
    last_[relation] = last;
  }
  const Bytes from = allowed[first].from;
  const Bytes to = allowed[last].to;
  return raise(r.j, lower_[r.i] + from, r.i, from) && raise(r.i, lower_[r.j] - to, r.j, -to) &&
         sink(r.i, upper_[r.j] - from) && sink(r.j, upper_[r.i] + to);
}

bool Propagation::raise(ItemIdx i, Bytes bound, ItemIdx because, Bytes step) {
  if (bound <= lower_[i]) return true;
  const Bytes offset = items_.legal_above(i, bound);
  if (offset > upper_[i]) return false;
  set(&lower_[i], offset, i);
  Cause& cause = cause_[i];
  const std::int32_t rises = cause.fixpoint == calls_ ? cause.rises + 1 : 1;
  cause = {because, step, calls_, rises};
  return rises % kRisesBeforeCycleCheck != 0 || !rising_for_ever(i);
}

bool Propagation::sink(ItemIdx i, Bytes bound) {
  if (bound >= upper_[i]) return true;
  const Bytes offset = items_.legal_below(i, bound);
  if (offset < lower_[i]) return false;
  set(&upper_[i], offset, i);
  return true;
}

void Propagation::set(Bytes* bound, Bytes value, ItemIdx i) {
  bound_trail_.emplace_back(bound, *bound);
  MEMPLAN_ASSERT(*bound != value && lower_[i] <= upper_[i]);
  *bound = value;
  ++changes_;
  wake(i);
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) touch(s);
  }
}

void Propagation::touch(SectionIdx s) {
  if (touched_[s]) return;
  touched_[s] = 1;
  touched_list_.push_back(s);
}

// "offset >= offset of the cause + step" all the way round a cycle, with steps that sum to more
// than 0, has no solution. Without this check, the bounds would climb it to the capacity in steps
// of that sum. A cycle that needs roundings to rise is not one: it might come to rest.
bool Propagation::rising_for_ever(ItemIdx i) {
  const auto known = [this](ItemIdx x) { return x != kNoItem && cause_[x].fixpoint == calls_; };
  ++visit_;
  ItemIdx at = i;
  while (known(at) && visited_[at] != visit_) {
    visited_[at] = visit_;
    at = cause_[at].item;
  }
  if (!known(at)) return false;
  Bytes sum = 0;
  const ItemIdx start = at;
  do {
    sum += cause_[at].step;
    if (sum > kMaxBytes || sum < -kMaxBytes) return false;  // the next sum might overflow
    at = cause_[at].item;
  } while (at != start);
  return sum > 0;
}

bool Propagation::sections_hold() {
  for (const SectionIdx s : touched_list_) {
    if (stopper_.expired()) {
      gave_up_ = true;
      return false;
    }
    if (!section_holds(s)) return false;
  }
  return true;
}

// The windows of a section are jobs on one machine, the address axis, and so are the reserved
// ranges: no job earlier than its release, later than its deadline, or together with another. If
// even the preemptive schedule by earliest deadline fails, there is none.
bool Propagation::section_holds(SectionIdx s) {
  tasks_.clear();
  for (const Window& w : in_section_[s]) {
    tasks_.push_back({lower_[w.item] + w.lower, upper_[w.item] + w.upper, w.upper - w.lower});
  }
  for (const Reserved& r : items_.reserved) tasks_.push_back({r.lower, r.upper, r.upper - r.lower});
  std::sort(tasks_.begin(), tasks_.end(),
            [](const Task& a, const Task& b) { return a.release < b.release; });

  const auto later = std::greater<std::pair<Bytes, Bytes>>();
  running_.clear();
  Bytes now = 0;
  auto next = tasks_.begin();
  while (next != tasks_.end() || !running_.empty()) {
    if (running_.empty()) now = std::max(now, next->release);
    for (; next != tasks_.end() && next->release <= now; ++next) {
      running_.emplace_back(next->deadline, next->length);
      std::push_heap(running_.begin(), running_.end(), later);
    }
    std::pop_heap(running_.begin(), running_.end(), later);
    const Bytes until_next = next == tasks_.end() ? kMaxBytes : next->release - now;
    const Bytes run = std::min(running_.back().second, until_next);
    MEMPLAN_ASSERT(run > 0);
    now += run;
    if (now > running_.back().first) return false;
    running_.back().second -= run;
    if (running_.back().second == 0) {
      running_.pop_back();
    } else {
      std::push_heap(running_.begin(), running_.end(), later);
    }
  }
  return true;
}

void Propagation::undo(const Mark& mark) {
  MEMPLAN_ASSERT(mark.bounds <= bound_trail_.size() && mark.ranges <= range_trail_.size());
  for (; bound_trail_.size() > mark.bounds; bound_trail_.pop_back()) {
    *bound_trail_.back().first = bound_trail_.back().second;
  }
  for (; range_trail_.size() > mark.ranges; range_trail_.pop_back()) {
    const OldRange& old = range_trail_.back();
    first_[old.relation] = old.first;
    last_[old.relation] = old.last;
  }
}

}  // namespace memplan
