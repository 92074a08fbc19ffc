#include "exact/pair_relations.h"

#include <algorithm>

#include "model/meetings.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// 48 bytes a pair and more: 2 897 buffers that all overlap are enough for a search over pairs.
constexpr std::int64_t kMaxMeetings = std::int64_t{1} << 22;

// One pair of spans that meet: it forbids from < off_other - off_self < to.
struct Forbidden {
  ItemIdx other;
  Bytes from;
  Bytes to;
};

// `begin .. end` are all of one pair, sorted by `from`.
void add_relation(ItemIdx i, const Forbidden* begin, const Forbidden* end, Relations* relations) {
  std::vector<Differences>& allowed = relations->allowed;
  const auto first = static_cast<std::int32_t>(allowed.size());
  Bytes from = -kMaxBytes;
  for (const Forbidden* f = begin; f != end; ++f) {
    // Where two open intervals touch, the point between them is allowed.
    if (f == begin || f->from >= from) allowed.push_back({from, f->from});
    from = std::max(from, f->to);
  }
  allowed.push_back({from, kMaxBytes});
  relations->all.push_back({i, begin->other, first, static_cast<std::int32_t>(allowed.size())});
}

}  // namespace

// Collects for each pair the open intervals of differences of offsets at which the two overlap, one
// for each time that they meet. The union of these is forbidden, and what lies between them are the
// ranges that the search chooses from.
const char* Relations::build(const Items& items, Stopper& stopper) {
  std::vector<std::vector<Forbidden>> forbidden(items.size.size());
  const auto add = [&forbidden](ItemIdx i, const Span& a, ItemIdx j, const Span& b) {
    if (i < j) {
      forbidden[i].push_back({j, a.lower - b.upper, a.upper - b.lower});
    } else if (j < i) {  // the members of a group never overlap
      forbidden[j].push_back({i, b.lower - a.upper, b.upper - a.lower});
    }
  };
  const char* refusal = for_each_meeting(items, kMaxMeetings, stopper, add);
  if (refusal != nullptr) return refusal;
  if (static_cast<std::int64_t>(items.barred.size()) > kMaxMeetings) {
    return "too many pairs of buffers conflict for this search";
  }
  for (const auto& [p, q] : items.barred) {
    const Part& a = items.parts[p];
    const Part& b = items.parts[q];
    add(a.item, {0, 0, a.lead, a.lead + a.size}, b.item, {0, 0, b.lead, b.lead + b.size});
  }

  of_item.resize(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    if (stopper.look()) return "the budget ran out";
    std::vector<Forbidden>& list = forbidden[i];
    std::sort(list.begin(), list.end(), [](const Forbidden& a, const Forbidden& b) {
      return a.other != b.other ? a.other < b.other : a.from < b.from;
    });
    for (std::size_t k = 0; k < list.size();) {
      std::size_t end = k;
      while (end < list.size() && list[end].other == list[k].other) ++end;
      const auto relation = static_cast<std::int32_t>(all.size());
      of_item[i].push_back(relation);
      of_item[list[k].other].push_back(relation);
      add_relation(i, list.data() + k, list.data() + end, this);
      k = end;
    }
  }
  return nullptr;
}

bool Relations::check_invariants() const {
  std::size_t listed = 0;
  for (const auto& row : of_item) listed += row.size();
  MEMPLAN_ASSERT(listed == 2 * all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Relation& r = all[k];
    MEMPLAN_ASSERT(r.i < r.j && r.end - r.begin >= 2);
    MEMPLAN_ASSERT(r.begin == (k == 0 ? 0 : all[k - 1].end));
    MEMPLAN_ASSERT(allowed[r.begin].from == -kMaxBytes && allowed[r.end - 1].to == kMaxBytes);
    for (std::int32_t range = r.begin; range < r.end; ++range) {
      MEMPLAN_ASSERT(allowed[range].from <= allowed[range].to);
      MEMPLAN_ASSERT(range == r.begin || allowed[range - 1].to < allowed[range].from);
    }
    for (const ItemIdx item : {r.i, r.j}) {
      MEMPLAN_ASSERT(std::count(of_item[item].begin(), of_item[item].end(),
                                static_cast<std::int32_t>(k)) == 1);
    }
  }
  return true;
}
std::vector<std::vector<ItemIdx>> Relations::parts() const {
  std::vector<std::vector<ItemIdx>> parts;
  std::vector<char> seen(of_item.size(), 0);
  for (ItemIdx root = 0; root < static_cast<ItemIdx>(of_item.size()); ++root) {
    if (seen[root]) continue;
    seen[root] = 1;
    std::vector<ItemIdx> part = {root};
    for (std::size_t k = 0; k < part.size(); ++k) {
      for (const std::int32_t r : of_item[part[k]]) {
        const ItemIdx other = all[r].i == part[k] ? all[r].j : all[r].i;
        if (seen[other]) continue;
        seen[other] = 1;
        part.push_back(other);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace memplan
