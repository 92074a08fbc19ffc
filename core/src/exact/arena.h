// Stack memory for a search that never frees out of order.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "util/invariants.h"

namespace memplan::exact {

class Arena {
 public:
  struct Mark {
    std::size_t block = 0;
    std::size_t used = 0;
  };

  // Room for `count` values of a trivial type, not initialised. A request that does not fit
  // the current block leaves its tail unused until the mark before it is released.
  template <typename T>
  T* take(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
    while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) grow(bytes);
    MEMPLAN_ASSERT(used_ % kAlign == 0 && used_ + bytes <= blocks_[block_].size);
    void* at = blocks_[block_].data.get() + used_;
    used_ += bytes;
    return static_cast<T*>(at);
  }

  Mark mark() const { return {block_, used_}; }
  void release(Mark mark) {
    // Marks must be released in the reverse of the order in which they were taken.
    MEMPLAN_ASSERT(mark.block < block_ || (mark.block == block_ && mark.used <= used_));
    block_ = mark.block;
    used_ = mark.used;
  }
  std::size_t reserved_bytes() const { return total_; }

  bool check_invariants() const {
    std::size_t total = 0;
    for (const Block& block : blocks_) total += block.size;
    MEMPLAN_ASSERT(total == total_);
    MEMPLAN_ASSERT(block_ < blocks_.size() ? used_ <= blocks_[block_].size : used_ == 0);
    return true;
  }

 private:
  static constexpr std::size_t kAlign = 16;
  static constexpr std::size_t kBlock = std::size_t{1} << 18;

  struct Block {
    std::unique_ptr<std::byte[]> data;
    std::size_t size;
  };

  void grow(std::size_t bytes) {
    const std::size_t size = bytes > kBlock ? bytes : kBlock;
    blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
    total_ += size;
    used_ = 0;
  }

  std::vector<Block> blocks_;
  std::size_t block_ = 0;
  std::size_t used_ = 0;
  std::size_t total_ = 0;
};

}  // namespace memplan::exact
