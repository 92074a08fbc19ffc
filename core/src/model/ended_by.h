// Why a round ended, for the trace.
#pragma once

#include "memplan/budget.h"
#include "memplan/plan.h"

namespace memplan {

// Returns the answer, or what stopped all work, or else `otherwise`.
inline const char* ended_by(Status status, const Stopper& stopper, const char* otherwise) {
  if (status == Status::kInfeasible) return "refuted";
  if (status != Status::kUnknown) return "plan";
  if (stopper.interrupted()) return "interrupt";
  return stopper.stopped() ? "time" : otherwise;
}

}  // namespace memplan
