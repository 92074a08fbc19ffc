// Bounds above the load from stretches of time (docs/algorithms/bounds.md, "Windows of time").
#pragma once

#include <cstdint>
#include <vector>

#include "solve/incumbent.h"

namespace memplan {

// If the buffers of a stretch of time, cut to that stretch, need so many bytes, all buffers do. So
// a part may raise the bound where the whole is too large to be refuted.
class Windows {
 public:
  explicit Windows(Incumbent& incumbent);

  // Looks for the least peak of a few windows of up to `width` buffers, the fullest first, with
  // `nodes` in all; the next round continues with the next windows. Returns false where the problem
  // is not twice as wide.
  bool round(BufferIdx width, std::int64_t nodes);

 private:
  struct Window {
    SectionIdx first = 0;
    SectionIdx last = 0;
    Bytes load = 0;  // of its fullest section
  };

  void cut_up(BufferIdx width);
  Problem cut_out(const Window& window, std::vector<BufferIdx>* rows) const;
  void solve_window(const Window& window, std::int64_t nodes);

  Incumbent& incumbent_;
  std::vector<Bytes> loads_;
  std::vector<Window> windows_;  // of the width at work, the fullest first
  std::size_t next_ = 0;
  BufferIdx width_ = 0;
};

}  // namespace memplan
