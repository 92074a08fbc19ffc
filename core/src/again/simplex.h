// The dual simplex method for problems whose variables lie between bounds:
//
//     least cost * x   with   a_i x >= b_i for each row i,   low <= x <= high
//
// All costs are at least 0 and all bounds are finite, so that the rows themselves are a basis to
// start from, and any basis stays one to go on from if bounds change. Numbers are rounded, so what
// it returns guides, and proves nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan::again {

struct LinearEntry {
  std::int32_t at;  // the row, or the column
  double value;
};

struct LinearProgram {
  std::vector<double> cost;                       // by column
  std::vector<double> low;                        // by column
  std::vector<double> high;                       // by column
  std::vector<double> least;                      // by row
  std::vector<std::vector<LinearEntry>> rows;     // by row: columns
  std::vector<std::vector<LinearEntry>> columns;  // by column: rows

  std::int32_t add_column(double price);
  void add_row(double at_least, std::vector<LinearEntry> entries);
};

// The factors of a basis, with the changes since then. Each column of the basis has the place of
// the row in which it is the pivot.
class Basis {
 public:
  // Takes columns with entries by row. Those that depend on others are left out, and rows without a
  // column get the column of their own slack.
  void factor(std::size_t rows, const std::vector<const std::vector<LinearEntry>*>& columns);
  // By row, after factor(): which column of the list is its pivot, or -1 for its slack.
  const std::vector<std::int32_t>& places() const { return place_; }

  void solve(std::vector<double>& x) const;             // B x = given
  void solve_transposed(std::vector<double>& y) const;  // B^T y = given
  // The column of a place is replaced: `entries` is the new one, solved.
  void replace(std::int32_t place, const std::vector<double>& entries);
  std::size_t changes() const { return etas_.size(); }

 private:
  struct Pivot {
    std::int32_t row;
    double value;
    std::vector<LinearEntry> above;  // rows of earlier pivots
    std::vector<LinearEntry> below;  // rows of later ones, as multiples of this row
  };
  struct Eta {
    std::int32_t place;
    double value;
    std::vector<LinearEntry> others;
  };

  std::vector<std::size_t> sorted(const std::vector<const std::vector<LinearEntry>*>& columns);

  std::vector<Pivot> pivots_;
  std::vector<std::size_t> lower_;  // of pivots with something below
  std::vector<Eta> etas_;
  std::vector<std::int32_t> place_;
  std::vector<std::int32_t> count_;  // by row: entries of columns without a pivot yet
};

// Where a search stands, to go on from later.
struct LinearState {
  std::vector<std::int32_t> basic;    // by row
  std::vector<std::uint8_t> is_high;  // by variable
};

class Simplex {
 public:
  enum class End { kOptimal, kImpossible, kEnough, kLimit };

  explicit Simplex(const LinearProgram& program);

  void set_bounds(std::int32_t column, double low, double high);
  LinearState state() const { return {basic_, is_high_}; }
  void go_on_from(const LinearState& state);

  // Ends early if the value is `enough`, or after so many steps.
  End run(double enough, std::int64_t most_steps);

  double value() const;  // of the dual; it bounds the least cost but for rounding
  double x(std::int32_t column) const { return x_[column]; }
  // By row: what one more of its right side would cost.
  std::vector<double> multipliers() const;
  // After kImpossible, by row: multipliers that sum the rows up to what no x can meet.
  std::vector<double> contradiction() const;

 private:
  std::int32_t columns() const { return static_cast<std::int32_t>(program_.cost.size()); }
  std::int32_t rows() const { return static_cast<std::int32_t>(program_.least.size()); }
  const std::vector<LinearEntry>& column(std::int32_t variable) const;
  void refactor();
  void set_row(std::int32_t place);
  void set_reduced();
  void set_values();
  std::int32_t choose_leaving() const;
  std::int32_t choose_entering(double sign, double infeasible);
  void flip(const std::vector<std::int32_t>& flipped);
  void pivot(std::int32_t place, std::int32_t entering, double sign);

  const LinearProgram& program_;
  std::vector<std::vector<LinearEntry>> slack_;  // by row: its own column
  std::vector<double> low_;                      // by variable: columns, then slacks of rows
  std::vector<double> high_;
  std::vector<double> cost_;
  std::vector<double> x_;
  std::vector<double> reduced_;
  std::vector<std::uint8_t> is_high_;
  std::vector<std::int32_t> basic_;     // by place
  std::vector<std::int32_t> place_of_;  // by variable: its place, or -1
  std::vector<double> weight_;          // by variable
  Basis basis_;
  std::vector<double> row_;            // of the inverse of the basis
  std::vector<double> alpha_;          // by variable: its entry in the row that leaves
  std::vector<std::int32_t> touched_;  // variables with an entry in it
  std::vector<std::uint8_t> is_touched_;
  std::vector<std::int32_t> flipped_;
  double sign_ = 0;  // 1 if what leaves is too high, -1 if it is too low
};

}  // namespace memplan::again
