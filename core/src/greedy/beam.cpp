#include "greedy/beam.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "greedy/coalescing.h"
#include "model/blocks.h"
#include "model/items.h"
#include "util/invariants.h"
#include "util/random.h"

namespace memplan {

namespace {

// How far it looks ahead, in mean lifetimes. The near future counts more.
constexpr std::int64_t kHorizon = 4;
constexpr SectionIdx kFarthest = 1 << 14;

constexpr int kRetreats = 2;   // in a row, before the ceiling rises
constexpr int kBeamWider = 4;  // after each retreat

// Time runs forwards or backwards, from the fullest section outward.
struct Item {
  SectionIdx begin;
  SectionIdx end;  // behind the last
  BufferIdx buffer;
};

struct Live {
  Bytes lower;
  Bytes upper;
  SectionIdx end;
  BufferIdx buffer;
};

constexpr std::int32_t kNoStep = -1;

// A placement, and the one before it in the same partial plan.
struct BeamStep {
  std::int32_t before;
  SectionIdx end;
  BufferIdx buffer;
  Bytes offset;
};

struct State {
  std::vector<Live> live;   // by address
  std::uint64_t print = 0;  // of `live`
  std::int32_t step = kNoStep;
};

struct Child {
  std::int64_t cost;
  std::uint64_t print;
  std::int32_t state;
  std::int32_t at;  // in `live`
  Bytes offset;
};

std::uint64_t print_of(BufferIdx b, Bytes offset) {
  return mix(mix(static_cast<std::uint64_t>(b)) ^ static_cast<std::uint64_t>(offset));
}

class Beam {
 public:
  Beam(const Problem& problem, const Sections& sections, Bytes low, Bytes step, Bytes limit,
       const BeamEffort& effort, Stopper& stopper)
      : problem_(problem),
        sections_(sections),
        ceiling_(low),
        rise_(step),
        limit_(limit),
        effort_(effort),
        stopper_(stopper) {
    measure();
  }

  Draft run() {
    draft_.offsets.assign(problem_.size.size(), 0);  // where buffers without bytes stay
    draft_.complete =
        sections_.spans.empty() || (stack() && ceiling_ <= limit_ && sweep(false) && sweep(true));
    draft_.steps = visits_;
    draft_.nodes = 1 + visits_ / std::max(1, problem_.count());
    draft_.peak = peak_of(problem_, draft_.offsets);
    // A buffer that is never live may be larger than all that is placed.
    if (draft_.peak > limit_) draft_.complete = false;
    return std::move(draft_);
  }

 private:
  void measure() {
    std::int64_t lived = 0;
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, sections_.spans.size()));
    for (const Span& span : sections_.spans) lived += span.last - span.first + 1;
    horizon_ =
        static_cast<SectionIdx>(std::clamp<std::int64_t>(kHorizon * lived / count, 1, kFarthest));
  }

  // What is live in the fullest section wastes nothing. The longest-lived are at the bottom.
  bool stack() {
    const std::vector<Bytes> load = loads(sections_);
    fullest_ = static_cast<SectionIdx>(std::max_element(load.begin(), load.end()) - load.begin());
    for (const Item& item : items(false)) {
      if (item.begin <= fullest_ && fullest_ < item.end) stack_.push_back(item);
    }
    std::stable_sort(stack_.begin(), stack_.end(), [](const Item& x, const Item& y) {
      return x.end - x.begin > y.end - y.begin;
    });
    Bytes top = 0;
    for (const Item& item : stack_) {
      const Bytes offset = align_up(top, problem_.alignment_of(item.buffer));
      if (offset > limit_ - problem_.size[item.buffer]) return false;
      draft_.offsets[item.buffer] = offset;
      top = offset + problem_.size[item.buffer];
    }
    ceiling_ = std::max(ceiling_, top);
    return true;
  }

