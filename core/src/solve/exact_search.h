// The exact search for a prober: at the same limit, it resumes where it stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "exact/fit_search.h"
#include "exact/search_makers.h"
#include "solve/incumbent.h"
#include "solve/prober.h"

namespace memplan {

// Suits any problem: where the rules of the fast search do not hold, it is the search over pairs.
Prober::Search exact_search(Incumbent& incumbent);

// Only for a problem that exact::FitSearch suits. It is in this header because the program is
// linked with the searches of `makers`, which the caller names.
inline Prober::Search resumable_search(Incumbent& incumbent, const exact::SearchMakers& makers) {
  // The question at the bound is asked again and again between others, so it has a place of its
  // own.
  struct Kept {
    std::unique_ptr<exact::FitSearch> at_bound, elsewhere;
  };
  auto kept = std::make_shared<Kept>();
  return [&incumbent, kept, makers](Bytes limit, std::int64_t nodes) {
    const SolveOptions& options = incumbent.options();
    const bool at_bound = limit == incumbent.lower_bound();
    std::unique_ptr<exact::FitSearch>& search = at_bound ? kept->at_bound : kept->elsewhere;
    if (at_bound && kept->elsewhere && kept->elsewhere->capacity() == limit) {
      std::swap(kept->at_bound, kept->elsewhere);  // the bound has risen to it
    }
    if (!search || search->capacity() != limit) {
      search = std::make_unique<exact::FitSearch>(incumbent.problem(), incumbent.sections(), limit,
                                                  options.exact, options.seed, makers);
    }
    return search->run(nodes, options.threads, incumbent.stopper());
  };
}

}  // namespace memplan
