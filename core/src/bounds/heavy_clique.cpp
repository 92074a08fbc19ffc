#include "bounds/heavy_clique.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ranked.h"

namespace memplan {

namespace {

// Looks at a pair, in all: some tens of milliseconds.
constexpr std::int64_t kMostLooks = 20'000'000;
constexpr std::size_t kMostSections = 64;  // to begin from, the fullest first
constexpr std::size_t kMostBuffers = 64;   // the same, the largest first

using Rows = std::vector<BufferIdx>;

class Finder {
 public:
  Finder(const Problem& problem, const Sections& sections)
      : problem_(problem), sections_(sections), listed_(problem.size.size(), 0) {
    for (const auto& [size, b] :
         ranked(problem.size.size(), [&problem](BufferIdx row) { return -problem.size[row]; })) {
      if (size < 0) by_size_.push_back(b);
    }
  }

  Rows find();

 private:
  void begin_from(Rows clique);
  Rows grown(Rows clique);
  Rows exchanged(Rows clique);
  void keep_conflicting(BufferIdx b, Rows* rows);
  bool meet(BufferIdx a, BufferIdx b) const;
  Rows held_in(SectionIdx s) const;
  Bytes sum(const Rows& rows) const;
  template <typename Visit>
  void look(BufferIdx b, const Rows& rows, Visit visit);

  const Problem& problem_;
  const Sections& sections_;
  Rows by_size_;              // the largest first
  std::vector<char> listed_;  // the row of the buffer that is looked at
  std::int64_t looks_ = 0;
  Rows best_;
  Bytes most_ = 0;
};

Rows Finder::find() {
  const std::vector<Bytes> load = loads(sections_);
  std::size_t begun = 0;
  for (const auto& [minus, s] :
       ranked(load.size(), [&load](SectionIdx section) { return -load[section]; })) {
    if (begun++ == kMostSections) break;
    begin_from(held_in(s));
  }
  for (std::size_t k = 0; k < std::min(kMostBuffers, by_size_.size()); ++k) {
    begin_from({by_size_[k]});
  }
  std::sort(best_.begin(), best_.end());
  return best_;
}

void Finder::begin_from(Rows clique) {
  if (looks_ > kMostLooks) return;
  clique = exchanged(grown(std::move(clique)));
  const Bytes bytes = sum(clique);
  if (bytes <= most_) return;
  most_ = bytes;
  best_ = std::move(clique);
}

// The largest that conflicts with all goes in, until there is none. Out of looks, what there is is
// a clique as well.
Rows Finder::grown(Rows clique) {
  Rows candidates = by_size_;
  for (const BufferIdx b : clique) {
    if (looks_ > kMostLooks) return clique;
    keep_conflicting(b, &candidates);
  }
  while (!candidates.empty() && looks_ <= kMostLooks) {
    clique.push_back(candidates.front());
    keep_conflicting(clique.back(), &candidates);
  }
  return clique;
}

// Throws a member out for those that conflict with all but it, while they weigh more.
Rows Finder::exchanged(Rows clique) {
  while (looks_ <= kMostLooks) {
    std::vector<std::int32_t> strangers(problem_.size.size(), 0);
    std::vector<BufferIdx> stranger(problem_.size.size(), -1);
    for (const BufferIdx member : clique) {
      if (looks_ > kMostLooks) return clique;
      look(member, by_size_, [&](BufferIdx b, bool conflict) {
        if (conflict) return;
        ++strangers[b];
        stranger[b] = member;
      });
    }
    Rows instead;
    BufferIdx out = -1;
    for (const BufferIdx member : clique) {
      Rows candidates;
      for (const BufferIdx b : by_size_) {
        if (b != member && strangers[b] == 1 && stranger[b] == member) candidates.push_back(b);
      }
      if (sum(candidates) <= problem_.size[member]) continue;
      instead.clear();
      while (!candidates.empty()) {
        instead.push_back(candidates.front());
        keep_conflicting(instead.back(), &candidates);
      }
      if (sum(instead) <= problem_.size[member]) continue;
      out = member;
      break;
    }
    if (out < 0) return clique;
    clique.erase(std::find(clique.begin(), clique.end(), out));
    clique.insert(clique.end(), instead.begin(), instead.end());
    clique = grown(std::move(clique));
  }
  return clique;
}

// Calls visit(row, whether it conflicts with b) for all rows; b does not conflict with itself.
template <typename Visit>
void Finder::look(BufferIdx b, const Rows& rows, Visit visit) {
  const Conflicts& conflicts = problem_.conflicts;
  for (const BufferIdx* r = conflicts.first(b); r != conflicts.last(b); ++r) listed_[*r] = 1;
  for (const BufferIdx row : rows) {
    visit(row, row != b && (listed_[row] != 0 || meet(b, row)));
  }
  for (const BufferIdx* r = conflicts.first(b); r != conflicts.last(b); ++r) listed_[*r] = 0;
  looks_ += static_cast<std::int64_t>(rows.size()) + (conflicts.last(b) - conflicts.first(b));
}

void Finder::keep_conflicting(BufferIdx b, Rows* rows) {
  Rows kept;
  look(b, *rows, [&kept](BufferIdx row, bool conflict) {
    if (conflict) kept.push_back(row);
  });
  *rows = std::move(kept);
}

// Whether both hold all that they have at one time.
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

Rows Finder::held_in(SectionIdx s) const {
  Rows rows;
  for (const BufferIdx b : by_size_) {
    for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
      const Span& span = sections_.spans[i];
      const bool whole = span.upper - span.lower == problem_.size[b];
      if (whole && span.first <= s && s <= span.last) rows.push_back(b);
    }
  }
  return rows;
}

Bytes Finder::sum(const Rows& rows) const { return sum_of_sizes(problem_, rows); }

}  // namespace

std::vector<BufferIdx> heavy_clique(const Problem& problem, const Sections& sections) {
  if (problem.conflicts.empty()) return {};
  return Finder(problem, sections).find();
}

Bytes sum_of_sizes(const Problem& problem, const std::vector<BufferIdx>& rows) {
  Bytes bytes = 0;
  for (const BufferIdx b : rows) bytes += std::min(problem.size[b], kMaxBytes + 1 - bytes);
  return bytes;
}

}  // namespace memplan
