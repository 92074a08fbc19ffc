// How tight each section of a problem is at a target for its peak, and the critical core: the
// buffers that have hardly any freedom, placed before all others.
#pragma once

#include <vector>

#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan::chain {

// For every section: how many buffers as large as its largest would fit into what the target leaves
// above its load. The load alone is a poor measure: a section at 0.8 of the target whose largest
// buffer needs 0.18 of it in one piece is tighter than one at 0.95 full of crumbs.
std::vector<double> rooms(const Problem& problem, const Sections& sections, Bytes target);

// A core is a set of hard sections and every buffer that is live in one of them, over its whole
// lifetime.
class Core {
 public:
  // `room`: see rooms(). All must outlive it.
  Core(const Problem& problem, const Sections& sections, const std::vector<double>& room);

  // Sections with at most so much room are hard.
  void widen(double room);

  // The buffers that first fit rejected around the core join it, with all that is live in the
  // tightest sections of each. Returns false if nothing new came in.
  bool grow(const std::vector<BufferIdx>& rejected);

  // By rising index, and with all pinned buffers.
  std::vector<BufferIdx> members() const;

 private:
  const Problem& problem_;
  const Sections& sections_;
  const std::vector<double>& room_;
  std::vector<char> hard_;    // by section
  std::vector<char> forced_;  // by buffer
};

}  // namespace memplan::chain
