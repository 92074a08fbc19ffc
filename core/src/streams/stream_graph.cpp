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
        producer_(graph.producer),
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

  void find_streams(const StreamGraph& graph) {
    stream_of_.reserve(graph.producer.size());
    for (TensorIdx t = 0; t < graph.tensors(); ++t) {
      stream_of_.push_back(graph.stream[producer_[t]]);
      tensors_of_[stream_of_[t]].push_back(t);
    }
    // AncStreams. Streams that wait for each other are ancestors of one another; none is of itself.
    for (OperatorIdx n = 0; n < graph.operators(); ++n) {
      const StreamIdx s1 = graph.stream[n];
      for (StreamIdx s2 = 0; s2 < at_.streams; ++s2) {
        if (s1 != s2 && max_anc_id_.row(n)[s2] > 0) is_ancestor_[s1 * at_.streams + s2] = 1;
      }
    }
  }

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
    }
    end_begin_.push_back(static_cast<std::int64_t>(ends_.size()));
  }

  // Algorithm 3
  void ancestor_streams_reuse() {
    for (StreamIdx s1 = 0; s1 < at_.streams; ++s1) {
      for (StreamIdx s2 = 0; s2 < at_.streams; ++s2) {
        if (!is_ancestor(s2, s1)) continue;
        for (const TensorIdx t2 : tensors_of_[s2]) {
          if (!is_between_streams(t2)) {
            for (const TensorIdx t1 : tensors_of_[s1]) {
              if (end_time(t2) <= max_anc_id(t1, s2)) unsafe_.remove(t1, t2);
            }
          } else {
            for (const TensorIdx t1 : tensors_of_[s1]) {
              if (is_valid_ancestor(t2, t1)) unsafe_.remove(t1, t2);
            }
          }
        }
      }
    }
  }

  // Algorithm 4
  bool is_valid_ancestor(TensorIdx t2, TensorIdx t1) const {
    const StreamIdx s1 = stream_of_[t1];
    for (std::int64_t i = end_begin_[t2]; i < end_begin_[t2 + 1]; ++i) {
      const StreamIdx s = ends_[i].stream;
      if (s != s1 && !is_ancestor(s, s1)) return false;
    }
    for (std::int64_t i = end_begin_[t2]; i < end_begin_[t2 + 1]; ++i) {
      const auto [s, end] = ends_[i];
      if (is_ancestor(s, s1) && end > max_anc_id(t1, s)) return false;
      if (s == s1 && end >= start_time(t1)) return false;
    }
    return true;
  }

  // Algorithm 5
  void same_stream_reuse() {
    for (const std::vector<TensorIdx>& made : tensors_of_) {
      for (std::size_t i = 0; i < made.size(); ++i) {
        for (std::size_t j = i + 1; j < made.size(); ++j) {
          if (start_time(made[i]) == start_time(made[j])) continue;
          if (is_safe_in_stream(made[i], made[j])) unsafe_.remove(made[i], made[j]);
        }
      }
    }
  }

  bool is_safe_in_stream(TensorIdx t1, TensorIdx t2) const {
    if (is_between_streams(t1) && is_between_streams(t2)) {
      return is_valid_ancestor(t1, t2) || is_valid_ancestor(t2, t1);
    }
    if (is_between_streams(t1)) {
      return start_time(t1) > end_time(t2) ||
             (start_time(t1) < start_time(t2) && is_valid_ancestor(t1, t2));
    }
    if (is_between_streams(t2)) {
      return start_time(t2) > end_time(t1) ||
             (start_time(t2) < start_time(t1) && is_valid_ancestor(t2, t1));
    }
    return start_time(t1) > end_time(t2) || start_time(t2) > end_time(t1);
  }

  bool is_ancestor(StreamIdx s2, StreamIdx s1) const {
    return is_ancestor_[s1 * at_.streams + s2] != 0;
  }
  bool is_between_streams(TensorIdx t) const {
    return end_begin_[t + 1] - end_begin_[t] > 1 || ends_[end_begin_[t]].stream != stream_of_[t];
  }
  std::int32_t start_time(TensorIdx t) const { return at_.place[producer_[t]]; }
  // The EndTime of a tensor that is not between streams.
  std::int32_t end_time(TensorIdx t) const { return ends_[end_begin_[t]].time; }
  std::int32_t max_anc_id(TensorIdx t, StreamIdx s) const {
    return max_anc_id_.row(producer_[t])[s];
  }

  Places at_;
  Table max_anc_id_;                                // by operator
  std::vector<StreamIdx> stream_of_;                // by tensor
  std::vector<std::vector<TensorIdx>> tensors_of_;  // by stream
  std::vector<char> is_ancestor_;                   // by stream, and stream that it may wait for
  std::vector<std::int64_t> end_begin_;             // by tensor: its part of `ends_`
  std::vector<End> ends_;
  const std::vector<OperatorIdx>& producer_;
  PairSet unsafe_;
};

}  // namespace

UnsafePairs by_stream_graph(const StreamGraph& graph) { return StreamGraphSafety(graph).run(); }

}  // namespace memplan::streams
