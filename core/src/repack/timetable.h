// Which buffers lie where, by time. A repacker queries it for every buffer that it places.
//
//   level 0   |..|a.|..|..|b.|..|..|c.|     Time is cut into cells. A buffer is filed once: under
//   level 1   |d..........|e..........|     the cell it starts in, at the level whose buckets are
//   level 2   |f......................|     about as wide as its lifetime, four times wider from
//                time                       level to level. So it reaches into one more bucket.
//
// Insertion and removal cost a step each, and a query visits few buffers in vain. In contrast,
// greedy/occupancy.h is for passes that remove nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/repacker.h"
#include "memplan/types.h"

namespace memplan::repack {

// A placed buffer.
struct Tenant {
  Bytes lower = 0;
  Bytes upper = 0;
  Time start = 0;
  Time end = 0;
  Slot slot = 0;
};

class Timetable {
 public:
  // Times beyond these are legal and cost more. Slots are below `slots`.
  Timetable(Time first, Time last, std::size_t slots);

  void put(const Tenant& tenant);
  void take(Slot slot);
  void clear();

  Time first() const { return origin_; }
  Time last() const { return last_; }
  bool covers(Time start, Time end) const { return start >= origin_ && end <= last_; }
  bool has(Slot slot) const {
    return static_cast<std::size_t>(slot) < bucket_of_.size() && bucket_of_[slot] >= 0;
  }
  // Tenants by rising `lower`, among others that the time does not meet.
  struct Run {
    const Tenant* at;
    const Tenant* end;
  };
  // Finds runs which have all tenants that live at some time in [start, end).
  void find_runs(Time start, Time end, std::vector<Run>* runs) const {
    for_each_bucket(start, end, [runs](const std::vector<Tenant>& bucket) {
      if (!bucket.empty()) runs->push_back({bucket.data(), bucket.data() + bucket.size()});
    });
  }

  // Calls visit(tenant) for all tenants that live at some time in [start, end). Their order is not
  // defined, but is the same after the same calls.
  template <typename Visit>
  void meet(Time start, Time end, Visit visit) const {
    for_each_bucket(start, end, [=](const std::vector<Tenant>& bucket) {
      for (const Tenant& tenant : bucket) {
        if (tenant.start < end && start < tenant.end) visit(tenant);
      }
    });
  }
  // The same for all.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const std::vector<Tenant>& bucket : buckets_) {
      for (const Tenant& tenant : bucket) visit(tenant);
    }
  }

  // Buckets are sorted, and every tenant is once in the bucket that bucket_of_ names.
  bool check_invariants() const;

 private:
  template <typename Visit>
  void for_each_bucket(Time start, Time end, Visit visit) const {
    const std::uint32_t first = cell(start);
    const std::uint32_t last = cell(end - 1);
    for (std::size_t level = 0; level < level_begin_.size(); ++level) {
      const std::uint32_t from = first >> (kWiden * level);
      const std::size_t to = level_begin_[level] + (last >> (kWiden * level));
      std::size_t at = level_begin_[level] + (from > 0 ? from - 1 : 0);
      for (; at <= to; ++at) visit(buckets_[at]);
    }
  }

  static constexpr std::size_t kWiden = 2;  // in bits, from level to level

  // The cell rises with time; no caller needs more of it.
  std::uint32_t cell(Time time) const {
    if (time <= origin_) return 0;
    const auto since = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(origin_);
    return static_cast<std::uint32_t>(std::min(since >> shift_, last_cell_));
  }

  Time origin_;
  Time last_;
  int shift_ = 0;  // a cell is 2^shift long
  std::uint64_t last_cell_ = 0;
  std::vector<std::size_t> level_begin_;      // its first bucket
  std::vector<std::vector<Tenant>> buckets_;  // each by `lower`
  std::vector<std::int32_t> bucket_of_;       // by slot; -1: not in
};

}  // namespace memplan::repack
