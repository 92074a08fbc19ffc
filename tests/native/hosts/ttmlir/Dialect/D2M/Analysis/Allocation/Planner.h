// The interface of tt-mlir that examples/adapters/tt_mlir.cpp needs, written down by us.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace mlir::tt::d2m::allocation {

class Planner {
 public:
  using AllocSizeT = std::int64_t;
  using SequenceT = std::int32_t;
  using IndexT = std::int32_t;
  enum class Space : std::int32_t { Scratch, Spill, NA };
  struct Request {
    SequenceT first = -1;
    SequenceT last = -1;
    AllocSizeT size = -1;
    AllocSizeT offset = -1;
  };
  struct Variable {
    std::array<std::set<IndexT>, 2> domain;
    Space placement = Space::NA;
  };
  struct Problem {
    std::vector<Request> requests;
    std::vector<Variable> variables;
    Request& request(IndexT index) { return requests[static_cast<std::size_t>(index)]; }
  };
  struct AllocateStats {
    AllocSizeT maxSize;
    AllocSizeT memUsage;
    AllocSizeT maxLoad;
    AllocateStats(AllocSizeT size, AllocSizeT usage, AllocSizeT load)
        : maxSize(size), memUsage(usage), maxLoad(load) {}
  };
  static AllocateStats allocate(Problem& problem);
};

}  // namespace mlir::tt::d2m::allocation
