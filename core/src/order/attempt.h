// best_order() for the C API, which must work without exceptions.
#pragma once

#include <string>

#include "memplan/order.h"

namespace memplan {

// Returns what is wrong with the problem, as a sentence, or else nothing, and sets `result`.
std::string try_best_order(const OrderProblem& problem, const OrderOptions& options,
                           OrderResult* result);

}  // namespace memplan
