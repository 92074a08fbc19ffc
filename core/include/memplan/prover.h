// The proving engine: clause learning over the orders of pairs (docs/algorithms.md, "The prover").
#pragma once

namespace memplan {

// Each technique a switch, so that an ablation is a table and not an edit. None changes an
// answer, only the number of conflicts it takes.
struct ProverOptions {
  bool learning = true;      // of clauses (off: plain backtracking on the last decision)
  bool minimisation = true;  // drop literals of a learned clause that the others imply
  bool lifting = true;       // weaken explanations as far as their use allows
  bool set_bounds = true;    // a buffer is above the sum of what is decided to lie below it
  bool overload = true;      // a set of a clique does not fit between its bounds
  bool edge_finding = true;  // a buffer that does not fit among a set lies above all of it
  bool transitivity = true;  // below what is below something is below it
  bool cuts = true;          // what lies below a buffer at one time and above it at another
  bool foundation = true;    // a buffer that conflicts with all others goes to the bottom
  bool symmetry = true;      // interchangeable buffers by index; one pair fixes up and down
  bool phases = true;        // decide first as the best plan has it
  bool restarts = true;
};

}  // namespace memplan
