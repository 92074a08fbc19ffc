#include "memplan/plan.h"

namespace memplan {

const char* name(Status status) {
  switch (status) {
    case Status::kOptimal:
      return "optimal";
    case Status::kFeasible:
      return "feasible";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kFits:
      return "fits";
    case Status::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace memplan
