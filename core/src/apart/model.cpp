#include "apart/model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "memplan/sections.h"
#include "model/blocks.h"

namespace memplan {

namespace {

constexpr std::int64_t kMaxTotal = std::int64_t{1} << 53;

std::string blame_penalty(std::size_t row, const std::string& what) {
  return "penalty " + std::to_string(row) + ": " + what;
}

// Whether both buffers hold something at one moment.
bool hold_together(const Sections& sections, BufferIdx a, BufferIdx b) {
  std::int32_t i = sections.span_begin[a];
  std::int32_t j = sections.span_begin[b];
  while (i < sections.span_begin[a + 1] && j < sections.span_begin[b + 1]) {
    const Span& one = sections.spans[i];
    const Span& other = sections.spans[j];
    if (one.first <= other.last && other.first <= one.last) return true;
    (one.last < other.last ? i : j) += 1;
  }
  return false;
}

std::string check_penalties(const Problem& problem, const Sections& sections,
                            const std::vector<Penalty>& penalties) {
  std::int64_t left = kMaxTotal;
  for (std::size_t row = 0; row < penalties.size(); ++row) {
    const Penalty& each = penalties[row];
    for (const BufferIdx b : {each.first, each.second}) {
      if (b >= 0 && b < problem.count()) continue;
      return blame_penalty(row, "there is no buffer " + std::to_string(b));
    }
    const std::string pair = std::to_string(each.first) + " and " + std::to_string(each.second);
    if (each.first == each.second) return blame_penalty(row, "it is of one buffer, " + pair);
    if (each.cost < 0) return blame_penalty(row, "a cost must be 0 or more");
    if (each.cost >= left) return blame_penalty(row, "the sum of all costs must be below 2^53");
    left -= each.cost;
    if (hold_together(sections, each.first, each.second)) {
      return blame_penalty(row, "buffers " + pair + " hold memory at the same time");
    }
  }
  std::vector<std::pair<BufferIdx, BufferIdx>> named;
  named.reserve(penalties.size());
  for (const Penalty& each : penalties) named.push_back(std::minmax(each.first, each.second));
  std::sort(named.begin(), named.end());
  const auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice == named.end()) return {};
  return "buffers " + std::to_string(twice->first) + " and " + std::to_string(twice->second) +
         " have two penalties";
}

}  // namespace

std::string check(const Problem& problem, const std::vector<Penalty>& penalties) {
  if (std::string wrong = check(problem); !wrong.empty()) return wrong;
  return check_penalties(problem, sweep(problem, Contract::kNo), penalties);
}

std::int64_t cost_of(const Problem& problem, const std::vector<Penalty>& penalties,
                     const std::vector<Bytes>& offsets) {
  std::int64_t cost = 0;
  for (const Penalty& each : penalties) {
    if (apart::meet(problem, offsets, each.first, each.second)) cost += each.cost;
  }
  return cost;
}

namespace apart {

namespace {

constexpr BufferIdx kMostBuffers = 4096;  // for rules about pairs, which need a square of bits

bool is_listed(const Conflicts& conflicts, BufferIdx a, BufferIdx b) {
  return std::binary_search(conflicts.first(a), conflicts.last(a), b);
}

// By row: the offset that a pin fixes, also that of another member of its group; or kNoOffset.
std::vector<Bytes> fixed_offsets(const Problem& problem) {
  std::vector<Bytes> fixed(problem.size.size(), kNoOffset);
  std::map<std::int32_t, Bytes> base;  // by group
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    fixed[b] = problem.pin_of(b);
    if (fixed[b] == kNoOffset || problem.group_of(b) == kNoGroup) continue;
    base[problem.group_of(b)] = fixed[b] - problem.lead[b];
  }
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const auto found = base.find(problem.group_of(b));
    if (found != base.end()) fixed[b] = found->second + problem.lead[b];
  }
  return fixed;
}

struct Whole {
  SectionIdx first;
  SectionIdx last;
  BufferIdx buffer;
};

// Adds all pairs of which both hold all their bytes at one moment.
void bar_by_time(const Problem& problem, const Sections& sections, Model* model) {
  std::vector<Whole> spans;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (std::int32_t k = sections.span_begin[b]; k < sections.span_begin[b + 1]; ++k) {
      const Span& span = sections.spans[k];
      if (span.lower == 0 && span.upper == problem.size[b]) {
        spans.push_back({span.first, span.last, b});
      } else {
        model->has_windows = true;
      }
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Whole& a, const Whole& b) {
    return std::make_pair(a.first, a.buffer) < std::make_pair(b.first, b.buffer);
  });
  std::vector<Whole> live;
  for (const Whole& next : spans) {
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&next](const Whole& each) { return each.last < next.first; }),
               live.end());
    for (const Whole& each : live) {
      if (each.buffer == next.buffer) continue;
      model->neighbours[each.buffer].push_back({next.buffer, kBarred});
      model->neighbours[next.buffer].push_back({each.buffer, kBarred});
    }
    live.push_back(next);
  }
}

