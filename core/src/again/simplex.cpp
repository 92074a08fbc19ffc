#include "again/simplex.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace memplan::again {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-13;       // what is dropped from factors
constexpr double kPivot = 1e-7;       // the least pivot
constexpr double kInfeasible = 1e-9;  // of values
constexpr double kDual = 1e-9;        // of reduced costs
constexpr double kRelative = 0.1;     // of the largest entry of a column, to be a pivot
constexpr std::size_t kChanges = 64;  // of a basis, before it is factored again

}  // namespace

std::int32_t LinearProgram::add_column(double price) {
  cost.push_back(price);
  low.push_back(0);
  high.push_back(1);
  columns.emplace_back();
  return static_cast<std::int32_t>(cost.size()) - 1;
}

void LinearProgram::add_row(double at_least, std::vector<LinearEntry> entries) {
  const auto row = static_cast<std::int32_t>(rows.size());
  for (const LinearEntry& entry : entries) columns[entry.at].push_back({row, entry.value});
  least.push_back(at_least);
  rows.push_back(std::move(entries));
}

// Columns with one entry among the rows that are left come first: nothing is below them. Then those
// whose row has no other column: they change no later one. The rest, which is small, comes by the
// number of its entries.
std::vector<std::size_t> Basis::sorted(
    const std::vector<const std::vector<LinearEntry>*>& columns) {
  std::vector<std::vector<std::size_t>> of_row(count_.size());
  std::vector<std::size_t> left(columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    left[j] = columns[j]->size();
    for (const LinearEntry& entry : *columns[j]) of_row[entry.at].push_back(j);
  }
  for (std::size_t row = 0; row < count_.size(); ++row) {
    count_[row] = static_cast<std::int32_t>(of_row[row].size());
  }
  std::vector<std::uint8_t> is_row_done(count_.size(), 0);
  std::vector<std::uint8_t> is_done(columns.size(), 0);
  std::vector<std::size_t> order;
  std::vector<std::size_t> todo;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (left[j] == 1) todo.push_back(j);
  }
  while (!todo.empty()) {
    const std::size_t j = todo.back();
    todo.pop_back();
    if (is_done[j] != 0 || left[j] != 1) continue;
    is_done[j] = 1;
    order.push_back(j);
    for (const LinearEntry& entry : *columns[j]) {
      --count_[entry.at];
      if (is_row_done[entry.at] != 0) continue;
      is_row_done[entry.at] = 1;
      for (const std::size_t other : of_row[entry.at]) {
        if (is_done[other] == 0 && --left[other] == 1) todo.push_back(other);
      }
    }
  }
  std::vector<std::size_t> single;
  for (std::size_t row = 0; row < count_.size(); ++row) {
    if (is_row_done[row] == 0 && count_[row] == 1) single.push_back(row);
  }
  while (!single.empty()) {
    const std::size_t row = single.back();
    single.pop_back();
    if (is_row_done[row] != 0 || count_[row] != 1) continue;
    is_row_done[row] = 1;
    for (const std::size_t j : of_row[row]) {
      if (is_done[j] != 0) continue;
      is_done[j] = 1;
      order.push_back(j);
      for (const LinearEntry& entry : *columns[j]) {
        if (--count_[entry.at] == 1 && is_row_done[entry.at] == 0) single.push_back(entry.at);
      }
    }
  }
  const auto rest = static_cast<std::ptrdiff_t>(order.size());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (is_done[j] == 0) order.push_back(j);
  }
  std::stable_sort(order.begin() + rest, order.end(),
                   [&](std::size_t a, std::size_t b) { return left[a] < left[b]; });
  return order;
}

