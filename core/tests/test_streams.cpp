// Tests of safety on parallel streams: every rule against the definition, and the witnesses.
#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "check.h"
#include "memplan/streams.h"

using namespace memplan;

namespace {

using Pairs = std::set<std::pair<TensorIdx, TensorIdx>>;

constexpr SafetyRule kPublished[] = {SafetyRule::kAncestorTensors, SafetyRule::kAncestorTensorsOpt,
                                     SafetyRule::kStreamGraph};

// Tensors, each with its producer and its consumers; arcs are those that they make.
StreamGraph graph_of(std::vector<StreamIdx> stream,
                     const std::vector<std::vector<OperatorIdx>>& tensors) {
  StreamGraph graph;
  graph.stream = std::move(stream);
  graph.consumer_begin.push_back(0);
  for (const std::vector<OperatorIdx>& tensor : tensors) {
    graph.producer.push_back(tensor.front());
    for (std::size_t i = 1; i < tensor.size(); ++i) {
      graph.consumer.push_back(tensor[i]);
      if (tensor[i] != tensor[0]) graph.arcs.push_back({tensor[0], tensor[i]});
    }
    graph.consumer_begin.push_back(static_cast<std::int64_t>(graph.consumer.size()));
  }
  return graph;
}

// Operators are put on streams at random, so that streams wait for each other in circles; some
// tensors have no consumer, some are workspaces, some arcs carry no tensor.
StreamGraph random_graph(unsigned seed, int max_operators, int max_tensors) {
  std::mt19937 random(seed);
  const auto pick = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int n = pick(1, max_operators);
  const int streams = pick(1, std::min(n, 5));
  std::vector<StreamIdx> stream;
  for (int i = 0; i < n; ++i) stream.push_back(pick(0, streams - 1));
  std::vector<std::vector<OperatorIdx>> tensors(pick(1, max_tensors));
  for (std::vector<OperatorIdx>& tensor : tensors) {
    tensor = {pick(0, n - 1)};
    for (int uses = pick(0, 3); uses > 0; --uses) {
      const int reach = pick(0, 2) == 0 ? n - 1 : std::min(n - 1, tensor[0] + 4);
      tensor.push_back(pick(tensor[0], reach));
    }
  }
  StreamGraph graph = graph_of(stream, tensors);
  for (int arcs = n > 1 ? pick(0, n / 2) : 0; arcs > 0; --arcs) {
    const int from = pick(0, n - 2);
    graph.arcs.push_back({from, pick(from + 1, n - 1)});
  }
  return graph;
}

Pairs set_of(const UnsafePairs& pairs) {
  Pairs result;
  for (TensorIdx t = 0; t + 1 < static_cast<TensorIdx>(pairs.row_begin.size()); ++t) {
    TensorIdx last = t;
    for (std::int64_t i = pairs.row_begin[t]; i < pairs.row_begin[t + 1]; ++i) {
      CHECK(pairs.other[i] > last);
      last = pairs.other[i];
      result.insert({t, last});
    }
  }
  CHECK_EQ(result.size(), pairs.other.size());
  return result;
}

// before[n][m]: n is over before m begins, from the arcs and streams alone.
std::vector<std::vector<char>> closure(const StreamGraph& graph) {
  const OperatorIdx n = graph.operators();
  std::vector<std::vector<char>> before(n, std::vector<char>(n, 0));
  for (const Arc& arc : graph.arcs) before[arc.from][arc.to] = 1;
  for (OperatorIdx i = 0; i < n; ++i) {
    for (OperatorIdx j = i + 1; j < n; ++j)
      if (graph.stream[i] == graph.stream[j]) before[i][j] = 1;
  }
  for (OperatorIdx k = 0; k < n; ++k) {
    for (OperatorIdx i = 0; i < n; ++i) {
      for (OperatorIdx j = 0; j < n; ++j)
        if (before[i][k] && before[k][j]) before[i][j] = 1;
    }
  }
  return before;
}

// Whether a tensor is needed while some operators run and others are over.
bool is_needed(const StreamGraph& graph, TensorIdx t, const std::set<OperatorIdx>& over,
               const std::set<OperatorIdx>& running) {
  const OperatorIdx p = graph.producer[t];
  if (running.count(p) > 0) return true;
  if (over.count(p) == 0) return false;
  for (std::int64_t i = graph.consumer_begin[t]; i < graph.consumer_begin[t + 1]; ++i) {
    if (over.count(graph.consumer[i]) == 0) return true;
  }
  return false;
}

// Every linear extension; in each, all moments at which an operator runs alone, or beside the next
// one if neither waits for the other.
class Executions {
 public:
  explicit Executions(const StreamGraph& graph) : graph_(graph), before_(closure(graph)) {
    extend();
  }
  const Pairs& unsafe() const { return unsafe_; }

