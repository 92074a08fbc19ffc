#include <string>
#include <utility>
#include <vector>

#include "c_api/door.h"

int memplan_problem_set_groups(memplan_problem* problem, const int32_t* group, const int64_t* lead,
                               char* error, size_t error_size) {
  using namespace memplan::c_api;
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (problem == nullptr) return kNoProblem;
    if ((group == nullptr) != (lead == nullptr)) {
      return "group and lead must both be given, or both be NULL";
    }
    std::vector<std::int32_t> groups;
    std::vector<memplan::Bytes> leads;
    if (group != nullptr) {
      const std::size_t count = problem->problem.size.size();
      groups.assign(group, group + count);
      leads.assign(lead, lead + count);
    }
    problem->problem.group = std::move(groups);
    problem->problem.lead = std::move(leads);
    return {};
  });
  return done ? 1 : 0;
}
