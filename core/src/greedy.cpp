#include "memplan/greedy.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "greedy/orders.h"
#include "greedy/passes.h"

namespace memplan {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Some orders fragment badly on some problems: a pass is given up at so many times the work of
// the fastest one of its kind.
constexpr std::int64_t kPatience = 4;
// What the first of the dear passes (best fit and the skyline) may cost, in passes of first fit;
// 6 to 12 are usual.
constexpr std::int64_t kDearPatience = 32;

// Best fit pays most for these: long-lived buffers first, so that the short ones fill the holes
// between them. The other orders come after, as they are listed.
constexpr const char* kDearFirst[] = {"length",        "length_class_start", "tela",
                                      "peak_distance", "contention_length",  "tflite_by_size"};

void require_known(const std::string& name) {
  const std::vector<std::string>& known = greedy_orders();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  throw std::invalid_argument("unknown greedy order \"" + name + "\"; there are: " + all);
}

KeyOf key_of(const std::string& name) {
  const auto found = std::find_if(orders().begin(), orders().end(),
                                  [&name](const Order& order) { return name == order.name; });
  return found->key;
}

class Portfolio {
 public:
  Portfolio(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper)
      : options_(options),
        stopper_(stopper),
        profile_(problem, sections, stopper),
        passes_(problem, sections, stopper) {
    limits_.nodes = node_budget;
    if (problem.capacity) limits_.bytes = std::min(limits_.bytes, *problem.capacity);
    for (const std::string& name : options.orders.empty() ? greedy_orders() : options.orders) {
      require_known(name);
      const bool idle = options.orders.empty() && name == "hint" && problem.hint.empty();
      if (!idle) names_.push_back(name);
    }
  }

  Plan run() {
    for (const std::string& name : names_) {
      if (options_.first_fit && name != "tela" && !enough()) cheap_pass(name);
    }
    std::stable_sort(names_.begin(), names_.end(), [](const std::string& a, const std::string& b) {
      return promise(a) < promise(b);
    });
    for (const std::string& name : names_) {
      const bool wanted = name == "tela" ? options_.first_fit : options_.best_fit;
      if (wanted && name != "hint" && !enough()) dear_pass(name);
    }
    plan_.stats.solver = "greedy";
    plan_.stats.interrupted = stopper_.interrupted();
    return std::move(plan_);
  }

 private:
  static std::ptrdiff_t promise(const std::string& name) {
    return std::find(std::begin(kDearFirst), std::end(kDearFirst), name) - std::begin(kDearFirst);
  }

  bool enough() {
    return (plan_.has_offsets() && plan_.peak <= options_.target) || limits_.nodes <= 0 ||
           stopper_.look();
  }

  std::vector<BufferIdx> order(const std::string& name) {
    return sorted(key_of(name), profile_, stopper_);
  }

  static std::int64_t times(std::int64_t factor, std::int64_t steps) {
    return steps > kNoLimit / factor ? kNoLimit : factor * steps;
  }

  void cheap_pass(const std::string& name) {
    limits_.steps = times(kPatience, fastest_cheap_);
    if (name == "hint") {
      take(passes_.at_hints(order("size"), limits_), "hint, then size, first fit", &fastest_cheap_);
    } else {
      take(passes_.in_order(order(name), Fit::kFirst, limits_), name + ", first fit",
           &fastest_cheap_);
    }
  }

  void dear_pass(const std::string& name) {
    limits_.steps = fastest_dear_ < kNoLimit ? times(kPatience, fastest_dear_)
                                             : times(kDearPatience, fastest_cheap_);
    if (name == "tela") {
      take(passes_.on_skyline(order(name), limits_), "tela, skyline", &fastest_dear_);
    } else {
      take(passes_.in_order(order(name), Fit::kBest, limits_), name + ", best fit", &fastest_dear_);
    }
  }

  // From here on, a pass must end below what is taken: one that cannot is given up at the first
  // buffer that shows it.
  void take(Draft draft, const std::string& note, std::int64_t* fastest) {
    ++plan_.stats.restarts;
    plan_.stats.nodes += draft.nodes;
    limits_.nodes -= draft.nodes;
    if (!draft.complete) return;
    *fastest = std::min(*fastest, std::max<std::int64_t>(1, draft.steps));
    plan_.status = Status::kFeasible;
    plan_.offsets = std::move(draft.offsets);
    plan_.peak = draft.peak;
    plan_.stats.note = note;
    limits_.bytes = plan_.peak - 1;
  }

  const GreedyOptions& options_;
  Stopper& stopper_;
  Profile profile_;
  Passes passes_;
  Limits limits_;
  std::vector<std::string> names_;
  std::int64_t fastest_cheap_ = kNoLimit;
  std::int64_t fastest_dear_ = kNoLimit;
  Plan plan_;
};

}  // namespace

const std::vector<std::string>& greedy_orders() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"hint"};
    for (const Order& order : orders()) all.push_back(order.name);
    return all;
  }();
  return names;
}

Plan greedy(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper) {
  return Portfolio(problem, sections, options, node_budget, stopper).run();
}

}  // namespace memplan
