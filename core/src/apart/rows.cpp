#include "apart/rows.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "util/bit_scan.h"

namespace memplan::apart {

namespace {

constexpr std::int64_t kMostNeed = std::int64_t{1} << 30;
constexpr std::int64_t kSteps = 20000;    // of the search for one heaviest set
constexpr double kGain = 1e-6;            // the least by which a rounding has to be better
constexpr std::size_t kKept = 3;          // of the sets that it finds
constexpr std::int64_t kNodesOfStep = 4;  // a step colours a set of buffers

using Bits = std::vector<std::uint64_t>;

bool has(const Bits& bits, BufferIdx b) { return ((bits[b / 64] >> (b % 64)) & 1) != 0; }

// Amounts are divided by what divides all, and if that is not enough, so that the need has 30 bits.
// They are rounded up then, which leaves the row true.
void scale(Row* row) {
  std::int64_t unit = row->need;
  for (const Term& term : row->terms) unit = std::gcd(unit, term.amount);
  for (Term& term : row->terms) term.amount /= unit;
  row->need /= unit;
  const std::int64_t coarse = row->need / kMostNeed + 1;
  if (coarse == 1) return;
  for (Term& term : row->terms) term.amount = (term.amount + coarse - 1) / coarse;
  row->need /= coarse;
  for (Term& term : row->terms) term.amount = std::min(term.amount, row->need);
}

// What an amount, and the need, become by rounding.
struct Rounding {
  std::int64_t divisor;
  std::int64_t part;  // the need modulo the divisor, above 0

  std::int64_t operator()(std::int64_t amount) const {
    return part * (amount / divisor) + std::min(part, amount % divisor);
  }
  std::int64_t need(std::int64_t need) const { return part * (need / divisor + 1); }
};

Row rounded(const Row& row, const Rounding& rounding) {
  Row found;
  found.need = rounding.need(row.need);
  for (const Term& term : row.terms) found.terms.push_back({term.pair, rounding(term.amount)});
  scale(&found);
  return found;
}

// Which share of a need is met.
template <typename Amount>
double has_of(std::int64_t need, const std::vector<std::pair<std::int64_t, double>>& parts,
              const Amount& amount) {
  double has = 0;
  for (const auto& [old, met] : parts) has += static_cast<double>(amount(old)) * met;
  return has / static_cast<double>(need);
}

// The heaviest cliques of a graph, by branch and bound with a colouring.
class HeavyCliques {
 public:
  HeavyCliques(const Model& model, const std::vector<char>& is_met, Counter& counter)
      : model_(model), counter_(counter), words_((model.count() + 63) / 64) {
    adjacent_.assign(model.count(), Bits(words_, 0));
    for (BufferIdx b = 0; b < model.count(); ++b) {
      for (const Neighbour& each : model.neighbours[b]) {
        if (each.pair != kBarred && is_met[each.pair] != 0) continue;
        adjacent_[b][each.other / 64] |= std::uint64_t{1} << (each.other % 64);
      }
    }
    best_ = model.room;
    for (BufferIdx b = 0; b < model.count(); ++b) {
      if (model.size[b] > 0) by_size_.push_back(b);
    }
    std::sort(by_size_.begin(), by_size_.end(), [&model](BufferIdx a, BufferIdx b) {
      return model.size[a] != model.size[b] ? model.size[a] > model.size[b] : a < b;
    });
  }

  // Those that exceed the room, the lightest first.
  std::vector<Clique> find() {
    Clique clique;
    extend(clique, 0, by_size_);
    return std::move(found_);
  }

 private:
  struct Ranked {
    BufferIdx buffer;
    Bytes bound;  // of all cliques of it and of those before it
  };

  bool is_over() { return ++steps_ > kSteps || counter_.take(kNodesOfStep); }

  // Buffers that are not adjacent have one colour, and a clique has one buffer of each.
  std::vector<Ranked> coloured(const Clique& open) {
    std::vector<Clique> classes;
    for (const BufferIdx b : open) {
      const auto fits = [this, b](const Clique& some) {
        return std::none_of(some.begin(), some.end(),
                            [this, b](BufferIdx other) { return has(adjacent_[b], other); });
      };
      const auto found = std::find_if(classes.begin(), classes.end(), fits);
      if (found == classes.end()) {
        classes.push_back({b});
      } else {
        found->push_back(b);
      }
    }
    std::vector<Ranked> ranked;
    Bytes bound = 0;
    for (const Clique& some : classes) {
      bound = sum_of(bound, model_.size[some.front()]);  // its largest
      for (const BufferIdx b : some) ranked.push_back({b, bound});
    }
    return ranked;
  }

