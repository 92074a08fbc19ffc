// The memory of one call: each allocation gets its planned range, if no live one overlaps it.
//
// Safety does not depend on the plan or on the caller, as a range is given out only if all of its
// cells are free. Only the thread of the call claims cells; any thread releases them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "frames.h"
#include "memory.h"
#include "table.h"

namespace memplan {

// The users of a slab are counted; 0 means that it is free. A call sets the counter to kCall, a
// release subtracts 1, and the end of the call subtracts kCall and adds the number of claims. Then
// the counter is the number of live tensors, and the release that makes it 0 frees the slab.
//
// close() adds kClosing, so that the counter is never 0 again and no call takes the slab. The
// thread that makes the counter equal to kClosing removes the slab.
constexpr std::int64_t kCall = std::int64_t{1} << 40;
constexpr std::int64_t kClosing = std::int64_t{1} << 60;

// Counts of allocations by the memory that they got. The thread of the call writes them, and any
// thread reads them.
struct Counts {
  using Count = std::atomic<std::int64_t>;
  Count calls{0};
  Count hits{0}, hit_bytes{0};  // from the slab
  Count outliving{0};           // ordinary: outlived the recorded call
  Count unknown{0};             // ordinary: no such allocation was recorded
  Count resized{0};             // ordinary: larger than it was recorded
  Count occupied{0};            // ordinary: a live one is in its range
  Count elsewhere{0};           // ordinary: for a place that this slab is not in
  Count other_bytes{0};         // of all that is ordinary

  static void add(Count& count, std::int64_t value) {
    // There is one writer, so this needs no locked instruction.
    count.store(count.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};

class Pool;

// The blocks of a slab, one for each memory of its plan; they are unmapped with it.
class Blocks {
 public:
  Blocks(const Table& table, Memory& where) : table_(table), where_(where) {}
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // Maps all of them; `are_mapped` says whether there was memory for that.
  void map(void* slab);
  bool are_mapped() const { return starts_.size() == table_.memories(); }

  void* at(const Row& row) const {
    return starts_[row.memory] + (row.offset - table_.begin_of(row.memory));
  }
  std::int64_t offset_of(const void* memory) const;

 private:
  std::size_t bytes_of(std::size_t memory) const {
    return static_cast<std::size_t>(table_.begin_of(memory + 1) - table_.begin_of(memory));
  }

  const Table& table_;
  Memory& where_;
  std::vector<char*> starts_;
};

class Slab {
 public:
  Slab(Pool& pool, const Table& table, Memory& where);
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  bool has_memory() const { return blocks_.are_mapped(); }

  // A call is begin(), which fails if the slab is in use, then enter, leave and place, then end().
  // Operators are entered only if the keys of the table include them.
  bool begin(By by);
  void end();
  void enter(Hash name) { frames_.enter(name); }
  void enter(const char* name) { frames_.enter(hashes_(name)); }
  void leave() { frames_.leave(); }
  // Returns memory for the current allocation, or nullptr if it has to get ordinary memory.
  void* place(std::size_t bytes);
  // Counts the current allocation, which cannot be in this slab.
  void pass(std::size_t bytes);
  bool is_in(const Memory& where) const { return &where_ == &where; }
  // Whether a claimed range is still in use; only during the call.
  bool is_holding() const {
    return used_.load(std::memory_order_acquire) % kClosing + claimed_ != kCall;
  }

  // Releases memory of place() and returns its bytes, on any thread. This may destroy the slab.
  std::int64_t release(void* memory);

  // Lets the slab be destroyed as soon as it has no users.
  void close();

  By by() const { return by_; }
  const Counts& counts() const { return counts_; }
  // The binding of the call; frames of other bindings do not count.
  const void* binding = nullptr;

 private:
  using Word = std::atomic<std::uint64_t>;
  // The allocation in a range, which may be smaller than the range at a smaller batch size.
  struct Tenant {
    std::uint32_t row;
    std::int64_t bytes;
  };

  bool claim(const Row& row, std::int64_t bytes);
  void drop(std::int64_t change);

  // Other threads write this, so it has a cache line of its own.
  alignas(64) std::atomic<std::int64_t> used_{0};
  alignas(64) Pool& pool_;
  const Table& table_;
  Memory& where_;
  std::unique_ptr<Word[]> live_;       // a bit for every cell
  std::unique_ptr<Tenant[]> tenants_;  // by first cell
  Frames frames_;
  NameHashes hashes_;
  Blocks blocks_;
  const Row* expected_ = nullptr;
  By by_ = kModules;
  std::int64_t claimed_ = 0;
  bool missed_ = false;  // whether an allocation of this call was not as recorded
  Counts counts_;
};

}  // namespace memplan
