// Which addresses a buffer of the compat header holds at which time.
#pragma once

#include <optional>
#include <vector>

#include "memplan/minimalloc_compat.h"

namespace minimalloc {
inline namespace memplan_compat {
namespace detail {

// The times at which what a buffer holds may change, sorted, each once.
std::vector<TimeValue> ChangesOf(const Buffer& buffer);

// What a buffer holds at a time, from its own offset on; nothing outside of its lifespan. Where
// gaps overlap, the one that begins or ends last decides. A gap without a length is none.
std::optional<Window> HeldAt(const Buffer& buffer, TimeValue time);

}  // namespace detail
}  // namespace memplan_compat
}  // namespace minimalloc
