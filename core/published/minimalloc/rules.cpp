#include "published/minimalloc/rules.h"

#include <algorithm>

#include "model/meetings.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// Overlaps take O(n^2) space (section 7): 512 MiB at this many, 11 585 buffers that all overlap.
constexpr std::int64_t kMaxOverlaps = std::int64_t{1} << 26;

// A pair of items whose spans meet more than once has one relation: the strictest.
void merge_overlaps(std::vector<ItemIdx>* of, std::vector<Bytes>* effective) {
  std::vector<std::pair<ItemIdx, Bytes>> pairs;
  for (std::size_t k = 0; k < of->size(); ++k) {
    pairs.emplace_back((*of)[k], effective->empty() ? 0 : -(*effective)[k]);
  }
  std::sort(pairs.begin(), pairs.end());
  std::size_t kept = 0;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (k > 0 && pairs[k].first == pairs[k - 1].first) continue;
    (*of)[kept] = pairs[k].first;
    if (!effective->empty()) (*effective)[kept] = -pairs[k].second;
    ++kept;
  }
  of->resize(kept);
  if (!effective->empty()) effective->resize(kept);
}

}  // namespace

const char* Overlaps::build(const Items& items, Stopper& stopper) {
  of.resize(items.size.size());
  if (items.windowed) effective.resize(items.size.size());
  const auto add = [this, &items](ItemIdx i, const Span& a, ItemIdx j, const Span& b) {
    of[i].push_back(j);
    of[j].push_back(i);
    if (!items.windowed) return;
    effective[i].push_back(a.upper - b.lower);
    effective[j].push_back(b.upper - a.lower);
  };
  const char* refusal = for_each_meeting(items, kMaxOverlaps, stopper, add);
  if (refusal != nullptr) return refusal;

  const bool repeats = items.spans.size() > items.size.size();
  in_section.resize(static_cast<std::size_t>(items.section_count));
  for (ItemIdx i = 0; i < items.count(); ++i) {
    if (stopper.look()) return "the budget ran out";
    std::vector<Bytes> none;
    if (repeats) merge_overlaps(&of[i], items.windowed ? &effective[i] : &none);
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) in_section[s].push_back(i);
    }
    if (!items.windowed) continue;
    for (const Bytes bytes : effective[i]) all_positive = all_positive && bytes > 0;
  }
  return nullptr;
}

// Why each rule is sound. Of the solutions of a problem take the one of least sum of offsets,
// sorted by (offset, index). Every item of it is at its minimum viable offset, or else could sink,
// so that the search can build it step by step. No rule cuts that sequence off:
//
//   canonical          It is offset and index monotonic by the sort. That needs "v above u" to
//                      mean off_v > off_u, and so effective sizes above 0.
//   section inference  What is unallocated will be above what is allocated, section by section:
//                      true of every sequence, whatever its order.
//   monotonic floor    Nothing will be placed below the last offset: true of canonical ones only.
//   unallocated floor  Minimum viable offsets only ever rise: true of every sequence.
//   dominance          If b_i comes next at o_i >= h_min, all the rest of the sequence, which is
//                      sorted, lies at h_min or above, and b_d could sink into the gap below: not
//                      the least sum. (If b_d is pinned, the sequence has it before b_i.) So this
//                      needs positive effective sizes too. It does not need the canonical rule:
//                      a search of more sequences than the canonical ones meets this one as well.
//
// Alignment, pins and reserved ranges replace an offset by the next legal one, which is monotone;
// no step above uses more. Only the rule of the hatless is left, which is in the search.
Rules::Rules(const MiniMallocOptions& options, const Overlaps& overlaps) : on(options) {
  on.canonical = on.canonical && overlaps.all_positive;
  on.monotonic_floor = on.monotonic_floor && on.canonical;
  on.dominance = on.dominance && overlaps.all_positive;
}

PartialSolution::PartialSolution(const Items& items, const Overlaps& overlaps, const Rules& rules)
    : items_(items),
      overlaps_(overlaps),
      rules_(rules.on),
      allocated_(items.size.size(), 0),
      offset_(items.earliest),
      height_(static_cast<std::size_t>(items.section_count), 0),
      unallocated_(height_),
      crossing_(height_),
      witness_(height_.size(), kNoItem) {
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (SectionIdx s = items.first(i); s < items.last(i); ++s) ++crossing_[s];
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        unallocated_[s] += span->upper - span->lower;
      }
    }
  }
}

