#include "bounds/heavy_clique.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "util/bit_scan.h"
#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

namespace {

// The budget, in words of 64 pairs, which takes some tens of milliseconds.
constexpr std::int64_t kMostWords = 120'000'000;
constexpr std::int64_t kWordsPerPair = 8;  // the cost of a pair that is checked alone
constexpr std::size_t kMostSections = 64;  // to begin from, the fullest first
constexpr std::size_t kMostBuffers = 64;   // the same, the largest first

using Rows = std::vector<BufferIdx>;
using Word = std::uint64_t;
using Set = std::vector<Word>;  // of ranks: the largest buffer has rank 0
using Rank = std::int32_t;
constexpr Rank kBits = 64;
constexpr Rank kNoRank = -1;

void add(Rank rank, Set* set) { (*set)[rank / kBits] |= Word{1} << (rank % kBits); }

bool is_in(Rank rank, const Set& set) { return ((set[rank / kBits] >> (rank % kBits)) & 1) != 0; }
// The lowest rank at or above `from`.
Rank first_of(const Set& set, Rank from) {
  std::size_t at = static_cast<std::size_t>(from / kBits);
  if (at >= set.size()) return kNoRank;
  Word word = set[at] & (~Word{0} << (from % kBits));
  while (word == 0) {
    if (++at == set.size()) return kNoRank;
    word = set[at];
  }
  return static_cast<Rank>(at) * kBits + lowest_bit(word);
}

class Finder {
 public:
  Finder(const Problem& problem, const Sections& sections)
      : problem_(problem), sections_(sections), rank_(problem.size.size(), kNoRank) {
    for (const auto& [size, b] :
         ranked(problem.size.size(), [&problem](BufferIdx row) { return -problem.size[row]; })) {
      if (size == 0) break;
      rank_[b] = static_cast<Rank>(by_size_.size());
      by_size_.push_back(b);
    }
    words_ = (by_size_.size() + kBits - 1) / kBits;
    all_.assign(words_, 0);
    for (Rank rank = 0; rank < static_cast<Rank>(by_size_.size()); ++rank) add(rank, &all_);
    conflicts_.resize(by_size_.size());
  }

  Rows find();

 private:
  bool spent() const { return looked_ > kMostWords; }
  const Set& conflicts(Rank rank);
  bool meet(BufferIdx a, BufferIdx b) const;
  void keep(const Set& other, Set* set);
  std::vector<Rank> heaviest_first(Set candidates);
  std::vector<Rank> grown(std::vector<Rank> clique);
  bool exchange(std::vector<Rank>* clique);
  void begin_from(std::vector<Rank> clique);
  std::vector<Rank> held_in(SectionIdx s);
  Rows rows_of(const std::vector<Rank>& clique) const;
  Bytes sum(const std::vector<Rank>& clique) const {
    return sum_of_sizes(problem_, rows_of(clique));
  }
  Bytes size(Rank rank) const { return problem_.size[by_size_[rank]]; }

