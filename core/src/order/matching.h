// Which outputs an operator writes over which inputs: a matching, in which the outputs count.
#pragma once

#include <algorithm>
#include <vector>

#include "order/program.h"

namespace memplan::order {

namespace matching {

// Looks for a free input for an output, where others move to make room for it.
template <typename Usable>
bool augment(const Lists<Pair>::Row& pairs, StorageIdx output, const Usable& usable,
             std::vector<std::pair<StorageIdx, StorageIdx>>& taken,
             std::vector<StorageIdx>& visited) {
  for (const Pair& pair : pairs) {
    if (pair.output != output || !usable(pair.input)) continue;
    if (std::find(visited.begin(), visited.end(), pair.input) != visited.end()) continue;
    visited.push_back(pair.input);
    const auto holder = std::find_if(taken.begin(), taken.end(),
                                     [&](const auto& each) { return each.first == pair.input; });
    if (holder == taken.end()) {
      taken.push_back({pair.input, output});
      return true;
    }
    if (augment(pairs, holder->second, usable, taken, visited)) {
      // The vector may have grown, so the entry is looked up again.
      std::find_if(taken.begin(), taken.end(), [&](const auto& each) {
        return each.first == pair.input;
      })->second = output;
      return true;
    }
  }
  return false;
}

}  // namespace matching

// The most bytes that the outputs of an operator may save, if each input and each output is used
// once. `dies(input)` says whether no other operator needs an input any more. The sets of outputs
// that can be matched are a matroid, so the greedy choice is best.
template <typename Dies>
Bytes saved_bytes(const Program& program, OperatorIdx op, const Dies& dies) {
  const auto pairs = program.in_place[op];
  if (pairs.size() == 0) return 0;
  if (pairs.size() == 1) return dies(pairs[0].input) ? program.size[pairs[0].output] : 0;
  std::vector<StorageIdx> outputs;
  for (const Pair& pair : pairs) {
    if (dies(pair.input)) outputs.push_back(pair.output);
  }
  std::sort(outputs.begin(), outputs.end());
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  std::stable_sort(outputs.begin(), outputs.end(),
                   [&](StorageIdx a, StorageIdx b) { return program.size[a] > program.size[b]; });
  Bytes saved = 0;
  std::vector<std::pair<StorageIdx, StorageIdx>> taken;
  for (const StorageIdx output : outputs) {
    std::vector<StorageIdx> visited;
    if (matching::augment(pairs, output, dies, taken, visited)) saved += program.size[output];
  }
  return saved;
}

}  // namespace memplan::order