 private:
  void extend() {
    if (static_cast<OperatorIdx>(order_.size()) == graph_.operators()) {
      watch();
      return;
    }
    for (OperatorIdx n = 0; n < graph_.operators(); ++n) {
      if (!is_ready(n)) continue;
      order_.push_back(n);
      extend();
      order_.pop_back();
    }
  }
  bool is_ready(OperatorIdx n) const {
    if (std::find(order_.begin(), order_.end(), n) != order_.end()) return false;
    for (OperatorIdx m = 0; m < graph_.operators(); ++m) {
      if (before_[m][n] && std::find(order_.begin(), order_.end(), m) == order_.end()) return false;
    }
    return true;
  }
  void watch() {
    std::set<OperatorIdx> over;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      note(over, {order_[i]});
      if (i + 1 < order_.size() && !before_[order_[i]][order_[i + 1]]) {
        note(over, {order_[i], order_[i + 1]});
      }
      over.insert(order_[i]);
    }
  }
  void note(const std::set<OperatorIdx>& over, const std::set<OperatorIdx>& running) {
    if (!seen_.insert({over, running}).second) return;
    std::vector<TensorIdx> needed;
    for (TensorIdx t = 0; t < graph_.tensors(); ++t) {
      if (is_needed(graph_, t, over, running)) needed.push_back(t);
    }
    for (const TensorIdx a : needed) {
      for (const TensorIdx b : needed) {
        if (a < b) unsafe_.insert({a, b});
      }
    }
  }

  const StreamGraph& graph_;
  std::vector<std::vector<char>> before_;
  std::vector<OperatorIdx> order_;
  std::set<std::pair<std::set<OperatorIdx>, std::set<OperatorIdx>>> seen_;
  Pairs unsafe_;
};

// A stream graph has a circle if some streams wait for each other.
bool is_cyclic(const StreamGraph& graph) {
  std::set<std::pair<StreamIdx, StreamIdx>> waits;
  for (const Arc& arc : graph.arcs) waits.insert({graph.stream[arc.from], graph.stream[arc.to]});
  for (const auto& [s, r] : waits) {
    if (s != r && waits.count({r, s}) > 0) return true;
  }
  return false;
}

void check_unsafe(const StreamGraph& graph, const Witness& why, TensorIdx a, TensorIdx b) {
  const std::vector<std::vector<char>> before = closure(graph);
  CHECK_EQ(why.order.size(), graph.stream.size());
  CHECK_EQ(std::set<OperatorIdx>(why.order.begin(), why.order.end()).size(), why.order.size());
  std::set<OperatorIdx> over;
  for (std::size_t i = 0; i < why.order.size(); ++i) {
    for (OperatorIdx m = 0; m < graph.operators(); ++m) {
      CHECK(!before[m][why.order[i]] || over.count(m) > 0);
    }
    over.insert(why.order[i]);
  }
  CHECK(why.begin >= 0 && why.begin < why.end && why.end <= why.begin + 2);
  const auto begin = why.order.begin() + why.begin;
  const auto end = why.order.begin() + why.end;
  const std::set<OperatorIdx> running(begin, end);
  if (running.size() == 2) CHECK(!before[*begin][*(begin + 1)]);
  const std::set<OperatorIdx> earlier(why.order.begin(), begin);
  CHECK(is_needed(graph, a, earlier, running));
  CHECK(is_needed(graph, b, earlier, running));
}

void check_safe(const StreamGraph& graph, const Witness& why, TensorIdx a, TensorIdx b) {
  CHECK(why.first == a || why.first == b);
  const TensorIdx second = why.first == a ? b : a;
  std::set<std::pair<OperatorIdx, OperatorIdx>> arcs;
  for (const Arc& arc : graph.arcs) arcs.insert({arc.from, arc.to});
  std::set<OperatorIdx> from;
  for (const std::vector<OperatorIdx>& path : why.paths) {
    CHECK(path.size() >= 2);
    CHECK_EQ(path.back(), graph.producer[second]);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      const bool along = graph.stream[path[i]] == graph.stream[path[i + 1]];
      CHECK((along && path[i] < path[i + 1]) || arcs.count({path[i], path[i + 1]}) > 0);
    }
    from.insert(path.front());
  }
  const auto begin = graph.consumer.begin() + graph.consumer_begin[why.first];
  const auto end = graph.consumer.begin() + graph.consumer_begin[why.first + 1];
  std::set<OperatorIdx> ends(begin, end);
  if (ends.empty()) ends.insert(graph.producer[why.first]);
  for (const OperatorIdx n : ends) {
    CHECK(std::any_of(from.begin(), from.end(),
                      [&](OperatorIdx m) { return graph.stream[n] == graph.stream[m] && n <= m; }));
  }
}

}  // namespace