void Basis::factor(std::size_t rows, const std::vector<const std::vector<LinearEntry>*>& columns) {
  pivots_.clear();
  lower_.clear();
  etas_.clear();
  place_.assign(rows, -1);
  count_.assign(rows, 0);
  std::vector<double> x(rows, 0.0);
  std::vector<std::uint8_t> is_pivot(rows, 0);
  std::vector<std::int32_t> met;
  std::vector<std::uint8_t> is_met(rows, 0);
  const auto meet = [&](std::int32_t row) {
    if (is_met[row] == 0) met.push_back(row);
    is_met[row] = 1;
  };
  for (const std::size_t j : sorted(columns)) {
    met.clear();
    for (const LinearEntry& entry : *columns[j]) {
      meet(entry.at);
      x[entry.at] += entry.value;
    }
    for (const std::size_t k : lower_) {
      const double factor = x[pivots_[k].row];
      if (factor == 0) continue;
      for (const LinearEntry& entry : pivots_[k].below) {
        meet(entry.at);
        x[entry.at] -= entry.value * factor;
      }
    }
    double largest = 0;
    for (const std::int32_t row : met) {
      if (is_pivot[row] == 0) largest = std::max(largest, std::abs(x[row]));
    }
    std::int32_t best = -1;
    for (const std::int32_t row : met) {
      if (is_pivot[row] != 0 || std::abs(x[row]) < kRelative * largest) continue;
      const bool is_better =
          best < 0 || count_[row] < count_[best] || (count_[row] == count_[best] && row < best);
      if (is_better) best = row;
    }
    if (largest >= kPivot) {
      Pivot pivot{best, x[best], {}, {}};
      for (const std::int32_t row : met) {
        if (row == best || std::abs(x[row]) < kTiny) continue;
        if (is_pivot[row] != 0) {
          pivot.above.push_back({row, x[row]});
        } else {
          pivot.below.push_back({row, x[row] / x[best]});
        }
      }
      if (!pivot.below.empty()) lower_.push_back(pivots_.size());
      is_pivot[best] = 1;
      place_[best] = static_cast<std::int32_t>(j);
      pivots_.push_back(std::move(pivot));
    }
    for (const std::int32_t row : met) {
      x[row] = 0;
      is_met[row] = 0;
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (is_pivot[row] == 0) pivots_.push_back({static_cast<std::int32_t>(row), -1.0, {}, {}});
  }
}

void Basis::solve(std::vector<double>& x) const {
  for (const std::size_t k : lower_) {
    const double factor = x[pivots_[k].row];
    if (factor == 0) continue;
    for (const LinearEntry& entry : pivots_[k].below) x[entry.at] -= entry.value * factor;
  }
  for (std::size_t k = pivots_.size(); k-- > 0;) {
    const Pivot& pivot = pivots_[k];
    if (x[pivot.row] == 0) continue;
    const double factor = x[pivot.row] /= pivot.value;
    for (const LinearEntry& entry : pivot.above) x[entry.at] -= entry.value * factor;
  }
  for (const Eta& eta : etas_) {
    if (x[eta.place] == 0) continue;
    const double factor = x[eta.place] /= eta.value;
    for (const LinearEntry& entry : eta.others) x[entry.at] -= entry.value * factor;
  }
}

void Basis::solve_transposed(std::vector<double>& y) const {
  for (std::size_t k = etas_.size(); k-- > 0;) {
    const Eta& eta = etas_[k];
    double sum = y[eta.place];
    for (const LinearEntry& entry : eta.others) sum -= entry.value * y[entry.at];
    y[eta.place] = sum / eta.value;
  }
  for (const Pivot& pivot : pivots_) {
    double sum = y[pivot.row];
    for (const LinearEntry& entry : pivot.above) sum -= entry.value * y[entry.at];
    y[pivot.row] = sum / pivot.value;
  }
  for (std::size_t i = lower_.size(); i-- > 0;) {
    const Pivot& pivot = pivots_[lower_[i]];
    double sum = y[pivot.row];
    for (const LinearEntry& entry : pivot.below) sum -= entry.value * y[entry.at];
    y[pivot.row] = sum;
  }
}

void Basis::replace(std::int32_t place, const std::vector<double>& entries) {
  Eta eta{place, entries[place], {}};
  for (std::size_t row = 0; row < entries.size(); ++row) {
    const auto at = static_cast<std::int32_t>(row);
    if (at != place && std::abs(entries[row]) > kTiny) eta.others.push_back({at, entries[row]});
  }
  etas_.push_back(std::move(eta));
}

Simplex::Simplex(const LinearProgram& program) : program_(program) {
  low_ = program.low;
  high_ = program.high;
  cost_ = program.cost;
  for (std::int32_t row = 0; row < rows(); ++row) {
    slack_.push_back({{row, -1.0}});
    low_.push_back(0);
    high_.push_back(kUnbounded);
    cost_.push_back(0);
    basic_.push_back(columns() + row);
  }
  x_.assign(cost_.size(), 0.0);
  reduced_.assign(cost_.size(), 0.0);
  is_high_.assign(cost_.size(), 0);
  place_of_.assign(cost_.size(), -1);
  weight_.assign(cost_.size(), 1.0);
  alpha_.assign(cost_.size(), 0.0);
  is_touched_.assign(cost_.size(), 0);
  go_on_from(state());
}

void Simplex::set_bounds(std::int32_t column, double low, double high) {
  low_[column] = low;
  high_[column] = high;
}

const std::vector<LinearEntry>& Simplex::column(std::int32_t variable) const {
  return variable < columns() ? program_.columns[variable] : slack_[variable - columns()];
}

void Simplex::go_on_from(const LinearState& state) {
  basic_ = state.basic;
  is_high_ = state.is_high;
  std::fill(weight_.begin(), weight_.end(), 1.0);
  refactor();
}

void Simplex::refactor() {
  std::vector<const std::vector<LinearEntry>*> list;
  for (const std::int32_t variable : basic_) list.push_back(&column(variable));
  const std::vector<std::int32_t> variables = basic_;
  basis_.factor(basic_.size(), list);
  std::fill(place_of_.begin(), place_of_.end(), -1);
  for (std::int32_t row = 0; row < rows(); ++row) {
    const std::int32_t at = basis_.places()[row];
    basic_[row] = at < 0 ? columns() + row : variables[at];
    place_of_[basic_[row]] = row;
  }
  set_reduced();
  set_values();
}

// Every variable with two bounds can be set so that its reduced cost is of the right sign. A slack
// has one bound only: its multiplier counts as 0 if rounding made it negative.
void Simplex::set_reduced() {
  std::vector<double> y(basic_.size());
  for (std::size_t row = 0; row < y.size(); ++row) y[row] = cost_[basic_[row]];
  basis_.solve_transposed(y);
  for (std::size_t j = 0; j < cost_.size(); ++j) {
    const auto variable = static_cast<std::int32_t>(j);
    double sum = cost_[j];
    for (const LinearEntry& entry : column(variable)) sum -= entry.value * y[entry.at];
    if (place_of_[j] >= 0) sum = 0;
    reduced_[j] = sum;
    if (place_of_[j] >= 0) continue;
    if (high_[j] == kUnbounded) {
      reduced_[j] = std::max(0.0, sum);
      is_high_[j] = 0;
    } else if (sum < -kDual) {
      is_high_[j] = 1;
    } else if (sum > kDual) {
      is_high_[j] = 0;
    }
  }
}

void Simplex::set_values() {
  std::vector<double> x(basic_.size());
  for (std::size_t row = 0; row < x.size(); ++row) x[row] = program_.least[row];
  for (std::size_t j = 0; j < cost_.size(); ++j) {
    if (place_of_[j] >= 0) continue;
    x_[j] = is_high_[j] != 0 ? high_[j] : low_[j];
    if (x_[j] == 0) continue;
    for (const LinearEntry& entry : column(static_cast<std::int32_t>(j))) {
      x[entry.at] -= entry.value * x_[j];
    }
  }
  basis_.solve(x);
  for (std::size_t row = 0; row < x.size(); ++row) x_[basic_[row]] = x[row];
}

double Simplex::value() const {
  double sum = 0;
  for (std::size_t j = 0; j < cost_.size(); ++j) sum += cost_[j] * x_[j];
  return sum;
}

std::int32_t Simplex::choose_leaving() const {
  std::int32_t best = -1;
  double most = 0;
  for (std::int32_t place = 0; place < rows(); ++place) {
    const std::int32_t j = basic_[place];
    const double infeasible = std::max(low_[j] - x_[j], x_[j] - high_[j]);
    if (infeasible <= kInfeasible) continue;
    const double worth = infeasible * infeasible / weight_[j];
    if (worth <= most) continue;
    most = worth;
    best = place;
  }
  return best;
}

// The variable whose reduced cost becomes 0 first as the multiplier of the row that leaves grows.
// As long as the row stays violated, variables that are passed jump to their other bound instead.
std::int32_t Simplex::choose_entering(double sign, double infeasible) {
  struct Candidate {
    double ratio;
    double size;
    std::int32_t variable;
  };
  std::vector<Candidate> candidates;
  for (const std::int32_t j : touched_) {
    if (place_of_[j] >= 0) continue;
    const double alpha = sign * alpha_[j];
    if (low_[j] == high_[j]) continue;
    if (is_high_[j] == 0 ? alpha <= kPivot : alpha >= -kPivot) continue;
    const double ratio = std::max(0.0, reduced_[j] / alpha);
    candidates.push_back({ratio, std::abs(alpha), j});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.ratio != b.ratio) return a.ratio < b.ratio;
    return a.size != b.size ? a.size > b.size : a.variable < b.variable;
  });
  flipped_.clear();
  std::size_t i = 0;
  while (i < candidates.size()) {
    // Those with nearly the same ratio: the largest pivot of them is the safest.
    std::size_t end = i;
    std::size_t largest = i;
    double slope = 0;
    while (end < candidates.size() && candidates[end].ratio <= candidates[i].ratio + kDual) {
      const Candidate& each = candidates[end];
      if (each.size > candidates[largest].size) largest = end;
      slope += each.size * (high_[each.variable] - low_[each.variable]);
      ++end;
    }
    if (!(slope < infeasible)) return candidates[largest].variable;
    infeasible -= slope;
    for (; i < end; ++i) flipped_.push_back(candidates[i].variable);
  }
  return -1;
}

