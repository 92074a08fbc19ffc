// Which of the branching rules of the exact search find a plan in a short dive: a table to choose
// the portfolio by (lab/tests/choose_rules.py).
//
// It reads problems: a line with a name, a count and a capacity in percent of the lower bound, then
// a line "start end size alignment" for each buffer. It prints a line for each component: its name,
// its items, and for each rule in each direction of time "clean:noisy:nodes", which are successes
// of one dive without noise and of kNoisy longer ones with it, and the nodes of them all.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "exact/search_makers.h"
#include "exact/task.h"
#include "memplan/bounds.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace {

using namespace memplan;
using namespace memplan::exact;

constexpr int kNoisy = 2;
constexpr double kNoise = 0.1;
constexpr std::size_t kTrivial = 8;  // items of a component that any rule solves

constexpr SectionRule kSections[] = {
    SectionRule::kOptionsSlack,          SectionRule::kFloorOptionsSlack,
    SectionRule::kSlackOptions,          SectionRule::kFloorSlackOptions,
    SectionRule::kOptionsFloor,          SectionRule::kOptionsPerWeight,
    SectionRule::kFloorOptionsPerWeight,
};
constexpr ValueRule kValues[] = {ValueRule::kArea, ValueRule::kLongest, ValueRule::kLargest,
                                 ValueRule::kShortest};

struct Question {
  std::string name;
  Problem problem;
  double percent = 100;
};

bool read_question(std::istream& in, Question& question) {
  question = Question();
  int count = 0;
  if (!(in >> question.name >> count >> question.percent)) return false;
  Problem& p = question.problem;
  for (int i = 0; i < count; ++i) {
    std::int64_t start = 0, end = 0, size = 0, alignment = 1;
    if (!(in >> start >> end >> size >> alignment)) return false;
    p.start.push_back(start);
    p.end.push_back(end);
    p.size.push_back(size);
    p.alignment.push_back(alignment);
  }
  return true;
}

// What all dives of a rule on a task did.
void try_rule(const Task& task, Strategy strategy) {
  const ExactOptions options;
  const auto items = static_cast<std::int64_t>(task.items.size());
  Stopper stopper(1e9);
  int clean = 0, noisy = 0;
  std::int64_t nodes = 0;
  for (int k = 0; k <= kNoisy; ++k) {
    const std::unique_ptr<AnySearch> search = narrowest_search(task, options);
    strategy.noise = k == 0 ? 0 : kNoise;
    strategy.seed = static_cast<std::uint64_t>(k);
    const std::int64_t budget = 100 + (k == 0 ? 3 * items / 2 : 3 * items);
    const bool found = search->run(strategy, budget, &stopper, nullptr) == Verdict::kSat;
    (k == 0 ? clean : noisy) += found ? 1 : 0;
    nodes += search->nodes();
  }
  std::cout << ' ' << clean << ':' << noisy << ':' << nodes;
}

void answer(const Question& question) {
  const Problem& problem = question.problem;
  const Sections sections = sweep(problem);
  const double bound = static_cast<double>(bound_of_lifetimes(problem, sections).bytes);
  const auto capacity = static_cast<Bytes>(bound * question.percent / 100);
  const Items items = make_items(problem, sections, capacity);
  if (!items.misfits.empty()) return;
  int number = 0;
  for (const Task& task : make_tasks(items)) {
    if (task.items.size() < kTrivial) continue;
    std::cout << question.name << '#' << number++ << ' ' << task.items.size();
    const Task mirrored = reversed(task);
    for (const Task* direction : {&task, &mirrored}) {
      for (const SectionRule section : kSections) {
        for (const ValueRule value : kValues) {
          try_rule(*direction, Strategy{Rules{section, value}});
        }
      }
    }
    std::cout << std::endl;
  }
}

}  // namespace

int main() {
  Question question;
  while (read_question(std::cin, question)) answer(question);
}
