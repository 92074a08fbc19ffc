// A problem of recomputation as its searches read it: who makes and who reads what.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/again.h"
#include "order/program.h"

namespace memplan::again {

using order::Lists;

constexpr OperatorIdx kNoOperator = -1;

// What is given and wanted is live in every step of every sequence: these storages are the base,
// and left out of the lists.
struct Model {
  std::vector<Bytes> workspace;        // by operator
  std::vector<std::int64_t> cost;      // by operator, in units
  std::vector<std::uint8_t> again;     // by operator
  std::vector<Bytes> size;             // by storage
  std::vector<std::uint8_t> given;     // by storage
  std::vector<std::uint8_t> wanted;    // by storage
  std::vector<OperatorIdx> maker;      // by storage
  std::vector<std::uint8_t> can_drop;  // by storage: its maker may run again
  Lists<OperatorIdx> before;           // by operator: what it waits for, each once
  Lists<OperatorIdx> after;            // by operator
  Lists<StorageIdx> reads;             // by operator: what it touches and does not make
  Lists<StorageIdx> makes;             // by operator
  Lists<OperatorIdx> readers;          // by storage: its users, without its maker
  Bytes base = 0;
  std::int64_t unit = 1;   // the greatest common divisor of the costs of what may run again
  std::int64_t total = 0;  // the costs of what may run again together, in units

  OperatorIdx operators() const { return static_cast<OperatorIdx>(workspace.size()); }
  StorageIdx storages() const { return static_cast<StorageIdx>(size.size()); }
};

Model make_model(const RecomputeProblem& problem);

// What one operator touches, with its workspace and the base.
Bytes own_bytes(const Model& model, OperatorIdx op);

}  // namespace memplan::again
