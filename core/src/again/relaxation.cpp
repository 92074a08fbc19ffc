#include "again/relaxation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "again/cut.h"
#include "again/moments.h"

namespace memplan::again {

namespace {

constexpr std::int32_t kBitsOfAllCosts = 50;
constexpr std::int32_t kMostOrderScale = 40;
constexpr std::int32_t kBitsOfProgram = 10;  // of all costs in the linear program, and of memory
constexpr std::int32_t kBitsOfContradiction = 40;   // of its largest multiplier
constexpr double kMostSum = 1152921504606846976.0;  // 2^60

}  // namespace

Relaxation::Relaxation(const Model& model, Bytes capacity, std::vector<OperatorIdx> moments)
    : model_(model), capacity_(capacity), moments_(std::move(moments)) {
  bytes_bits_ = bits_of(std::max<Bytes>(capacity, 1));
  const std::int32_t total_bits = bits_of(model.total);
  scale_ = std::clamp(kBitsOfAllCosts - total_bits, 0, kMostOrderScale);
  shift_ = bytes_bits_ + 3;
  fraction_ = kBitsOfProgram - total_bits;
  add_columns();
  for (std::size_t block = 1; block <= moments_.size(); ++block) add_rows(block);
  for (std::size_t i = 0; i < moments_.size(); ++i) add_memory(i);
}

double Relaxation::in_memory(Bytes bytes) const {
  return std::ldexp(static_cast<double>(bytes), kBitsOfProgram - bytes_bits_);
}

void Relaxation::add_columns() {
  const OperatorIdx n = model_.operators();
  start_.assign(model_.size.size(), n);
  last_.assign(model_.size.size(), -1);
  for (OperatorIdx k = 0; k < n; ++k) {
    for (const auto* list : {&model_.reads, &model_.makes}) {
      for (const StorageIdx s : (*list)[k]) {
        start_[s] = std::min(start_[s], k);
        last_[s] = std::max(last_[s], k);
      }
    }
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (start_[s] == n) continue;
    if (model_.given[s] != 0) start_[s] = -1;
    if (model_.wanted[s] != 0) last_[s] = n;
  }
  const auto add = [&](std::int32_t variable, std::int64_t cost) {
    variable_.push_back(variable);
    cost_.push_back(cost << scale_);
    return program_.add_column(in_program(cost));
  };
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const auto base = static_cast<std::int32_t>(i) * stride();
    there_.emplace_back(model_.size.size(), -1);
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      if (start_[s] <= moments_[i]) there_[i][s] = add(base + s, 0);
    }
    for (const auto* list : {&model_.reads, &model_.makes}) {
      for (const StorageIdx s : (*list)[moments_[i]]) program_.low[there_[i][s]] = 1;
    }
  }
  again_.emplace_back();
  for (std::size_t block = 1; block <= moments_.size(); ++block) {
    const auto base = static_cast<std::int32_t>(block) * stride() + model_.storages();
    again_.emplace_back(model_.cost.size(), -1);
    for (OperatorIdx run = 0; run < model_.runs(); ++run) {
      const bool is_move = run >= n;
      const OperatorIdx first = is_move ? start_[run - n] : run;
      if (model_.again[run] == 0 || first > moments_[block - 1]) continue;
      if (!is_move && model_.makes[run].size() == 0) continue;
      again_[block][run] = add(base + run, model_.cost[run]);
    }
  }
}

void Relaxation::add_row(std::size_t block, std::int32_t need, std::int32_t column, StorageIdx s) {
  std::vector<LinearEntry> entries{{there(block - 1, s), 1.0}};
  for (const OperatorIdx run : {model_.maker[s], model_.move_of(s)}) {
    if (run != kNoOperator && again(block, run) >= 0) entries.push_back({again(block, run), 1.0});
  }
  if (column >= 0) entries.push_back({column, -1.0});
  program_.add_row(column < 0 ? 1.0 : 0.0, std::move(entries));
  row_.push_back({static_cast<std::int32_t>(block), need, s});
}

