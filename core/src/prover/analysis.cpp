#include "prover/analysis.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"

namespace memplan::prover {

Analysis::Analysis(const Model& model, const ProverOptions& options, const Trail& trail,
                   Clauses& clauses, Order& order, ProofLog* log)
    : model_(model),
      options_(options),
      trail_(trail),
      clauses_(clauses),
      order_(order),
      log_(log),
      explainer_(model, options, trail, clauses),
      needs_(model.halves()) {}

bool Analysis::learn(const Conflict& conflict) {
  lines_.clear();
  marked_.resize(trail_.size(), 0);
  MEMPLAN_ASSERT(marked_.size() >= static_cast<std::size_t>(trail_.size()) && check_invariants());
  // The premises may all lie below the level of the last decision.
  level_ = 0;
  const std::vector<Literal>& premises = explainer_.explain(conflict);
  for (const Literal& l : premises) {
    if (l.value > trail_.fact(l.half)) level_ = std::max(level_, trail_[trail_.origin(l)].level);
  }
  if (log_ != nullptr) note_conflict(conflict, premises);
  if (level_ == 0) {
    if (log_ != nullptr) {
      write({});
      log_->refuted();
    }
    return false;
  }
  resolve_to_first_uip(conflict);
  minimise();
  assemble();
  MEMPLAN_ASSERT(is_asserting() && check_invariants());
  if (log_ != nullptr) write(clause_);
  return true;
}

bool Analysis::check_invariants() const {
  for (const Need& need : needs_) MEMPLAN_ASSERT(need.position == kNowhere);
  for (const char mark : marked_) MEMPLAN_ASSERT(mark == 0);
  return true;
}

bool Analysis::is_asserting() const {
  if (!kAssertions) return true;
  for (std::size_t k = 0; k < clause_.size(); ++k) {
    const Literal falsified = model_.negation(clause_[k]);
    MEMPLAN_ASSERT(trail_.holds(falsified) && falsified.value > trail_.fact(falsified.half));
    const int level = trail_[trail_.origin(falsified)].level;
    MEMPLAN_ASSERT(k == 0 ? level == level_ : level <= backjump_level_);
  }
  return backjump_level_ < level_ && level_ <= trail_.level();
}
// Notes that a literal must hold, unless it is a fact.
void Analysis::require(Literal literal) {
  if (literal.value <= trail_.fact(literal.half)) return;
  Need& need = needs_[literal.half];
  if (need.position != kNowhere) {
    if (literal.value <= need.value) return;
    marked_[need.position] = 0;
    if (trail_[need.position].level == level_) --open_;
  } else if (!model_.is_item(literal.half)) {
    order_.bump((literal.half >> 1) - model_.items);
  }
  need = {literal.value, trail_.origin(literal)};
  marked_[need.position] = 1;
  if (trail_[need.position].level == level_) {
    ++open_;
  } else {
    below_.push_back(need.position);
  }
}

// Goes back along the trail from the conflict and puts, in place of each entry of its level that is
// needed, the premises of that entry, until one entry of the level is left: the first unique
// implication point (as in GRASP and Chaff).
//
// Needed are bounds, not variables: needs_ has the greatest value of each half that some premise
// asks for, at the first entry of the trail which satisfies it. The needs and the facts together
// imply the conflict at all times, and open_ counts the needs of its level. Premises are older than
// what they imply, so that the position only falls. Premises are found here and not during
// propagation, and only for as much of a bound as is needed.
void Analysis::resolve_to_first_uip(const Conflict& conflict) {
  below_.clear();
  open_ = 0;
  if (conflict.kind == Conflict::Kind::kClause) clauses_.touch(conflict.index);
  for (const Literal& l : explainer_.explain(conflict)) require(l);
  std::int32_t position = trail_.size();
  for (;;) {
    do --position;
    while (marked_[position] == 0);
    MEMPLAN_ASSERT(open_ > 0 && trail_[position].level <= level_);
    if (open_ == 1) break;
    const Half h = trail_[position].half;
    marked_[position] = 0;
    --open_;
    const std::vector<Literal>& premises = reason(position);
    needs_[h].position = kNowhere;
    for (const Literal& l : premises) require(l);
  }
  uip_ = position;
}

// Returns the premises of what is needed at a position, and writes a line if there is a proof.
const std::vector<Literal>& Analysis::reason(std::int32_t position) {
  const Entry& entry = trail_[position];
  const Literal needed{entry.half, needs_[entry.half].value};
  const bool by_clause = entry.reason.rule == Rule::kClause;
  if (by_clause) clauses_.touch(entry.reason.index);
  const std::vector<Literal>& premises = explainer_.explain(position, needed);
  steps_ += 8 + 2 * static_cast<std::int64_t>(premises.size());
  if (log_ != nullptr) note(position, by_clause ? entry.reason.index : -1, needed, premises);
  return premises;
}

// Drops literals whose premises are all facts or among the other literals. A premise that a later
// literal of the same half implies does not count, since that literal may depend on the one being
// dropped.
void Analysis::minimise() {
  kept_.clear();
  for (const std::int32_t position : below_) {
    if (marked_[position] != 1) continue;
    marked_[position] = 2;  // once
    kept_.push_back(position);
  }
  if (!options_.minimisation) return;
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(),
                             [&](std::int32_t p) {
                               if (!implied_by_the_rest(p)) return false;
                               marked_[p] = 3;
                               return true;
                             }),
              kept_.end());
}

