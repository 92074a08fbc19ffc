// A program as the searches for an order read it: neighbours of operators, and what they touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/order.h"

namespace memplan::order {

// A list of entries for each row, in one piece of memory.
template <typename T>
class Lists {
 public:
  Lists() : begin_{0} {}
  // `pairs` are rows, each with an entry; the entries of a row keep their order.
  Lists(std::size_t rows, const std::vector<std::pair<std::int32_t, T>>& pairs)
      : begin_(rows + 1), entry_(pairs.size()) {
    for (const auto& [row, entry] : pairs) ++begin_[row + 1];
    for (std::size_t row = 0; row < rows; ++row) begin_[row + 1] += begin_[row];
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [row, entry] : pairs) entry_[next[row]++] = entry;
  }

  struct Row {
    const T* first;
    const T* last;
    const T* begin() const { return first; }
    const T* end() const { return last; }
    std::size_t size() const { return static_cast<std::size_t>(last - first); }
    const T& operator[](std::size_t at) const { return first[at]; }
  };
  Row operator[](std::int32_t row) const {
    return {entry_.data() + begin_[row], entry_.data() + begin_[row + 1]};
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<T> entry_;
};

struct Pair {
  StorageIdx input;
  StorageIdx output;
};

// Backwards, arcs are turned, and what was wanted is given: a program that is over at its first
// operator. Steps and peaks are the same, so each search works in both directions.
struct Program {
  bool backwards = false;
  Bytes base = 0;  // live all the time
  std::vector<Bytes> workspace;
  std::vector<Bytes> size;
  std::vector<std::uint8_t> given;
  std::vector<std::uint8_t> wanted;
  Lists<OperatorIdx> after;   // by operator, each once
  Lists<OperatorIdx> before;  // by operator, each once
  Lists<OperatorIdx> users;   // by storage
  Lists<StorageIdx> touched;  // by operator
  Lists<Pair> in_place;       // by operator: the pairs that it can use in some order

  OperatorIdx operators() const { return static_cast<OperatorIdx>(workspace.size()); }
  StorageIdx storages() const { return static_cast<StorageIdx>(size.size()); }
};

Program make_program(const OrderProblem& problem);
Program turned(const Program& program);
// A legal order, which is shorter than the program if arcs lead in a circle.
std::vector<OperatorIdx> legal_order(const Program& program);
// Sets the node of all operators that `op` leads to by arcs of `next`, but not of `op` itself.
void mark_reached(const Lists<OperatorIdx>& next, OperatorIdx op, std::int32_t node,
                  std::vector<std::int32_t>& node_of);
// A program in which operators wait for more: arcs from those that come first.
Program with_arcs(Program program, const std::vector<std::pair<OperatorIdx, OperatorIdx>>& arcs);

// Operators first .. last - 1 of a legal order alone: what other operators made before is given,
// what they touch later is wanted, and what only passes is the base.
struct Part {
  Program program;
  std::vector<OperatorIdx> operators;  // by number in the part, ascending: those of the whole
};
Part make_part(const Program& whole, const std::vector<OperatorIdx>& order, std::size_t first,
               std::size_t last);

}  // namespace memplan::order
