#include "prover/foundation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace memplan::prover {

namespace {

// The rest may fall apart again and again, one item at a time, and each round may be quadratic.
constexpr int kMostRounds = 64;

class Layer {
 public:
  Layer(const std::vector<std::vector<std::int32_t>>& live, const std::vector<Bytes>& size)
      : size_(size), neighbours_(size.size()), degree_(size.size()), seen_(size.size()) {
    result_.is_laid.assign(size.size(), 0);
    result_.floor.assign(size.size(), 0);
    const std::size_t n = size.size();
    std::vector<char> conflict(n * n, 0);
    for (const auto& set : live) {
      for (const std::int32_t u : set) {
        for (const std::int32_t v : set) conflict[u * n + v] = u != v;
      }
    }
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; v < n; ++v) {
        if (conflict[u * n + v] != 0) neighbours_[u].push_back(static_cast<std::int32_t>(v));
      }
      degree_[u] = neighbours_[u].size();
    }
  }

  // Visits every component that is left, and returns whether an item was laid.
  bool round() {
    const std::size_t before = result_.laid.size();
    seen_.assign(seen_.size(), 0);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] == 0 && result_.is_laid[i] == 0) lay(component(static_cast<std::int32_t>(i)));
    }
    return result_.laid.size() > before;
  }

  Foundation take() { return std::move(result_); }

 private:
  std::vector<std::int32_t> component(std::int32_t first) {
    std::vector<std::int32_t> members = {first};
    seen_[first] = 1;
    for (std::size_t k = 0; k < members.size(); ++k) {
      for (const std::int32_t v : neighbours_[members[k]]) {
        if (seen_[v] != 0 || result_.is_laid[v] != 0) continue;
        seen_[v] = 1;
        members.push_back(v);
      }
    }
    return members;
  }

  void lay(std::vector<std::int32_t> members) {
    std::size_t left = members.size();
    std::sort(members.begin(), members.end());
    std::vector<std::int32_t> full;
    for (const std::int32_t i : members) {
      if (degree_[i] + 1 == members.size()) full.push_back(i);
    }
    for (const std::int32_t i : full) {
      if (--left == 0) return;
      result_.laid.push_back(i);
      result_.is_laid[i] = 1;
      for (const std::int32_t v : neighbours_[i]) {
        --degree_[v];
        if (result_.is_laid[v] == 0) result_.floor[v] += size_[i];
      }
    }
  }

  const std::vector<Bytes>& size_;
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::size_t> degree_;  // among those that are left
  std::vector<char> seen_;
  Foundation result_;
};

}  // namespace

std::optional<Foundation> lay_foundation(const std::vector<std::vector<std::int32_t>>& live,
                                         const std::vector<Bytes>& size, const Halt& halt) {
  Layer layer(live, size);
  for (int round = 0; round < kMostRounds && layer.round(); ++round) {
    if (halt.look()) return std::nullopt;
  }
  return layer.take();
}

}  // namespace memplan::prover
