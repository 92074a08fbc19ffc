#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "c_api/door.h"

namespace memplan::c_api {

namespace {

// Makes the rows of the relation from its pairs, in both directions and each once.
Conflicts rows_of(std::vector<std::pair<BufferIdx, BufferIdx>> pairs, std::size_t buffers) {
  for (std::size_t i = 0, count = pairs.size(); i < count; ++i) {
    pairs.emplace_back(pairs[i].second, pairs[i].first);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Conflicts rows;
  if (pairs.empty()) return rows;
  rows.begin.assign(buffers + 1, 0);
  rows.other.reserve(pairs.size());
  for (const auto& [buffer, other] : pairs) {
    ++rows.begin[static_cast<std::size_t>(buffer) + 1];
    rows.other.push_back(other);
  }
  for (std::size_t b = 0; b < buffers; ++b) rows.begin[b + 1] += rows.begin[b];
  return rows;
}

}  // namespace

}  // namespace memplan::c_api

int memplan_problem_set_conflicts(memplan_problem* problem, size_t count, const int32_t* first,
                                  const int32_t* second, char* error, size_t error_size) {
  using namespace memplan::c_api;
  const auto make = [&](size_t buffers, memplan::Conflicts* conflicts) -> std::string {
    if (count > 0 && (first == nullptr || second == nullptr)) {
      return "first and second of conflicts must not be NULL";
    }
    if (count > kMostRows) return "there are too many conflicts";
    std::vector<std::pair<memplan::BufferIdx, memplan::BufferIdx>> pairs;
    pairs.reserve(2 * count);
    for (size_t i = 0; i < count; ++i) {
      const std::string conflict = "conflict " + std::to_string(i) + ": ";
      for (const int32_t b : {first[i], second[i]}) {
        if (b >= 0 && static_cast<size_t>(b) < buffers) continue;
        return conflict + "there is no buffer " + std::to_string(b);
      }
      if (first[i] == second[i]) {
        return conflict + "buffer " + std::to_string(first[i]) + " cannot conflict with itself";
      }
      pairs.emplace_back(first[i], second[i]);
    }
    *conflicts = rows_of(std::move(pairs), buffers);
    return {};
  };
  return replace(problem, &memplan::Problem::conflicts, error, error_size, make);
}
