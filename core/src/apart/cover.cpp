#include "apart/cover.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "util/invariants.h"

namespace memplan::apart {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kTermsOfNode = 64;  // about as many are read in a microsecond
enum State : char { kOpen, kIn, kOut };

struct Entry {
  std::int32_t row;
  std::int64_t amount;
};

class CoverSearch {
 public:
  CoverSearch(const Model& model, const std::vector<Row>& rows, std::int64_t limit,
              Counter& counter)
      : model_(model), rows_(rows), counter_(counter), limit_(limit) {
    state_.assign(model.pairs.size(), kOpen);
    entries_.resize(model.pairs.size());
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(rows.size()); ++r) {
      need_.push_back(rows[r].need);
      left_.push_back(0);
      open_.push_back(static_cast<std::int32_t>(rows[r].terms.size()));
      for (const Term& term : rows[r].terms) {
        left_[r] += term.amount;
        entries_[term.pair].push_back({r, term.amount});
      }
      terms_ += static_cast<std::int64_t>(rows[r].terms.size());
    }
    // Sums of doubles are rounded; this is far above what that can change.
    margin_ = 1e-7 + 1e-10 * static_cast<double>(model.total);
  }

  Cover find() {
    const std::int64_t root = rounded(bound());
    search(0);
    if (is_cut_short_) return {false, {}, std::min(root, limit_)};
    return {is_found_, best_, limit_};
  }

 private:
  // The least whole number that a bound leaves.
  std::int64_t rounded(double bound) const {
    if (bound - margin_ >= static_cast<double>(limit_)) return limit_;
    return static_cast<std::int64_t>(std::ceil(std::max(bound - margin_, 0.0)));
  }

  void set(PairIdx k, State state) {
    state_[k] = state;
    for (const Entry& each : entries_[k]) {
      left_[each.row] -= each.amount;
      --open_[each.row];
      if (state == kIn) need_[each.row] -= each.amount;
    }
  }

  void reset(PairIdx k) {
    for (const Entry& each : entries_[k]) {
      left_[each.row] += each.amount;
      ++open_[each.row];
      if (state_[k] == kIn) need_[each.row] += each.amount;
    }
    state_[k] = kOpen;
  }

  // What one row needs at the reduced costs, as a fractional knapsack; the multiplier of the row
  // reduces the costs further.
  double ascend(std::int32_t r) {
    ratios_.clear();
    for (const Term& term : rows_[r].terms) {
      if (state_[term.pair] != kOpen) continue;
      const auto amount = static_cast<double>(std::min(term.amount, need_[r]));
      ratios_.push_back({reduced_[term.pair] / amount, amount, term.pair});
    }
    std::sort(ratios_.begin(), ratios_.end(), [](const Ratio& a, const Ratio& b) {
      return a.price != b.price ? a.price < b.price : a.pair < b.pair;
    });
    auto left = static_cast<double>(need_[r]);
    double value = 0;
    double price = 0;
    for (const Ratio& each : ratios_) {
      price = each.price;
      if (each.amount >= left) {
        value += price * left;
        left = 0;
        break;
      }
      value += reduced_[each.pair];
      left -= each.amount;
    }
    if (left > 0) return kNever;
    for (const Ratio& each : ratios_) {
      double& cost = reduced_[each.pair];
      cost -= std::min(cost, price * each.amount);
    }
    return value;
  }

  // A lower bound on what the rows need still, by dual ascent: rows with few open pairs first.
  double bound() {
    reduced_.clear();
    for (const Penalty& each : model_.pairs) reduced_.push_back(static_cast<double>(each.cost));
    order_.clear();
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(rows_.size()); ++r) {
      if (need_[r] > 0) order_.push_back(r);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [this](std::int32_t a, std::int32_t b) { return open_[a] < open_[b]; });
    double sum = 0;
    for (const std::int32_t r : order_) {
      sum += ascend(r);
      if (sum == kNever) return sum;
    }
    return sum;
  }

  // The row that leaves least choice; -1 if all are satisfied, -2 if one cannot be.
  std::int32_t choose_row() const {
    std::int32_t best = -1;
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(rows_.size()); ++r) {
      if (need_[r] <= 0) continue;
      if (left_[r] < need_[r]) return -2;
      if (best < 0 || open_[r] < open_[best] ||
          (open_[r] == open_[best] && need_[r] > need_[best])) {
        best = r;
      }
    }
    return best;
  }

  // The open pairs of a row, those first that do most for all rows at their cost.
  std::vector<PairIdx> ranked(std::int32_t r) const {
    std::vector<std::pair<double, PairIdx>> ranking;
    for (const Term& term : rows_[r].terms) {
      if (state_[term.pair] != kOpen) continue;
      double worth = 0;
      for (const Entry& each : entries_[term.pair]) {
        const std::int64_t need = need_[each.row];
        if (need <= 0) continue;
        worth += static_cast<double>(std::min(each.amount, need)) / static_cast<double>(need);
      }
      const auto cost = static_cast<double>(model_.pairs[term.pair].cost);
      ranking.emplace_back(-worth / cost, term.pair);
    }
    std::sort(ranking.begin(), ranking.end());
    std::vector<PairIdx> pairs;
    for (const auto& [worth, pair] : ranking) pairs.push_back(pair);
    return pairs;
  }

  void search(std::int64_t cost) {
    if (counter_.take(1 + terms_ / kTermsOfNode)) is_cut_short_ = true;
    if (is_cut_short_) return;
    const std::int32_t row = choose_row();
    if (row == -2) return;
    if (row == -1) {
      MEMPLAN_ASSERT(cost < limit_);
      limit_ = cost;
      is_found_ = true;
      best_.clear();
      for (PairIdx k = 0; k < static_cast<PairIdx>(state_.size()); ++k) {
        if (state_[k] == kIn) best_.push_back(k);
      }
      return;
    }
    if (cost >= limit_ - rounded(bound())) return;
    std::vector<PairIdx> left_out;
    for (const PairIdx k : ranked(row)) {
      if (left_[row] < need_[row]) break;
      const std::int64_t dearer = cost + model_.pairs[k].cost;
      if (dearer < limit_) {
        set(k, kIn);
        search(dearer);
        reset(k);
        if (is_cut_short_) break;
      }
      set(k, kOut);
      left_out.push_back(k);
    }
    for (const PairIdx k : left_out) reset(k);
  }

  const Model& model_;
  const std::vector<Row>& rows_;
  Counter& counter_;
  std::int64_t limit_;
  std::int64_t terms_ = 0;
  double margin_ = 0;
  bool is_cut_short_ = false;
  bool is_found_ = false;
  std::vector<State> state_;
  std::vector<std::vector<Entry>> entries_;  // by pair
  std::vector<std::int64_t> need_;           // by row, without what is in
  std::vector<std::int64_t> left_;           // by row: the sum of what is open
  std::vector<std::int32_t> open_;           // by row: how many pairs are open
  Chosen best_;
  // Scratch.
  struct Ratio {
    double price;
    double amount;
    PairIdx pair;
  };
  std::vector<Ratio> ratios_;
  std::vector<double> reduced_;
  std::vector<std::int32_t> order_;
};

}  // namespace

Cover cheapest_cover(const Model& model, const std::vector<Row>& rows, std::int64_t limit,
                     Counter& counter) {
  return CoverSearch(model, rows, limit, counter).find();
}

}  // namespace memplan::apart
