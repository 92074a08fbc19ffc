#include "apart/slots.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "model/blocks.h"
#include "util/invariants.h"

namespace memplan::apart {

namespace {

constexpr std::size_t kMostPlaces = 64;
constexpr std::int64_t kStepsOfNode = 4;
constexpr Bytes kMostCells = 4096;
constexpr std::int32_t kMostItems = 512;
constexpr std::int64_t kMostTotal = std::int64_t{1} << 50;  // so that sums over items are exact

// The buffers that matter, as widths on a grid of cells.
struct Grid {
  Bytes cell = 0;
  std::int32_t cells = 0;
  std::vector<BufferIdx> buffer;                  // by item
  std::vector<std::int32_t> width;                // by item, in cells
  std::vector<std::vector<std::int32_t>> places;  // by item: cells where it may begin, ascending
  bool are_alike = false;                         // all cells are, and any item takes one

  std::int32_t items() const { return static_cast<std::int32_t>(buffer.size()); }
};

bool is_free(const Problem& problem, BufferIdx b, Bytes offset) {
  const Bytes end = offset + problem.size[b];
  return end <= *problem.capacity &&
         std::none_of(problem.reserved.begin(), problem.reserved.end(), [&](const Reserved& each) {
           return offset < each.upper && each.lower < end;
         });
}

bool has_slots(const Model& model) {
  const Problem& problem = model.problem;
  if (!model.knows_pairs() || model.has_windows || model.total > kMostTotal) return false;
  const auto is_set = [](auto value) { return value != -1; };
  if (std::any_of(problem.pin.begin(), problem.pin.end(), is_set)) return false;
  if (std::any_of(problem.group.begin(), problem.group.end(), is_set)) return false;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.size[b] > 0 && problem.alignment_of(b) != model.step) return false;
  }
  return true;
}

// The offsets on which a buffer may rest, as bits by cell; none if there are too many.
std::vector<char> reachable(const Model& model, const Grid& grid) {
  std::vector<char> is_reached(static_cast<std::size_t>(grid.cells) + 1, 0);
  is_reached[0] = 1;
  for (const Reserved& each : model.problem.reserved) {
    const Bytes end = align_up(each.upper, model.step) / grid.cell;
    if (end <= grid.cells) is_reached[static_cast<std::size_t>(end)] = 1;
  }
  for (const std::int32_t width : grid.width) {
    for (std::int32_t cell = grid.cells - width; cell >= 0; --cell) {
      if (is_reached[cell] != 0) is_reached[cell + width] = 1;
    }
  }
  return is_reached;
}

// Items in the order of the search: large ones first, then those with many others.
std::optional<Grid> make_grid(const Model& model) {
  Grid grid;
  for (BufferIdx b = 0; b < model.count(); ++b) {
    if (model.size[b] > 0 && !model.neighbours[b].empty()) grid.buffer.push_back(b);
  }
  if (grid.buffer.empty() || grid.items() > kMostItems) return std::nullopt;
  for (const BufferIdx b : grid.buffer) grid.cell = std::gcd(grid.cell, model.size[b]);
  for (const Reserved& each : model.problem.reserved) {
    const Bytes end = align_up(each.upper, model.step);
    grid.cell = std::gcd(grid.cell, end);
  }
  if (model.capacity() / grid.cell >= kMostCells) return std::nullopt;
  grid.cells = static_cast<std::int32_t>((model.capacity() + grid.cell - 1) / grid.cell);
  std::sort(grid.buffer.begin(), grid.buffer.end(), [&model](BufferIdx a, BufferIdx b) {
    if (model.size[a] != model.size[b]) return model.size[a] > model.size[b];
    const std::size_t of_a = model.neighbours[a].size();
    const std::size_t of_b = model.neighbours[b].size();
    return of_a != of_b ? of_a > of_b : a < b;
  });
  grid.are_alike = model.problem.reserved.empty();
  for (const BufferIdx b : grid.buffer) {
    grid.width.push_back(
        static_cast<std::int32_t>(std::min<Bytes>(model.size[b] / grid.cell, grid.cells + 1)));
    grid.are_alike = grid.are_alike && grid.width.back() == 1 &&
                     model.problem.size[b] == model.problem.size[grid.buffer[0]];
  }
  const std::vector<char> is_reached = reachable(model, grid);
  if (std::count(is_reached.begin(), is_reached.end(), 1) >
      static_cast<std::ptrdiff_t>(kMostPlaces)) {
    return std::nullopt;
  }
  for (const BufferIdx b : grid.buffer) {
    std::vector<std::int32_t>& places = grid.places.emplace_back();
    for (std::int32_t cell = 0; cell < grid.cells; ++cell) {
      if (is_reached[cell] != 0 && is_free(model.problem, b, cell * grid.cell)) {
        places.push_back(cell);
      }
    }
  }
  // The last cell may be too short for some.
  if (grid.are_alike && !grid.places.empty()) {
    grid.cells = static_cast<std::int32_t>(grid.places.front().size());
  }
  return grid;
}

