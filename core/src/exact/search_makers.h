// The searches that a worker may run. The functions which make them are in a file each, so that a
// program is linked only with the searches that it names.
#pragma once

#include <memory>

#include "exact/any_search.h"
#include "exact/task.h"
#include "memplan/exact.h"

namespace memplan::exact {

struct SearchMakers {
  // Makes the sweep over full sections, or null where it has nothing to do. May itself be null.
  std::unique_ptr<AnySearch> (*tiling)(const Task& task);
  // Makes the search over nodes, in some width of numbers.
  std::unique_ptr<AnySearch> (*search)(const Task& task, const ExactOptions& options);
};

// The sweep over full sections, or null where no two of them are neighbours. The task must outlive
// it.
std::unique_ptr<AnySearch> tiling_search(const Task& task);
// Makes a search in 64 bits, which are enough for every task.
std::unique_ptr<AnySearch> wide_search(const Task& task, const ExactOptions& options);
// Makes a search in 32 bits where these are enough: it visits the same nodes, with twice as many
// values in a register.
std::unique_ptr<AnySearch> narrowest_search(const Task& task, const ExactOptions& options);

constexpr SearchMakers kAllMakers = {tiling_search, narrowest_search};
constexpr SearchMakers kWideOnly = {nullptr, wide_search};

}  // namespace memplan::exact