void Simplex::flip(const std::vector<std::int32_t>& flipped) {
  if (flipped.empty()) return;
  std::vector<double> change(basic_.size(), 0.0);
  for (const std::int32_t j : flipped) {
    const double before = x_[j];
    is_high_[j] ^= 1;
    x_[j] = is_high_[j] != 0 ? high_[j] : low_[j];
    for (const LinearEntry& entry : column(j)) change[entry.at] -= entry.value * (x_[j] - before);
  }
  basis_.solve(change);
  for (std::size_t place = 0; place < change.size(); ++place) x_[basic_[place]] += change[place];
}

void Simplex::pivot(std::int32_t place, std::int32_t entering, double sign) {
  const std::int32_t leaving = basic_[place];
  std::vector<double> entries(basic_.size(), 0.0);
  for (const LinearEntry& entry : column(entering)) entries[entry.at] += entry.value;
  basis_.solve(entries);
  std::vector<double> tau = row_;
  basis_.solve(tau);
  const double pivot = entries[place];
  const double step = reduced_[entering] / alpha_[entering];
  for (const std::int32_t j : touched_) {
    if (place_of_[j] < 0) reduced_[j] -= step * alpha_[j];
  }
  reduced_[entering] = 0;
  reduced_[leaving] = -step;
  const double target = sign > 0 ? high_[leaving] : low_[leaving];
  const double moved = (x_[leaving] - target) / pivot;
  const double weight = weight_[leaving];
  for (std::size_t at = 0; at < entries.size(); ++at) {
    if (entries[at] == 0) continue;
    const std::int32_t j = basic_[at];
    x_[j] -= moved * entries[at];
    const double ratio = entries[at] / pivot;
    weight_[j] = std::max(weight_[j] - 2 * ratio * tau[at] + ratio * ratio * weight, 1e-4);
  }
  weight_[entering] = std::max(weight / (pivot * pivot), 1e-4);
  x_[entering] += moved;
  x_[leaving] = target;
  is_high_[leaving] = sign > 0 ? 1 : 0;
  basic_[place] = entering;
  place_of_[entering] = place;
  place_of_[leaving] = -1;
  basis_.replace(place, entries);
}

