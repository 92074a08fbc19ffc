// The plan as a table for the runtime: it maps the key of an allocation to its offset.
//
// The address space is cut into cells at every place where a planned range begins or ends. So a
// range is a run of whole cells, and a test of bits tells whether a live range overlaps it.
//
//     plan    |--- a ---|------ b ------|        cells   0: [a)  1: [b before c)  2: [b and c)
//             |         |     |--- c ---|                a = 0..0, b = 1..2, c = 2..2
//
// A plan may be of several memories. Their offsets follow each other in this address space, and
// each of them is a block of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frames.h"

namespace memplan {

constexpr std::int64_t kNotPlanned = -1;

// The key of an allocation: the modules around it and its number in the innermost one, or also the
// operators. The latter is right for more programs, and costs a call for every operator.
enum By { kModules, kOperators };

struct Row {
  Hash key[2];  // [By]
  std::int64_t size;
  std::int64_t offset;  // kNotPlanned if it outlived the recorded call
  std::uint32_t memory;
  std::uint32_t first;  // cells [first, last]
  std::uint32_t last;
};

class Table {
 public:
  // Takes rows in the order of the recording, with offsets in their memories. Sets their `first`
  // and `last`, and counts offsets from the first byte of the first memory.
  explicit Table(std::vector<Row> rows);

  // Returns the row of a key, or nullptr. `expected` is tried first, as operators mostly run in the
  // recorded order.
  const Row* find(By by, Hash key, const Row* expected) const {
    if (expected->key[by] == key) return expected;
    for (std::size_t at = key & mask_;; at = (at + 1) & mask_) {
      const Row& row = rows_[index_[by][at]];
      if (row.key[by] == key) return &row;
      if (row.key[by] == 0) return nullptr;
    }
  }

  // Returns the cell that begins at an offset; a row must begin there.
  std::uint32_t cell_at(std::int64_t offset) const {
    std::size_t at = first_place(offset);
    while (starts_[at].offset != offset) at = (at + 1) & mask_;
    return starts_[at].cell;
  }

  const Row* begin() const { return rows_.data(); }
  std::uint32_t index_of(const Row* row) const {
    return static_cast<std::uint32_t>(row - rows_.data());
  }
  const Row& operator[](std::uint32_t row) const { return rows_[row]; }
  std::uint32_t cells() const { return cells_; }
  std::int64_t bytes() const { return begins_.back(); }
  // The bytes of all memories before this one; the memories are numbered from 0.
  std::int64_t begin_of(std::size_t memory) const { return begins_[memory]; }
  std::size_t memories() const { return begins_.size() - 1; }

 private:
  std::size_t first_place(std::int64_t offset) const {
    return mix(static_cast<std::uint64_t>(offset), 0) & mask_;
  }

  struct Start {
    std::int64_t offset = kNotPlanned;
    std::uint32_t cell = 0;
  };

  std::vector<Row> rows_;                // the last has key 0, and ends every search
  std::vector<std::uint32_t> index_[2];  // [By]: open addressing by key
  std::vector<Start> starts_;            // open addressing by offset
  std::size_t mask_ = 0;
  std::uint32_t cells_ = 0;
  std::vector<std::int64_t> begins_;
};

}  // namespace memplan