TEST(all_rules_give_the_same_pairs_on_random_graphs) {
  int cyclic = 0;
  int unsafe = 0;
  int pairs = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const StreamGraph graph = random_graph(seed, 4 + static_cast<int>(seed) / 20, 80);
    const Pairs ours = set_of(unsafe_pairs(graph));
    for (const SafetyRule rule : kPublished) CHECK(ours == set_of(unsafe_pairs(graph, rule)));
    cyclic += is_cyclic(graph) ? 1 : 0;
    unsafe += static_cast<int>(ours.size());
    pairs += graph.tensors() * (graph.tensors() - 1) / 2;
  }
  CHECK(cyclic > 300);
  CHECK(unsafe > pairs / 5 && unsafe < pairs * 4 / 5);
}

TEST(pairs_are_those_of_all_executions) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const StreamGraph graph = random_graph(seed, 8, 10);
    CHECK(set_of(unsafe_pairs(graph)) == Executions(graph).unsafe());
  }
}

TEST(witnesses_hold_in_a_simulation) {
  int safe = 0;
  int together = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const StreamGraph graph = random_graph(seed, 16, 12);
    const Pairs unsafe = set_of(unsafe_pairs(graph));
    for (TensorIdx a = 0; a < graph.tensors(); ++a) {
      for (TensorIdx b = a + 1; b < graph.tensors(); ++b) {
        const Witness why = witness(graph, b, a);
        CHECK_EQ(why.safe, unsafe.count({a, b}) == 0);
        if (why.safe) {
          check_safe(graph, why, a, b);
        } else {
          check_unsafe(graph, why, a, b);
        }
        safe += why.safe ? 1 : 0;
        together += why.end - why.begin == 2 ? 1 : 0;
      }
    }
  }
  CHECK(safe > 100);
  CHECK(together > 100);
}

TEST(pairs_beyond_the_order_are_those_without_a_common_time) {
  std::size_t beyond = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const StreamGraph graph = random_graph(seed, 4 + static_cast<int>(seed) / 6, 150);
    const auto last = [&graph](TensorIdx t) {
      OperatorIdx end = graph.producer[t];
      for (std::int64_t i = graph.consumer_begin[t]; i < graph.consumer_begin[t + 1]; ++i) {
        end = std::max(end, graph.consumer[i]);
      }
      return end;
    };
    std::vector<std::set<TensorIdx>> expected(graph.tensors());
    for (const auto& [a, b] : set_of(unsafe_pairs(graph))) {
      if (last(a) >= graph.producer[b] && last(b) >= graph.producer[a]) continue;
      expected[a].insert(b);
      expected[b].insert(a);
    }
    const UnsafePairs pairs = unsafe_beyond_order(graph);
    for (TensorIdx t = 0; t < graph.tensors(); ++t) {
      const std::vector<TensorIdx> row(pairs.other.begin() + pairs.row_begin[t],
                                       pairs.other.begin() + pairs.row_begin[t + 1]);
      CHECK(row == std::vector<TensorIdx>(expected[t].begin(), expected[t].end()));
    }
    beyond += pairs.other.size();
  }
  CHECK(beyond > 10000);
}

TEST(one_stream_is_a_matter_of_intervals) {
  const StreamGraph graph = graph_of({0, 0, 0, 0, 0, 0}, {{0, 1}, {3, 4}, {1, 2}, {4, 5}, {2, 4}});
  // SOMAS, appendix E: tensors A to E.
  const Pairs expected = {{0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 4}};
  CHECK(set_of(unsafe_pairs(graph)) == expected);
  for (const SafetyRule rule : kPublished) CHECK(set_of(unsafe_pairs(graph, rule)) == expected);
  CHECK(unsafe_beyond_order(graph).other.empty());
}

TEST(many_tensors_fill_whole_words) {
  // 200 tensors on each of two streams that never wait: all pairs across, and neighbours.
  std::vector<StreamIdx> stream;
  std::vector<std::vector<OperatorIdx>> tensors;
  for (OperatorIdx n = 0; n < 402; ++n) {
    stream.push_back(n % 2);
    if (n < 400) tensors.push_back({n, n + 2});
  }
  const Pairs pairs = set_of(unsafe_pairs(graph_of(stream, tensors)));
  CHECK_EQ(pairs.size(), std::size_t{200 * 200 + 2 * 199});
  CHECK(pairs.count({0, 2}) == 1 && pairs.count({0, 4}) == 0 && pairs.count({0, 399}) == 1);
}

