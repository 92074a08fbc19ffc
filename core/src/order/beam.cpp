#include "order/beam.h"

#include <algorithm>
#include <tuple>

#include "order/tree.h"

namespace memplan::order {

namespace {

// A state that has not been made yet: what runs first after a node, and what it would cost.
struct Candidate {
  Bytes first;   // of the key
  Bytes second;  // of the key
  OperatorIdx op;
  Node parent;
  Bytes peak;
  std::uint64_t hash;

  std::tuple<Bytes, Bytes, OperatorIdx, Node> rank() const { return {first, second, op, parent}; }
};

class Beam {
 public:
  Beam(const Program& program, Bytes lower, Bytes upper, const BeamOptions& options,
       Counter& counter)
      : lower_(lower),
        upper_(upper),
        options_(options),
        counter_(counter),
        tree_(program),
        levels_(program.workspace.size() + 1) {}

  // Level by level, by the number of operators that have run: levels_[k] has the best candidates
  // for k operators, by (peak, live) or (live, peak). A candidate becomes a node only when its
  // level is reached; most never do. A move may skip levels, since it takes all that can be
  // committed with it. Of two candidates with one set of operators, the better one stays.
  std::optional<std::vector<OperatorIdx>> search() {
    State& state = tree_.state();
    const Bytes peak = state.live();
    options_.moves.commit(state, std::max(peak, lower_), 0);
    if (state.is_over()) return state.done();
    const Node root = tree_.add(0);
    tree_.go(0);
    tree_.go(root);
    expand(root, peak);
    for (std::size_t count = 1; count < levels_.size(); ++count) {
      std::vector<Candidate>& level = levels_[count];
      if (level.empty()) continue;
      const bool is_last = count + 1 == levels_.size();
      for (const Candidate& candidate : level) {
        if (counter_.take()) return std::nullopt;
        tree_.go(candidate.parent);
        options_.moves.take(state, candidate.op, limit(candidate.peak));
        if (is_last) return state.done();
        const Node node = tree_.add(candidate.parent);
        tree_.go(node);
        expand(node, candidate.peak);
      }
      std::vector<Candidate>().swap(level);
    }
    return std::nullopt;
  }

 private:
  Bytes limit(Bytes peak) const { return std::max(peak, lower_); }

  // Offers every child of a node, which is the present state, to its level.
  void expand(Node node, Bytes peak) {
    State& state = tree_.state();
    const std::size_t count = state.count();
    for (const OperatorIdx op : options_.moves.choices(state)) {
      options_.moves.prepare(state, op);
      const Bytes step = state.step(op);
      state.rewind(count);
      if (step >= upper_) continue;
      const Bytes top = std::max(peak, step);
      const bool is_valley = options_.moves.take(state, op, limit(top));
      const bool is_only = is_valley && limit(top) == limit(peak);
      Candidate candidate{limit(top), state.live(), op, node, top, state.hash()};
      if (options_.key == BeamKey::kLiveFirst) std::swap(candidate.first, candidate.second);
      if (is_only) candidate.first = candidate.second = -1;  // it goes on before all others
      offer(state.count(), candidate);
      state.rewind(count);
      if (is_only) return;
    }
  }

  void offer(std::size_t count, const Candidate& candidate) {
    std::vector<Candidate>& level = levels_[count];
    const auto precedes = [](const Candidate& a, const Candidate& b) {
      return a.rank() < b.rank();
    };
    const auto same = std::find_if(level.begin(), level.end(), [&](const Candidate& each) {
      return each.hash == candidate.hash;
    });
    if (same != level.end()) {
      if (!precedes(candidate, *same)) return;
      level.erase(same);
    }
    level.insert(std::upper_bound(level.begin(), level.end(), candidate, precedes), candidate);
    if (level.size() > static_cast<std::size_t>(options_.width)) level.pop_back();
  }

  Bytes lower_;
  Bytes upper_;
  const BeamOptions& options_;
  Counter& counter_;
  Tree tree_;
  std::vector<std::vector<Candidate>> levels_;  // by the number of operators that have run
};

}  // namespace

std::optional<std::vector<OperatorIdx>> search_beam(const Program& program, Bytes lower,
                                                    Bytes upper, const BeamOptions& options,
                                                    Counter& counter) {
  return Beam(program, lower, upper, options, counter).search();
}

}  // namespace memplan::order