bool Analysis::implied_by_the_rest(std::int32_t position) {
  const Rule rule = trail_[position].reason.rule;
  if (rule == Rule::kDecision) return false;
  const std::size_t lines = lines_.size();
  const std::vector<Literal>& premises = reason(position);
  const bool implied = std::all_of(premises.begin(), premises.end(), [&](const Literal& l) {
    if (l.value <= trail_.fact(l.half)) return true;
    const Need& need = needs_[l.half];
    return need.position != kNowhere && need.position < position && need.value >= l.value;
  });
  if (!implied) lines_.resize(lines);
  return implied;
}

// Makes the clause and finds its levels, and clears the needs for the next conflict.
void Analysis::assemble() {
  ++conflicts_;
  level_seen_.resize(trail_.level() + 1, 0);
  std::sort(kept_.begin(), kept_.end(), std::greater<>());
  kept_.insert(kept_.begin(), uip_);
  clause_.clear();
  glue_ = 0;
  for (const std::int32_t position : kept_) {
    const Entry& entry = trail_[position];
    clause_.push_back(model_.negation({entry.half, needs_[entry.half].value}));
    if (level_seen_[entry.level] != conflicts_) ++glue_;
    level_seen_[entry.level] = conflicts_;
  }
  backjump_level_ = kept_.size() > 1 ? trail_[kept_[1]].level : 0;
  below_.push_back(uip_);
  for (const std::int32_t position : below_) {
    marked_[position] = 0;
    needs_[trail_[position].half].position = kNowhere;
  }
}

// ---- the proof

void Analysis::note(std::int32_t position, std::int32_t clause, Literal conclusion,
                    const std::vector<Literal>& premises) {
  Line line;
  line.position = position;
  line.clause = clause;
  line.conclusion = conclusion;
  if (clause < 0) line.premises = premises;
  lines_.push_back(std::move(line));
}

void Analysis::note_conflict(const Conflict& conflict, std::vector<Literal> premises) {
  if (conflict.kind != Conflict::Kind::kCrossed) {
    const bool by_clause = conflict.kind == Conflict::Kind::kClause;
    note(trail_.size(), by_clause ? conflict.index : -1, {-1, 0}, premises);
    return;
  }
  const Entry& last = trail_[trail_.size() - 1];
  const bool by_clause = last.reason.rule == Rule::kClause;
  const Literal crossing = model_.negation(premises.back());
  premises.pop_back();
  note(trail_.size() - 1, by_clause ? last.reason.index : -1, crossing, premises);
}

// The lines are in the order of the trail, so that each follows its premises.
void Analysis::write(const std::vector<Literal>& clause) {
  std::stable_sort(lines_.begin(), lines_.end(),
                   [](const Line& a, const Line& b) { return a.position < b.position; });
  for (const Line& line : lines_) {
    if (line.clause >= 0) {
      log_->use(clauses_.number(line.clause));
    } else if (line.conclusion.half < 0) {
      log_->contradiction(model_, line.premises);
    } else {
      log_->derived(model_, line.conclusion, line.premises);
    }
  }
  number_ = log_->clause(model_, clause);
}

void Analysis::log_facts(std::int32_t begin) {
  for (std::int32_t p = begin; p < trail_.size(); ++p) {
    const Entry& entry = trail_[p];
    if (entry.reason.rule == Rule::kRoot) continue;
    lines_.clear();
    const Literal fact{entry.half, entry.value};
    const bool by_clause = entry.reason.rule == Rule::kClause;
    note(p, by_clause ? entry.reason.index : -1, fact, explainer_.explain(p, fact));
    write({fact});
  }
}

}  // namespace memplan::prover