TEST(a_program_of_nothing_has_no_pairs) {
  StreamGraph graph;
  graph.consumer_begin = {0};
  for (const SafetyRule rule : kPublished) CHECK(unsafe_pairs(graph, rule).other.empty());
  CHECK_EQ(unsafe_pairs(graph).row_begin.size(), std::size_t{1});
  CHECK(latest_ancestors(graph).empty());
}

TEST(bad_graphs_are_refused_with_a_sentence) {
  const StreamGraph good = graph_of({0, 1, 0}, {{0, 1}, {0, 2}});
  CHECK_EQ(memplan::check(good), std::string());
  StreamGraph bad = good;
  bad.stream[1] = 3;
  CHECK_EQ(memplan::check(bad), "operator 1 is on stream 3, but must be on one from 0 to 2");
  bad = graph_of(std::vector<StreamIdx>(40000, 39999), {});
  CHECK_EQ(memplan::check(bad),
           "40000 operators on 40000 streams are too many: the product may be at most 1073741824");
  bad = good;
  bad.arcs[0] = {1, 1};
  CHECK_EQ(memplan::check(bad),
           "an arc goes from operator 1 to 1, but must go from a lower to a higher one below 3");
  bad = good;
  bad.producer[0] = 3;
  CHECK_EQ(memplan::check(bad), "a tensor names operator 3 of 3");
  bad = good;
  bad.consumer_begin.pop_back();
  CHECK_EQ(memplan::check(bad), "consumer_begin has 2 rows, but must have 3");
  bad = good;
  bad.consumer_begin = {0, 3, 2};
  CHECK_EQ(memplan::check(bad), "consumer_begin decreases after tensor 1");
  bad = good;
  bad.consumer_begin = {0, 1, 1};
  CHECK_EQ(memplan::check(bad), "consumer_begin must go from 0 to 2");
  bad = good;
  bad.arcs.erase(bad.arcs.begin());
  CHECK_EQ(memplan::check(bad),
           "tensor 0 is consumed by operator 1, which does not wait for its producer 0");
  bool thrown = false;
  try {
    unsafe_pairs(bad);
  } catch (const std::invalid_argument& error) {
    thrown = error.what() == memplan::check(bad);
  }
  CHECK(thrown);
}

// SOMAS, figure 2. The text gives the streams, which operators make and read most tensors, and
// these facts; the rest (5 makes g, 8 reads e, h and i) is one way to make all of them hold.
TEST(facts_of_figure_2) {
  enum : TensorIdx { a, b, c, d, e, f, g, h, i };
  // Operators 1 to 8; here they count from 0.
  const StreamGraph graph =
      graph_of({0, 1, 0, 1, 1, 1, 2, 2},
               {{0, 1, 2}, {2, 6}, {1, 3}, {3, 4}, {2, 5, 7}, {3, 5}, {4, 5}, {6, 7}, {5, 7}});
  const std::vector<std::int32_t> latest = latest_ancestors(graph);
  const auto max_anc_id = [&](TensorIdx t, StreamIdx s) {
    const std::int32_t place = latest[graph.producer[t] * 3 + s];
    OperatorIdx n = -1;  // the paper counts places by the numbers of operators
    for (std::int32_t seen = 0; seen < place;) seen += graph.stream[++n] == s ? 1 : 0;
    return n + 1;
  };
  CHECK_EQ(max_anc_id(g, 0), 1);
  CHECK_EQ(max_anc_id(h, 0), 3);
  CHECK_EQ(max_anc_id(h, 1), 0);
  CHECK_EQ(max_anc_id(i, 0), 3);

  for (const SafetyRule rule : {SafetyRule::kRuns, kPublished[0], kPublished[1], kPublished[2]}) {
    const Pairs unsafe = set_of(unsafe_pairs(graph, rule));
    for (const auto& pair : {std::pair(a, i), std::pair(c, i), std::pair(d, i)}) {
      CHECK(unsafe.count(pair) == 0);
    }
    // h reuses nothing that stream 1 makes: c, d, f, g, i.
    for (const auto& pair :
         {std::pair(a, f), std::pair(a, h), std::pair(b, e), std::pair(f, i), std::pair(c, h),
          std::pair(d, h), std::pair(f, h), std::pair(g, h), std::pair(h, i)}) {
      CHECK(unsafe.count(pair) == 1);
    }
  }
}

TEST_MAIN
