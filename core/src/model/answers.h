// The answers of a search for a fit, and those that need no search.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memplan/plan.h"
#include "model/items.h"

namespace memplan {

inline Plan unknown(std::string note) {
  Plan plan;
  plan.stats.note = std::move(note);
  return plan;
}

inline Plan infeasible(std::vector<BufferIdx> conflict, std::string note) {
  Plan plan = unknown(std::move(note));
  plan.status = Status::kInfeasible;
  plan.conflict = std::move(conflict);
  return plan;
}

inline Plan found_by(const char* solver, Plan plan) {
  plan.stats.solver = solver;
  return plan;
}

// Some buffer has no legal offset, by itself or in its group.
inline std::optional<Plan> refuted_by_a_misfit(const Items& items) {
  if (items.misfits.empty()) return std::nullopt;
  return infeasible(items.misfits, items.misfit_note());
}

// The bytes of some section do not fit (MiniMalloc, equation 1).
inline std::optional<Plan> refuted_by_load(const Items& items) {
  const SectionIdx full = overfull_section(items);
  if (full < 0) return std::nullopt;
  return infeasible(buffers_in_section(items, full), "the load of a section is too great");
}

inline std::optional<Plan> refuted_at_once(const Items& items) {
  std::optional<Plan> plan = refuted_by_a_misfit(items);
  return plan ? plan : refuted_by_load(items);
}

}  // namespace memplan
