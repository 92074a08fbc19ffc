#include "again/timeline.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"

namespace memplan::again {

namespace {

double bytes_above(Bytes load, Bytes capacity) {
  return load > capacity ? static_cast<double>(load - capacity) : 0.0;
}

}  // namespace

Timeline::Timeline(const Model& model)
    : model_(model),
      begin_(model.size.size() + 1, 0),
      end_(model.size.size(), 0),
      touch_of_(model.size.size(), -1) {}

void Timeline::set(std::vector<OperatorIdx> runs) {
  run_ = std::move(runs);
  set_events();
  looked_ += static_cast<std::int64_t>(run_.size() + event_.size());
  load_.assign(run_.size() + 1, 0);
  across_.assign(run_.size() + 2, 0);
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (begin_[s] < end_[s]) add_copies(s);
  }
  Bytes live = model_.base;
  Bytes crossing = model_.base;
  for (std::size_t slot = 0; slot < run_.size(); ++slot) {
    live += load_[slot];
    crossing += across_[slot];
    load_[slot] = live + model_.workspace[run_[slot]];
    across_[slot] = crossing;
  }
  across_[run_.size()] += crossing;
  load_.pop_back();
}

void Timeline::set_events() {
  std::fill(begin_.begin(), begin_.end(), 0);
  for (const OperatorIdx op : run_) {
    for (const StorageIdx s : model_.reads[op]) ++begin_[s + 1];
    for (const StorageIdx s : model_.makes[op]) ++begin_[s + 1];
  }
  for (std::size_t s = 0; s < end_.size(); ++s) {
    begin_[s + 1] += begin_[s];
    end_[s] = begin_[s];
  }
  event_.resize(begin_.back());
  for (std::size_t slot = 0; slot < run_.size(); ++slot) {
    const OperatorIdx op = run_[slot];
    const auto place = static_cast<std::int32_t>(slot);
    for (const StorageIdx s : model_.reads[op]) event_[end_[s]++] = place;
    for (const StorageIdx s : model_.makes[op]) event_[end_[s]++] = place;
  }
}

// A copy lives from its make to the last read before the next make: load_ and across_ get what
// changes from one slot to the next.
void Timeline::add_copies(StorageIdx s) {
  const Bytes size = model_.size[s];
  const auto add = [&](std::size_t first, std::size_t last) {
    load_[first] += size;
    load_[last + 1] -= size;
    across_[first + 1] += size;
    across_[last + 1] -= size;
  };
  const bool is_given = model_.given[s] != 0;
  if (is_given && !is_make(s, begin_[s])) across_[0] += size, across_[1] -= size;
  std::size_t first = is_given && !is_make(s, begin_[s]) ? 0 : event_[begin_[s]];
  for (std::size_t at = begin_[s]; at < end_[s]; ++at) {
    const bool is_last = at + 1 == end_[s];
    if (!is_last && !is_make(s, at + 1)) continue;
    const bool stays = is_last && model_.wanted[s] != 0;
    add(first, stays ? run_.size() - 1 : static_cast<std::size_t>(event_[at]));
    if (stays) across_[run_.size()] += size;
    if (!is_last) first = event_[at + 1];
  }
}

std::vector<OperatorIdx> Timeline::runs() const {
  std::vector<OperatorIdx> left;
  for (const OperatorIdx op : run_) {
    if (op != kNoOperator) left.push_back(op);
  }
  return left;
}

Bytes Timeline::peak() const {
  Bytes peak = model_.start;
  for (const Bytes load : load_) peak = std::max(peak, load);
  return peak;
}

double Timeline::excess(Bytes capacity) const {
  double sum = 0;
  for (const Bytes load : load_) sum += bytes_above(load, capacity);
  return sum;
}

std::size_t Timeline::first_event(StorageIdx s, std::size_t slot) const {
  const auto first = event_.begin() + static_cast<std::ptrdiff_t>(begin_[s]);
  const auto last = event_.begin() + static_cast<std::ptrdiff_t>(end_[s]);
  const auto found = std::lower_bound(first, last, static_cast<std::int32_t>(slot));
  return static_cast<std::size_t>(found - event_.begin());
}

