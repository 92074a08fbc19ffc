// The published searches, which the library memplan_published has: MiniMalloc, TelaMalloc, SOMAS
// and rectangle packing. Their authors' switches are in the header of each.
//
//   memplan::PublishedOptions how;
//   how.telamalloc.phases = false;
//   memplan::SolveOptions options;
//   options.outside = memplan::published_solver("telamalloc", how);
//   memplan::Plan plan = memplan::solve(problem, options);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memplan/learning.h"
#include "memplan/minimalloc.h"
#include "memplan/option.h"
#include "memplan/policy.h"
#include "memplan/rectangles.h"
#include "memplan/solve.h"
#include "memplan/somas.h"
#include "memplan/telamalloc.h"

namespace memplan {

// Each solver reads the part of its name.
struct PublishedOptions {
  MiniMallocOptions minimalloc;
  TelamallocOptions telamalloc;
  SomasOptions somas;
  CspOptions csp;
  MetaCspOptions meta_csp;
};

using PublishedOption =
    OptionOf<std::shared_ptr<const BacktrackModel>, std::shared_ptr<SearchPolicy>>;

// All that published_solver() has.
std::vector<Solver> published_solvers();

// The options of one of them, as options_of() of solve.h.
std::vector<PublishedOption> options_of(const std::string& solver, PublishedOptions* options);

// What SolveOptions::outside takes; null for a name that no published solver has. The exceptions
// that the header of a search names come out of solve().
std::shared_ptr<const OutsideSolver> published_solver(const std::string& solver,
                                                      const PublishedOptions& options = {});

}  // namespace memplan
