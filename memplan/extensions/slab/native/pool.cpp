#include "pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace memplan {
namespace {

std::atomic<std::uint64_t> pools{1};

// Each thread tries the slab that it used last first, as its memory is in the caches of this core.
thread_local std::uint64_t last_pool = 0;
thread_local Slab* last_slab = nullptr;

}  // namespace

Pool::Pool(std::vector<Row> rows, std::size_t limit, Memory& where, void (*gone)())
    : table_(std::move(rows)),
      id_(pools.fetch_add(1, std::memory_order_relaxed)),
      limit_(std::min(limit, kMostSlabs)),
      where_(where),
      gone_(gone),
      slabs_(new std::atomic<Slab*>[limit_]()) {}

Slab* Pool::begin() {
  const By by = by_.load(std::memory_order_relaxed);
  // An open pool destroys none of its slabs, so the pointer is valid.
  if (last_pool == id_ && last_slab->begin(by)) return last_slab;
  Slab* found = nullptr;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t at = 0; at < count && found == nullptr; ++at) {
    Slab* const slab = slabs_[at].load(std::memory_order_relaxed);
    if (slab->begin(by)) found = slab;
  }
  if (found == nullptr) found = grow(by);
  if (found == nullptr) {
    without_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  last_pool = id_;
  last_slab = found;
  return found;
}

Slab* Pool::grow(By by) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == limit_) return nullptr;
  std::unique_ptr<Slab> slab;
  try {
    slab = std::make_unique<Slab>(*this, table_, where_);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (!slab->has_memory()) return nullptr;
  slab->begin(by);
  holders_.fetch_add(1, std::memory_order_relaxed);
  slabs_[count].store(slab.get(), std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_release);
  return slab.release();
}

void Pool::close() {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t at = 0; at < count; ++at) slabs_[at].load(std::memory_order_relaxed)->close();
  let_go();
}

void Pool::remove(Slab* slab) {
  delete slab;
  let_go();
}

void Pool::let_go() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  void (*const gone)() = gone_;
  delete this;
  gone();
}

Pool::Totals Pool::totals() const {
  Totals sum{};
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t at = 0; at < count; ++at) {
    const Counts& counts = slabs_[at].load(std::memory_order_relaxed)->counts();
    const auto read = [](const Counts::Count& c) { return c.load(std::memory_order_relaxed); };
    sum.calls += read(counts.calls);
    sum.hits += read(counts.hits);
    sum.hit_bytes += read(counts.hit_bytes);
    sum.outliving += read(counts.outliving);
    sum.unknown += read(counts.unknown);
    sum.resized += read(counts.resized);
    sum.occupied += read(counts.occupied);
    sum.elsewhere += read(counts.elsewhere);
    sum.other_bytes += read(counts.other_bytes);
  }
  sum.without = without_.load(std::memory_order_relaxed);
  sum.slabs = static_cast<std::int64_t>(count);
  sum.slab_bytes = table_.bytes();
  return sum;
}

}  // namespace memplan
