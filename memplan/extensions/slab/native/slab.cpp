#include "slab.h"

#include <algorithm>
#include <cstdint>

#include "pool.h"

namespace memplan {
namespace {

// The bits of word `word` that belong to the cells of a row.
std::uint64_t bits(const Row& row, std::uint32_t word) {
  const std::uint32_t from = word == row.first / 64 ? row.first % 64 : 0;
  const std::uint32_t to = word == row.last / 64 ? row.last % 64 : 63;
  return (~std::uint64_t{0} << from) & (~std::uint64_t{0} >> (63 - to));
}

}  // namespace

Blocks::~Blocks() {
  for (std::size_t at = 0; at < starts_.size(); ++at) where_.unmap(starts_[at], bytes_of(at));
}

void Blocks::map(void* slab) {
  starts_.reserve(table_.memories());
  for (std::size_t at = 0; at < table_.memories(); ++at) {
    void* const memory = where_.map(bytes_of(at), slab);
    if (memory == nullptr) return;
    starts_.push_back(static_cast<char*>(memory));
  }
}

std::int64_t Blocks::offset_of(const void* memory) const {
  // Addresses before a block become large numbers.
  const auto place = reinterpret_cast<std::uintptr_t>(memory);
  std::size_t block = 0;
  while (place - reinterpret_cast<std::uintptr_t>(starts_[block]) >= bytes_of(block)) ++block;
  return table_.begin_of(block) + (static_cast<const char*>(memory) - starts_[block]);
}

Slab::Slab(Pool& pool, const Table& table, Memory& where)
    : pool_(pool),
      table_(table),
      where_(where),
      live_(new Word[table.cells() / 64 + 1]()),
      tenants_(new Tenant[table.cells() + 1]()),
      blocks_(table, where) {
  blocks_.map(this);
}

bool Slab::begin(By by) {
  std::int64_t unused = 0;
  // Acquire, so that the writes of the last user into the slab are complete.
  if (used_.load(std::memory_order_relaxed) != 0 ||
      !used_.compare_exchange_strong(unused, kCall, std::memory_order_acquire)) {
    return false;
  }
  frames_.clear();
  expected_ = table_.begin();
  by_ = by;
  claimed_ = 0;
  missed_ = false;
  Counts::add(counts_.calls, 1);
  return true;
}

void Slab::end() {
  if (missed_) pool_.watch_operators();
  drop(claimed_ - kCall);
}

void* Slab::place(std::size_t bytes) {
  const Row* const row = table_.find(by_, frames_.next(), expected_);
  const auto size = static_cast<std::int64_t>(bytes);
  // The comparison is unsigned, so that a size from an overflow is larger than any row.
  const bool fits = row != nullptr && bytes <= static_cast<std::size_t>(row->size);
  if (row != nullptr) {
    expected_ = row + 1;
    if (row->offset != kNotPlanned && fits && claim(*row, size)) {
      ++claimed_;
      Counts::add(counts_.hits, 1);
      Counts::add(counts_.hit_bytes, size);
      return blocks_.at(*row);
    }
  }
  const bool outlives = row != nullptr && row->offset == kNotPlanned;
  missed_ |= !outlives;
  Counts::add(row == nullptr ? counts_.unknown
              : outlives     ? counts_.outliving
              : !fits        ? counts_.resized
                             : counts_.occupied,
              1);
  Counts::add(counts_.other_bytes, size);
  return nullptr;
}

void Slab::pass(std::size_t bytes) {
  frames_.next();
  Counts::add(counts_.elsewhere, 1);
  Counts::add(counts_.other_bytes, static_cast<std::int64_t>(bytes));
}

bool Slab::claim(const Row& row, std::int64_t bytes) {
  const std::uint32_t first = row.first / 64;
  const std::uint32_t last = row.last / 64;
  // No other thread claims, so free cells stay free. Acquire, so that the reads and writes of the
  // thread that released the cells are complete.
  for (std::uint32_t word = first; word <= last; ++word) {
    if ((live_[word].load(std::memory_order_acquire) & bits(row, word)) != 0) return false;
  }
  tenants_[row.first] = {table_.index_of(&row), bytes};
  for (std::uint32_t word = first; word <= last; ++word) {
    live_[word].fetch_or(bits(row, word), std::memory_order_relaxed);
  }
  return true;
}

std::int64_t Slab::release(void* memory) {
  const Tenant tenant = tenants_[table_.cell_at(blocks_.offset_of(memory))];
  const Row& row = table_[tenant.row];
  for (std::uint32_t word = row.first / 64; word <= row.last / 64; ++word) {
    live_[word].fetch_and(~bits(row, word), std::memory_order_release);
  }
  drop(-1);
  return tenant.bytes;
}

void Slab::drop(std::int64_t change) {
  // After this, another thread may use or destroy the slab, unless this one has to remove it.
  if (used_.fetch_add(change, std::memory_order_acq_rel) + change == kClosing) pool_.remove(this);
}

void Slab::close() {
  if (used_.fetch_add(kClosing, std::memory_order_acq_rel) == 0) pool_.remove(this);
}

}  // namespace memplan