bool Timeline::is_kept_across(StorageIdx s, std::size_t slot) const {
  const std::size_t at = first_event(s, slot);
  if (at == begin_[s] && model_.given[s] == 0) return false;
  return at < end_[s] ? !is_make(s, at) : model_.wanted[s] != 0;
}

std::int64_t Timeline::next_need(StorageIdx s, std::size_t step) const {
  const std::size_t at = first_event(s, step);
  if (at == begin_[s] && model_.given[s] == 0) return -1;
  if (at == end_[s]) return model_.wanted[s] != 0 ? static_cast<std::int64_t>(slots()) : -1;
  return is_make(s, at) ? -1 : event_[at];
}

// If a re-run does not take place, the copies before it live on to the reads of those that it
// would have made, and its reads keep nothing.
void Timeline::list_changes_of_removal(std::size_t slot) {
  changes_.clear();
  const OperatorIdx op = run_[slot];
  for (const StorageIdx s : model_.makes[op]) {
    const std::size_t at = first_event(s, slot);
    const bool is_last = at + 1 == end_[s];
    const bool is_needed = is_last ? model_.wanted[s] != 0 : !is_make(s, at + 1);
    const std::int64_t before = at == begin_[s] ? -1 : event_[at - 1];
    if (is_needed) changes_.push_back({before + 1, model_.size[s]});
  }
  for (const StorageIdx s : model_.reads[op]) {
    const std::size_t at = first_event(s, slot);
    const bool is_last = at + 1 == end_[s];
    const bool is_needed = is_last ? model_.wanted[s] != 0 : !is_make(s, at + 1);
    if (is_needed) continue;
    const std::int64_t before = at == begin_[s] ? -1 : event_[at - 1];
    changes_.push_back({before + 1, -model_.size[s]});
  }
}

bool Timeline::remove_if_fits(std::size_t slot, Bytes capacity) {
  list_changes_of_removal(slot);
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.first < b.first; });
  // All changes reach up to the slot, so that they add up from the left to the right.
  const auto each = [&](const auto& visit) {
    Bytes change = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      change += changes_[i].bytes;
      const std::int64_t end =
          i + 1 < changes_.size() ? changes_[i + 1].first : static_cast<std::int64_t>(slot);
      for (std::int64_t at = changes_[i].first; at < end; ++at) {
        if (!visit(static_cast<std::size_t>(at), change)) return false;
      }
    }
    return true;
  };
  if (!each([&](std::size_t at, Bytes change) { return load_[at] + change <= capacity; })) {
    return false;
  }
  each([&](std::size_t at, Bytes change) {
    load_[at] += change;
    return true;
  });
  erase_events(slot);
  run_[slot] = kNoOperator;
  load_[slot] = 0;
  return true;
}

void Timeline::erase_events(std::size_t slot) {
  const auto erase = [&](StorageIdx s) {
    const auto at = static_cast<std::ptrdiff_t>(first_event(s, slot));
    std::move(event_.begin() + at + 1, event_.begin() + static_cast<std::ptrdiff_t>(end_[s]),
              event_.begin() + at);
    --end_[s];
  };
  for (const StorageIdx s : model_.reads[run_[slot]]) erase(s);
  for (const StorageIdx s : model_.makes[run_[slot]]) erase(s);
}

void Timeline::list_touches(std::size_t slot, const std::vector<OperatorIdx>& inserted) {
  touches_.clear();
  const auto touch = [&](StorageIdx s) -> Touch& {
    if (touch_of_[s] < 0) {
      touch_of_[s] = static_cast<std::int32_t>(touches_.size());
      Touch fresh;
      fresh.storage = s;
      fresh.is_through = is_kept_across(s, slot);
      const std::size_t at = first_event(s, slot);
      if (at > begin_[s]) fresh.last = event_[at - 1];
      touches_.push_back(fresh);
    }
    return touches_[touch_of_[s]];
  };
  for (std::size_t i = 0; i < inserted.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    for (const StorageIdx s : model_.reads[inserted[i]]) {
      Touch& of = touch(s);
      (of.made < 0 ? of.read_before : of.read_after) = place;
    }
    for (const StorageIdx s : model_.makes[inserted[i]]) touch(s).made = place;
  }
  for (const Touch& of : touches_) touch_of_[of.storage] = -1;
}