class SlotSearch {
 public:
  SlotSearch(const Model& model, const Grid& grid, std::int64_t limit, Counter& counter)
      : grid_(grid), counter_(counter), total_limit_(limit), count_(grid.items()) {
    const auto n = static_cast<std::size_t>(count_);
    barred_ = model.total + 1;
    cost_.assign(n * n, 0);
    std::vector<std::int32_t> item(model.size.size(), -1);
    for (std::int32_t i = 0; i < count_; ++i) item[grid.buffer[i]] = i;
    for (std::int32_t i = 0; i < count_; ++i) {
      for (const Neighbour& each : model.neighbours[grid.buffer[i]]) {
        if (item[each.other] < 0) continue;
        cost_at(i, item[each.other]) = each.pair == kBarred ? barred_ : model.pairs[each.pair].cost;
      }
    }
    price_.assign(n * static_cast<std::size_t>(grid.cells), 0);
    dolls_.assign(n + 1, 0);
    find_twins(model.problem);
  }

  Slotted solve() {
    for (first_ = count_ - 1; first_ >= 0; --first_) {
      dolls_[first_] = dolls_[first_ + 1];
      limit_ = first_ > 0 ? std::numeric_limits<std::int64_t>::max() : total_limit_;
      place(first_, 0, 0);
      if (is_cut_short_) return {{}, std::min(dolls_[first_], total_limit_)};
      dolls_[first_] = limit_;
      if (limit_ >= total_limit_) return {{}, total_limit_};
    }
    return {offsets_, dolls_[0]};
  }

 private:
  std::int64_t& cost_at(std::int32_t i, std::int32_t j) {
    return cost_[static_cast<std::size_t>(i) * static_cast<std::size_t>(count_) + j];
  }
  std::int64_t& price_at(std::int32_t i, std::int32_t cell) {
    return price_[static_cast<std::size_t>(i) * static_cast<std::size_t>(grid_.cells) + cell];
  }

  // Items that can be exchanged are placed in ascending order.
  void find_twins(const Problem& problem) {
    twin_.assign(count_, -1);
    for (std::int32_t i = 0; i < count_; ++i) {
      for (std::int32_t j = i - 1; j >= 0 && twin_[i] < 0; --j) {
        if (problem.size[grid_.buffer[i]] != problem.size[grid_.buffer[j]]) continue;
        bool are_twins = true;
        for (std::int32_t k = 0; k < count_ && are_twins; ++k) {
          are_twins = k == i || k == j || cost_at(i, k) == cost_at(j, k);
        }
        if (are_twins) twin_[i] = j;
      }
    }
  }

  // Adds what it costs the items after k to share with it at a cell.
  void charge(std::int32_t k, std::int32_t cell, std::int64_t sign) {
    for (std::int32_t j = k + 1; j < count_; ++j) {
      const std::int64_t cost = sign * cost_at(k, j);
      if (cost == 0) continue;
      const std::int32_t last = std::min(grid_.cells - 1, cell + grid_.width[k] - 1);
      for (std::int32_t at = std::max(0, cell - grid_.width[j] + 1); at <= last; ++at) {
        price_at(j, at) += cost;
      }
    }
  }

