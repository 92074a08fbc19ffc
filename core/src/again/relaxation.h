// The linear program of the rules of again/moments.h for a few moments, and what multipliers of
// them prove in whole numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "again/model.h"
#include "again/simplex.h"

namespace memplan::again {

// How far a value may be from 0 or 1 and still count as one of them.
constexpr double kWhole = 1e-6;

// What is known of one case: multipliers, and what they prove.
struct Proved {
  std::int64_t bound = 0;  // in units
  bool is_impossible = false;
  std::vector<std::int64_t> prices;
  std::vector<OrderNeed> needs;
};

// The linear program of some moments, and exact values of multipliers.
class Relaxation {
 public:
  Relaxation(const Model& model, Bytes capacity, std::vector<OperatorIdx> moments);

  const LinearProgram& program() const { return program_; }
  std::int32_t scale() const { return scale_; }
  std::int32_t shift() const { return shift_; }
  const std::vector<OperatorIdx>& moments() const { return moments_; }
  double in_program(std::int64_t cost) const {
    return std::ldexp(static_cast<double>(cost), fraction_);
  }
  std::int32_t variable(std::int32_t column) const { return variable_[column]; }

  // What rounded multipliers prove if columns lie between these bounds.
  Proved prove(const std::vector<double>& y, const std::vector<std::uint8_t>& low,
               const std::vector<std::uint8_t>& high, bool is_impossible) const;

  // Adds the first runs at which a solution has most too much, in each block one.
  void list_worst(const Simplex& simplex, std::vector<OperatorIdx>& worst) const;

 private:
  std::vector<OperatorIdx> list_times(std::size_t block, const Simplex& simplex) const;
  double kept_after(std::size_t block, StorageIdx s, const Simplex& simplex) const;
  void add_stays(std::size_t block, StorageIdx s, const Simplex& simplex,
                 const std::vector<OperatorIdx>& time, std::vector<double>& change) const;
  struct Row {
    std::int32_t block;
    std::int32_t need;  // the variable, without its block; or -1
    StorageIdx storage;
  };

  std::int32_t stride() const { return model_.operators() + 2 * model_.storages(); }
  std::int32_t there(std::size_t i, StorageIdx s) const { return there_[i][s]; }
  std::int32_t again(std::size_t block, OperatorIdx k) const { return again_[block][k]; }
  OperatorIdx end_of(std::size_t block) const {
    return block < moments_.size() ? moments_[block] : model_.operators() - 1;
  }

  double in_memory(Bytes bytes) const;
  void add_columns();
  void add_rows(std::size_t block);
  void add_row(std::size_t block, std::int32_t need, std::int32_t column, StorageIdx s);
  void add_memory(std::size_t i);

  const Model& model_;
  Bytes capacity_;
  std::vector<OperatorIdx> moments_;
  std::int32_t bytes_bits_ = 0;
  std::int32_t scale_ = 0;
  std::int32_t shift_ = 0;
  std::int32_t fraction_ = 0;
  std::vector<OperatorIdx> start_;  // by storage: its first user; -1 if it is given
  std::vector<OperatorIdx> last_;   // by storage: its last user; the number of operators if wanted
  std::vector<std::vector<std::int32_t>> there_;  // by moment and storage: a column, or -1
  std::vector<std::vector<std::int32_t>> again_;  // by block and run: a column, or -1
  std::vector<std::int32_t> variable_;            // by column
  std::vector<std::int64_t> cost_;                // by column, scaled
  std::vector<Row> row_;                          // without those of the memory
  std::vector<Bytes> room_;                       // by moment
  LinearProgram program_;
};

}  // namespace memplan::again
