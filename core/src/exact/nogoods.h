// Nogoods remember refuted problems across restarts.
//
// A nogood {(id, v)} says: items with these ids, each with floor - ceiling >= v, cannot be placed.
// It is filed under the set of all ids of the node that it was learned at. A node with the same
// set whose floors are at least as tight is refuted by it: dominance, not equality, which is what
// makes the table strong (docs/algorithms/exact.md, "Nogoods by dominance").
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "exact/id_set.h"
#include "util/invariants.h"

namespace memplan::exact {

template <typename V>
class Nogoods {
 public:
  struct Term {
    std::int32_t id;
    V tightness;  // floor - ceiling at the node that was refuted
  };

  explicit Nogoods(int ids) : tightness_(ids), seen_(ids, 0) {}

  bool full() const { return terms_.size() >= kMaxTerms; }

  // Looks for a nogood that refutes the node; on success its ids are put in `conflict`.
  // Every id is checked against the node itself, so a collision of keys proves nothing wrong.
  template <typename Items>
  bool refutes(std::uint64_t key, const Items* items, int count, V ceiling, IdSet conflict) {
    const auto head = heads_.find(key);
    if (head == heads_.end()) return false;
    ++stamp_;
    for (int i = 0; i < count; ++i) {
      seen_[items[i].id] = stamp_;
      tightness_[items[i].id] = items[i].floor - ceiling;
    }
    MEMPLAN_ASSERT(head->second < static_cast<std::int32_t>(entries_.size()));
    for (std::int32_t e = head->second; e >= 0; e = entries_[e].next) {
      if (!holds(entries_[e])) continue;
      conflict.clear();
      for (std::uint32_t t = entries_[e].begin; t < entries_[e].end; ++t)
        conflict.add(terms_[t].id);
      return true;
    }
    return false;
  }

  template <typename Items>
  void learn(std::uint64_t key, const Items* items, int count, V ceiling, const IdSet& conflict) {
    if (full()) return;
    const auto begin = static_cast<std::uint32_t>(terms_.size());
    for (int i = 0; i < count; ++i) {
      if (conflict.has(items[i].id)) terms_.push_back({items[i].id, items[i].floor - ceiling});
    }
    // A nogood without terms would refute everything.
    MEMPLAN_ASSERT(begin < terms_.size());
    const auto [head, fresh] = heads_.try_emplace(key, -1);
    entries_.push_back({begin, static_cast<std::uint32_t>(terms_.size()), head->second});
    head->second = static_cast<std::int32_t>(entries_.size() - 1);
  }

  // Entries split the terms among them, and every one is in the chain of one key, the last first.
  bool check_invariants() const {
    std::size_t chained = 0;
    for (const auto& [key, head] : heads_) {
      for (std::int32_t e = head; e >= 0; e = entries_[e].next) {
        ++chained;
        MEMPLAN_ASSERT(e < static_cast<std::int32_t>(entries_.size()) && entries_[e].next < e);
      }
    }
    MEMPLAN_ASSERT(chained == entries_.size());
    std::uint32_t end = 0;
    for (const Entry& entry : entries_) {
      MEMPLAN_ASSERT(entry.begin == end && entry.begin < entry.end);
      end = entry.end;
    }
    MEMPLAN_ASSERT(end == terms_.size());
    for (const Term& term : terms_) {
      MEMPLAN_ASSERT(term.id >= 0 && term.id < static_cast<std::int32_t>(seen_.size()));
    }
    for (const std::uint64_t seen : seen_) MEMPLAN_ASSERT(seen <= stamp_);
    return true;
  }

 private:
  // 64 to 128 MiB a worker; beyond that the search continues without learning more. Freeing much
  // more would take longer than the deadline allows.
  static constexpr std::size_t kMaxTerms = std::size_t{1} << 23;

  struct Entry {
    std::uint32_t begin;
    std::uint32_t end;
    std::int32_t next;
  };

  bool holds(const Entry& entry) const {
    for (std::uint32_t t = entry.begin; t < entry.end; ++t) {
      const Term& term = terms_[t];
      if (seen_[term.id] != stamp_ || tightness_[term.id] < term.tightness) return false;
    }
    return true;
  }

  std::unordered_map<std::uint64_t, std::int32_t> heads_;
  std::vector<Entry> entries_;
  std::vector<Term> terms_;
  std::vector<V> tightness_;         // of the node being looked up, by id
  std::vector<std::uint64_t> seen_;  // stamp_ where the id is in that node
  std::uint64_t stamp_ = 0;
};

}  // namespace memplan::exact
