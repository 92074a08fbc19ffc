// What a round of a solver achieved: a line of a trace.
#pragma once

#include <cstdint>
#include <functional>

#include "memplan/types.h"

namespace memplan {

// One question to an engine, within one slice of the budget. The strings are valid during the call
// of the tracer.
struct Round {
  const char* engine = "";  // greedy, large, exact, prover, minimalloc, ...
  const char* stage = "";   // of greedy and large: which of their passes or repairs
  const char* part = "";    // window or kernel, where it was not of the whole problem
  Bytes target = 0;         // the question: is there a plan with at most this peak?
  Bytes lower_bound = 0;    // what was known when it had ended; of the part, if it is of one
  bool has_plan = false;    // peak means nothing without
  Bytes peak = 0;           // of the best plan then
  std::int64_t nodes = 0;   // of the budget; all lines but those of a proof add up to Stats::nodes
  std::int64_t conflicts = 0;  // of the prover; of telamalloc, its backtracks
  double seconds = 0;          // since the start of the call, when it had ended
  // plan (with at most that peak), refuted, nodes, steps (its own measure of work), time,
  // interrupt, or end: nothing was left to try.
  const char* ended_by = "";
};

using Tracer = std::function<void(const Round&)>;

}  // namespace memplan
