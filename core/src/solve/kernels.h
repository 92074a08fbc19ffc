// Bounds above the load from buffers that conflict beyond their lifetimes, or are in contiguous
// groups (docs/algorithms/bounds.md, "Kernels").
#pragma once

#include <cstdint>
#include <vector>

#include "solve/incumbent.h"

namespace memplan {

// A kernel: the buffers that attain the bound, with those that conflict with most of them. A buffer
// that conflicts with all the others needs addresses of its own whatever they do, so it is set
// aside, which leaves a few dozen of some hundreds to the search.
class Kernels {
 public:
  explicit Kernels(Incumbent& incumbent);

  // Searches for the least peak of the kernel with `width` buffers beyond those of the bound, with
  // as many nodes as make `visits` visits to a pair of what is left of it. Returns false where
  // there are not so many buffers, or where offsets are restricted otherwise.
  bool round(BufferIdx width, std::int64_t visits);

 private:
  bool conflict(BufferIdx a, BufferIdx b) const;
  void rank_others();
  std::vector<std::vector<BufferIdx>> runs(const std::vector<BufferIdx>& rows) const;
  Bytes set_aside(const std::vector<BufferIdx>& rows,
                  std::vector<std::vector<BufferIdx>>* runs) const;
  Problem part_of(const std::vector<std::vector<BufferIdx>>& pieces) const;

  Incumbent& incumbent_;
  std::vector<BufferIdx> heavy_;   // those that attain the first bound
  std::vector<BufferIdx> others_;  // those that conflict with most of them come first
  bool ranked_ = false;
};

}  // namespace memplan
