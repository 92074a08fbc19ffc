// The cliques of an interval graph in a row.
#pragma once

#include <vector>

#include "linearise/cliques.h"

namespace memplan::intervals {

// An order of the cliques in which those of every vertex are consecutive, if there is one; else,
// or where the stopper ends it, some order. `vertices`: how many there are.
std::vector<CliqueIdx> clique_path(const CliqueForest& forest, Vertex vertices, Stopper& stopper);

}  // namespace memplan::intervals
