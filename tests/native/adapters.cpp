// The adapters of examples/adapters on problems from standard input, beside the greedy rules of
// their hosts, which are written here in our own words.
//
// A problem is a count and so many rows `start end size`. For each problem and host there is a
// line: its name, the peak of its rule (of onnx2c: of its unions, and of its first fit), the peak
// of the adapter, the microseconds of CPU that it took, and its offsets. `adapters union` writes
// the C of onnx2c's union for the first problem.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <numeric>
#include <string>

#include "iree.h"
#include "mlir.cpp"
#include "onnx2c.cpp"
#include "tt_mlir.cpp"

using memplan_adapters::round_up;
using memplan_adapters::Row;

namespace {

constexpr std::int64_t kAlignment = 64;

bool meet(const Row& a, const Row& b) { return a.start < b.end && b.start < a.end; }

// A gap below a placed row, or above all of them.
struct Hole {
  std::int64_t lower;
  std::int64_t upper;  // or -1
};

// The holes between those of the placed rows that live at the same time, from the bottom up.
std::vector<Hole> holes(const std::vector<Row>& rows, const std::vector<std::int64_t>& offsets,
                        const std::vector<std::size_t>& placed, std::size_t row) {
  std::vector<std::pair<std::int64_t, std::int64_t>> held;
  for (const std::size_t other : placed) {
    if (meet(rows[row], rows[other])) {
      held.emplace_back(offsets[other], offsets[other] + rows[other].size);
    }
  }
  std::sort(held.begin(), held.end());
  std::vector<Hole> found;
  std::int64_t top = 0;
  for (const auto& [lower, upper] : held) {
    if (top < lower) found.push_back({top, lower});
    top = std::max(top, upper);
  }
  found.push_back({top, -1});
  return found;
}

// Places rows in an order. Each goes to the hole that `slack` rates lowest (below 0: it does not
// fit); the one above all rows is the last resort, but with `to_peak` a hole up to the peak so far.
// Returns the peak.
template <typename Slack>
std::int64_t place_all(const std::vector<Row>& rows, const std::vector<std::size_t>& order,
                       const Slack& slack, bool to_peak) {
  std::vector<std::size_t> placed;
  std::vector<std::int64_t> offsets(rows.size(), 0);
  std::int64_t peak = 0;
  for (const std::size_t row : order) {
    std::int64_t least = -1;
    for (const Hole& hole : holes(rows, offsets, placed, row)) {
      const std::int64_t at = round_up(hole.lower, rows[row].alignment);
      const std::int64_t upper = hole.upper < 0 && to_peak ? peak : hole.upper;
      const std::int64_t rated = upper < 0 ? -1 : slack(rows[row], at, upper);
      if (rated >= 0 ? least < 0 || rated < least : hole.upper < 0 && least < 0) {
        least = rated;
        offsets[row] = at;
      }
    }
    placed.push_back(row);
    peak = std::max(peak, offsets[row] + rows[row].size);
  }
  return peak;
}

std::vector<std::size_t> sorted(const std::vector<Row>& rows, bool by_start) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return by_start ? rows[a].start < rows[b].start : rows[a].size > rows[b].size;
  });
  return order;
}

std::int64_t best_fit(const Row& row, std::int64_t at, std::int64_t upper) {
  return upper - at - row.size;
}
std::int64_t first_fit(const Row& row, std::int64_t at, std::int64_t upper) {
  return at + row.size <= upper ? at : -1;
}

// The peak with onnx2c's unions: a tensor goes to the first union that is free, whatever its size.
std::int64_t unions(const std::vector<Row>& rows) {
  std::vector<Row> of;  // the last tensor of each, with the size of the largest
  for (const std::size_t row : sorted(rows, true)) {
    const auto free = std::find_if(of.begin(), of.end(),
                                   [&](const Row& last) { return last.end <= rows[row].start; });
    if (free == of.end()) {
      of.push_back(rows[row]);
    } else {
      *free = {rows[row].start, rows[row].end, std::max(free->size, rows[row].size), 1};
    }
  }
  std::int64_t sum = 0;
  for (const Row& each : of) sum += round_up(each.size, kAlignment);
  return sum;
}

class Clock {
 public:
  std::int64_t microseconds() const { return (std::clock() - begin_) * 1000000 / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_ = std::clock();
};

void print(const std::string& host, const std::vector<std::int64_t>& rules, std::int64_t peak,
           std::int64_t microseconds, const std::vector<std::int64_t>& offsets) {
  std::cout << host;
  for (const std::int64_t each : rules) std::cout << ' ' << each;
  std::cout << ' ' << peak << ' ' << microseconds << " :";
  for (const std::int64_t offset : offsets) std::cout << ' ' << offset;
  std::cout << '\n';
}

void try_mlir(const std::vector<Row>& rows) {
  std::vector<mlir::bufferization::MemoryPlannerAlloc> allocs;
  for (const Row& row : rows) allocs.push_back({row.size, kAlignment, row.start, row.end});
  const Clock clock;
  const auto offsets = mlir::bufferization::memplanMemoryPlanner(kAlignment, allocs);
  const std::int64_t took = clock.microseconds();
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) peak = std::max(peak, offsets[i] + rows[i].size);
  print("mlir", {place_all(rows, sorted(rows, true), best_fit, true)}, peak, took, offsets);
}

