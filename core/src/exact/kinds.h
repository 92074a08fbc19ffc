// The kinds of search that a lane may run. Each is in a file of its own, and a program is linked
// with those that it names.
#pragma once

#include <memory>

#include "exact/any_search.h"
#include "exact/task.h"
#include "memplan/exact.h"

namespace memplan::exact {

struct Kinds {
  // Goes first, in a round of its own; null where it has nothing to do. Or no such kind at all.
  std::unique_ptr<AnySearch> (*opening)(const Task& task);
  std::unique_ptr<AnySearch> (*search)(const Task& task, const ExactOptions& options);
};

// The sweep over full sections. The task must outlive it.
std::unique_ptr<AnySearch> tiling_search(const Task& task);
// In 64 bits: for every task.
std::unique_ptr<AnySearch> wide_search(const Task& task, const ExactOptions& options);
// In 32 bits where they do: the same nodes, and twice as many values in a register.
std::unique_ptr<AnySearch> narrowest_search(const Task& task, const ExactOptions& options);

constexpr Kinds kAllKinds = {tiling_search, narrowest_search};
constexpr Kinds kSmallestKinds = {nullptr, wide_search};

}  // namespace memplan::exact
