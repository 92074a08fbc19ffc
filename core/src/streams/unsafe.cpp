// Our rows of unsafe pairs, a word of 64 tensors at a time.
//
// A may be overwritten by B iff B's producer p comes after all ends of A. For one stream these p
// are those from some place on: `free_from(A, stream)`, the greatest first descendant of the ends
// of A. So for a, made at place x of its stream s, and tensors of a stream r in the order in which
// they are made:
//
//   b0 b1 b2 b3 b4 | b5 b6 ...     from the bar on, b is made after the last need of a: safe
//    -     -                       free_from(b, s) <= x: a is made after the last need of b: safe
//
// What is left is unsafe. The bar is one number; the second set only grows while a goes along its
// stream. A row is a range of bits, less the bits of the dead. The pairs that overlap in the order
// of numbers can be left out in the same way: these, too, end at a bar, less a set that only grows.
#include <algorithm>

#include "streams/bits.h"
#include "streams/reach.h"
#include "streams/rules.h"
#include "util/bit_scan.h"
#include "util/invariants.h"

namespace memplan::streams {

namespace {

// Tensors sorted by stream, and there by the place of their producer.
struct Ranks {
  std::vector<TensorIdx> tensor;          // by rank
  std::vector<std::int32_t> made_before;  // by stream and place: the rank that comes next
  std::vector<std::size_t> first;         // by stream: its part of `made_before`

  // The ranks of what a stream makes at places below `place` end here; from 1 to its length + 1.
  std::int32_t end(StreamIdx s, std::int32_t place) const {
    return made_before[first[s] + static_cast<std::size_t>(place) - 1];
  }
};

Ranks ranks(const StreamGraph& graph, const Places& at) {
  Ranks result;
  std::size_t slots = 0;
  for (const std::int32_t length : at.length) {
    result.first.push_back(slots);
    slots += static_cast<std::size_t>(length) + 1;
  }
  const auto slot = [&](TensorIdx t) {
    const OperatorIdx p = graph.producer[t];
    return result.first[graph.stream[p]] + static_cast<std::size_t>(at.place[p]) - 1;
  };
  std::vector<std::int32_t>& before = result.made_before;
  before.assign(slots + 1, 0);
  for (TensorIdx t = 0; t < graph.tensors(); ++t) ++before[slot(t) + 1];
  for (std::size_t i = 0; i < slots; ++i) before[i + 1] += before[i];
  result.tensor.resize(graph.tensors());
  std::vector<std::int32_t> next = before;
  for (TensorIdx t = 0; t < graph.tensors(); ++t) result.tensor[next[slot(t)]++] = t;
  MEMPLAN_ASSERT(next.back() == graph.tensors() && std::is_sorted(before.begin(), before.end()));
  return result;
}

// By tensor and stream: the place from which on the stream may reuse its memory.
Table free_from(const StreamGraph& graph, const Places& at) {
  const Table descendants = first_descendants(graph, at);
  Table table(graph.tensors(), at.streams, 0);
  for (TensorIdx t = 0; t < graph.tensors(); ++t) {
    std::int32_t* mine = table.row(t);
    for_each_end(graph, t, [&](OperatorIdx end) {
      const std::int32_t* theirs = descendants.row(end);
      for (StreamIdx s = 0; s < at.streams; ++s) mine[s] = std::max(mine[s], theirs[s]);
    });
  }
  return table;
}

// The last operator, by number, that needs a tensor.
OperatorIdx last_end(const StreamGraph& graph, TensorIdx t) {
  OperatorIdx last = kNoOperator;
  for_each_end(graph, t, [&](OperatorIdx end) { last = std::max(last, end); });
  return last;
}

// Ranks, sorted by a number of each.
class Buckets {
 public:
  template <typename NumberOf>
  void sort(std::int32_t count, std::int32_t numbers, NumberOf number_of) {
    begin_.assign(static_cast<std::size_t>(numbers) + 1, 0);
    for (std::int32_t r = 0; r < count; ++r) ++begin_[number_of(r) + 1];
    for (std::int32_t i = 0; i < numbers; ++i) begin_[i + 1] += begin_[i];
    ranks_.resize(count);
    std::vector<std::int32_t> next = begin_;
    for (std::int32_t r = 0; r < count; ++r) ranks_[next[number_of(r)]++] = r;
  }
  // Adds all that have a number in [low, high).
  void add_to(std::vector<Word>* set, std::int32_t low, std::int32_t high) const {
    for (std::int32_t i = begin_[low]; i < begin_[high]; ++i) {
      (*set)[ranks_[i] / kBits] |= Word{1} << (ranks_[i] % kBits);
    }
  }

 private:
  std::vector<std::int32_t> begin_;
  std::vector<std::int32_t> ranks_;
};

enum class Extent { kAll, kBeyondOrder };

class Sweep {
 public:
  Sweep(const StreamGraph& graph, Extent extent)
      : graph_(graph),
        count_(graph.tensors()),
        extent_(extent),
        at_(places(graph)),
        ranks_(ranks(graph, at_)),
        free_from_(free_from(graph, at_)),
        dead_(count_ / kBits + 1),
        past_(count_ / kBits + 1) {
    by_last_end_.sort(count_, graph.operators() + 1,
                      [&](std::int32_t r) { return last_end(graph, ranks_.tensor[r]); });
  }

