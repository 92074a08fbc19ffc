#include <memory>

#include "exact/search_machine.h"
#include "exact/search_makers.h"

namespace memplan::exact {

template class Search<std::int64_t>;

std::unique_ptr<AnySearch> wide_search(const Task& task, const ExactOptions& options) {
  return std::make_unique<Search<std::int64_t>>(task, options);
}

}  // namespace memplan::exact
