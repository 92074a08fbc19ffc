// Which pair to decide next: the one that was in most of the recent conflicts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "util/invariants.h"

namespace memplan::prover {

// A binary heap of pairs by activity. Activities are integers, so that every machine counts alike.
class Order {
 public:
  explicit Order(int pairs) : activity_(pairs, 0), rank_(pairs), place_(pairs) {
    for (int p = 0; p < pairs; ++p) {
      heap_.push_back(p);
      place_[p] = p;
      rank_[p] = p;
    }
  }

  // Pairs that were in no conflict yet come in this order, and so do ties.
  void rank(const std::vector<int>& ranks) {
    MEMPLAN_ASSERT(ranks.size() == rank_.size());
    rank_ = ranks;
    for (int i = static_cast<int>(heap_.size()) / 2 - 1; i >= 0; --i) sink(i);
  }
  void bump(int pair) {
    activity_[pair] += step_;
    if (place_[pair] >= 0) rise(place_[pair]);
  }
  // Past conflicts count 19/20 of later ones.
  void decay() {
    step_ += step_ / 19;
    if (step_ < kMost) return;
    step_ >>= kShift;
    for (std::int64_t& a : activity_) a >>= kShift;
  }
  void put_back(int pair) {
    if (place_[pair] >= 0) return;
    place_[pair] = static_cast<int>(heap_.size());
    heap_.push_back(pair);
    rise(place_[pair]);
  }
  bool empty() const { return heap_.empty(); }
  int take() {
    MEMPLAN_ASSERT(!heap_.empty());
    const int best = heap_.front();
    place_[best] = -1;
    const int last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      heap_.front() = last;
      place_[last] = 0;
      sink(0);
    }
    return best;
  }

  bool has(int pair) const { return place_[pair] >= 0; }

  // A heap in which everything knows its place. Ties that a decay has made may lie in any order.
  bool check_invariants() const {
    std::size_t placed = 0;
    for (const int place : place_) placed += place >= 0 ? 1 : 0;
    MEMPLAN_ASSERT(placed == heap_.size());
    for (std::size_t i = 0; i < heap_.size(); ++i) {
      MEMPLAN_ASSERT(place_[heap_[i]] == static_cast<int>(i));
      MEMPLAN_ASSERT(i == 0 || activity_[heap_[i]] <= activity_[heap_[(i - 1) / 2]]);
      MEMPLAN_ASSERT(activity_[heap_[i]] >= 0);
    }
    return true;
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 40;
  static constexpr int kShift = 24;

  bool before(int a, int b) const {
    return activity_[a] != activity_[b] ? activity_[a] > activity_[b] : rank_[a] < rank_[b];
  }
  void swap(int i, int k) {
    std::swap(heap_[i], heap_[k]);
    place_[heap_[i]] = i;
    place_[heap_[k]] = k;
  }
  void rise(int i) {
    for (; i > 0 && before(heap_[i], heap_[(i - 1) / 2]); i = (i - 1) / 2) swap(i, (i - 1) / 2);
  }
  void sink(int i) {
    const int size = static_cast<int>(heap_.size());
    for (;;) {
      int best = i;
      for (int child = 2 * i + 1; child <= 2 * i + 2 && child < size; ++child) {
        if (before(heap_[child], heap_[best])) best = child;
      }
      if (best == i) return;
      swap(i, best);
      i = best;
    }
  }

  std::vector<std::int64_t> activity_;
  std::vector<int> rank_;  // distinct
  std::vector<int> heap_;
  std::vector<int> place_;  // in the heap, or -1
  std::int64_t step_ = std::int64_t{1} << 16;
};

}  // namespace memplan::prover