  // Calls `take(tensor, all that are unsafe with it)` for every tensor; with the extent kAll the
  // tensor itself is among these.
  template <typename Take>
  void rows(Take take) {
    std::vector<TensorIdx> others;
    for (StreamIdx s = 0; s < at_.streams; ++s) {
      std::fill(dead_.begin(), dead_.end(), 0);
      std::fill(past_.begin(), past_.end(), 0);
      by_death_.sort(count_, at_.length[s] + 2,
                     [&](std::int32_t r) { return free_from_.row(ranks_.tensor[r])[s]; });
      std::int32_t died = 0;
      OperatorIdx passed = 0;
      for (std::int32_t r = ranks_.end(s, 1); r < ranks_.end(s, at_.length[s] + 1); ++r) {
        const TensorIdx a = ranks_.tensor[r];
        const OperatorIdx producer = graph_.producer[a];
        by_death_.add_to(&dead_, died, at_.place[producer] + 1);
        by_last_end_.add_to(&past_, passed, producer);
        MEMPLAN_ASSERT(passed <= producer && died <= at_.place[producer] + 1);
        died = at_.place[producer] + 1;
        passed = producer;
        others.clear();
        gather(a, &others);
        take(a, others);
      }
    }
  }

 private:
  void gather(TensorIdx a, std::vector<TensorIdx>* others) const {
    const OperatorIdx last = last_end(graph_, a);
    const auto made_by_then = [&](TensorIdx b) { return graph_.producer[b] <= last; };
    for (StreamIdx s = 0; s < at_.streams; ++s) {
      const std::int32_t begin = ranks_.end(s, 1);
      const std::int32_t end = ranks_.end(s, free_from_.row(a)[s]);
      std::int32_t middle = begin;
      if (extent_ == Extent::kBeyondOrder) {
        const auto first = ranks_.tensor.begin();
        middle = static_cast<std::int32_t>(
            std::partition_point(first + begin, first + end, made_by_then) - first);
        gather(begin, middle, [&](std::int32_t w) { return ~dead_[w] & past_[w]; }, others);
      }
      gather(middle, end, [&](std::int32_t w) { return ~dead_[w]; }, others);
    }
  }

  // Adds the tensors of those ranks in [begin, end) that are in a set, given by its words.
  template <typename WordAt>
  void gather(std::int32_t begin, std::int32_t end, WordAt word_at,
              std::vector<TensorIdx>* others) const {
    if (begin >= end) return;
    const std::int32_t last = (end - 1) / kBits;
    Word mask = ~Word{0} << (begin % kBits);
    for (std::int32_t w = begin / kBits; w <= last; ++w, mask = ~Word{0}) {
      Word left = word_at(w) & mask;
      if (w == last) left &= ~Word{0} >> (kBits - 1 - (end - 1) % kBits);
      MEMPLAN_ASSERT(w < static_cast<std::int32_t>(dead_.size()));
      for (; left != 0; left &= left - 1) {
        others->push_back(ranks_.tensor[w * kBits + lowest_bit(left)]);
      }
    }
  }

  const StreamGraph& graph_;
  TensorIdx count_;
  Extent extent_;
  Places at_;
  Ranks ranks_;
  Table free_from_;
  Buckets by_death_;  // by the place of the stream at hand from which on they are dead
  Buckets by_last_end_;
  std::vector<Word> dead_;  // by rank: its memory is free for the tensor at hand
  std::vector<Word> past_;  // by rank: over before it is made, if operators run by number
};

// Goes over the rows twice, since counting first takes less than half of the time, and no memory.
// Row `a` begins at `least(a)`.
template <typename Least>
UnsafePairs collect(const StreamGraph& graph, Extent extent, Least least) {
  Sweep sweep(graph, extent);
  const TensorIdx count = graph.tensors();
  UnsafePairs pairs;
  pairs.row_begin.assign(static_cast<std::size_t>(count) + 1, 0);
  sweep.rows([&](TensorIdx a, const std::vector<TensorIdx>& others) {
    const TensorIdx from = least(a);
    pairs.row_begin[a + 1] =
        std::count_if(others.begin(), others.end(), [from](TensorIdx b) { return b >= from; });
  });
  for (TensorIdx a = 0; a < count; ++a) pairs.row_begin[a + 1] += pairs.row_begin[a];

  pairs.other.resize(static_cast<std::size_t>(pairs.row_begin.back()));
  std::vector<Word> row(count / kBits + 1);  // the others, sorted; empty between rows
  sweep.rows([&](TensorIdx a, const std::vector<TensorIdx>& others) {
    const TensorIdx from = least(a);
    for (const TensorIdx b : others) {
      row[b / kBits] |= Word{b >= from ? 1U : 0U} << (b % kBits);
    }
    TensorIdx* out = pairs.other.data() + pairs.row_begin[a];
    for (std::size_t w = from / kBits; w < row.size(); ++w) {
      for (; row[w] != 0; row[w] &= row[w] - 1) {
        *out++ = static_cast<TensorIdx>(w) * kBits + lowest_bit(row[w]);
      }
    }
    MEMPLAN_ASSERT(out == pairs.other.data() + pairs.row_begin[a + 1]);  // as many as were counted
  });
  return pairs;
}

}  // namespace

UnsafePairs by_runs(const StreamGraph& graph) {
  return collect(graph, Extent::kAll, [](TensorIdx a) { return a + 1; });
}

}  // namespace memplan::streams

namespace memplan {

UnsafePairs unsafe_beyond_order(const StreamGraph& graph) {
  streams::require_good(graph);
  return streams::collect(graph, streams::Extent::kBeyondOrder, [](TensorIdx) { return 0; });
}

}  // namespace memplan
