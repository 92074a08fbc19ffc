// Writes down the refutation behind an answer.
#pragma once

#include <ostream>

#include "solve/incumbent.h"

namespace memplan {

// Where the answer is proved (no plan below its peak, or none within the capacity), this derives
// the refutation again with the prover alone, in the format of docs/proofs.md. The last line is
// "refuted" only if it came to an end within the budget.
void write_proof(Incumbent& incumbent, std::ostream* out);

}  // namespace memplan
