#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "exact/search_machine.h"
#include "exact/search_makers.h"

namespace memplan::exact {

template class Search<std::int32_t>;

namespace {

// Loads, floors and tops stay below twice the greater of ceiling and load.
bool is_narrow(const Task& task) {
  Bytes most = task.ceiling;
  std::vector<Bytes> load(task.sections, 0);
  for (const Item<Bytes>& item : task.items) {
    for (SectionIdx s = item.first; s <= item.last; ++s) {
      load[s] += item.size;
      most = std::max(most, load[s]);
    }
  }
  return most < std::numeric_limits<std::int32_t>::max() / 2;
}

}  // namespace

std::unique_ptr<AnySearch> narrowest_search(const Task& task, const ExactOptions& options) {
  if (task.restricted || !is_narrow(task)) return wide_search(task, options);
  return std::make_unique<Search<std::int32_t>>(task, options);
}

}  // namespace memplan::exact
