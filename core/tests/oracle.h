// Plain definitions to test the fast code against: slow, short, and written without it.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
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

inline bool listed(const Problem& problem, BufferIdx a, BufferIdx b) {
  const memplan::Conflicts& all = problem.conflicts;
  return std::find(all.first(a), all.last(a), b) != all.last(a);
}

inline bool conflict(const Problem& problem, BufferIdx a, Bytes at_a, BufferIdx b, Bytes at_b) {
  if (listed(problem, a, b) && problem.size[a] > 0 && problem.size[b] > 0 &&
      at_a < at_b + problem.size[b] && at_b < at_a + problem.size[a]) {
    return true;
  }
  if (problem.start[a] >= problem.end[b] || problem.start[b] >= problem.end[a]) return false;
  // Pieces lie within their buffers; most pairs are settled here, without a list of them.
  if (at_a + problem.size[a] <= at_b || at_b + problem.size[b] <= at_a) return false;
  if (problem.gaps.empty()) return problem.size[a] > 0 && problem.size[b] > 0;
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

// Whether two buffers of one group are as far apart as it wants them.
inline bool in_step(const Problem& problem, BufferIdx a, Bytes at_a, BufferIdx b, Bytes at_b) {
  if (problem.group_of(a) == memplan::kNoGroup || problem.group_of(a) != problem.group_of(b)) {
    return true;
  }
  return at_a - problem.lead[a] == at_b - problem.lead[b];
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
      if (!in_step(problem, a, offsets[a], b, offsets[b])) return false;
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

// What the buffers of some time take together: no peak is below it.
inline Bytes load(const Problem& problem) {
  if (!problem.gaps.empty()) return 0;
  Bytes most = 0;
  for (const Time at : problem.start) {
    Bytes sum = 0;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (problem.start[b] <= at && at < problem.end[b]) sum += problem.size[b];
    }
    most = std::max(most, sum);
  }
  return most;
}

// The one offset that a pin or the members of its group before it leave a buffer, or kNoOffset.
inline Bytes only_offset(const Problem& problem, BufferIdx b, const std::vector<Bytes>& offsets) {
  if (problem.pin_of(b) != kNoOffset) return problem.pin_of(b);
  for (BufferIdx a = 0; a < b && problem.group_of(b) != memplan::kNoGroup; ++a) {
    if (problem.group_of(a) == problem.group_of(b)) {
      return std::max(offsets[a] - problem.lead[a] + problem.lead[b], kNoOffset);
    }
  }
  return kNoOffset;
}

// Lowers `best` to the least peak of any plan below it, by trying every offset of every buffer,
// until it is at `least`.
inline void search(const Problem& problem, std::vector<Bytes>* offsets, Bytes top, Bytes least,
                   Bytes* best) {
  if (*best <= least) return;
  const auto b = static_cast<BufferIdx>(offsets->size());
  if (b == problem.count()) {
    *best = top;
    return;
  }
  const Bytes only = only_offset(problem, b, *offsets);
  for (Bytes offset = std::max<Bytes>(only, 0); offset + problem.size[b] < *best; ++offset) {
    bool free = legal(problem, b, offset);
    for (BufferIdx a = 0; free && a < b; ++a) {
      free = !conflict(problem, a, (*offsets)[a], b, offset) &&
             in_step(problem, a, (*offsets)[a], b, offset);
    }
    if (free) {
      offsets->push_back(offset);
      search(problem, offsets, std::max(top, offset + problem.size[b]), least, best);
      offsets->pop_back();
    }
    if (only != kNoOffset) return;
  }
}

// The least peak of any plan with a peak below `limit`, or `limit`. For a handful of buffers. Small
// limits come first, since they are cheap.
inline Bytes least_peak(const Problem& problem, Bytes limit) {
  for (Bytes part = std::min<Bytes>(8, limit);; part = std::min(2 * part, limit)) {
    std::vector<Bytes> offsets;
    Bytes best = part;
    search(problem, &offsets, 0, load(problem), &best);
    if (best < part || part >= limit) return best;
  }
}

// The relation of these pairs, in any order, as compressed rows.
inline memplan::Conflicts relation(BufferIdx count,
                                   const std::vector<std::pair<BufferIdx, BufferIdx>>& pairs) {
  std::vector<std::vector<BufferIdx>> rows(static_cast<std::size_t>(count));
  for (const auto& [a, b] : pairs) {
    rows[a].push_back(b);
    rows[b].push_back(a);
  }
  memplan::Conflicts conflicts;
  conflicts.begin.push_back(0);
  for (std::vector<BufferIdx>& row : rows) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    conflicts.other.insert(conflicts.other.end(), row.begin(), row.end());
    conflicts.begin.push_back(static_cast<std::int64_t>(conflicts.other.size()));
  }
  return conflicts;
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

// A well-formed problem: seeded, and the same with every standard library. With any feature, what
// is degenerate (an empty buffer or window, a gap as long as the lifetime, equal sizes, a group of
// one or of all) is drawn far more often than even draws would, since faults hide there. Plain
// problems are drawn evenly: those are hard.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Bytes pick(Bytes low, Bytes high) {
    return low + static_cast<Bytes>(random_() % static_cast<unsigned>(high - low + 1));
  }

  // Like pick(), but of problems with features often one of the two ends.
  Bytes edge(Bytes low, Bytes high) {
    const Bytes way = plain_ ? 2 : pick(0, 7);
    return way == 0 ? low : way == 1 ? high : pick(low, high);
  }

  Problem problem(Bytes count, Time horizon, Bytes max_size, const Features& with) {
    Problem p;
    plain_ = !(with.alignment || with.pins || with.reserved || with.gaps || with.hints);
    if (with.reserved) add_reserved(&p, max_size);
    const bool one_size = !plain_ && pick(0, 11) == 0;
    const bool one_lifetime = !plain_ && pick(0, 11) == 0;
    for (BufferIdx b = 0; b < count; ++b) {
      p.start.push_back(one_lifetime && b > 0 ? p.start[0] : edge(0, horizon - 1));
      p.end.push_back(one_lifetime && b > 0 ? p.end[0] : edge(p.start[b] + 1, horizon));
      p.size.push_back(one_size && b > 0 ? p.size[0] : edge(0, max_size));
      if (with.alignment) p.alignment.push_back(any_alignment());
      if (with.hints) p.hint.push_back(pick(0, 2) == 0 ? kNoOffset : edge(0, 3 * max_size));
      if (with.gaps && pick(0, 1) == 0) add_gaps(&p, b);
    }
    if (!with.pins) return p;
    p.pin.assign(p.size.size(), kNoOffset);
    for (BufferIdx b = 0; b < count; ++b) {
      if (pick(0, 3) == 0) add_pin(&p, b, edge(0, 3 * max_size));
    }
    return p;
  }

  // Gives a problem conflicts beyond lifetimes: each pair has one with a chance of one in `rarity`.
  void relate(Problem* p, Bytes rarity) {
    std::vector<std::pair<BufferIdx, BufferIdx>> pairs;
    for (BufferIdx b = 0; b < p->count(); ++b) {
      for (BufferIdx a = 0; a < b; ++a) {
        if (pick(1, rarity) == 1) pairs.emplace_back(a, b);
      }
    }
    p->conflicts = relation(p->count(), pairs);
    keep_well_formed(p);
  }

  // Makes about half of the buffers members of contiguous groups, or all of them of one group or of
  // a group each. Empty members come first, last and between.
  void gather(Problem* p) {
    p->group.assign(p->size.size(), memplan::kNoGroup);
    p->lead.assign(p->size.size(), 0);
    const Bytes way = plain_ ? 2 : pick(0, 9);
    const auto groups = static_cast<std::int32_t>(
        way == 0 ? 1 : std::max<Bytes>(1, p->count() / (way == 1 ? 1 : 5)));
    std::vector<Bytes> length(static_cast<std::size_t>(groups), 0);
    const bool upwards = pick(0, 1) == 0;
    for (BufferIdx i = 0; i < p->count(); ++i) {
      const BufferIdx b = upwards ? i : p->count() - 1 - i;
      const auto any = static_cast<std::int32_t>(pick(0, 2 * groups - 1));
      const std::int32_t group = way == 0 ? 0 : way == 1 ? i : any;
      if (group >= groups) continue;
      p->group[b] = group;
      p->lead[b] = length[group];
      length[group] += p->size[b];
    }
    keep_well_formed(p);
  }

 private:
  // What relate() and gather() put together may contradict pins and alignments: the buffer that is
  // named loses its own.
  static void keep_well_formed(Problem* p) {
    for (std::string error = memplan::check(*p); !error.empty(); error = memplan::check(*p)) {
      const auto b =
          static_cast<std::size_t>(std::stoi(error.substr(std::string("buffer ").size())));
      if (error.find(": alignment ") != std::string::npos) {
        p->alignment[b] = 1;
      } else {
        p->pin.at(b) = kNoOffset;
      }
    }
  }

  Bytes any_alignment() {
    constexpr Bytes kAll[] = {1, 2, 4, 1, 2, 4, 1, 2, 4, 3, 7, 8};
    return kAll[pick(0, 11)];
  }

  void add_reserved(Problem* p, Bytes max_size) {
    const Bytes lower = edge(0, 2 * max_size);
    const Bytes upper = lower + edge(1, max_size);
    p->reserved.push_back({lower, upper});
    if (pick(0, 3) != 0) return;
    const Bytes next = upper + pick(0, 2);  // it may touch the first
    p->reserved.push_back({next, next + 1});
  }

  void add_gaps(Problem* p, BufferIdx b) {
    const Time start = edge(p->start[b], p->end[b] - 1);
    const Time end = edge(start + 1, p->end[b]);
    add_gap(p, b, start, end);
    if (end < p->end[b] && pick(0, 2) == 0) add_gap(p, b, edge(end, p->end[b] - 1), p->end[b]);
  }

  void add_gap(Problem* p, BufferIdx b, Time start, Time end) {
    const Bytes lower = edge(0, p->size[b]);
    p->gaps.push_back({b, start, end, lower, edge(lower, p->size[b])});
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
  bool plain_ = true;  // the last problem
};

// A rectangle of `width` by `height` cut at random into `count` buffers: its load is flat, and a
// plan at that load exists.
inline Problem cut_rectangle(Generator& generator, int count, Bytes width, Bytes height) {
  Problem problem;
  struct Box {
    Time start, end;
    Bytes lower, upper;
  };
  std::vector<Box> boxes = {{0, width, 0, height}};
  while (static_cast<int>(boxes.size()) < count) {
    const auto at =
        static_cast<std::size_t>(generator.pick(0, static_cast<Bytes>(boxes.size()) - 1));
    Box& box = boxes[at];
    Box other = box;
    if (generator.pick(0, 1) == 0) {
      if (box.end - box.start < 2) continue;
      box.end = other.start = generator.pick(box.start + 1, box.end - 1);
    } else {
      if (box.upper - box.lower < 2) continue;
      box.upper = other.lower = generator.pick(box.lower + 1, box.upper - 1);
    }
    boxes.push_back(other);
  }
  for (const Box& box : boxes) {
    problem.start.push_back(box.start);
    problem.end.push_back(box.end);
    problem.size.push_back(box.upper - box.lower);
  }
  return problem;
}

}  // namespace oracle