void bar_listed(const Problem& problem, Model* model) {
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const Conflicts& all = problem.conflicts;
    for (const BufferIdx* other = all.first(b); other != all.last(b); ++other) {
      if (problem.size[b] > 0 && problem.size[*other] > 0) {
        model->neighbours[b].push_back({*other, kBarred});
      }
    }
  }
}

void sort_neighbours(Model* model) {
  for (std::vector<Neighbour>& row : model->neighbours) {
    std::sort(row.begin(), row.end(), [](const Neighbour& a, const Neighbour& b) {
      return std::make_pair(a.other, a.pair) < std::make_pair(b.other, b.pair);
    });
    row.erase(
        std::unique(row.begin(), row.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.other == b.other; }),
        row.end());
  }
}

}  // namespace

void Model::set_capacity(Bytes bytes) {
  problem.capacity = bytes;
  room = align_up(bytes, step);
  for (const Reserved& each : problem.reserved) {
    const Bytes lower = align_up(each.lower, step);
    const Bytes upper = std::min(each.upper / step * step, room);
    if (lower < upper) room -= upper - lower;
  }
}

Model make_model(const Problem& problem, const std::vector<Penalty>& penalties) {
  Model model;
  model.problem = problem;
  const std::vector<Bytes> fixed = fixed_offsets(problem);
  std::int64_t unit = 0;
  for (const Penalty& each : penalties) {
    const auto [a, b] = std::minmax(each.first, each.second);
    if (each.cost == 0 || problem.size[a] == 0 || problem.size[b] == 0) continue;
    if (is_listed(problem.conflicts, a, b)) continue;
    if (fixed[a] != kNoOffset && fixed[b] != kNoOffset) {
      model.fixed += meet(problem, fixed, a, b) ? each.cost : 0;
      continue;
    }
    model.pairs.push_back({a, b, each.cost});
    unit = std::gcd(unit, each.cost);
  }
  std::sort(model.pairs.begin(), model.pairs.end(), [](const Penalty& a, const Penalty& b) {
    return std::make_pair(a.first, a.second) < std::make_pair(b.first, b.second);
  });
  model.unit = std::max<std::int64_t>(unit, 1);
  Bytes step = 0;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.size[b] > 0) step = std::gcd(step, problem.alignment_of(b));
  }
  model.step = std::max<Bytes>(step, 1);
  for (const Bytes size : problem.size) model.size.push_back(align_up(size, model.step));
  for (Penalty& each : model.pairs) {
    each.cost /= model.unit;
    model.total += each.cost;
  }
  model.set_capacity(*problem.capacity);
  if (problem.count() > kMostBuffers) return model;
  model.neighbours.resize(problem.size.size());
  bar_by_time(problem, sweep(problem, Contract::kNo), &model);
  bar_listed(problem, &model);
  for (PairIdx k = 0; k < static_cast<PairIdx>(model.pairs.size()); ++k) {
    const Penalty& each = model.pairs[k];
    model.neighbours[each.first].push_back({each.second, k});
    model.neighbours[each.second].push_back({each.first, k});
  }
  sort_neighbours(&model);
  return model;
}

Chosen met_pairs(const Model& model, const std::vector<Bytes>& offsets) {
  Chosen met;
  for (PairIdx k = 0; k < static_cast<PairIdx>(model.pairs.size()); ++k) {
    if (meet(model.problem, offsets, model.pairs[k].first, model.pairs[k].second)) met.push_back(k);
  }
  return met;
}

std::int64_t cost_of(const Model& model, const Chosen& pairs) {
  std::int64_t cost = 0;
  for (const PairIdx k : pairs) cost += model.pairs[k].cost;
  return cost;
}

Chosen all_but(const Model& model, const Chosen& pairs) {
  Chosen others(model.pairs.size());
  std::iota(others.begin(), others.end(), 0);
  const auto is_in = [&pairs](PairIdx k) {
    return std::binary_search(pairs.begin(), pairs.end(), k);
  };
  others.erase(std::remove_if(others.begin(), others.end(), is_in), others.end());
  return others;
}

}  // namespace apart

}  // namespace memplan
