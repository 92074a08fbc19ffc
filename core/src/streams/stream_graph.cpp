// Algorithms 2 to 5 of SOMAS, with its names: MaxAncId takes the place of paths, and only
// pairs of streams are compared of which one can wait for the other.
//
// The listing of Algorithm 5 ends before its lines 14 to 16 (two tensors of which neither is
// between streams); they follow the text. As in Algorithm 1, a tensor without consumers counts as
// consumed by its producer: as printed, its EndTime would be 0, and any operator that waits for its
// stream could overwrite it.
#include <algorithm>

#include "streams/bits.h"
#include "streams/reach.h"
#include "streams/rules.h"
#include "util/invariants.h"

namespace memplan::streams {

namespace {

class StreamGraphSafety {
 public:
  explicit StreamGraphSafety(const StreamGraph& graph)
      : at_(places(graph)),
        max_anc_id_(latest_ancestors(graph, at_)),
        tensors_of_(at_.streams),
        is_ancestor_(static_cast<std::size_t>(at_.streams) * at_.streams),
        unsafe_(graph.tensors()) {
    find_streams(graph);
    find_ends(graph);
  }

  // Algorithm 2
  UnsafePairs run() {
    ancestor_streams_reuse();
    same_stream_reuse();
    return unsafe_.rows();
  }

 private:
  struct End {
    StreamIdx stream;
    std::int32_t time;
  };

  // What a tensor is compared by. Most pairs ask for nothing else, so all of it is computed once.
  struct Made {
    std::int32_t start = 0;  // StartTime
    std::int32_t end = 0;    // the EndTime of a tensor that is not between streams
    bool is_between_streams = false;
    OperatorIdx producer = kNoOperator;
  };

  void find_streams(const StreamGraph& graph) {
    made_.resize(graph.producer.size());
    for (TensorIdx t = 0; t < graph.tensors(); ++t) {
      const OperatorIdx producer = graph.producer[t];
      made_[t].producer = producer;
      made_[t].start = at_.place[producer];
      tensors_of_[graph.stream[producer]].push_back(t);
    }
    // AncStreams. Streams that wait for each other are ancestors of one another; none is of itself.
    for (OperatorIdx n = 0; n < graph.operators(); ++n) {
      const StreamIdx s1 = graph.stream[n];
      for (StreamIdx s2 = 0; s2 < at_.streams; ++s2) {
        if (s1 != s2 && max_anc_id_.row(n)[s2] > 0) is_ancestor_[s1 * at_.streams + s2] = 1;
      }
    }
  }

  const End* first_end(TensorIdx t) const { return ends_.data() + end_begin_[t]; }

  // EndTime and DestStreams.
  void find_ends(const StreamGraph& graph) {
    std::vector<std::int32_t> time(at_.streams, 0);
    for (TensorIdx t = 0; t < graph.tensors(); ++t) {
      end_begin_.push_back(static_cast<std::int64_t>(ends_.size()));
      for_each_end(graph, t, [&](OperatorIdx n) {
        std::int32_t& known = time[graph.stream[n]];
        known = std::max(known, at_.place[n]);
      });
      for_each_end(graph, t, [&](OperatorIdx n) {
        const StreamIdx s = graph.stream[n];
        MEMPLAN_ASSERT(time[s] <= at_.length[s]);
        if (time[s] > 0) ends_.push_back({s, time[s]});
        time[s] = 0;
      });
      const End& first = *first_end(t);
      made_[t].end = first.time;
      made_[t].is_between_streams = static_cast<std::int64_t>(ends_.size()) > end_begin_[t] + 1 ||
                                    first.stream != graph.stream[made_[t].producer];
    }
    end_begin_.push_back(static_cast<std::int64_t>(ends_.size()));
  }

  // Algorithm 3
  void ancestor_streams_reuse() {
    for (StreamIdx s1 = 0; s1 < at_.streams; ++s1) {
      for (StreamIdx s2 = 0; s2 < at_.streams; ++s2) {
        if (!is_ancestor(s2, s1)) continue;
        for (const TensorIdx t2 : tensors_of_[s2]) {
          if (!made_[t2].is_between_streams) {
            const std::int32_t end = made_[t2].end;
            for (const TensorIdx t1 : tensors_of_[s1]) {
              if (end <= max_anc_id(t1, s2)) unsafe_.remove(t1, t2);
            }
          } else if (ends_in_ancestors(t2, s1)) {
            for (const TensorIdx t1 : tensors_of_[s1]) {
              if (is_over(t2, t1, s1)) unsafe_.remove(t1, t2);
            }
          }
        }
      }
    }
  }

  // Algorithm 4, in two parts. Lines 1 and 2 ask for the stream of t1 alone: whether it has all
  // streams that need t2 among its ancestors, or is one of them.
  bool ends_in_ancestors(TensorIdx t2, StreamIdx s1) const {
    return std::all_of(first_end(t2), first_end(t2 + 1), [&](const End& each) {
      return each.stream == s1 || is_ancestor(each.stream, s1);
    });
  }

  // Lines 3 to 9: whether all that need t2 are over when t1, which s1 makes, begins.
  bool is_over(TensorIdx t2, TensorIdx t1, StreamIdx s1) const {
    return std::all_of(first_end(t2), first_end(t2 + 1), [&](const End& each) {
      return each.stream == s1 ? each.time < made_[t1].start
                               : each.time <= max_anc_id(t1, each.stream);
    });
  }

  // Algorithm 5
  void same_stream_reuse() {
    for (StreamIdx s = 0; s < at_.streams; ++s) {
      const std::vector<TensorIdx>& tensors = tensors_of_[s];
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Made& first = made_[tensors[i]];
        for (std::size_t j = i + 1; j < tensors.size(); ++j) {
          const Made& second = made_[tensors[j]];
          if (first.start == second.start) continue;
          if (!first.is_between_streams && !second.is_between_streams) {
            if (first.start > second.end || second.start > first.end) {
              unsafe_.remove(tensors[i], tensors[j]);
            }
          } else if (is_safe_in_stream(tensors[i], tensors[j], s)) {
            unsafe_.remove(tensors[i], tensors[j]);
          }
        }
      }
    }
  }

  // Lines 5 to 13: at least one of the two is between streams.
  bool is_safe_in_stream(TensorIdx t1, TensorIdx t2, StreamIdx s) const {
    const auto reuses = [&](TensorIdx early, TensorIdx late) {
      if (made_[early].start >= made_[late].start) return false;
      if (!made_[early].is_between_streams) return made_[late].start > made_[early].end;
      return ends_in_ancestors(early, s) && is_over(early, late, s);
    };
    return reuses(t1, t2) || reuses(t2, t1);
  }

  bool is_ancestor(StreamIdx s2, StreamIdx s1) const {
    return is_ancestor_[s1 * at_.streams + s2] != 0;
  }
  std::int32_t max_anc_id(TensorIdx t, StreamIdx s) const {
    return max_anc_id_.row(made_[t].producer)[s];
  }

  Places at_;
  Table max_anc_id_;                                // by operator
  std::vector<Made> made_;                          // by tensor
  std::vector<std::vector<TensorIdx>> tensors_of_;  // by stream
  std::vector<char> is_ancestor_;                   // by stream, and stream that it may wait for
  std::vector<std::int64_t> end_begin_;             // by tensor: its part of `ends_`
  std::vector<End> ends_;
  PairSet unsafe_;
};

}  // namespace

UnsafePairs by_stream_graph(const StreamGraph& graph) { return StreamGraphSafety(graph).run(); }

}  // namespace memplan::streams
