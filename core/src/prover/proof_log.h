// Writes down what the prover derives (docs/proofs.md).
#pragma once

#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "prover/model.h"

namespace memplan::prover {

// The caller has written the first two lines, `memplan-proof 1` and `problem ...`.
class ProofLog {
 public:
  explicit ProofLog(std::ostream& out) : out_(out) {}

  // The lines about the model; its rows are those of the problem.
  void begin(const Model& model);
  void cap(Bytes bytes);

  void derived(const Model& model, Literal conclusion, const std::vector<Literal>& premises);
  void contradiction(const Model& model, const std::vector<Literal>& premises);
  void use(std::int64_t clause);
  // Returns the number of the clause.
  std::int64_t clause(const Model& model, const std::vector<Literal>& literals);
  // Writes the empty clause, where the cap alone is enough for it.
  void refute_outright();
  void refuted();

 private:
  void speak_of(const Model& model);
  void put(Literal literal);
  void put_premises(const std::vector<Literal>& premises);
  BufferIdx row(int item) const { return model_->world->buffer[model_->source[item]]; }

  std::ostream& out_;
  const Model* model_ = nullptr;
  Bytes unit_ = 0;
  Bytes cap_ = std::numeric_limits<Bytes>::max();
  std::int64_t clauses_ = 0;
};

}  // namespace memplan::prover
