// The orders in which the greedy passes take the buffers.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// The features that the orders use. What the first passes read has a row for each buffer; the rest
// is computed when it is asked for.
struct Profile {
  // Both must outlive it. The profile is incomplete where the stopper ends it.
  Profile(const Problem& problem, const Sections& sections, Stopper& stopper);

  const Problem& problem;
  const Sections& sections;
  std::vector<double> bytes;       // of all that moves with it; empty without groups
  std::vector<double> length;      // in sections
  std::vector<double> contention;  // greatest load over the sections of the buffer
  double max_load = 0;
  Time first_start = 0;  // of all buffers
  Time last_end = 0;

  double lifetime(BufferIdx b) const;   // in time
  double extent(BufferIdx b) const;     // in bytes, of all that moves with it
  double breadth(BufferIdx b) const;    // load in its first section
  double distance(BufferIdx b) const;   // sections between it and the peak section
  double conflicts(BufferIdx b) const;  // how many, by lifetimes (gaps aside) and beyond them
  // Place of its section of the greatest load among all, by falling load.
  double breadth_rank(BufferIdx b) const;

  // How many buffers of its size fit next to the load where the load is greatest, as the exponent
  // of a power of two.
  int room_class(BufferIdx b) const;

 private:
  std::vector<Bytes> minus_load_;  // by section; empty where the profile is incomplete
  SectionIdx peak_ = 0;            // the first section of the greatest load
  mutable std::vector<double> conflicts_;
  mutable std::vector<Bytes> breadth_rank_;
};

// The buffers that go first have the greatest keys, compared in turn; ties go by index. What
// rounding to doubles makes equal, above 2^53, is a tie on every machine alike.
using Key = std::array<double, 4>;
using KeyOf = Key (*)(const Profile&, BufferIdx);

// The key of the order "room_length" for a buffer of so many bytes and sections, where the load is
// below the greatest by at least `room`.
Key room_length_key(double room, double length, double size);

struct Order {
  const char* name;
  KeyOf key;
};

constexpr std::size_t kOrderCount = 17;
const std::array<Order, kOrderCount>& orders();

// Finds an order by its name, which must be one of these.
const Order& order_of(const std::string& name);

struct KeyedBuffer {
  Key key;
  BufferIdx buffer;
};

// The buffers of the rows, which rise. Where the stopper ends the sort, the order is incomplete.
std::vector<BufferIdx> sorted(const std::vector<KeyedBuffer>& rows, Stopper& stopper);

// Every buffer once.
std::vector<BufferIdx> sorted(KeyOf key, const Profile& profile, Stopper& stopper);

}  // namespace memplan
