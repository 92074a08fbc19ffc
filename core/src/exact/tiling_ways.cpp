#include "exact/tiling_ways.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "util/invariants.h"

namespace memplan::exact {

namespace {

constexpr int kAllSubsets = 12;  // a side with more items is looked at in subsets of up to two
constexpr std::size_t kMaxMatches = 1024;
constexpr std::size_t kMaxWays = 64;
// Matches are taken for coincidences where more than this number is expected by chance.
constexpr double kChance = 0.05;

struct Subset {
  Bytes sum;
  std::uint64_t items;
};

std::uint64_t all_of(std::size_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Proper subsets, by ascending sum.
std::vector<Subset> subsets(const std::vector<Bytes>& sizes) {
  std::vector<Subset> result;
  const std::size_t n = sizes.size();
  if (n <= kAllSubsets) {
    for (std::uint64_t items = 1; items < all_of(n); ++items) {
      Bytes sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += (items >> i & 1) != 0 ? sizes[i] : 0;
      result.push_back({sum, items});
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      result.push_back({sizes[i], std::uint64_t{1} << i});
      for (std::size_t k = 0; k < i; ++k) {
        result.push_back({sizes[i] + sizes[k], std::uint64_t{1} << i | std::uint64_t{1} << k});
      }
    }
  }
  std::sort(result.begin(), result.end(), [](const Subset& a, const Subset& b) {
    return a.sum != b.sum ? a.sum < b.sum : a.items < b.items;
  });
  return result;
}

class Lister {
 public:
  Lister(const std::vector<Bytes>& ending, const std::vector<Bytes>& beginning)
      : whole_{all_of(ending.size()), all_of(beginning.size())} {
    const std::vector<Subset> left = subsets(ending), right = subsets(beginning);
    const bool partial = ending.size() > kAllSubsets || beginning.size() > kAllSubsets;
    found_.all = !partial;
    pair_up(left, right, partial);
    const double sum = static_cast<double>(std::accumulate(ending.begin(), ending.end(), Bytes{0}));
    by_chance_ =
        static_cast<double>(left.size()) * static_cast<double>(right.size()) > kChance * 2 * sum;
  }

  Matchings run() {
    split(whole_, {});
    for (const auto& way : found_.ways) MEMPLAN_ASSERT(splits_all(way));
    // A match is either meant, because two things happen at the same time at different
    // addresses, or a coincidence. The more subsets there are, the more it is the latter.
    std::stable_sort(found_.ways.begin(), found_.ways.end(), [&](const auto& a, const auto& b) {
      return by_chance_ ? a.size() < b.size() : a.size() > b.size();
    });
    return std::move(found_);
  }

 private:
  void pair_up(const std::vector<Subset>& left, const std::vector<Subset>& right, bool partial) {
    auto r = right.begin();
    for (const Subset& l : left) {
      while (r != right.end() && r->sum < l.sum) ++r;
      for (auto same = r; same != right.end() && same->sum == l.sum; ++same) {
        if (matches_.size() >= kMaxMatches) {
          found_.all = false;
          return;
        }
        matches_.push_back({l.items, same->items});
        // The subsets of a side with more than a few items do not include what a match leaves of
        // it.
        if (partial) {
          matches_.push_back({whole_.ending & ~l.items, whole_.beginning & ~same->items});
        }
      }
    }
  }

  // Every item of both sides in one match.
  bool splits_all(const std::vector<Match>& way) const {
    Match all{0, 0};
    for (const Match& match : way) {
      MEMPLAN_ASSERT(match.ending != 0 && match.beginning != 0);
      MEMPLAN_ASSERT((all.ending & match.ending) == 0 && (all.beginning & match.beginning) == 0);
      all = {all.ending | match.ending, all.beginning | match.beginning};
    }
    return all.ending == whole_.ending && all.beginning == whole_.beginning;
  }
  // Lists all ways to continue `way`, with `rest` still to split: the lowest item left may be in
  // any match that fits, or in one with all that is left.
  void split(Match rest, std::vector<Match> way) {
    if (found_.ways.size() >= kMaxWays) {
      found_.all = false;
      return;
    }
    const std::uint64_t lowest = rest.ending & (~rest.ending + 1);
    way.push_back(rest);
    found_.ways.push_back(way);
    way.pop_back();
    for (const Match& match : matches_) {
      const bool inside =
          (match.ending & ~rest.ending) == 0 && (match.beginning & ~rest.beginning) == 0;
      if (!inside || (match.ending & lowest) == 0) continue;
      const Match left{rest.ending & ~match.ending, rest.beginning & ~match.beginning};
      if (left.ending == 0 || left.beginning == 0) continue;
      way.push_back(match);
      split(left, way);
      way.pop_back();
    }
  }

  Match whole_;
  std::vector<Match> matches_;
  Matchings found_;
  bool by_chance_ = false;
};

}  // namespace

Matchings matchings(const std::vector<Bytes>& ending, const std::vector<Bytes>& beginning) {
  if (ending.size() == 1 || beginning.size() == 1) {
    return {{{{all_of(ending.size()), all_of(beginning.size())}}}, true};
  }
  return Lister(ending, beginning).run();
}

}  // namespace memplan::exact