  bool is_hopeless(std::int32_t k, std::int64_t cost) {
    std::int64_t bound = cost + dolls_[k];
    for (std::int32_t j = k; j < count_; ++j) {
      std::int64_t least = barred_;
      for (const std::int32_t cell : grid_.places[j]) least = std::min(least, price_at(j, cell));
      bound += least;
      if (bound >= limit_) return true;
    }
    return false;
  }

  void place(std::int32_t k, std::int64_t cost, std::int32_t used) {
    if (++steps_ % kStepsOfNode == 0 && counter_.take()) is_cut_short_ = true;
    if (is_cut_short_) return;
    if (k == count_) {
      MEMPLAN_ASSERT(cost < limit_);
      limit_ = cost;
      if (first_ == 0) offsets_ = at_;
      return;
    }
    if (is_hopeless(k, cost)) return;
    std::vector<std::pair<std::int64_t, std::int32_t>> ways;
    for (const std::int32_t cell : grid_.places[k]) {
      if (grid_.are_alike && cell > used) break;
      const std::int32_t twin = twin_[k];
      if (!grid_.are_alike && twin >= first_ && cell < cell_of_[twin]) continue;
      ways.emplace_back(price_at(k, cell), cell);
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [price, cell] : ways) {
      // With a barred pair it is no plan; a doll without a plan shows that there is none at all.
      if (price >= barred_ || cost + price + dolls_[k + 1] >= limit_) return;
      cell_of_[k] = cell;
      at_[k] = cell * grid_.cell;
      charge(k, cell, 1);
      place(k + 1, cost + price, std::max(used, cell + 1));
      charge(k, cell, -1);
      if (is_cut_short_ || limit_ <= cost + dolls_[k]) return;
    }
  }

  const Grid& grid_;
  Counter& counter_;
  std::int64_t total_limit_;
  std::int32_t count_;
  std::int64_t barred_ = 0;
  std::vector<std::int64_t> cost_;   // by two items
  std::vector<std::int64_t> price_;  // by item and cell: of what is placed
  std::vector<std::int64_t> dolls_;  // by item: what it and those after it cost at least
  std::vector<std::int32_t> twin_;   // by item: one before it, or -1
  std::int32_t first_ = 0;           // the items from here on are placed
  std::int64_t limit_ = 0;           // what is found has to be below it
  std::int64_t steps_ = 0;
  bool is_cut_short_ = false;
  std::vector<std::int32_t> cell_of_ = std::vector<std::int32_t>(static_cast<std::size_t>(count_));
  std::vector<Bytes> at_ = std::vector<Bytes>(static_cast<std::size_t>(count_));
  std::vector<Bytes> offsets_;  // by item
};

}  // namespace

std::optional<Slotted> fill_slots(const Model& model, std::int64_t limit, Counter& counter) {
  if (!has_slots(model)) return std::nullopt;
  const std::optional<Grid> grid = make_grid(model);
  if (!grid) return std::nullopt;
  Slotted found = SlotSearch(model, *grid, limit, counter).solve();
  if (found.offsets.empty()) return found;
  // Buffers without others lie anywhere.
  std::vector<Bytes> offsets(model.size.size(), 0);
  for (BufferIdx b = 0; b < model.count(); ++b) {
    if (model.size[b] == 0 || is_free(model.problem, b, 0)) continue;
    for (const Reserved& each : model.problem.reserved) {
      offsets[b] = align_up(each.upper, model.step);
      if (is_free(model.problem, b, offsets[b])) break;
    }
    if (!is_free(model.problem, b, offsets[b])) return std::nullopt;
  }
  for (std::int32_t i = 0; i < grid->items(); ++i) offsets[grid->buffer[i]] = found.offsets[i];
  found.offsets = std::move(offsets);
  return found;
}

}  // namespace memplan::apart
