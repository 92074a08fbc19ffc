// The memory of one call: gives every allocation its planned range, if nothing that lives is there.
//
// Safety does not depend on the plan, nor on who asks: a range is given out only while all of its
// cells are free. One thread claims (the one whose call it is), any thread releases.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "frames.h"
#include "memory.h"
#include "table.h"

namespace memplan {

// Who uses a slab: a counter that is 0 when nobody does. A call sets it to kCall, releases count
// down, and the call's end adds what was claimed meanwhile: what remains are the tensors that are
// still alive, and whoever brings it to 0 has given the slab back, with no more to do.
//
// kClosing is added when the slab shall go: it is then never 0 again, so nobody takes it, and
// whoever brings it to kClosing unmaps it.
constexpr std::int64_t kCall = std::int64_t{1} << 40;
constexpr std::int64_t kClosing = std::int64_t{1} << 60;

// What became of the allocations. Written by the thread of the call, read by any.
struct Counts {
  using Count = std::atomic<std::int64_t>;
  Count calls{0};
  Count hits{0}, hit_bytes{0};  // from the slab
  Count outliving{0};           // ordinary memory, as when it was recorded
  Count unknown{0};             // ordinary: no such allocation was recorded
  Count resized{0};             // ordinary: larger than it was recorded
  Count occupied{0};            // ordinary: its range holds something that lives
  Count elsewhere{0};           // ordinary: for a place that this slab is not in
  Count other_bytes{0};         // of all that is ordinary

  static void add(Count& count, std::int64_t value) {
    // One writer: no locked instruction is needed.
    count.store(count.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};

class Pool;

class Slab {
 public:
  Slab(Pool& pool, const Table& table, Memory& where);
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  bool has_memory() const { return memory_ != nullptr; }

  // A call: begin() if nobody uses the slab, then enter, leave and place, then end(). Operators
  // are to be entered only where the table is asked by them.
  bool begin(By by);
  void end();
  void enter(Hash name) { frames_.enter(name); }
  void enter(const char* name) { frames_.enter(hashes_(name)); }
  void leave() { frames_.leave(); }
  // Memory for the allocation that is being made now, or nullptr: take ordinary memory.
  void* place(std::size_t bytes);
  // The allocation that is being made now cannot be in this slab.
  void pass(std::size_t bytes);
  bool is_in(const Memory& where) const { return &where_ == &where; }
  // Whether something that was claimed is alive, while the call is under way.
  bool is_holding() const {
    return used_.load(std::memory_order_acquire) % kClosing + claimed_ != kCall;
  }

  // Gives back what place() gave; returns its bytes. On any thread; the slab may be gone after it.
  std::int64_t release(void* memory);

  // The slab shall go, as soon as nobody uses it.
  void close();

  By by() const { return by_; }
  const Counts& counts() const { return counts_; }
  // Which call this is; the frames of others do not count.
  const void* binding = nullptr;

 private:
  using Word = std::atomic<std::uint64_t>;
  // Who lives in a range; it may need less than the whole, at a smaller batch size.
  struct Tenant {
    std::uint32_t row;
    std::int64_t bytes;
  };

  bool claim(const Row& row, std::int64_t bytes);
  void drop(std::int64_t change);

  // Written by other threads, and so on a cache line of its own.
  alignas(64) std::atomic<std::int64_t> used_{0};
  alignas(64) Pool& pool_;
  const Table& table_;
  Memory& where_;
  std::unique_ptr<Word[]> live_;       // a bit for every cell
  std::unique_ptr<Tenant[]> tenants_;  // by first cell
  Frames frames_;
  char* memory_;  // behind all that may throw: who maps it must come to unmap it
  NameHashes hashes_;
  const Row* expected_ = nullptr;
  By by_ = kModules;
  std::int64_t claimed_ = 0;
  bool missed_ = false;  // something of this call was not as it was recorded
  Counts counts_;
};

}  // namespace memplan
