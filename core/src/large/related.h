// The chain where buffers conflict beyond their lifetimes, or are in contiguous groups.
#pragma once

#include <cstdint>

#include "large/course.h"

namespace memplan::chain {

// Cores and windows are cut out of time: what they leave in place bars addresses to buffers that
// share no section with it, and groups reach beyond them. So: passes, and repair without time.
void run_related(Course& course, std::uint64_t seed);

}  // namespace memplan::chain
