#include "large/ranking.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::chain {

Ranking::Ranking(const Profile& profile) : profile_(&profile) {
  room_class_.reserve(profile.length.size());
  for (std::size_t i = 0; i < profile.length.size(); ++i) {
    room_class_.push_back(profile.room_class(static_cast<BufferIdx>(i)));
  }
}

std::vector<BufferIdx> Ranking::sorted(const std::vector<BufferIdx>& rows, Stopper& stopper) const {
  std::vector<KeyedBuffer> keyed;
  keyed.reserve(rows.size());
  for (const BufferIdx b : rows) {
    const double size = static_cast<double>(profile_->problem.size[b]);
    keyed.push_back({{-static_cast<double>(room_class_[b]), profile_->length[b], size, 0}, b});
  }
  return memplan::sorted(keyed, stopper);
}

void Ranking::promote(const std::vector<BufferIdx>& rejected) {
  for (const BufferIdx b : rejected) --room_class_[b];
}

void bump(const std::vector<BufferIdx>& rejected, std::vector<BufferIdx>* order) {
  std::vector<char> is_rejected(order->size(), 0);
  for (const BufferIdx b : rejected) is_rejected[b] = 1;
  std::stable_partition(order->begin(), order->end(),
                        [&](BufferIdx b) { return is_rejected[b] != 0; });
  MEMPLAN_ASSERT(std::is_permutation(rejected.begin(), rejected.end(), order->begin()));
  std::copy(rejected.begin(), rejected.end(), order->begin());
}

}  // namespace memplan::chain
