#include "prover/proof_log.h"

namespace memplan::prover {

void ProofLog::begin(const Model& model) {
  const auto buffer = [&model](std::int32_t id) { return model.world->buffer[model.rows[id]]; };
  out_ << "rows";
  for (const ItemIdx i : model.rows) out_ << ' ' << model.world->buffer[i];
  out_ << '\n';
  speak_of(model);
  for (const std::int32_t id : model.foundation.laid) out_ << "base " << buffer(id) << '\n';
  for (const auto& [low, high] : model.twins) {
    out_ << "twins " << row(low) << ' ' << row(high) << '\n';
  }
  if (model.upright.first >= 0) {
    out_ << "flip " << row(model.upright.first) << ' ' << row(model.upright.second) << '\n';
  }
  // The laid items below an item lie on one another, since all are live with it.
  for (int item = 0; item < model.items; ++item) {
    const std::vector<std::int32_t> below = model.laid_below(item);
    if (below.empty()) continue;
    out_ << 'd';
    put({2 * item, model.floor[item]});
    out_ << " <-";
    for (const std::int32_t id : below) out_ << ' ' << buffer(id) << '<' << row(item);
    out_ << '\n';
    clause(model, {{2 * item, model.floor[item]}});
  }
}

// Switches to a model, since several engines may write into one log, each in units of its own.
void ProofLog::speak_of(const Model& model) {
  if (model_ == &model) return;
  model_ = &model;
  if (unit_ != model.unit) out_ << "unit " << model.unit << '\n';
  unit_ = model.unit;
}

void ProofLog::cap(Bytes bytes) {
  if (bytes >= cap_) return;
  cap_ = bytes;
  out_ << "cap " << bytes << '\n';
}

void ProofLog::put(Literal literal) {
  const Half h = literal.half;
  if (!model_->is_item(h)) {
    out_ << ' ' << row(model_->tail_of(h)) << '<' << row(model_->head_of(h));
  } else if ((h & 1) == 0) {
    out_ << ' ' << row(h >> 1) << ">=" << literal.value;
  } else {
    out_ << ' ' << row(h >> 1) << "<=" << -literal.value - model_->size[h >> 1];
  }
}

void ProofLog::put_premises(const std::vector<Literal>& premises) {
  out_ << " <-";
  for (const Literal& premise : premises) put(premise);
  out_ << '\n';
}

void ProofLog::derived(const Model& model, Literal conclusion,
                       const std::vector<Literal>& premises) {
  speak_of(model);
  out_ << 'd';
  put(conclusion);
  put_premises(premises);
}

void ProofLog::contradiction(const Model& model, const std::vector<Literal>& premises) {
  speak_of(model);
  out_ << "d -";
  put_premises(premises);
}

void ProofLog::use(std::int64_t clause) { out_ << "use " << clause << '\n'; }

std::int64_t ProofLog::clause(const Model& model, const std::vector<Literal>& literals) {
  speak_of(model);
  out_ << "c " << ++clauses_;
  for (const Literal& literal : literals) put(literal);
  out_ << '\n';
  return clauses_;
}

void ProofLog::refute_outright() {
  out_ << "c " << ++clauses_ << '\n';
  refuted();
}

void ProofLog::refuted() { out_ << "refuted\n" << std::flush; }

}  // namespace memplan::prover
