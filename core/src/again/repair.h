// Sequences that are made better by changing a part of them: ruin and recreate.
#pragma once

#include <cstdint>
#include <vector>

#include "again/model.h"
#include "again/timeline.h"
#include "model/counter.h"
#include "util/random.h"

namespace memplan::again {

class Repair {
 public:
  Repair(const Model& model, Bytes capacity, bool free_order, Counter& counter);

  // Inserts re-runs into a sequence until it fits; whether it does then.
  bool start(const std::vector<OperatorIdx>& order);
  // Goes on from a sequence that fits.
  void start_from(std::vector<OperatorIdx> runs);

  // Looks for less extra cost than that of best(), until it is `enough`, nothing better is found
  // for long, or the budget is spent.
  void improve(std::int64_t enough);

  bool has_runs() const { return has_runs_; }
  const std::vector<OperatorIdx>& best() const { return best_; }
  std::int64_t extra() const { return best_extra_; }

 private:
  struct Insertion {
    std::size_t slot = 0;
    std::vector<OperatorIdx> operators;  // or a move
    std::int64_t cost = 0;
    double gain = 0;
  };

  std::size_t below(std::size_t limit) { return random_.index(limit); }
  bool one_in(std::size_t many) { return random_.below(many) == 0; }
  double drawn_factor(int noise);
  bool is_over();

  bool mend(std::vector<OperatorIdx>& runs, std::int64_t most, int noise);
  std::size_t find_worst(int noise);
  Insertion find_insertion(std::size_t worst, int noise);
  void list_inputs(OperatorIdx op, std::size_t slot, bool is_deep, std::vector<OperatorIdx>& found);
  std::vector<OperatorIdx> ruined(const std::vector<OperatorIdx>& runs);
  void move_runs(std::vector<OperatorIdx>& runs, std::size_t moves);
  void leave_out(std::vector<OperatorIdx>& runs);

  const Model& model_;
  Bytes capacity_;
  bool free_order_;
  Counter& counter_;
  Random random_;
  Timeline timeline_;
  std::int64_t counted_ = 0;  // of what the timeline looked at
  double least_cost_;         // what any insertion costs at least, so that gains are finite
  std::vector<std::int32_t> first_run_;  // by run: its first slot in the sequence
  std::vector<std::uint32_t> met_;       // by operator
  std::uint32_t round_ = 0;
  bool has_runs_ = false;
  std::vector<OperatorIdx> best_;
  std::int64_t best_extra_ = 0;
};

}  // namespace memplan::again
