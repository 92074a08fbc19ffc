#include "repack/timetable.h"

#include "util/invariants.h"

namespace memplan::repack {

namespace {

// They are few, since a query loses less on buffers that it skips than on many buckets (measured).
constexpr std::size_t kSlotsPerCell = 16;
constexpr std::size_t kFewestCells = 4;

}  // namespace

Timetable::Timetable(Time first, Time last, std::size_t slots) : origin_(first), last_(last) {
  const std::uint64_t cells = std::max(kFewestCells, slots / kSlotsPerCell);
  const auto length = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  while (length >> shift_ >= cells) ++shift_;
  last_cell_ = length >> shift_;
  std::size_t begin = 0;
  for (std::uint64_t buckets = last_cell_ + 1;;
       buckets = (buckets + (1u << kWiden) - 1) >> kWiden) {
    level_begin_.push_back(begin);
    begin += buckets;
    if (buckets == 1) break;
  }
  buckets_.resize(begin);
  bucket_of_.resize(slots, -1);
}

bool Timetable::check_invariants() const {
  std::size_t tenants = 0;
  for (std::size_t at = 0; at < buckets_.size(); ++at) {
    const std::vector<Tenant>& bucket = buckets_[at];
    tenants += bucket.size();
    for (std::size_t k = 0; k < bucket.size(); ++k) {
      MEMPLAN_ASSERT(bucket[k].lower < bucket[k].upper && bucket[k].start < bucket[k].end);
      MEMPLAN_ASSERT(k == 0 || bucket[k - 1].lower <= bucket[k].lower);
      MEMPLAN_ASSERT(bucket_of_[bucket[k].slot] == static_cast<std::int32_t>(at));
    }
  }
  MEMPLAN_ASSERT(static_cast<std::size_t>(std::count(bucket_of_.begin(), bucket_of_.end(), -1)) ==
                 bucket_of_.size() - tenants);
  return true;
}
void Timetable::put(const Tenant& tenant) {
  const std::uint32_t first = cell(tenant.start);
  const std::uint32_t reach = cell(tenant.end - 1) - first;
  std::size_t level = 0;
  while (std::uint64_t{1} << (kWiden * level) < reach) ++level;
  MEMPLAN_ASSERT(level < level_begin_.size() && !has(tenant.slot));
  const std::size_t at = level_begin_[level] + (first >> (kWiden * level));
  const auto slot = static_cast<std::size_t>(tenant.slot);
  if (bucket_of_.size() <= slot) bucket_of_.resize(2 * slot + 1, -1);
  bucket_of_[slot] = static_cast<std::int32_t>(at);
  std::vector<Tenant>& bucket = buckets_[at];
  auto place = bucket.end();
  while (place != bucket.begin() && (place - 1)->lower > tenant.lower) --place;
  bucket.insert(place, tenant);
}

void Timetable::take(Slot slot) {
  MEMPLAN_ASSERT(has(slot));
  std::vector<Tenant>& bucket = buckets_[bucket_of_[slot]];
  bucket.erase(std::find_if(bucket.begin(), bucket.end(),
                            [slot](const Tenant& tenant) { return tenant.slot == slot; }));
  bucket_of_[slot] = -1;
}

void Timetable::clear() {
  for (std::vector<Tenant>& bucket : buckets_) bucket.clear();
  std::fill(bucket_of_.begin(), bucket_of_.end(), -1);
}

}  // namespace memplan::repack