// The row of a place in the inverse of the basis, and what variables have in it.
void Simplex::set_row(std::int32_t place) {
  for (const std::int32_t j : touched_) {
    alpha_[j] = 0;
    is_touched_[j] = 0;
  }
  touched_.clear();
  row_.assign(basic_.size(), 0.0);
  row_[place] = 1;
  basis_.solve_transposed(row_);
  const auto add = [&](std::int32_t j, double amount) {
    if (is_touched_[j] == 0) touched_.push_back(j);
    is_touched_[j] = 1;
    alpha_[j] += amount;
  };
  for (std::int32_t row = 0; row < rows(); ++row) {
    if (std::abs(row_[row]) < kTiny) row_[row] = 0;
    if (row_[row] == 0) continue;
    for (const LinearEntry& entry : program_.rows[row]) add(entry.at, entry.value * row_[row]);
    add(columns() + row, -row_[row]);
  }
}

Simplex::End Simplex::run(double enough, std::int64_t most_steps) {
  set_reduced();
  set_values();
  for (std::int64_t step = 0; step < most_steps; ++step) {
    if (basis_.changes() >= kChanges) refactor();
    if (step % 8 == 0 && value() >= enough) return End::kEnough;
    const std::int32_t place = choose_leaving();
    if (place < 0) return End::kOptimal;
    const std::int32_t leaving = basic_[place];
    sign_ = x_[leaving] > high_[leaving] ? 1.0 : -1.0;
    const double infeasible =
        sign_ > 0 ? x_[leaving] - high_[leaving] : low_[leaving] - x_[leaving];
    set_row(place);
    const std::int32_t entering = choose_entering(sign_, infeasible);
    if (entering < 0) return End::kImpossible;
    flip(flipped_);
    pivot(place, entering, sign_);
  }
  return End::kLimit;
}

std::vector<double> Simplex::multipliers() const {
  std::vector<double> y(basic_.size());
  for (std::size_t place = 0; place < y.size(); ++place) y[place] = cost_[basic_[place]];
  basis_.solve_transposed(y);
  for (double& each : y) each = std::max(0.0, each);
  return y;
}

std::vector<double> Simplex::contradiction() const {
  std::vector<double> y = row_;
  for (double& each : y) each = std::max(0.0, sign_ * each);
  return y;
}

}  // namespace memplan::again
