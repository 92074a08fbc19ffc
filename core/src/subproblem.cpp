#include "subproblem.h"

namespace memplan {

namespace {

template <typename T>
std::vector<T> picked(const std::vector<T>& column, const std::vector<BufferIdx>& rows) {
  std::vector<T> result;
  if (column.empty()) return result;
  result.reserve(rows.size());
  for (const BufferIdx row : rows) result.push_back(column[row]);
  return result;
}

}  // namespace

Problem subproblem(const Problem& problem, const std::vector<BufferIdx>& rows) {
  Problem part;
  part.start = picked(problem.start, rows);
  part.end = picked(problem.end, rows);
  part.size = picked(problem.size, rows);
  part.alignment = picked(problem.alignment, rows);
  part.pin = picked(problem.pin, rows);
  part.hint = picked(problem.hint, rows);
  part.reserved = problem.reserved;
  part.capacity = problem.capacity;
  if (problem.gaps.empty()) return part;

  std::vector<std::size_t> begin(problem.size.size() + 1, 0);  // of each buffer's gaps
  for (const Gap& gap : problem.gaps) ++begin[gap.buffer + 1];
  for (std::size_t b = 1; b < begin.size(); ++b) begin[b] += begin[b - 1];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = begin[rows[i]]; k < begin[rows[i] + 1]; ++k) {
      part.gaps.push_back(problem.gaps[k]);
      part.gaps.back().buffer = static_cast<BufferIdx>(i);
    }
  }
  return part;
}

}  // namespace memplan
