// A policy of our own for the search of telamalloc: the buffers that fail are placed earlier.
#include <memplan/published.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

namespace {

class HeaviestFirst : public memplan::SearchPolicy {
 public:
  explicit HeaviestFirst(const memplan::Problem& problem) {
    for (memplan::BufferIdx b = 0; b < problem.count(); ++b) {
      weight_.push_back(static_cast<double>(problem.size[b]) *
                        static_cast<double>(problem.end[b] - problem.start[b]));
    }
  }

  Choice choose(const memplan::SearchState& now) override {
    if (now.failed.size() >= kBranches) return {};  // give this point up, and go back
    const auto heaviest =
        std::max_element(now.candidates.begin(), now.candidates.end(),
                         [this](const memplan::ValidRange& a, const memplan::ValidRange& b) {
                           return weight_[a.buffer] < weight_[b.buffer];
                         });
    return {heaviest->buffer, heaviest->lower};
  }
  std::int32_t go_back(const memplan::SearchState& now) override {
    for (const memplan::BufferIdx b : now.failed) weight_[b] *= kGrowth;
    return kByRule;  // to the last of now.culprits, as in the paper
  }

 private:
  static constexpr std::size_t kBranches = 2;  // candidates at a point
  static constexpr double kGrowth = 1.2;

  std::vector<double> weight_;
};

}  // namespace

int main() {
  memplan::Problem problem;  // row i of every column is buffer i
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  problem.capacity = 12;

  memplan::PublishedOptions how;
  how.telamalloc.policy = std::make_shared<HeaviestFirst>(problem);
  memplan::SolveOptions options;
  options.outside = memplan::published_solver("telamalloc", how);
  options.objective = memplan::Objective::kFit;
  options.budget.nodes = 1'000;

  const memplan::Plan plan = memplan::solve(problem, options);
  std::cout << memplan::name(plan.status) << " after " << plan.stats.nodes << " steps, peak "
            << plan.peak << "\n";
  return plan.has_offsets() && plan.peak == 12 ? 0 : 1;
}
