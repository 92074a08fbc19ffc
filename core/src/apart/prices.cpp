#include "apart/prices.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "apart/rows.h"
#include "util/random.h"

namespace memplan::apart {

namespace {

constexpr std::size_t kMostTerms = std::size_t{1} << 23;
constexpr std::size_t kMostRows = 4096;
constexpr int kSeedsOfRound = 200;  // buffers from which new rows are grown
constexpr int kMostRounds = 60;
constexpr int kMostVain = 3;                 // of them in turn without a new row
constexpr int kStepsOfRound = 100;           // of the subgradient, before new rows are looked for
constexpr int kPatience = 10;                // steps without a better bound before they get shorter
constexpr std::int64_t kTermsPerNode = 512;  // about as many are read in a microsecond
constexpr double kMostMet = 0.98;            // of the need of a row that is worth adding
constexpr double kMemory = 0.7;              // of the direction
constexpr double kMemoryOfMean = 0.85;       // of the pairs that met
constexpr std::int64_t kScale = std::int64_t{1} << 30;  // of all costs together, in whole numbers

// Which share of the need of a row a pair gives.
struct Share {
  std::int32_t at;  // the pair, or the row
  float amount;
};

class Prices {
 public:
  Prices(const Model& model, std::int64_t limit, std::uint64_t seed, Counter& counter)
      : model_(model), counter_(counter), random_(seed), limit_(limit) {
    mean_.assign(model.pairs.size(), 0);
    entries_.resize(model.pairs.size());
  }

  std::int64_t run() {
    const std::vector<Clique> live = list_live();
    int vain = 0;  // rounds in turn that found no row
    for (int round = 0; round < kMostRounds && exact_bound() < limit_; ++round) {
      vain = add_rows(live) ? 0 : vain + 1;
      if (vain == kMostVain || counter_.is_over()) break;
      climb(round == 0 ? 2 * kStepsOfRound : kStepsOfRound);
      if (counter_.is_over()) break;
    }
    climb(4 * kStepsOfRound);
    return std::min(exact_bound(), limit_);
  }

 private:
  // The sets that are live when a buffer begins: in each, any two are apart in every plan or by the
  // rules for windows, so that seeds are grown from the barred ones.
  std::vector<Clique> list_live() const {
    std::vector<Clique> live;
    for (BufferIdx b = 0; b < model_.count(); ++b) {
      if (model_.size[b] == 0) continue;
      Clique seed = {b};
      for (const Neighbour& each : model_.neighbours[b]) {
        const BufferIdx other = each.other;
        const bool is_there = model_.problem.start[other] <= model_.problem.start[b] &&
                              model_.problem.start[b] < model_.problem.end[other];
        if (each.pair == kBarred && is_there) seed.push_back(other);
      }
      live.push_back(seed);
    }
    return live;
  }

  // Grows a set, each time by the buffer that violates its row most, with some chance.
  Clique grown_by_chance(const Clique& seed) {
    const auto worth = [this](BufferIdx b, double gain) {
      const double noise = static_cast<double>(random_.below(1024)) / 1024 * 0.05;
      return gain + noise * static_cast<double>(model_.size[b]);
    };
    Clique clique = grown<double>(model_, seed, [this](PairIdx k) { return mean_[k]; }, worth);
    std::sort(clique.begin(), clique.end());
    return clique;
  }

  // Adds rows that the mean violates; returns whether there are any.
  bool add_rows(const std::vector<Clique>& live) {
    const std::size_t before = rows_.size();
    std::vector<Clique> seeds = live;
    for (int k = 0; k < kSeedsOfRound; ++k) {
      seeds.push_back(
          {static_cast<BufferIdx>(random_.below(static_cast<std::uint64_t>(model_.count())))});
    }
    for (const Clique& seed : seeds) {
      if (rows_.size() >= kMostRows || shares_.size() >= kMostTerms || counter_.is_over()) break;
      Clique clique = grown_by_chance(seed);
      counter_.take(1 + static_cast<std::int64_t>(clique.size()));
      Row row = load_row(model_, clique);
      if (row.need == 0 || row.terms.empty()) continue;
      std::int64_t work = 0;
      row = sharpest(row, mean_, &work);
      counter_.take(work / kTermsPerNode);
      double has = 0;
      for (const Term& term : row.terms) has += static_cast<double>(term.amount) * mean_[term.pair];
      if (has >= static_cast<double>(row.need) * kMostMet) continue;
      if (known_.emplace(std::move(clique), row.need).second) add(std::move(row));
    }
    price_.resize(rows_.size(), 0);
    best_price_.resize(rows_.size(), 0);
    direction_.assign(rows_.size(), 0);
    return rows_.size() > before;
  }

  void add(Row row) {
    const double need = static_cast<double>(row.need);
    for (const Term& term : row.terms) {
      const auto amount = static_cast<float>(static_cast<double>(term.amount) / need);
      shares_.push_back({term.pair, amount});
      entries_[term.pair].push_back({static_cast<std::int32_t>(rows_.size()), amount});
    }
    ends_.push_back(shares_.size());
    rows_.push_back(std::move(row));
  }

