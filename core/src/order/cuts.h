// The least that an operator needs while it runs, in any order: one minimum cut of its network.
#pragma once

#include <vector>

#include "memplan/order.h"
#include "order/program.h"

namespace memplan::order {

// The sum of what `op` itself needs and the flow of its certificate.
struct Cut {
  Bytes bound = 0;
  OrderBound certificate;
};

// The certificate is one for a program that runs forwards.
Cut least_step(const Program& program, OperatorIdx op);

// What an operator needs at least if others have run before it.
struct LaterCut {
  Bytes bound = 0;
  std::vector<OperatorIdx> cause;  // those of the others that are enough for the bound
  std::vector<OperatorIdx> late;  // what has not run yet in a cheapest case with as few as possible
};
LaterCut least_step_after(const Program& program, OperatorIdx op,
                          const std::vector<OperatorIdx>& done);

// What `op` needs at least without anything else that is live.
Bytes own_bytes(const Program& program, OperatorIdx op);

}  // namespace memplan::order
