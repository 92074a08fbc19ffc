#include "memplan/greedy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "greedy/best_pass.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "util/failure.h"

namespace memplan {

namespace {

// The patience is greater where buffers conflict beyond their lifetimes: there a pass by size looks
// at ten times as many neighbours as one by length, and is as good.
constexpr std::int64_t kRelatedPatience = 32;
// What the first of the dear passes (best fit and the skyline) may cost, in passes of first fit;
// 6 to 12 are usual.
constexpr std::int64_t kDearPatience = 32;

// Best fit pays most for these: long-lived buffers first, so that the short ones fill the holes
// between them. The other orders come after, as they are listed.
constexpr const char* kDearFirst[] = {"length",        "length_class_start", "tela",
                                      "peak_distance", "contention_length",  "tflite_by_size"};

constexpr auto kDearFirstCount = static_cast<std::ptrdiff_t>(std::size(kDearFirst));

void require_known(const std::string& name) {
  const std::vector<std::string>& known = greedy_orders();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  fail("unknown greedy order \"" + name + "\"; there are: " + all);
}

class Portfolio {
 public:
  Portfolio(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper)
      : options_(options),
        stopper_(stopper),
        profile_(problem, sections, stopper),
        passes_(problem, sections, stopper),
        best_(problem, node_budget),
        patience_(problem.conflicts.empty() ? kPatience : kRelatedPatience) {
    const bool related = !problem.conflicts.empty() || !problem.group.empty();
    for (const std::string& name : options.orders.empty() ? greedy_orders() : options.orders) {
      require_known(name);
      const bool idle = name == "hint" ? problem.hint.empty() : only_related(name) && !related;
      if (!idle || !options.orders.empty()) names_.push_back(name);
    }
  }

  Plan run() {
    for (const std::string& name : names_) {
      if (options_.first_fit && name != "tela" && !enough()) cheap_pass(name);
    }
    for (std::ptrdiff_t rank = 0; rank <= kDearFirstCount; ++rank) {
      for (const std::string& name : names_) {
        const bool wanted = name == "tela" ? options_.first_fit : options_.best_fit;
        if (promise(name) == rank && wanted && name != "hint" && !enough()) dear_pass(name);
      }
    }
    best_.plan.stats.solver = "greedy";
    best_.plan.stats.interrupted = stopper_.interrupted();
    return std::move(best_.plan);
  }

 private:
  // The place in kDearFirst, or behind it.
  static std::ptrdiff_t promise(const std::string& name) {
    return std::find(std::begin(kDearFirst), std::end(kDearFirst), name) - std::begin(kDearFirst);
  }

  // Such an order is worth a pass only where conflicts or groups relate buffers.
  static bool only_related(const std::string& name) {
    return name == "breadth" || name == "conflicts";
  }

  bool enough() { return best_.enough(options_.target, stopper_); }

  std::vector<BufferIdx> order(const std::string& name) {
    return sorted(order_of(name).key, profile_, stopper_);
  }

  void cheap_pass(const std::string& name) {
    best_.limits.steps = times(patience_, fastest_cheap_);
    if (name == "hint") {
      best_.take(passes_.at_hints(order("size"), best_.limits), "hint, then size, first fit",
                 &fastest_cheap_);
    } else {
      best_.take(passes_.in_order(order(name), Fit::kFirst, best_.limits), name + ", first fit",
                 &fastest_cheap_);
    }
  }

  void dear_pass(const std::string& name) {
    best_.limits.steps = fastest_dear_ < kNoLimit ? times(patience_, fastest_dear_)
                                                  : times(kDearPatience, fastest_cheap_);
    if (name == "tela") {
      best_.take(passes_.on_skyline(order(name), best_.limits), "tela, skyline", &fastest_dear_);
    } else {
      best_.take(passes_.in_order(order(name), Fit::kBest, best_.limits), name + ", best fit",
                 &fastest_dear_);
    }
  }

  const GreedyOptions& options_;
  Stopper& stopper_;
  Profile profile_;
  Passes passes_;
  BestPass best_;
  std::int64_t patience_;
  std::vector<std::string> names_;
  std::int64_t fastest_cheap_ = kNoLimit;
  std::int64_t fastest_dear_ = kNoLimit;
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