  const Problem& problem_;
  const Sections& sections_;
  Rows by_size_;            // by rank
  std::vector<Rank> rank_;  // by row; kNoRank for those without a byte
  std::size_t words_ = 0;
  Set all_;
  std::vector<Set> conflicts_;  // by rank, what each conflicts with; empty until it is needed
  std::int64_t looked_ = 0;     // words visited
  std::vector<Rank> best_;
  Bytes most_ = 0;
};

Rows Finder::find() {
  const std::vector<Bytes> load = loads(sections_);
  std::size_t begun = 0;
  for (const auto& [minus, s] :
       ranked(load.size(), [&load](SectionIdx section) { return -load[section]; })) {
    if (begun++ == kMostSections || spent()) break;
    begin_from(held_in(s));
  }
  for (std::size_t k = 0; k < std::min(kMostBuffers, by_size_.size()); ++k) {
    begin_from({static_cast<Rank>(k)});
  }
  Rows rows = rows_of(best_);
  for (const Rank a : best_) {
    for (const Rank b : best_) MEMPLAN_ASSERT(a == b || is_in(b, conflicts(a)));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// When the words run out, the members so far are a clique as well.
void Finder::begin_from(std::vector<Rank> clique) {
  if (spent()) return;
  clique = grown(std::move(clique));
  while (exchange(&clique)) clique = grown(std::move(clique));
  const Bytes bytes = sum(clique);
  if (bytes <= most_) return;
  most_ = bytes;
  best_ = std::move(clique);
}

// Adds the heaviest candidate, then the heaviest of those that conflict with it, until there is
// none.
std::vector<Rank> Finder::heaviest_first(Set candidates) {
  std::vector<Rank> clique;
  for (Rank next = first_of(candidates, 0); next != kNoRank && !spent();
       next = first_of(candidates, next + 1)) {
    clique.push_back(next);
    keep(conflicts(next), &candidates);
  }
  return clique;
}

std::vector<Rank> Finder::grown(std::vector<Rank> clique) {
  Set candidates = all_;
  for (const Rank member : clique) {
    if (spent()) return clique;
    keep(conflicts(member), &candidates);
  }
  const std::vector<Rank> more = heaviest_first(std::move(candidates));
  clique.insert(clique.end(), more.begin(), more.end());
  return clique;
}

// Exchanges a member for buffers that conflict with all other members, if these weigh more.
bool Finder::exchange(std::vector<Rank>* clique) {
  Set once(words_, 0);  // those with at least one member that they do not conflict with
  Set twice(words_, 0);
  for (const Rank member : *clique) {
    if (spent()) return false;
    const Set& others = conflicts(member);
    for (std::size_t w = 0; w < words_; ++w) {
      twice[w] |= once[w] & ~others[w];
      once[w] |= ~others[w];
    }
    looked_ += static_cast<std::int64_t>(words_);
  }
  for (std::size_t k = 0; k < clique->size() && !spent(); ++k) {
    const Rank member = (*clique)[k];
    const Set& others = conflicts(member);
    Set candidates = all_;
    for (std::size_t w = 0; w < words_; ++w) candidates[w] &= once[w] & ~twice[w] & ~others[w];
    candidates[member / kBits] &= ~(Word{1} << (member % kBits));  // it lacks itself, too
    looked_ += static_cast<std::int64_t>(words_);
    const std::vector<Rank> instead = heaviest_first(std::move(candidates));
    if (sum(instead) <= size(member)) continue;
    clique->erase(clique->begin() + static_cast<std::ptrdiff_t>(k));
    clique->insert(clique->end(), instead.begin(), instead.end());
    return true;
  }
  return false;
}

void Finder::keep(const Set& other, Set* set) {
  for (std::size_t w = 0; w < words_; ++w) (*set)[w] &= other[w];
  looked_ += static_cast<std::int64_t>(words_);
}

const Set& Finder::conflicts(Rank rank) {
  Set& set = conflicts_[rank];
  if (!set.empty()) return set;
  set.assign(words_, 0);
  const BufferIdx b = by_size_[rank];
  for (Rank other = 0; other < static_cast<Rank>(by_size_.size()); ++other) {
    if (other != rank && meet(b, by_size_[other])) add(other, &set);
  }
  const Conflicts& listed = problem_.conflicts;
  for (const BufferIdx* row = listed.first(b); row != listed.last(b); ++row) {
    if (rank_[*row] != kNoRank) add(rank_[*row], &set);
  }
  looked_ += kWordsPerPair * static_cast<std::int64_t>(by_size_.size());
  return set;
}

// Whether there is a time at which both hold all their bytes.
bool Finder::meet(BufferIdx a, BufferIdx b) const {
  const auto& begin = sections_.span_begin;
  for (auto i = begin[a]; i < begin[a + 1]; ++i) {
    const Span& x = sections_.spans[i];
    if (x.upper - x.lower != problem_.size[a]) continue;
    for (auto k = begin[b]; k < begin[b + 1]; ++k) {
      const Span& y = sections_.spans[k];
      if (y.upper - y.lower == problem_.size[b] && x.first <= y.last && y.first <= x.last) {
        return true;
      }
    }
  }
  return false;
}

std::vector<Rank> Finder::held_in(SectionIdx s) {
  std::vector<Rank> clique;
  looked_ += static_cast<std::int64_t>(by_size_.size());
  for (Rank rank = 0; rank < static_cast<Rank>(by_size_.size()); ++rank) {
    const BufferIdx b = by_size_[rank];
    for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
      const Span& span = sections_.spans[i];
      const bool whole = span.upper - span.lower == problem_.size[b];
      if (whole && span.first <= s && s <= span.last) clique.push_back(rank);
    }
  }
  return clique;
}

Rows Finder::rows_of(const std::vector<Rank>& clique) const {
  Rows rows;
  for (const Rank rank : clique) rows.push_back(by_size_[rank]);
  return rows;
}

}  // namespace

std::vector<BufferIdx> heavy_clique(const Problem& problem, const Sections& sections) {
  if (!needs_cliques(problem, sections)) return {};
  return Finder(problem, sections).find();
}

Bytes sum_of_sizes(const Problem& problem, const std::vector<BufferIdx>& rows) {
  Bytes bytes = 0;
  for (const BufferIdx b : rows) bytes += std::min(problem.size[b], kMaxBytes + 1 - bytes);
  return bytes;
}

}  // namespace memplan
