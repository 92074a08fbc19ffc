// Plain definitions to test the fast code against: slow, short, and written without it.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "memplan/problem.h"

namespace oracle {

using memplan::BufferIdx;
using memplan::Bytes;
using memplan::kNoOffset;
using memplan::Problem;
using memplan::Time;

// What a buffer holds over a stretch of time.
struct Piece {
  Time start;
  Time end;
  Bytes lower;
  Bytes upper;
};

inline std::vector<Piece> pieces(const Problem& problem, BufferIdx b) {
  std::vector<Piece> result;
  Time at = problem.start[b];
  for (const memplan::Gap& gap : problem.gaps) {
    if (gap.buffer != b) continue;
    result.push_back({at, gap.start, 0, problem.size[b]});
    result.push_back({gap.start, gap.end, gap.lower, gap.upper});
    at = gap.end;
  }
  result.push_back({at, problem.end[b], 0, problem.size[b]});
  return result;
}

inline bool conflict(const Problem& problem, BufferIdx a, Bytes at_a, BufferIdx b, Bytes at_b) {
  if (problem.start[a] >= problem.end[b] || problem.start[b] >= problem.end[a]) return false;
  for (const Piece& p : pieces(problem, a)) {
    for (const Piece& q : pieces(problem, b)) {
      const bool together = std::max(p.start, q.start) < std::min(p.end, q.end);
      const Bytes lower = std::max(at_a + p.lower, at_b + q.lower);
      const Bytes upper = std::min(at_a + p.upper, at_b + q.upper);
      if (together && p.lower < p.upper && q.lower < q.upper && lower < upper) return true;
    }
  }
  return false;
}

// Every rule about one buffer alone.
inline bool legal(const Problem& problem, BufferIdx b, Bytes offset) {
  const Bytes end = offset + problem.size[b];
  if (offset < 0 || offset % problem.alignment_of(b) != 0) return false;
  if (problem.capacity && end > *problem.capacity) return false;
  if (problem.pin_of(b) != kNoOffset && problem.pin_of(b) != offset) return false;
  for (const memplan::Reserved& r : problem.reserved) {
    if (problem.size[b] > 0 && offset < r.upper && r.lower < end) return false;
  }
  return true;
}

inline bool valid(const Problem& problem, const std::vector<Bytes>& offsets) {
  if (offsets.size() != problem.size.size()) return false;
  for (BufferIdx a = 0; a < problem.count(); ++a) {
    if (!legal(problem, a, offsets[a])) return false;
    for (BufferIdx b = 0; b < a; ++b) {
      if (conflict(problem, a, offsets[a], b, offsets[b])) return false;
    }
  }
  return true;
}

inline Bytes peak(const Problem& problem, const std::vector<Bytes>& offsets) {
  Bytes top = 0;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    top = std::max(top, offsets[b] + problem.size[b]);
  }
  return top;
}

// Lowers `best` to the least peak of any plan below it, by trying every offset of every buffer.
inline void search(const Problem& problem, std::vector<Bytes>* offsets, Bytes top, Bytes* best) {
  const auto b = static_cast<BufferIdx>(offsets->size());
  if (b == problem.count()) {
    *best = top;
    return;
  }
  for (Bytes offset = 0; offset + problem.size[b] < *best; ++offset) {
    bool free = legal(problem, b, offset);
    for (BufferIdx a = 0; free && a < b; ++a) {
      free = !conflict(problem, a, (*offsets)[a], b, offset);
    }
    if (!free) continue;
    offsets->push_back(offset);
    search(problem, offsets, std::max(top, offset + problem.size[b]), best);
    offsets->pop_back();
  }
}

// The least peak of any plan with a peak below `limit`, or `limit`. For a handful of buffers.
inline Bytes least_peak(const Problem& problem, Bytes limit) {
  std::vector<Bytes> offsets;
  Bytes best = limit;
  search(problem, &offsets, 0, &best);
  return best;
}

// Which constraints a random problem has.
struct Features {
  bool alignment = false;
  bool pins = false;
  bool reserved = false;
  bool gaps = false;
  bool hints = false;
};

constexpr int kFeatureSets = 32;

inline Features features(int bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
}

// A well-formed problem: seeded, and the same with every standard library.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Bytes pick(Bytes low, Bytes high) {
    return low + static_cast<Bytes>(random_() % static_cast<unsigned>(high - low + 1));
  }

  Problem problem(Bytes count, Time horizon, Bytes max_size, const Features& with) {
    Problem p;
    if (with.reserved) {
      const Bytes lower = pick(0, 2 * max_size);
      p.reserved.push_back({lower, lower + pick(1, max_size)});
    }
    for (BufferIdx b = 0; b < count; ++b) {
      p.start.push_back(pick(0, horizon - 1));
      p.end.push_back(pick(p.start[b] + 1, horizon));
      p.size.push_back(pick(0, max_size));
      if (with.alignment) p.alignment.push_back(Bytes{1} << pick(0, 2));
      if (with.hints) p.hint.push_back(pick(0, 2) == 0 ? kNoOffset : pick(0, 3 * max_size));
      if (with.gaps && pick(0, 1) == 0) add_gap(&p, b);
    }
    if (!with.pins) return p;
    p.pin.assign(p.size.size(), kNoOffset);
    for (BufferIdx b = 0; b < count; ++b) {
      if (pick(0, 3) == 0) add_pin(&p, b, pick(0, 3 * max_size));
    }
    return p;
  }

 private:
  void add_gap(Problem* p, BufferIdx b) {
    const Time start = pick(p->start[b], p->end[b] - 1);
    const Time end = pick(start + 1, p->end[b]);
    const Bytes lower = pick(0, p->size[b]);
    p->gaps.push_back({b, start, end, lower, pick(lower, p->size[b])});
  }

  // Only where it collides with nothing pinned before.
  static void add_pin(Problem* p, BufferIdx b, Bytes offset) {
    offset -= offset % p->alignment_of(b);
    if (!legal(*p, b, offset)) return;
    for (BufferIdx a = 0; a < b; ++a) {
      if (p->pin[a] != kNoOffset && conflict(*p, a, p->pin[a], b, offset)) return;
    }
    p->pin[b] = offset;
  }

  std::mt19937 random_;
};

}  // namespace oracle
