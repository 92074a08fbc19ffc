#include "memplan/published.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memplan {

namespace {

using Rows = std::vector<PublishedOption>;

#define MEMPLAN_ROW(type, name, preset, says) rows->push_back({#name, says, &part->name});

void list(MiniMallocOptions* part, Rows* rows) { MEMPLAN_MINIMALLOC_OPTIONS(MEMPLAN_ROW) }
void list(TelamallocOptions* part, Rows* rows) { MEMPLAN_TELAMALLOC_OPTIONS(MEMPLAN_ROW) }
void list(SomasOptions* part, Rows* rows) { MEMPLAN_SOMAS_OPTIONS(MEMPLAN_ROW) }
void list(CspOptions* part, Rows* rows) { MEMPLAN_CSP_OPTIONS(MEMPLAN_ROW) }
void list(MetaCspOptions* part, Rows* rows) { MEMPLAN_META_CSP_OPTIONS(MEMPLAN_ROW) }

#undef MEMPLAN_ROW

template <auto kPart>
void list_part(PublishedOptions* options, Rows* rows) {
  list(&(options->*kPart), rows);
}

using Search = OutsideSolver::Search;

// A search for a fit, with the part of the options that it reads.
template <auto kFit, auto kPart>
Search search(const PublishedOptions& options) {
  return [part = options.*kPart](const Problem& problem, const Sections& sections, Bytes limit,
                                 std::int64_t nodes, Stopper& stopper) {
    return kFit(problem, sections, limit, part, nodes, stopper);
  };
}

// The searches of SOMAS know no limit.
Search search_somas(const PublishedOptions& options) {
  return [part = options.somas](const Problem& problem, const Sections& sections, Bytes,
                                std::int64_t nodes, Stopper& stopper) {
    return somas(problem, sections, part, nodes, stopper);
  };
}

Plan fit_telamalloc(const Problem& problem, const Sections& sections, Bytes limit,
                    const TelamallocOptions& options, std::int64_t nodes, Stopper& stopper) {
  return telamalloc(problem, sections, limit, options, nodes, stopper);
}

// The steps after which TelaMalloc calls a problem unsolved (section 7.2): its search proves next
// to nothing, so that it would go on for ever where nothing fits.
constexpr std::int64_t kTelamallocSteps = 500000;

struct Entry {
  Solver is;
  Search (*search)(const PublishedOptions& options);
  void (*list)(PublishedOptions* options, Rows* rows);
  OurPlans plans = OurPlans::kForPeak;
  bool once = false;
  std::int64_t nodes = 0;
};

using All = PublishedOptions;

// Every published solver, in the order in which they are listed.
constexpr Entry kEntries[] = {
    {{"minimalloc", "the search of MiniMalloc, as published", kRelations, 0},
     &search<minimalloc, &All::minimalloc>,
     &list_part<&All::minimalloc>},
    {{"telamalloc",
      "the search of TelaMalloc, as published: heuristics with constraint propagation",
      kWindows | kRelations, 0},
     &search<fit_telamalloc, &All::telamalloc>,
     &list_part<&All::telamalloc>,
     OurPlans::kForPeak,
     false,
     kTelamallocSteps},
    {{"somas", "the offsets of SOMAS, as published", kPlaces | kWindows, 0, false, true},
     &search_somas,
     &list_part<&All::somas>,
     OurPlans::kNever,
     true},
    {{"csp", "constraint satisfaction: one variable for each buffer, its offset",
      kWindows | kRelations, 0, false, true},
     &search<csp, &All::csp>,
     &list_part<&All::csp>},
    {{"meta_csp", "constraint satisfaction: one variable for each pair of buffers, above or below",
      kWindows | kRelations, 0, false, true},
     &search<meta_csp, &All::meta_csp>,
     &list_part<&All::meta_csp>},
};

const Entry* entry_of(const std::string& solver) {
  for (const Entry& each : kEntries) {
    if (solver == each.is.name) return &each;
  }
  return nullptr;
}

}  // namespace

std::vector<Solver> published_solvers() {
  std::vector<Solver> found;
  for (const Entry& each : kEntries) found.push_back(each.is);
  return found;
}

std::vector<PublishedOption> options_of(const std::string& solver, PublishedOptions* options) {
  Rows rows;
  if (const Entry* const entry = entry_of(solver)) entry->list(options, &rows);
  return rows;
}

std::shared_ptr<const OutsideSolver> published_solver(const std::string& solver,
                                                      const PublishedOptions& options) {
  const Entry* const entry = entry_of(solver);
  if (entry == nullptr) return nullptr;
  return std::make_shared<OutsideSolver>(
      OutsideSolver{entry->is, entry->plans, entry->search(options), entry->once, entry->nodes});
}

}  // namespace memplan
