// The slabs of one plan: each belongs to a running call, or to live tensors of a call that has
// returned, or it is free. A call tries the slab that its thread used last, and then all others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "slab.h"
#include "table.h"

namespace memplan {

class Pool {
 public:
  static constexpr std::size_t kMostSlabs = 4096;

  // The pool lives until it is closed and its last slab is destroyed, and then calls `gone`.
  // `limit` is the most slabs, and `where` their memory. Throws without memory for the table.
  static Pool* make(std::vector<Row> rows, std::size_t limit, Memory& where, void (*gone)()) {
    return new Pool(std::move(rows), limit, where, gone);
  }
  void close();

  // Begins a call on a slab and returns that, or nullptr if there can be no more slabs.
  Slab* begin();

  // From the next call on, frames include operators, because the order of allocations in a module
  // differed from the recorded one.
  void watch_operators() { by_.store(kOperators, std::memory_order_relaxed); }

  // Destroys a slab that is closed and has no users.
  void remove(Slab* slab);

  struct Totals {
    std::int64_t calls, hits, hit_bytes, outliving, unknown, resized, occupied, elsewhere,
        other_bytes;
    std::int64_t without;  // calls that got no slab
    std::int64_t slabs, slab_bytes;
  };
  Totals totals() const;

 private:
  Pool(std::vector<Row> rows, std::size_t limit, Memory& where, void (*gone)());
  ~Pool() = default;

  Slab* grow(By by);
  void let_go();

  const Table table_;
  const std::uint64_t id_;  // an address may be reused, this is not
  const std::size_t limit_;
  Memory& where_;
  void (*const gone_)();
  std::atomic<By> by_{kModules};
  std::atomic<std::size_t> count_{0};
  std::unique_ptr<std::atomic<Slab*>[]> slabs_;
  std::atomic<std::int64_t> without_{0};
  std::atomic<std::int64_t> holders_{1};  // the owner, and every slab
  std::mutex mutex_;                      // for growth only
};

}  // namespace memplan
