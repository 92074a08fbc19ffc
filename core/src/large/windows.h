// Repair: to insert what does not fit below a target, all that lives only near it is placed again.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "util/random.h"

namespace memplan::chain {

//   address                           A window of sections around a rejected buffer x. What lives
//     |  ......|.............|......  in it alone (a, b, c) is freed; what reaches beyond stays: a
//     |########|#############|######  pin if it ends within, or, where it spans the window, a
//     |  #####+|## a |  x?   |        reserved range. The exact search decides whether x fits too.
//     |########|#b###|# c ###|######
//     +--------+-------------+------  time
class Windows {
 public:
  // All must outlive it.
  Windows(const Problem& problem, const Sections& sections, std::uint64_t seed, Stopper& stopper);

  // `offsets` is a plan below `target` but for the `rejected`, which have kNoOffset. Inserts as
  // many as it can, and returns whether anything changed. It spends at most `node_budget`, which
  // nodes() counts.
  bool insert(Bytes target, std::int64_t node_budget, std::vector<Bytes>* offsets,
              std::vector<BufferIdx>* rejected);

  std::int64_t nodes() const { return nodes_; }

 private:
  struct Window {
    SectionIdx first;
    SectionIdx last;
  };

  Window around(BufferIdx b, SectionIdx margin) const;
  Window somewhere_around(BufferIdx b, SectionIdx margin);
  void clip(const Window& window, Problem* problem) const;
  bool try_window(BufferIdx b, const Window& window, Bytes target, std::int64_t node_budget,
                  std::vector<Bytes>* offsets);
  bool lives_within(BufferIdx b, const Window& window) const;
  bool meets(BufferIdx b, const Window& window) const;
  bool spans(BufferIdx b, const Window& window) const;

  const Problem& problem_;
  const Sections& sections_;
  Random random_;
  Stopper& stopper_;
  std::int64_t nodes_ = 0;
};

}  // namespace memplan::chain