bool PartialSolution::check_invariants() const {
  if (!kAssertions) return true;
  std::vector<Bytes> height(height_.size(), 0), unallocated(height), crossing(height);
  std::size_t placed = 0;
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    placed += allocated_[i] != 0 ? 1 : 0;
    MEMPLAN_ASSERT(offset_[i] >= items_.earliest[i]);
    MEMPLAN_ASSERT(items_.legal_above(i, offset_[i]) == offset_[i]);
    for (SectionIdx s = items_.first(i); s < items_.last(i) && !allocated_[i]; ++s) ++crossing[s];
    for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        if (!allocated_[i]) unallocated[s] += span->upper - span->lower;
        if (allocated_[i]) height[s] = std::max(height[s], offset_[i] + span->upper);
      }
    }
    for (std::size_t k = 0; k < overlaps_.of[i].size() && allocated_[i]; ++k) {
      const ItemIdx j = overlaps_.of[i][k];
      const Bytes effective = items_.windowed ? overlaps_.effective[i][k] : items_.size[i];
      MEMPLAN_ASSERT(allocated_[j] ||
                     offset_[j] >= std::min(offset_[i] + effective, items_.latest[j] + 1));
    }
  }
  MEMPLAN_ASSERT(placed == placed_.size());
  MEMPLAN_ASSERT(height == height_ && unallocated == unallocated_ && crossing == crossing_);
  return true;
}
PartialSolution::Effect PartialSolution::place(ItemIdx i) {
  Effect effect;
  MEMPLAN_ASSERT(!allocated_[i]);
  allocated_[i] = 1;
  placed_.push_back(i);
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    const Bytes top = offset_[i] + span->upper;
    const Bytes bytes = span->upper - span->lower;
    for (SectionIdx s = span->first; s <= span->last; ++s) {
      if (top > height_[s]) set(&height_[s], top);
      set(&unallocated_[s], unallocated_[s] - bytes);
      MEMPLAN_ASSERT(unallocated_[s] >= 0 && height_[s] >= top);
    }
  }
  const SectionIdx last = items_.last(i);
  for (SectionIdx s = items_.first(i); s < last; ++s) {
    set(&crossing_[s], crossing_[s] - 1);
    MEMPLAN_ASSERT(crossing_[s] >= 0);
    effect.divides = effect.divides || crossing_[s] == 0;
  }
  const std::vector<ItemIdx>& over = overlaps_.of[i];
  for (std::size_t k = 0; k < over.size(); ++k) {
    if (allocated_[over[k]]) continue;
    effect.overhead = true;
    const Bytes effective = items_.windowed ? overlaps_.effective[i][k] : items_.size[i];
    effect.stuck = !raise(over[k], offset_[i] + effective) || effect.stuck;
  }
  return effect;
}

bool PartialSolution::raise(ItemIdx i, Bytes bound) {
  if (bound <= offset_[i]) return true;
  const Bytes offset = items_.legal_above(i, bound);
  if (offset > offset_[i]) set(&offset_[i], offset);
  return fits(i) || items_.earliest[i] < items_.latest[i];
}

void PartialSolution::undo(const Mark& mark) {
  MEMPLAN_ASSERT(mark.placed <= placed_.size() && mark.cells <= trail_.size());
  for (; placed_.size() > mark.placed; placed_.pop_back()) allocated_[placed_.back()] = 0;
  for (; trail_.size() > mark.cells; trail_.pop_back()) {
    *trail_.back().first = trail_.back().second;
  }
}

bool PartialSolution::sections_fit(SectionRange range, Bytes last_offset) {
  for (SectionIdx s = range.first; s <= range.last; ++s) {
    if (unallocated_[s] > 0 && !section_fits(s, last_offset)) return false;
  }
  return true;
}

Bytes PartialSolution::highest_start(SectionRange range) const {
  Bytes start = items_.capacity;
  if (!rules_.section_inference || !rules_.monotonic_floor) return start;
  for (SectionIdx s = range.first; s <= range.last; ++s) {
    if (unallocated_[s] > 0) start = std::min(start, items_.highest_floor(unallocated_[s]));
  }
  return start;
}

// "floor + unallocated <= C" read as "floor <= what is left": the floor is a minimum over items,
// and one that is low enough is proof. It stays so until it is placed or raised, and a stale one
// (after undo) is seen here, so that witnesses need no trail.
bool PartialSolution::section_fits(SectionIdx s, Bytes last_offset) {
  const Bytes most = items_.highest_floor(unallocated_[s]);
  if (height_[s] > most || (rules_.monotonic_floor && last_offset > most)) return false;
  if (!rules_.unallocated_floor) return true;
  const ItemIdx seen = witness_[s];
  if (seen != kNoItem && !allocated_[seen] && offset_[seen] <= most) return true;
  for (const ItemIdx i : overlaps_.in_section[s]) {
    if (allocated_[i] || offset_[i] > most) continue;
    witness_[s] = i;
    return true;
  }
  return false;
}

}  // namespace memplan
