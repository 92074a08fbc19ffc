// The slabs of one plan: one for every call that is under way, and for every one that left
// tensors behind. Taking one is a look at the slab that this thread had last, or else at all.
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

  // Lives until it is closed and its last slab is gone, and then calls `gone`. `limit`: at most so
  // many slabs. `where`: in what memory. Throws without memory for the table.
  static Pool* make(std::vector<Row> rows, std::size_t limit, Memory& where, void (*gone)()) {
    return new Pool(std::move(rows), limit, where, gone);
  }
  void close();

  // A slab on which a call has begun, or nullptr where the limit or the machine allows no more.
  Slab* begin();

  // From the next call on: the order of allocations inside of modules is not always the recorded.
  void watch_operators() { by_.store(kOperators, std::memory_order_relaxed); }

  // Of a slab, when nobody uses it any more.
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
  const std::uint64_t id_;  // an address may come again, this does not
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
