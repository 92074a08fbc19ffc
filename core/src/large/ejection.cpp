#include "large/ejection.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::chain {

namespace {

constexpr BufferIdx kFixed = -1;
constexpr Bytes kUnitsToTarget = 1 << 16;  // units of size to a target
constexpr std::int64_t kMostFailures = 1 << 16;

// A cost counts for at least so many parts, and for up to so many more by chance. Without chance,
// the search runs in a cycle on one small problem in seven.
constexpr std::int64_t kSurely = 2;
constexpr std::int64_t kNoise = 8;

constexpr std::int64_t kVisitsPerNode = 256;  // of buffers, as dear as a placement

// What is placed in a stripe of time is looked at in one go: about so many buffers. Shorter stripes
// would have most buffers in several of them.
constexpr std::int64_t kPerStripe = 256;

}  // namespace

Ejection::Ejection(const Problem& problem, const Sections& sections, std::uint64_t seed,
                   Stopper& stopper)
    : problem_(problem),
      random_(seed),
      stopper_(stopper),
      blocks_(problem),
      failures_(problem.size.size(), 1),
      marked_(problem.size.size(), 0),
      stays_(problem.size.size(), 0) {
  at_.reserve(problem.size.size());
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    Placed row{kNoOffset, problem.size[b], 1, 0, b};  // no section at all
    if (sections.span_begin[b] < sections.span_begin[b + 1]) {
      row.first = sections.spans[sections.span_begin[b]].first;
      row.last = sections.spans[sections.span_begin[b + 1] - 1].last;
    }
    at_.push_back(row);
    if (problem.pin_of(b) == kNoOffset) continue;
    blocks_.for_each(b, [this](BufferIdx member, Bytes) { stays_[member] = 1; });
  }
  cut_time(sections);
}

// Conflicts beyond lifetimes may join any two times, so that these have one stripe.
void Ejection::cut_time(const Sections& sections) {
  const std::int64_t count = std::max(1, problem_.count());
  std::int64_t lived = 0;
  for (const Placed& row : at_) lived += row.last - row.first + 1;
  const std::int64_t wanted = kPerStripe * sections.count / count;
  stripe_ = std::max<SectionIdx>(1, sections.count);
  if (problem_.conflicts.empty()) {
    stripe_ = static_cast<SectionIdx>(
        std::clamp<std::int64_t>(std::max(wanted, lived / count), 1, stripe_));
  }
  stripes_.resize(stripe_of(std::max(1, sections.count) - 1) + 1);
}

void Ejection::lay_out(const std::vector<Bytes>& offsets) {
  std::vector<Ranked> by_address;
  by_address.reserve(at_.size());
  for (Placed& row : at_) {
    row.offset = offsets[row.buffer];
    if (row.offset != kNoOffset && row.size > 0) by_address.push_back({row.offset, row.buffer});
  }
  sort_ranked(by_address.data(), by_address.data() + by_address.size());
  for (std::vector<Placed>& stripe : stripes_) stripe.clear();
  for (const auto& [offset, b] : by_address) {
    const Placed& placed = at_[b];
    for_stripes(placed, [&placed](std::vector<Placed>* stripe) { stripe->push_back(placed); });
  }
}

// The loop keeps a plan below the target of all blocks but those in `unplaced`. A turn takes one of
// these. It goes to the lowest free place. If there is none, it counts as harder from now on, goes
// where it throws out least, and what it throws out is unplaced: the largest first.
//
// What an offset throws out costs the sum of the sizes, each times the failures of its buffer. So a
// block that often finds no place becomes too dear to be thrown out, and others have to give way.
// These weights are the penalty counters of guided ejection search (Nagata and Braysy 2009).
// Chance in the costs keeps the search out of cycles. Nothing is proved if the budget ends.
bool Ejection::insert(Bytes target, std::int64_t node_budget, std::vector<Bytes>* offsets,
                      const std::vector<BufferIdx>& rejected) {
  const std::int64_t end = node_budget > INT64_MAX - nodes_ ? INT64_MAX : nodes_ + node_budget;
  unit_ = std::max<Bytes>(1, target / kUnitsToTarget);
  lay_out(*offsets);

  // The loop ends, since rejected buffers without a size are tried once and each other turn costs a
  // node.
  std::vector<BufferIdx> unplaced = blocks_.firsts(rejected);
  while (!unplaced.empty()) {
    if (nodes_ >= end || stopper_.look()) return false;
    const BufferIdx b = unplaced.back();
    unplaced.pop_back();
    const Shape shape = blocks_.shape(b);
    const Bytes top = target - shape.above;
    if (shape.below > top) return false;
    bar_with(b);
    Bytes offset = free_place(shape, top);
    if (offset == kNoOffset) {
      blocks_.for_each(b, [this](BufferIdx member, Bytes) {
        failures_[member] = std::min(failures_[member] + 1, kMostFailures);
      });
      offset = cheapest_place(shape, top);
      if (offset == kNoOffset) return false;
      eject(offset, &unplaced);
    }
    MEMPLAN_ASSERT(shape.below <= offset && (offset + shape.phase) % shape.alignment == 0);
    place(b, offset);
  }
  MEMPLAN_ASSERT(check_invariants());
  for (const Placed& row : at_) (*offsets)[row.buffer] = row.offset;
  return true;
}