  const Share* shares_of(std::size_t r) const {
    return shares_.data() + (r == 0 ? 0 : ends_[r - 1]);
  }
  const Share* end_of(std::size_t r) const { return shares_.data() + ends_[r]; }

  // The bound of the prices, with the reduced costs of the pairs.
  double value() {
    reduced_.clear();
    for (const Penalty& each : model_.pairs) reduced_.push_back(static_cast<double>(each.cost));
    double sum = 0;
    std::int64_t work = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (price_[r] == 0) continue;
      sum += price_[r];
      work += end_of(r) - shares_of(r);
      for (const Share* each = shares_of(r); each != end_of(r); ++each) {
        reduced_[each->at] -= price_[r] * each->amount;
      }
    }
    for (const double cost : reduced_) sum += std::min(0.0, cost);
    counter_.take(
        (work + static_cast<std::int64_t>(rows_.size() + reduced_.size())) / kTermsPerNode + 1);
    return sum;
  }

  // Moves the prices for some steps. A price is that of the whole need of its row.
  void climb(int steps) {
    price_ = best_price_;
    double best = value();
    double length = 1;
    int since = 0;
    for (int step = 0; step < steps && !counter_.is_over(); ++step) {
      const double now = step == 0 ? best : value();
      if (now > best + 1e-9 * (1 + best)) {
        best = now;
        best_price_ = price_;
        since = 0;
      } else if (++since == kPatience) {
        length *= 0.7;
        since = 0;
        price_ = best_price_;
        value();
      }
      move(std::min(static_cast<double>(limit_), 1.5 * best + 5) - now, length);
    }
  }

  void move(double missing, double length) {
    for (std::size_t k = 0; k < reduced_.size(); ++k) {
      mean_[k] = kMemoryOfMean * mean_[k] + (reduced_[k] < 0 ? 1 - kMemoryOfMean : 0);
    }
    lack_.assign(rows_.size(), 1);
    for (std::size_t k = 0; k < reduced_.size(); ++k) {
      if (reduced_[k] >= 0) continue;
      for (const Share& each : entries_[k]) lack_[each.at] -= each.amount;
    }
    double norm = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      direction_[r] = kMemory * direction_[r] + (1 - kMemory) * lack_[r];
      if (price_[r] > 0 || direction_[r] > 0) norm += direction_[r] * direction_[r];
    }
    if (norm < 1e-12) return;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      price_[r] = std::max(0.0, price_[r] + length * missing / norm * direction_[r]);
    }
  }

  // The bound of the best prices, in whole numbers that cannot overflow: prices and costs together
  // are at most 2^30, amounts are at most needs of 2^30, and rows are at most 2^12.
  std::int64_t exact_bound() const {
    const double scale = static_cast<double>(kScale) / static_cast<double>(model_.total);
    std::vector<std::int64_t> left;
    for (const Penalty& each : model_.pairs) {
      left.push_back(
          static_cast<std::int64_t>(static_cast<double>(each.cost) * scale * kRoundDown));
    }
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::int64_t price =
          static_cast<std::int64_t>(std::min(best_price_[r] * scale, static_cast<double>(kScale)));
      if (price == 0) continue;
      sum += price;
      for (const Term& term : rows_[r].terms) {
        left[term.pair] -= (term.amount * price + rows_[r].need - 1) / rows_[r].need;
      }
    }
    for (const std::int64_t cost : left) sum += std::min<std::int64_t>(cost, 0);
    if (sum <= 0) return 0;
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(sum) / scale * kRoundDown - 1e-9));
  }

  // Products of doubles are rounded; this makes up for it.
  static constexpr double kRoundDown = 1 - 1e-14;

  const Model& model_;
  Counter& counter_;
  Random random_;
  std::int64_t limit_;
  std::vector<Row> rows_;
  // The same rows with needs of 1, one behind the other, and where each ends.
  std::vector<Share> shares_;
  std::vector<std::size_t> ends_;
  std::vector<std::vector<Share>> entries_;          // the same by pair
  std::set<std::pair<Clique, std::int64_t>> known_;  // sets and needs of all rows
  std::vector<double> mean_;                         // by pair: how often it met, of late
  std::vector<double> price_;                        // by row
  std::vector<double> best_price_;                   // by row: those of the best bound
  std::vector<double> direction_;                    // by row
  std::vector<double> lack_;                         // by row
  std::vector<double> reduced_;                      // by pair
};

}  // namespace

std::int64_t bound_by_prices(const Model& model, std::int64_t limit, std::uint64_t seed,
                             Counter& counter) {
  if (!model.knows_pairs() || model.pairs.empty()) return 0;
  return Prices(model, limit, seed, counter).run();
}

}  // namespace memplan::apart
