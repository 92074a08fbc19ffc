// Cheaper plans by ruin and recreate: a connected handful of buffers around a pair that meets is
// taken out, and each goes back to the offset where it costs least.
#pragma once

#include <cstdint>
#include <vector>

#include "apart/model.h"
#include "model/counter.h"

namespace memplan::apart {

// The cheapest plan that is found from a plan on, by nodes from the counter; the plan itself if
// none is. Buffers with pins and in groups stay where they are.
std::vector<Bytes> ruin_and_recreate(const Model& model, const std::vector<Bytes>& offsets,
                                     std::uint64_t seed, Counter& counter);

}  // namespace memplan::apart
