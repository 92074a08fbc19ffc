// The search by the rules and restarts with a model, in turns.
//
//   by the rules         |--|            |--------|                    |------ ...
//   with the model          |-|-|-|-|-|-|         |--|--|--|--|-- ... -|
//                           each from the top, with candidates drawn anew
#pragma once

#include <cstdint>

#include "memplan/budget.h"
#include "published/telamalloc/learned.h"
#include "published/telamalloc/search.h"

namespace memplan {

// As TelamallocSearch::run(). What the rules solve soon is solved as without a model. Beyond that,
// a model that is wrong about a problem, or a part of the tree without solutions that it stays in,
// costs no more than its turn. It ends with a solution, or at the limit.
TelamallocSearch::Verdict run_in_turns(const Phases::Subproblem& part, std::int64_t limit,
                                       LearnedPolicy* model, TelamallocSearch* search,
                                       const Stopper& stopper);

}  // namespace memplan