  void extend(Clique& clique, Bytes weight, const Clique& open) {
    if (is_over()) return;
    if (weight > best_) {
      best_ = weight;
      if (found_.size() == kKept) found_.erase(found_.begin());
      found_.push_back(clique);
    }
    const std::vector<Ranked> ranked = coloured(open);
    std::vector<char> is_left(open.empty() ? 0 : model_.size.size(), 0);
    for (const BufferIdx b : open) is_left[b] = 1;
    for (auto next = ranked.rbegin(); next != ranked.rend(); ++next) {
      if (sum_of(weight, next->bound) <= best_ || steps_ > kSteps || counter_.is_spent()) return;
      is_left[next->buffer] = 0;
      Clique inner;
      for (const BufferIdx b : open) {
        if (is_left[b] != 0 && has(adjacent_[next->buffer], b)) inner.push_back(b);
      }
      clique.push_back(next->buffer);
      extend(clique, sum_of(weight, model_.size[next->buffer]), inner);
      clique.pop_back();
    }
  }

  const Model& model_;
  Counter& counter_;
  std::size_t words_;
  std::vector<Bits> adjacent_;
  Clique by_size_;
  Bytes best_ = 0;
  std::int64_t steps_ = 0;
  std::vector<Clique> found_;
};

}  // namespace

Row load_row(const Model& model, const Clique& clique) {
  Row row;
  Bytes sum = -model.room;
  for (const BufferIdx b : clique) sum = sum_of(sum, model.size[b]);  // a smaller need is true too
  row.need = std::max<Bytes>(sum, 0);
  if (row.need == 0) return row;
  std::vector<char> is_in(model.size.size(), 0);
  for (const BufferIdx b : clique) is_in[b] = 1;
  for (const BufferIdx b : clique) {
    for (const Neighbour& each : model.neighbours[b]) {
      if (each.other <= b || is_in[each.other] == 0 || each.pair == kBarred) continue;
      const Bytes shared = std::min(model.size[b], model.size[each.other]);
      row.terms.push_back({each.pair, std::min(shared, row.need)});
    }
  }
  scale(&row);
  return row;
}

Row sharpest(const Row& row, const std::vector<double>& met, std::int64_t* work) {
  std::vector<std::pair<std::int64_t, double>> parts;  // amounts, and how far their pairs meet
  for (const Term& term : row.terms) parts.emplace_back(term.amount, met[term.pair]);
  std::sort(parts.begin(), parts.end());
  std::size_t last = 0;
  for (std::size_t k = 1; k < parts.size(); ++k) {
    if (parts[k].first == parts[last].first) {
      parts[last].second += parts[k].second;
    } else {
      parts[++last] = parts[k];
    }
  }
  parts.resize(std::min(parts.size(), last + 1));
  *work += static_cast<std::int64_t>(row.terms.size() + parts.size() * parts.size());
  std::int64_t best = 0;
  double least = has_of(row.need, parts, [](std::int64_t amount) { return amount; });
  for (const auto& [divisor, unused] : parts) {
    const Rounding rounding{divisor, row.need % divisor};
    if (divisor > row.need || rounding.part == 0) continue;
    const double has = has_of(rounding.need(row.need), parts, rounding);
    if (has >= least - kGain) continue;
    least = has;
    best = divisor;
  }
  return best == 0 ? row : rounded(row, {best, row.need % best});
}

Row core_row(const Chosen& core) {
  Row row;
  row.need = 1;
  for (const PairIdx k : core) row.terms.push_back({k, 1});
  return row;
}

std::vector<Clique> find_cliques(const Model& model, const Chosen& met, Counter& counter) {
  if (!model.knows_pairs()) return {};
  std::vector<char> is_met(model.pairs.size(), 0);
  for (const PairIdx k : met) is_met[k] = 1;
  std::vector<Clique> found = HeavyCliques(model, is_met, counter).find();
  for (Clique& clique : found) {
    clique = grown<Bytes>(
        model, clique, [&](PairIdx k) { return static_cast<Bytes>(is_met[k]); },
        [](BufferIdx, Bytes gain) { return gain; });
  }
  return found;
}

}  // namespace memplan::apart
