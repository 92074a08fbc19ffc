// A problem of recomputation as its searches read it: who makes and who reads what.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/again.h"
#include "order/program.h"

namespace memplan::again {

using order::Lists;

constexpr OperatorIdx kNoOperator = -1;

// What is given and wanted, and cannot be moved, is live in every step of every sequence: these
// storages are the base, and left out of the lists.
//
// A run is an operator, or brings a storage back that was moved out: run n + s makes storage s,
// where n operators are in the program, and reads nothing.
struct Model {
  std::vector<Bytes> workspace;        // by run
  std::vector<std::int64_t> cost;      // by run, in units
  std::vector<std::uint8_t> again;     // by run: it may take place more than once
  std::vector<Bytes> size;             // by storage
  std::vector<std::uint8_t> given;     // by storage
  std::vector<std::uint8_t> wanted;    // by storage
  std::vector<OperatorIdx> maker;      // by storage
  std::vector<std::uint8_t> can_drop;  // by storage: its maker may run again
  Lists<OperatorIdx> before;           // by operator: what it waits for, each once
  Lists<OperatorIdx> after;            // by operator
  Lists<StorageIdx> reads;             // by run: what it touches and does not make
  Lists<StorageIdx> makes;             // by run
  Lists<OperatorIdx> readers;          // by storage: its users, without its maker
  Bytes base = 0;
  Bytes start = 0;         // the base, and what else is there before the first run
  std::int64_t unit = 1;   // the greatest common divisor of the costs of what may run again
  std::int64_t total = 0;  // the costs of what may run again together, in units

  OperatorIdx operators() const { return runs() - storages(); }
  OperatorIdx runs() const { return static_cast<OperatorIdx>(workspace.size()); }
  StorageIdx storages() const { return static_cast<StorageIdx>(size.size()); }
  OperatorIdx move_of(StorageIdx s) const { return operators() + s; }
  bool can_move(StorageIdx s) const { return again[move_of(s)] != 0; }
  bool can_leave(StorageIdx s) const { return can_drop[s] != 0 || can_move(s); }
  bool is_maker(OperatorIdx run, StorageIdx s) const {
    return run == maker[s] || run == move_of(s);
  }
  // Whether it is in the base.
  bool stays(StorageIdx s) const {
    return given[s] != 0 && wanted[s] != 0 && readers[s].size() == 0;
  }
};

Model make_model(const RecomputeProblem& problem);

// What one operator touches, with its workspace and the base.
Bytes own_bytes(const Model& model, OperatorIdx op);

}  // namespace memplan::again