void Relaxation::add_rows(std::size_t block) {
  const OperatorIdx before = moments_[block - 1];
  const bool is_last = block == moments_.size();
  std::vector<std::uint8_t> is_needed(model_.size.size(), 0);
  for (OperatorIdx k = before + 1; k <= end_of(block); ++k) {
    for (const StorageIdx s : model_.reads[k]) is_needed[s] = 1;
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (start_[s] > before) continue;
    if (is_needed[s] != 0 || (is_last && last_[s] == model_.operators())) add_row(block, -1, -1, s);
    if (!is_last && program_.low[there(block, s)] == 0) add_row(block, s, there(block, s), s);
  }
  for (OperatorIdx k = 0; k <= before; ++k) {
    if (again(block, k) < 0) continue;
    for (const StorageIdx s : model_.reads[k]) {
      add_row(block, model_.storages() + k, again(block, k), s);
    }
  }
}

void Relaxation::add_memory(std::size_t i) {
  std::vector<LinearEntry> entries;
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    const std::int32_t column = there(i, s);
    if (column < 0 || model_.size[s] == 0 || program_.low[column] != 0) continue;
    entries.push_back({column, -in_memory(model_.size[s])});
  }
  room_.push_back(capacity_ - own_bytes(model_, moments_[i]));
  program_.add_row(-in_memory(room_.back()), std::move(entries));
}

Proved Relaxation::prove(const std::vector<double>& y, const std::vector<std::uint8_t>& low,
                         const std::vector<std::uint8_t>& high, bool is_impossible) const {
  Proved proved;
  proved.is_impossible = is_impossible;
  double factor = std::ldexp(1.0, scale_ - fraction_);
  std::vector<std::int64_t> reduced = cost_;
  if (is_impossible) {
    factor = std::ldexp(1.0, kBitsOfContradiction) / *std::max_element(y.begin(), y.end());
    std::fill(reduced.begin(), reduced.end(), 0);
  }
  std::vector<double> sums(reduced.begin(), reduced.end());
  double all = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const double price =
        y[row_.size() + i] * factor * std::ldexp(1.0, shift_ + kBitsOfProgram - bytes_bits_);
    proved.prices.push_back(price >= kMostSum ? std::int64_t{1} << 60
                                              : static_cast<std::int64_t>(price));
    value -= price_of(proved.prices[i], room_[i], shift_);
    all += static_cast<double>(price_of(proved.prices[i], room_[i], shift_));
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      const std::int32_t column = there(i, s);
      if (column < 0 || program_.low[column] != 0) continue;
      reduced[column] += price_of(proved.prices[i], model_.size[s], shift_);
      sums[column] += static_cast<double>(reduced[column]);
    }
  }
  for (std::size_t r = 0; r < row_.size(); ++r) {
    const double rounded = std::floor(y[r] * factor + 0.5);
    if (rounded < 1) continue;
    if (rounded > kMostSum) return {};
    const auto amount = static_cast<std::int64_t>(rounded);
    for (const LinearEntry& entry : program_.rows[r]) {
      sums[entry.at] += rounded;
      if (sums[entry.at] > kMostSum) return {};
      reduced[entry.at] -= entry.value > 0 ? amount : -amount;
    }
    if (row_[r].need < 0) value += amount;
    all += rounded;
    proved.needs.push_back({row_[r].block, row_[r].need, row_[r].storage, amount});
  }
  for (std::size_t column = 0; column < reduced.size(); ++column) {
    const bool is_one = low[column] != 0 || (high[column] != 0 && reduced[column] < 0);
    if (!is_one) continue;
    value += reduced[column];
    all += std::abs(static_cast<double>(reduced[column]));
    if (all > kMostSum) return {};
  }
  if (is_impossible) {
    proved.bound = value > 0 ? kNothingFits : 0;
    return proved;
  }
  const std::int64_t one = std::int64_t{1} << scale_;
  proved.bound = value <= 0 ? 0 : (value - 1) / one + 1;
  return proved;
}

