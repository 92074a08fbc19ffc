// A plan in order of time that looks ahead: of many partial plans it keeps those whose holes will
// be few.
#pragma once

#include <cstdint>

#include "greedy/passes.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

struct BeamEffort {
  int width = 1;            // partial plans that are kept; more of them where it is stuck
  std::int64_t visits = 0;  // of live buffers: one for each of them and each place that is tried
};

// Places the buffers of the fullest section one on another, then those that begin later by rising
// time, and those that end earlier by falling time. `low` is the first ceiling. It rises where
// nothing else helps, by at most `step` at a time.
//
// The draft is complete unless it would end above the limit, or the effort is over. Its steps are
// the visits, its nodes the passes over all buffers that these would have been. The capacity is
// ignored.
Draft beam_in_time(const Problem& problem, const Sections& sections, Bytes low, Bytes step,
                   Bytes limit, const BeamEffort& effort, Stopper& stopper);

// Whether it supports all that the problem has: neither gaps, pins, reserved ranges, listed
// conflicts nor groups.
bool beam_suits(const Problem& problem, const Sections& sections);

}  // namespace memplan
