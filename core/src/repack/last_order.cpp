#include "repack/last_order.h"

#include <algorithm>
#include <utility>

namespace memplan::repack {

namespace {
constexpr const char* kOrder = "room_length";  // of the first pass of the squeaky wheel
}

void LastOrder::remember(const std::vector<Slot>& slots, Slot count, const Problem& problem,
                         const Sections& sections, Stopper& stopper) {
  const Profile profile(problem, sections, stopper);
  const KeyOf key = order_of(kOrder).key;
  order_.clear();
  ordered_.assign(static_cast<std::size_t>(count), 0);
  for (std::size_t row = 0; row < slots.size(); ++row) {
    order_.push_back({key(profile, static_cast<BufferIdx>(row)), slots[row]});
    ordered_[slots[row]] = 1;
  }
  std::sort(order_.begin(), order_.end());
}

std::vector<BufferIdx> LastOrder::rows(const std::vector<Slot>& slots, Slot count,
                                       const Problem& problem, const Sections& sections) {
  const auto gone = [this](const KeyedSlot& each) { return ordered_[each.slot] == 0; };
  order_.erase(std::remove_if(order_.begin(), order_.end(), gone), order_.end());
  const auto kept = static_cast<std::ptrdiff_t>(order_.size());
  ordered_.resize(static_cast<std::size_t>(count), 0);
  std::vector<BufferIdx> row_of(ordered_.size());
  const std::vector<Bytes> load = loads(sections);
  const auto max_load =
      static_cast<double>(load.empty() ? 0 : *std::max_element(load.begin(), load.end()));
  for (std::size_t row = 0; row < slots.size(); ++row) {
    const Slot slot = slots[row];
    row_of[slot] = static_cast<BufferIdx>(row);
    if (std::exchange(ordered_[slot], char{1}) != 0) continue;
    double length = 0, contention = 0;
    for (auto k = sections.span_begin[row]; k < sections.span_begin[row + 1]; ++k) {
      const Span& span = sections.spans[k];
      length += span.last - span.first + 1;
      const auto begin = load.begin() + span.first;
      const auto end = load.begin() + span.last + 1;
      contention = std::max(contention, static_cast<double>(*std::max_element(begin, end)));
    }
    const auto size = static_cast<double>(problem.size[row]);
    order_.push_back({room_length_key(max_load - contention, length, size), slot});
  }
  std::sort(order_.begin() + kept, order_.end());
  std::inplace_merge(order_.begin(), order_.begin() + kept, order_.end());
  std::vector<BufferIdx> rows;
  rows.reserve(order_.size());
  for (const KeyedSlot& each : order_) rows.push_back(row_of[each.slot]);
  return rows;
}

void LastOrder::pass(Words& words, const std::vector<Slot>& slots) {
  words.pass_all(order_, [&](KeyedSlot& each) {
    for (double& part : each.key) words.pass(part);
    words.pass(each.slot);
  });
  words.pass_all(ordered_);
  if (!words.reads()) return;
  // Those that are in it are in use, and once in it; others are gone.
  std::vector<char> missing = ordered_;
  for (const KeyedSlot& each : order_) {
    Words::require(each.slot >= 0 && static_cast<std::size_t>(each.slot) < ordered_.size());
    if (ordered_[each.slot] == 0) continue;
    Words::require(std::exchange(missing[each.slot], char{0}) != 0);
    Words::require(std::binary_search(slots.begin(), slots.end(), each.slot));
  }
  Words::require(std::count(missing.begin(), missing.end(), 0) ==
                 static_cast<std::ptrdiff_t>(missing.size()));
}

}  // namespace memplan::repack
