#include "prover/prover.h"

#include <algorithm>
#include <utility>

namespace memplan::prover {

struct Prover::Component {
  exact::Task task;
  std::unique_ptr<Engine> engine;  // made when it is first needed
};

namespace {

// Where all alignments are the same, sizes are rounded up to it and the problem is free of
// restrictions, but only below a limit that is a multiple itself. The engine looks at the true
// limit: here it may be rounded up.
Bytes rounded_up(const Problem& problem, Bytes limit) {
  Bytes coarsest = 1;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    coarsest = std::max(coarsest, problem.alignment_of(b));
  }
  const Bytes over = limit % coarsest;
  return over == 0 || limit > kMaxBytes - coarsest ? limit : limit + (coarsest - over);
}

// A buffer, with the group that it is in.
std::vector<BufferIdx> in_one_piece(const Problem& problem, BufferIdx b) {
  if (problem.group_of(b) == kNoGroup) return {b};
  std::vector<BufferIdx> members;
  for (BufferIdx other = 0; other < problem.count(); ++other) {
    if (problem.group[other] == problem.group[b]) members.push_back(other);
  }
  return members;
}

}  // namespace

bool Prover::suits(const Problem& problem, const Sections& sections) {
  for (const Gap& gap : problem.gaps) {
    if (gap.lower < gap.upper) return false;
  }
  constexpr std::size_t kMostVisits = 4000000;  // of a buffer by a section
  std::size_t visits = 0;
  for (const Span& span : sections.spans) {
    visits += static_cast<std::size_t>(span.last - span.first + 1);
  }
  return visits <= kMostVisits;
}

Prover::Prover(const Problem& problem, const Sections& sections, Bytes limit,
               const ProverOptions& options, std::uint64_t seed, ProofLog* log)
    : problem_(problem),
      options_(options),
      seed_(seed),
      log_(log),
      items_(make_items(problem, sections, rounded_up(problem, limit))),
      offsets_(items_.count(), kNoOffset) {
  if (!items_.misfits.empty()) return;
  for (exact::Task& task : exact::make_tasks(items_)) {
    components_.push_back(std::make_unique<Component>());
    components_.back()->task = std::move(task);
  }
}

Prover::~Prover() = default;

void Prover::suggest(const std::vector<Bytes>& offsets) {
  for (ItemIdx i = 0; i < items_.count(); ++i) offsets_[i] = offsets[items_.buffer[i]];
  for (const auto& component : components_) {
    if (!component->engine) continue;
    std::vector<Bytes> by_id;
    for (const ItemIdx i : component->task.source) by_id.push_back(offsets_[i]);
    component->engine->suggest(by_id);
  }
}

Bytes Prover::height(const Component& component) const {
  Bytes top = 0;
  for (const ItemIdx i : component.task.source) {
    if (offsets_[i] == kNoOffset) return kMaxBytes + 1;
    top = std::max(top, offsets_[i] + items_.size[i]);
  }
  return top;
}

bool Prover::make_engine(Component* component, const Halt& halt) {
  component->engine = Engine::make(component->task, options_, seed_, log_, halt);
  if (!component->engine) return false;
  if (height(*component) <= kMaxBytes) {
    std::vector<Bytes> by_id;
    for (const ItemIdx i : component->task.source) by_id.push_back(offsets_[i]);
    component->engine->suggest(by_id);
  }
  return true;
}

// Components that share no time are independent: a plan has a plan of each of them, and a
// refutation needs one alone. Offsets of those that end within the limit stay from a higher limit,
// so only the others are asked. Engines are kept from call to call with all that they learned.
Plan Prover::run(Bytes limit, Slice* slice, Stopper* stopper, const std::atomic<bool>* cancel) {
  if (log_ != nullptr) log_->cap(limit);
  // The limit must also be checked for buffers that hold nothing, which no engine sees. The items
  // were made for a greater limit.
  for (BufferIdx b = 0; b < problem_.count() && items_.misfits.empty(); ++b) {
    if (items_.offsets[b] + problem_.size[b] > limit) items_.misfits = in_one_piece(problem_, b);
  }
  if (!items_.misfits.empty()) {
    if (log_ != nullptr) log_->refute_outright();
    Plan plan;
    plan.status = Status::kInfeasible;
    plan.conflict = items_.misfits;
    plan.stats.note = items_.misfit_note();
    return plan;
  }
  const Halt halt{stopper, cancel};
  std::vector<Component*> open;
  for (const auto& component : components_) {
    if (height(*component) > limit) open.push_back(component.get());
  }
  Plan plan;
  bool all = true;
  for (std::size_t k = 0; k < open.size(); ++k) {
    Component& component = *open[k];
    if (!Engine::suits(component.task)) {
      all = false;
      continue;
    }
    if (!component.engine && !make_engine(&component, halt)) {
      all = false;
      break;
    }
    Engine& engine = *component.engine;
    // The budget is shared out evenly: the second component may be refuted where the first is
    // too hard.
    const auto shares = static_cast<std::int64_t>(open.size() - k);
    const std::int64_t conflicts_before = engine.conflicts();
    const std::int64_t steps_before = engine.steps();
    const exact::Verdict verdict =
        engine.run(limit, slice->conflicts / shares, slice->steps / shares, halt);
    slice->conflicts -= engine.conflicts() - conflicts_before;
    slice->steps -= engine.steps() - steps_before;
    plan.stats.nodes += engine.conflicts() - conflicts_before;
    if (verdict == exact::Verdict::kUnsat) {
      Plan none = infeasible(engine.conflict());
      none.stats.nodes = plan.stats.nodes;
      return none;
    }
    if (verdict == exact::Verdict::kBudget) {
      all = false;
      continue;
    }
    for (std::size_t id = 0; id < component.task.source.size(); ++id) {
      offsets_[component.task.source[id]] = engine.offsets()[id];
    }
  }
  if (!all) {
    plan.stats.note = "the budget ended the prover";
    return plan;
  }
  Plan found = plan_of(problem_, items_, offsets_, "placed by the prover");
  found.stats.nodes = plan.stats.nodes;
  return found;
}

Plan Prover::infeasible(const std::vector<ItemIdx>& conflict) const {
  Plan plan;
  plan.status = Status::kInfeasible;
  plan.conflict = buffers_of(items_, conflict);
  plan.stats.note = "refuted by the prover";
  return plan;
}

}  // namespace memplan::prover