// Between two moments, what is there at the first stays as long as it is needed, and what is made
// in between too. What runs again does so as late as it can, and what it makes stays until it is
// read last.
void Relaxation::list_worst(const Simplex& simplex, std::vector<OperatorIdx>& worst) const {
  std::vector<double> change(static_cast<std::size_t>(model_.operators()) + 1, 0.0);
  for (std::size_t block = 0; block <= moments_.size(); ++block) {
    const std::vector<OperatorIdx> time = list_times(block, simplex);
    for (StorageIdx s = 0; s < model_.storages(); ++s) add_stays(block, s, simplex, time, change);
  }
  double load = static_cast<double>(model_.base);
  OperatorIdx k = 0;
  for (std::size_t block = 0; block <= moments_.size(); ++block) {
    double most = static_cast<double>(capacity_) * (1 + 1e-9);
    OperatorIdx found = kNoOperator;
    for (; k <= end_of(block); ++k) {
      load += change[k];
      const double need = load + static_cast<double>(model_.workspace[k]);
      const bool is_moment = block < moments_.size() && k == moments_[block];
      if (is_moment || need <= most) continue;
      most = need;
      found = k;
    }
    const bool is_new = std::find(worst.begin(), worst.end(), found) == worst.end();
    if (found != kNoOperator && is_new) worst.push_back(found);
  }
}

// By run: before which first run of a block it has to take place again; past the last operator, if
// it does not.
std::vector<OperatorIdx> Relaxation::list_times(std::size_t block, const Simplex& simplex) const {
  const OperatorIdx n = model_.operators();
  std::vector<OperatorIdx> time(model_.cost.size(), n);
  if (block == 0) return time;
  const OperatorIdx before = moments_[block - 1];
  const auto set_time = [&](OperatorIdx run, StorageIdx s) {
    if (again(block, run) < 0 || simplex.x(again(block, run)) < kWhole) return;
    for (const OperatorIdx reader : model_.readers[s]) {
      const OperatorIdx at = reader > before ? reader : time[reader];
      if (at <= end_of(block)) time[run] = std::min(time[run], at);
    }
    if (kept_after(block, s, simplex) >= kWhole) time[run] = std::min(time[run], end_of(block));
  };
  for (OperatorIdx k = before; k >= 0; --k) {
    for (const StorageIdx s : model_.makes[k]) set_time(k, s);
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) set_time(model_.move_of(s), s);
  return time;
}

double Relaxation::kept_after(std::size_t block, StorageIdx s, const Simplex& simplex) const {
  if (block < moments_.size()) return there(block, s) < 0 ? 0 : simplex.x(there(block, s));
  return last_[s] == model_.operators() ? 1 : 0;
}

void Relaxation::add_stays(std::size_t block, StorageIdx s, const Simplex& simplex,
                           const std::vector<OperatorIdx>& time,
                           std::vector<double>& change) const {
  const OperatorIdx before = block == 0 ? -1 : moments_[block - 1];
  const OperatorIdx end = end_of(block);
  if (start_[s] > end) return;
  const auto bytes = static_cast<double>(model_.size[s]);
  OperatorIdx last = -1;
  for (const OperatorIdx reader : model_.readers[s]) {
    const OperatorIdx at = reader > before ? reader : time[reader];
    if (at <= end) last = std::max(last, at);
  }
  const double kept = kept_after(block, s, simplex);
  const auto stay = [&](OperatorIdx from, double share) {
    const OperatorIdx until = std::max(last, from - 1);
    change[from] += share * bytes;
    change[until + 1] -= share * bytes;
    const OperatorIdx rest = std::max(from, until + 1);
    if (rest > end) return;
    change[rest] += std::min(share, kept) * bytes;
    change[end + 1] -= std::min(share, kept) * bytes;
  };
  if (start_[s] > before || block == 0) {
    last = std::max(last, start_[s]);
    stay(std::max(start_[s], 0), 1.0);
    return;
  }
  stay(before + 1, simplex.x(there(block - 1, s)));
  for (const OperatorIdx run : {model_.maker[s], model_.move_of(s)}) {
    if (run == kNoOperator || again(block, run) < 0 || time[run] > end) continue;
    const double room = 1 - simplex.x(there(block - 1, s));
    const double share = std::min(simplex.x(again(block, run)), room);
    if (share > 0) stay(time[run], share);
  }
}

}  // namespace memplan::again
