// Which items lie in which memory of limited size, so that together they are worth most?
//
// An item holds its bytes in its memory during [start, end). At each time, the chosen items of a
// memory hold at most its capacity. This is a knapsack problem for each time, and an item is in the
// knapsacks of all times at which it is live, or in none of them. Items of one unit are several
// places for the same bytes: two of them are never live at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/types.h"

namespace memplan {

struct ChoiceProblem {
  std::vector<Time> start;  // by item
  std::vector<Time> end;
  std::vector<Bytes> bytes;
  std::vector<std::int64_t> worth;   // from 0 on; together at most 2^53
  std::vector<std::int32_t> memory;  // which one
  std::vector<std::int32_t> unit;
  // By unit: whether one of its items must be chosen, which then all have one lifetime.
  std::vector<std::uint8_t> must;
  std::vector<Bytes> capacity;  // by memory; at most 16 of them
  // Sets of items that are never all chosen, as where a packer has proved that they do not fit.
  std::vector<std::vector<std::int32_t>> refused;
};

// One sentence on what is wrong, or an empty string. choose() throws it as std::invalid_argument.
std::string check(const ChoiceProblem& problem);

struct ChoiceOptions {
  Budget budget;  // nodes: partial choices that are looked at
  Stopper::Interrupt interrupt;
};

struct Choice {
  std::vector<std::uint8_t> chosen;  // by item; empty if no choice was found
  std::int64_t worth = 0;
  std::int64_t bound = 0;  // proved: no choice is worth more
  Status status = Status::kUnknown;
  // By memory: what one byte more would be worth at most from times[i] to times[i + 1], in 2^-shift
  // units. These are the prices of a relaxation, by which it decides what lies in the memory.
  std::vector<Time> times;
  std::vector<std::vector<std::int64_t>> prices;
  std::int32_t shift = 0;
  std::int64_t nodes = 0;
  bool interrupted = false;
};

Choice choose(const ChoiceProblem& problem, const ChoiceOptions& options = {});

}  // namespace memplan