void try_iree(const std::vector<Row>& rows) {
  struct Slice {
    std::int64_t lifetimeStart;
    std::int64_t lifetimeEnd;
    std::int64_t size;
    std::int64_t* packedOffset;
  };
  std::vector<std::int64_t> offsets(rows.size(), -1);
  std::vector<Slice> slices;
  std::vector<Row> rounded = rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    slices.push_back({rows[i].start, rows[i].end - 1, rows[i].size, &offsets[i]});
    rounded[i].size = round_up(rows[i].size, kAlignment);
  }
  const Clock clock;
  const std::int64_t peak = memplan_adapters::packSlices(
      slices, kAlignment, kAlignment, [](const Slice& slice) { return slice.size; },
      [](const Slice& slice, std::int64_t offset) { *slice.packedOffset = offset; });
  const std::int64_t took = clock.microseconds();
  // IREE takes its slices in the order of the program: those of one time as they come.
  print("iree", {place_all(rounded, sorted(rows, true), best_fit, false)}, peak, took, offsets);
}

void try_tt_mlir(const std::vector<Row>& rows) {
  using mlir::tt::d2m::allocation::Planner;
  Planner::Problem problem;
  std::vector<Row> rounded = rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rounded[i].size = round_up(rows[i].size, kAlignment);
    problem.requests.push_back({static_cast<Planner::SequenceT>(rows[i].start),
                                static_cast<Planner::SequenceT>(rows[i].end - 1), rounded[i].size,
                                -1});
    problem.variables.push_back(
        {{{{static_cast<Planner::IndexT>(i)}, {}}}, Planner::Space::Scratch});
  }
  const Clock clock;
  const Planner::AllocateStats stats = mlir::tt::d2m::allocation::allocateByMemplan(problem);
  const std::int64_t took = clock.microseconds();
  std::vector<std::int64_t> offsets;
  for (const Planner::Request& each : problem.requests) offsets.push_back(each.offset);
  print("tt_mlir", {place_all(rounded, sorted(rounded, false), best_fit, false)}, stats.memUsage,
        took, offsets);
}

std::vector<toC::TensorLifetime> lifetimes_of(const std::vector<Row>& rows) {
  std::vector<toC::TensorLifetime> lifetimes;
  for (const Row& row : rows) {
    lifetimes.push_back({nullptr, static_cast<size_t>(row.start), static_cast<size_t>(row.end - 1),
                         static_cast<size_t>(row.size), static_cast<size_t>(kAlignment)});
  }
  return lifetimes;
}

void try_onnx2c(const std::vector<Row>& rows) {
  const Clock clock;
  const toC::ArenaPlan plan = toC::plan_by_memplan(lifetimes_of(rows));
  const std::int64_t took = clock.microseconds();
  std::vector<std::int64_t> offsets;
  for (const toC::ArenaAllocation& each : plan.allocations) {
    offsets.push_back(static_cast<std::int64_t>(each.offset));
  }
  print("onnx2c", {unions(rows), place_all(rows, sorted(rows, false), first_fit, false)},
        static_cast<std::int64_t>(plan.arena_size), took, offsets);
}

bool read(std::vector<Row>* rows) {
  std::size_t count = 0;
  if (!(std::cin >> count)) return false;
  rows->assign(count, {0, 0, 0, kAlignment});
  for (Row& row : *rows) std::cin >> row.start >> row.end >> row.size;
  return true;
}

}  // namespace

// What a host's own planner would do if memplan had no answer, which does not happen here.
namespace mlir::bufferization {
llvm::SmallVector<int64_t> bestFitMemoryPlanner(int64_t, llvm::ArrayRef<MemoryPlannerAlloc>) {
  return {};
}
}  // namespace mlir::bufferization
namespace mlir::tt::d2m::allocation {
Planner::AllocateStats Planner::allocate(Problem&) { return {0, 0, 0}; }
}  // namespace mlir::tt::d2m::allocation
namespace toC {
ArenaPlan TensorArenaPlanner::plan(const std::vector<TensorLifetime>&) const { return {}; }
}  // namespace toC

int main(int argc, char** argv) {
  std::vector<Row> rows;
  if (argc > 1 && std::string(argv[1]) == "union") {
    read(&rows);
    std::size_t number = 0;
    toC::write_union(std::cout, toC::plan_by_memplan(lifetimes_of(rows)), [&](const toC::Tensor*) {
      const std::size_t i = number++;
      return "char tensor_" + std::to_string(i) + "[" + std::to_string(rows[i].size) + "]";
    });
    return 0;
  }
  while (read(&rows)) {
    try_mlir(rows);
    try_iree(rows);
    try_tt_mlir(rows);
    try_onnx2c(rows);
  }
}