bool Ejection::check_invariants() const {
  std::size_t held = 0;
  for (const std::vector<Placed>& stripe : stripes_) {
    held += stripe.size();
    for (std::size_t k = 0; k < stripe.size(); ++k) {
      MEMPLAN_ASSERT(k == 0 || below(stripe[k - 1], stripe[k]));
      MEMPLAN_ASSERT(at_[stripe[k].buffer].offset == stripe[k].offset);
      MEMPLAN_ASSERT(stripe[k].size > 0 && stripe[k].offset >= 0);
    }
  }
  std::size_t placed = 0;
  for (const Placed& row : at_) {
    if (row.offset != kNoOffset && row.size > 0) {
      placed += stripe_of(row.last) - first_stripe(row) + 1;
    }
    MEMPLAN_ASSERT(marked_[row.buffer] == 0 && failures_[row.buffer] > 0);
    blocks_.for_each(row.buffer, [&](BufferIdx member, Bytes shift) {
      MEMPLAN_ASSERT(at_[member].offset ==
                     (row.offset == kNoOffset ? kNoOffset : row.offset + shift));
    });
  }
  MEMPLAN_ASSERT(placed == held);
  return true;
}

bool Ejection::below(const Placed& x, const Placed& y) {
  return x.offset != y.offset ? x.offset < y.offset : x.buffer < y.buffer;
}

void Ejection::place(BufferIdx b, Bytes offset) {
  blocks_.for_each(b, [&](BufferIdx member, Bytes shift) {
    Placed& row = at_[member];
    MEMPLAN_ASSERT(row.offset == kNoOffset && offset + shift >= 0);
    row.offset = offset + shift;
    if (row.size == 0) return;
    for_stripes(row, [&row](std::vector<Placed>* stripe) {
      stripe->insert(std::lower_bound(stripe->begin(), stripe->end(), row, below), row);
    });
  });
}

void Ejection::remove(BufferIdx b) {
  blocks_.for_each(b, [this](BufferIdx member, Bytes) {
    Placed& row = at_[member];
    if (row.size > 0) {
      for_stripes(row, [&row](std::vector<Placed>* stripe) {
        stripe->erase(std::lower_bound(stripe->begin(), stripe->end(), row, below));
      });
    }
    row.offset = kNoOffset;
  });
}

void Ejection::bar_with(BufferIdx b) {
  bars_.clear();
  int members = 0;
  blocks_.for_each(b, [&](BufferIdx member, Bytes shift) {
    ++members;
    if (problem_.size[member] > 0) bar_with_member(member, shift);
  });
  const bool one_stripe = first_stripe(at_[b]) == stripe_of(at_[b].last);
  if (members == 1 && problem_.reserved.empty() && one_stripe) return;  // in order as they are
  sort_bars();
}

void Ejection::rank_bars(Bytes Bar::* key) {
  ranks_.clear();
  for (const Bar& bar : bars_) ranks_.push_back({bar.*key, static_cast<int>(ranks_.size())});
  sort_ranked(ranks_.data(), ranks_.data() + ranks_.size());
}

void Ejection::sort_bars() {
  if (blocks_.any()) {
    // A group is thrown out by the first of its members here, and the size of that one decides when
    // the group is placed again. So the order of ties must not depend on the library.
    std::sort(bars_.begin(), bars_.end(), [](const Bar& x, const Bar& y) {
      return std::tie(x.lower, x.buffer, x.upper) < std::tie(y.lower, y.buffer, y.upper);
    });
    return;
  }
  rank_bars(&Bar::lower);
  sorted_.clear();
  for (const Ranked& rank : ranks_) sorted_.push_back(bars_[rank.row]);
  bars_.swap(sorted_);
}