  std::vector<Item> items(bool backwards) const {
    std::vector<Item> all;
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
        const Span& span = sections_.spans[i];
        all.push_back(backwards
                          ? Item{sections_.count - 1 - span.last, sections_.count - span.first, b}
                          : Item{span.first, span.last + 1, b});
      }
    }
    return all;
  }

  // Places what begins behind the fullest section.
  bool sweep(bool backwards) {
    const SectionIdx from = backwards ? sections_.count - 1 - fullest_ : fullest_;
    std::vector<Item> order = items(backwards);
    order.erase(std::remove_if(order.begin(), order.end(),
                               [from](const Item& item) { return item.begin <= from; }),
                order.end());
    std::sort(order.begin(), order.end(), [this](const Item& x, const Item& y) {
      return std::make_tuple(x.begin, -problem_.size[x.buffer], x.buffer) <
             std::make_tuple(y.begin, -problem_.size[y.buffer], y.buffer);
    });
    begin_sweep(backwards);
    if (!place_all(order)) return false;
    for (auto at = states_.front().step; at != kNoStep; at = steps_[at].before) {
      draft_.offsets[steps_[at].buffer] = steps_[at].offset;
    }
    return true;
  }

  void begin_sweep(bool backwards) {
    steps_.clear();
    states_.assign(1, {});
    for (const Item& item : stack_) {
      const SectionIdx end = backwards ? sections_.count - item.begin : item.end;
      steps_.push_back({states_[0].step, end, item.buffer, draft_.offsets[item.buffer]});
      states_[0].step = static_cast<std::int32_t>(steps_.size()) - 1;
    }
    states_[0] = rebuilt(states_[0].step, 0);
  }

  bool place_all(const std::vector<Item>& order) {
    // The steps that led to the states in which the item of a level is placed.
    std::vector<std::pair<std::size_t, std::size_t>> levels(order.size() + 1);
    levels[0] = {steps_.size() - 1, steps_.size()};
    const std::size_t reach = stack_.size();
    std::size_t stuck = 0;
    int retreats = 0;
    int width = effort_.width;
    for (std::size_t k = 0; k < order.size();) {
      if (visits_ > effort_.visits || stopper_.look()) return false;
      if (k > stuck + reach) {
        retreats = 0;
        width = effort_.width;
      }
      for (State& state : states_) bury(order[k].begin, &state);
      Bytes needed = try_places(order[k]);
      if (children_.empty()) {
        if (++retreats > kRetreats) {
          ceiling_ = std::max(ceiling_ + 1, std::min(needed, ceiling_ + rise_));
          if (ceiling_ > limit_) return false;
          retreats = needed <= ceiling_ ? 0 : 1;
        }
        width = effort_.width;
        for (int i = 0; i < retreats; ++i) width *= kBeamWider;
        stuck = std::max(stuck, k);
        if (retreats > 0) {
          k -= std::min(k, reach * static_cast<std::size_t>(retreats));
          return_to(levels[k], k > 0 ? order[k - 1].begin : 0);
        }
        continue;
      }
      const std::size_t first = steps_.size();
      keep_best(order[k], width);
      levels[++k] = {first, steps_.size()};
    }
    return true;
  }

  static void bury(SectionIdx now, State* state) {
    auto kept = state->live.begin();
    for (const Live& live : state->live) {
      if (live.end > now) {
        *kept++ = live;
      } else {
        state->print -= print_of(live.buffer, live.lower);
      }
    }
    state->live.erase(kept, state->live.end());
  }

  // Lists what comes of an item in all states: it lies at the bottom or the top of any hole.
  // Returns the least ceiling that has room for it.
  Bytes try_places(const Item& item) {
    const Bytes size = problem_.size[item.buffer];
    const Bytes unit = problem_.alignment_of(item.buffer);
    Bytes needed = kMaxBytes;
    children_.clear();
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const State& state = states_[s];
      sort_ends(state, item.begin);
      Bytes lower = 0;
      for (std::size_t at = 0; at <= state.live.size(); ++at) {
        const Bytes upper = at < state.live.size() ? state.live[at].lower : ceiling_;
        const Bytes bottom = align_up(lower, unit);
        const Bytes top = upper < size ? -1 : (upper - size) / unit * unit;
        if (at == state.live.size() && bottom <= limit_ - size) {
          needed = std::min(needed, bottom + size);
        }
        if (at < state.live.size()) lower = state.live[at].upper;
        if (bottom > top) continue;
        const auto hole = static_cast<std::int32_t>(at);
        try_place(item, static_cast<std::int32_t>(s), hole, bottom);
        if (top > bottom) try_place(item, static_cast<std::int32_t>(s), hole, top);
      }
    }
    return needed;
  }

  void try_place(const Item& item, std::int32_t state, std::int32_t at, Bytes offset) {
    const Live live{offset, offset + problem_.size[item.buffer], item.end, item.buffer};
    children_.push_back({outlook(states_[state], at, live, item.begin),
                         states_[state].print + print_of(item.buffer, offset), state, at, offset});
  }

  void sort_ends(const State& state, SectionIdx now) {
    ends_.clear();
    for (std::size_t i = 0; i < state.live.size(); ++i) {
      if (state.live[i].end < now + horizon_) {
        ends_.emplace_back(state.live[i].end, static_cast<std::int32_t>(i));
      }
    }
    std::sort(ends_.begin(), ends_.end());
  }

  // The number of holes that there would be if nothing else came, summed over the time to come.
  // When a buffer ends, the holes beside it become one with its place.
  std::int64_t outlook(const State& state, std::int32_t hole, const Live& item, SectionIdx now) {
    const auto at = static_cast<std::size_t>(hole);
    const std::size_t count = state.live.size() + 1;
    visits_ += static_cast<std::int64_t>(count);
    holes_.resize(count + 1);
    Bytes lower = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i <= count; ++i) {
      const bool last = i == count;
      const Live* live = last      ? nullptr
                         : i < at  ? &state.live[i]
                         : i == at ? &item
                                   : &state.live[i - 1];
      const int open = (last ? ceiling_ : live->lower) > lower ? 1 : 0;
      holes_[i] = {open, static_cast<std::int32_t>(i) - 1, static_cast<std::int32_t>(i) + 1};
      sum += open;
      if (!last) lower = live->upper;
    }

    std::int64_t cost = 0;
    SectionIdx time = now;
    const auto until = [&](SectionIdx section) {
      // Twice the sum of what is left of the horizon, over the sections between.
      const std::int64_t left = horizon_ - (time - now);
      const std::int64_t then = horizon_ - (section - now);
      cost += sum * (left * left - then * then);
      time = section;
    };
    const auto end = [&](SectionIdx section, std::size_t i) {
      if (section != time) until(section);
      const Hole& below = holes_[i];
      Hole& above = holes_[below.above];
      sum += 1 - below.open - above.open;
      above.open = 1;
      above.below = below.below;
      if (below.below != kNoStep) holes_[below.below].above = below.above;
    };
    bool own = item.end >= now + horizon_;
    for (const auto& [section, row] : ends_) {
      if (!own && item.end <= section) {
        end(item.end, at);
        own = true;
      }
      const auto i = static_cast<std::size_t>(row);
      end(section, i < at ? i : i + 1);
    }
    if (!own) end(item.end, at);
    until(now + horizon_);
    return cost;
  }

  void keep_best(const Item& item, int width) {
    // States that are alike have the same cost, so they are neighbours.
    const auto by_cost = [](const Child& x, const Child& y) {
      return std::tie(x.cost, x.print, x.state) < std::tie(y.cost, y.print, y.state);
    };
    const auto alike = [](const Child& x, const Child& y) { return x.print == y.print; };
    std::sort(children_.begin(), children_.end(), by_cost);
    children_.erase(std::unique(children_.begin(), children_.end(), alike), children_.end());
    const auto kept = children_.begin() + std::min(static_cast<std::ptrdiff_t>(width),
                                                   static_cast<std::ptrdiff_t>(children_.size()));
    std::vector<State> next;
    for (auto child = children_.begin(); child != kept; ++child) {
      const State& parent = states_[child->state];
      next.emplace_back();
      std::vector<Live>& live = next.back().live;
      live.reserve(parent.live.size() + 1);
      live.assign(parent.live.begin(), parent.live.end());
      live.insert(
          live.begin() + child->at,
          {child->offset, child->offset + problem_.size[item.buffer], item.end, item.buffer});
      next.back().print = child->print;
      next.back().step = static_cast<std::int32_t>(steps_.size());
      steps_.push_back({parent.step, item.end, item.buffer, child->offset});
    }
    states_.swap(next);
  }

  void return_to(const std::pair<std::size_t, std::size_t>& level, SectionIdx now) {
    states_.clear();
    for (std::size_t step = level.first; step < level.second; ++step) {
      states_.push_back(rebuilt(static_cast<std::int32_t>(step), now));
    }
  }

  State rebuilt(std::int32_t step, SectionIdx now) const {
    State state;
    state.step = step;
    for (auto at = step; at != kNoStep; at = steps_[at].before) {
      const BeamStep& placed = steps_[at];
      if (placed.end <= now) continue;
      state.live.push_back(
          {placed.offset, placed.offset + problem_.size[placed.buffer], placed.end, placed.buffer});
      state.print += print_of(placed.buffer, placed.offset);
    }
    std::sort(state.live.begin(), state.live.end(),
              [](const Live& x, const Live& y) { return x.lower < y.lower; });
    return state;
  }

  // Below a live buffer, or at the top; neighbours among those that are left.
  struct Hole {
    std::int32_t open;  // 1, or 0 without a byte
    std::int32_t below;
    std::int32_t above;
  };

  const Problem& problem_;
  const Sections& sections_;
  Bytes ceiling_;
  Bytes rise_;
  Bytes limit_;
  BeamEffort effort_;
  Stopper& stopper_;
  Draft draft_;
  SectionIdx horizon_ = 1;
  SectionIdx fullest_ = 0;
  std::vector<Item> stack_;  // what is live in the fullest section
  std::int64_t visits_ = 0;

  std::vector<BeamStep> steps_;  // of the sweep
  std::vector<State> states_;
  std::vector<Child> children_;
  std::vector<std::pair<SectionIdx, std::int32_t>> ends_;
  std::vector<Hole> holes_;
};

}  // namespace

Draft beam_in_time(const Problem& problem, const Sections& sections, Bytes low, Bytes step,
                   Bytes limit, const BeamEffort& effort, Stopper& stopper) {
  MEMPLAN_ASSERT(beam_suits(problem, sections) && step > 0);
  return Beam(problem, sections, low, step, limit, effort, stopper).run();
}

bool beam_suits(const Problem& problem, const Sections& sections) {
  return problem.reserved.empty() && coalescing_suits(problem, sections);
}

}  // namespace memplan