// Nothing changes at the slot and after it: a new copy lives on as the old one did. Before it, an
// old copy that is made again ends at its last read, and one that is read again lives on.
double Timeline::excess_after(std::size_t slot, const std::vector<OperatorIdx>& inserted,
                              Bytes capacity) {
  list_touches(slot, inserted);
  looked_ += static_cast<std::int64_t>(inserted.size() * touches_.size());
  double growth = 0;
  for (std::size_t i = 0; i < inserted.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    Bytes load = across_[slot] + model_.workspace[inserted[i]];
    for (const Touch& of : touches_) {
      bool is_live = of.is_through || of.read_before >= place;
      if (of.made >= 0) {
        is_live = place < of.made    ? of.read_before >= place
                  : place == of.made ? true
                                     : of.is_through || of.read_after >= place;
      }
      if (is_live) load += model_.size[of.storage];
      if (of.is_through) load -= model_.size[of.storage];
    }
    growth += bytes_above(load, capacity);
  }
  changes_.clear();
  for (const Touch& of : touches_) {
    const bool is_needed = of.read_before >= 0 || (of.made < 0 && of.is_through);
    if (is_needed == of.is_through) continue;
    changes_.push_back(
        {of.last + 1, is_needed ? model_.size[of.storage] : -model_.size[of.storage]});
  }
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.first < b.first; });
  Bytes change = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    change += changes_[i].bytes;
    const std::int64_t end =
        i + 1 < changes_.size() ? changes_[i + 1].first : static_cast<std::int64_t>(slot);
    if (change != 0) looked_ += end - changes_[i].first;
    for (std::int64_t at = changes_[i].first; at < end && change != 0; ++at) {
      const Bytes load = load_[static_cast<std::size_t>(at)];
      growth += bytes_above(load + change, capacity) - bytes_above(load, capacity);
    }
  }
  return growth;
}

const char* check_runs(const Model& model, const std::vector<OperatorIdx>& runs) {
  std::vector<std::uint8_t> done(model.again.size(), 0);
  std::vector<std::uint8_t> has_begun = model.given;
  OperatorIdx count = 0;
  for (const OperatorIdx op : runs) {
    if (op < 0 || op >= model.runs()) return "a sequence must be made of operators and moves";
    if (op >= model.operators()) {
      if (model.again[op] == 0) return "a storage is moved that may not be";
      if (has_begun[op - model.operators()] == 0) return "a storage is moved before it is there";
      continue;
    }
    if (done[op] != 0) {
      if (model.again[op] == 0) return "an operator runs again that may not";
      continue;
    }
    for (const OperatorIdx other : model.before[op]) {
      if (done[other] == 0) return "an operator must run after all that it waits for";
    }
    for (const StorageIdx s : model.reads[op]) has_begun[s] = 1;
    for (const StorageIdx s : model.makes[op]) has_begun[s] = 1;
    done[op] = 1;
    ++count;
  }
  return count == model.operators() ? nullptr : "a sequence must run every operator";
}

std::vector<std::uint8_t> list_reruns(const Model& model, const std::vector<OperatorIdx>& runs) {
  std::vector<std::uint8_t> done(model.again.size(), 0);
  std::fill(done.begin() + model.operators(), done.end(), std::uint8_t{1});
  std::vector<std::uint8_t> reruns;
  for (const OperatorIdx op : runs) {
    reruns.push_back(done[op]);
    done[op] = 1;
  }
  return reruns;
}

std::int64_t extra_of(const Model& model, const std::vector<OperatorIdx>& runs) {
  std::int64_t extra = 0;
  const std::vector<std::uint8_t> reruns = list_reruns(model, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (reruns[i] != 0) extra += model.cost[runs[i]];
  }
  return extra;
}

}  // namespace memplan::again
