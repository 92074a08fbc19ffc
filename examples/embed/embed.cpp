// A compiler that plans its own buffers: columns in, offsets out.
#include <memplan/solve.h>

#include <iostream>

int main() {
  memplan::Problem problem;  // row i of every column is buffer i
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  problem.pin = {memplan::kNoOffset, memplan::kNoOffset, memplan::kNoOffset, memplan::kNoOffset, 0};
  problem.capacity = 12;

  memplan::SolveOptions options;
  options.objective = memplan::Objective::kFit;
  options.budget.nodes = 100'000;  // the same plan on every machine, unlike a time limit

  const memplan::Plan plan = memplan::solve(problem, options);
  std::cout << memplan::name(plan.status) << ", peak " << plan.peak << ", bound "
            << plan.lower_bound << "\n";
  for (memplan::BufferIdx b = 0; b < problem.count() && plan.has_offsets(); ++b) {
    std::cout << "buffer " << b << " at " << plan.offsets[b] << "\n";
  }
  return plan.has_offsets() && plan.peak == 12 ? 0 : 1;
}