void Ejection::bar_with_member(BufferIdx member, Bytes shift) {
  const Conflicts& beyond = problem_.conflicts;
  for (auto i = beyond.first(member); i != beyond.last(member); ++i) marked_[*i] = 1;
  const Placed& own = at_[member];
  const Bytes reach = shift + own.size;
  std::int64_t visits = 0;
  const std::size_t begin = first_stripe(own);
  for (std::size_t s = begin; s <= stripe_of(own.last); ++s) {
    visits += static_cast<std::int64_t>(stripes_[s].size());
    for (const Placed& other : stripes_[s]) {
      const bool meets = other.first <= own.last && own.first <= other.last;
      if (!meets && marked_[other.buffer] == 0) continue;
      if (s > begin && first_stripe(other) != s) continue;  // it was in the one before as well
      bars_.push_back({other.offset - reach, other.offset + other.size - shift,
                       stays_[other.buffer] != 0 ? kFixed : other.buffer});
    }
  }
  for (const Reserved& r : problem_.reserved) {
    bars_.push_back({r.lower - reach, r.upper - shift, kFixed});
  }
  for (auto i = beyond.first(member); i != beyond.last(member); ++i) marked_[*i] = 0;
  nodes_ += 1 + visits / kVisitsPerNode;
}

// The lowest offset that throws out no buffer, or kNoOffset.
Bytes Ejection::free_place(const Shape& shape, Bytes top) const {
  Bytes offset = shape.align(shape.below);
  for (const Bar& bar : bars_) {
    if (bar.lower >= offset) break;
    if (bar.upper <= offset) continue;
    if (bar.upper > top) return kNoOffset;
    offset = shape.align(bar.upper);
  }
  return offset > top ? kNoOffset : offset;
}

// Chooses among the offsets just above something one that throws out little.
Bytes Ejection::cheapest_place(const Shape& shape, Bytes top) {
  rank_bars(&Bar::upper);
  Bytes best = kNoOffset;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t sum = 0;    // of those over the offset
  std::int64_t fixed = 0;  // how many of them stay
  auto next = bars_.begin();
  auto ended = ranks_.begin();
  const auto try_at = [&](Bytes offset) {
    for (; next != bars_.end() && next->lower < offset; ++next) {
      (next->buffer == kFixed ? fixed : sum) += weight(*next);
    }
    for (; ended != ranks_.end() && ended->key <= offset; ++ended) {
      const Bar& bar = bars_[ended->row];
      (bar.buffer == kFixed ? fixed : sum) -= weight(bar);
    }
    MEMPLAN_ASSERT(sum >= 0 && fixed >= 0);
    const std::int64_t cost = sum * (kSurely + static_cast<std::int64_t>(random_.below(kNoise)));
    if (fixed > 0 || cost >= least) return;
    best = offset;
    least = cost;
  };
  // Like the others, the lowest offset may be above the top once it is aligned.
  const Bytes lowest = shape.align(shape.below);
  if (lowest > top) return kNoOffset;
  try_at(lowest);
  for (const auto& [upper, row] : ranks_) {
    if (upper > top) break;
    const Bytes offset = shape.align(std::max(upper, shape.below));
    if (offset > top) break;
    try_at(offset);
  }
  return best;
}

void Ejection::eject(Bytes offset, std::vector<BufferIdx>* unplaced) {
  const auto first = static_cast<std::ptrdiff_t>(unplaced->size());
  for (const Bar& bar : bars_) {
    if (bar.lower >= offset) break;
    if (bar.upper <= offset || at_[bar.buffer].offset == kNoOffset) continue;
    MEMPLAN_ASSERT(bar.buffer != kFixed);
    remove(bar.buffer);
    unplaced->push_back(bar.buffer);
  }
  // The largest is on top, so that it is the next to be placed.
  std::sort(unplaced->begin() + first, unplaced->end(), [this](BufferIdx x, BufferIdx y) {
    return at_[x].size != at_[y].size ? at_[x].size < at_[y].size : x > y;
  });
}

std::int64_t Ejection::weight(const Bar& bar) const {
  if (bar.buffer == kFixed) return 1;
  return failures_[bar.buffer] * (1 + at_[bar.buffer].size / unit_);
}

}  // namespace memplan::chain
