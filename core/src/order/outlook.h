// States from which an operator that has still to run must need more than the limit: a minimum cut
// with the operators that ran on the side of the source.
//
// One cut answers for many states. Where it is within the limit, so it is for every state inside
// of its side of the source. Where it is above, only some of the operators that ran are the cause,
// and every state with them is as bad.
#pragma once

#include <cstdint>
#include <vector>

#include "order/program.h"
#include "order/state.h"

namespace memplan::order {

class Outlook {
 public:
  explicit Outlook(const Program& program);

  // Takes note that an operator exceeded the limit.
  void refuse(OperatorIdx op) { ++refused_[op]; }

  // What an operator must need at least from this state on, if this exceeds the limit; or 0.
  Bytes excess(const State& state, Bytes limit);

 private:
  struct Set {
    Bits bits;
    Bytes bound;
  };
  struct Watched {
    OperatorIdx op;
    std::vector<Set> causes;  // the operators that must not all run before
    std::vector<Set> sides;   // nothing but these may run before
  };

  void watch_more();
  Bytes try_cut(Watched& watched, const State& state, Bytes limit);

  const Program& program_;
  std::vector<std::int64_t> refused_;  // by operator: how often
  std::vector<Watched> watched_;
  std::int64_t asked_ = 0;
  std::int64_t cost_;    // of a cut
  std::int64_t credit_;  // for cuts
};

}  // namespace memplan::order
