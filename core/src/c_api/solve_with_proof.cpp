#include <algorithm>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "c_api/door.h"
#include "memplan/solve.h"
#include "solve/alone.h"

namespace memplan::c_api {

namespace {

using Write = int(const char* text, size_t length, void* user_data);

// Passes what is written to the caller's function in pieces, and keeps whether that failed.
class Pieces : public std::streambuf {
 public:
  Pieces(Write* write, void* user_data) : write_(write), user_data_(user_data) {
    setp(piece_, piece_ + sizeof piece_);
  }
  bool complete() const { return !refused_ && last_ == kLast; }

 protected:
  int overflow(int c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const auto length = static_cast<size_t>(pptr() - pbase());
    if (length == 0 || refused_) return refused_ ? -1 : 0;
    last_.append(pbase(), length);
    if (last_.size() > kLast.size()) last_.erase(0, last_.size() - kLast.size());
    refused_ = write_(pbase(), length, user_data_) == 0;
    setp(piece_, piece_ + sizeof piece_);
    return refused_ ? -1 : 0;
  }

 private:
  static constexpr std::string_view kLast = "\nrefuted\n";

  Write* write_;
  void* user_data_;
  char piece_[4096];
  std::string last_;
  bool refused_ = false;
};

// Why there can be no proof, or nothing.
std::string check_provable(const Problem& problem, const SolveOptions& options) {
  std::string able;
  bool proves = false;
  for (const Solver& each : solvers()) {
    if (!each.proves) continue;
    able += (able.empty() ? "" : ", ") + std::string(each.name);
    proves = proves || options.solver == each.name;
  }
  if (!proves) return options.solver + " writes no proof: choose one of " + able + ".";
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  const bool has_windows = std::any_of(problem.gaps.begin(), problem.gaps.end(), windowed);
  return has_windows ? "a proof cannot express windows" : "";
}

}  // namespace

}  // namespace memplan::c_api

memplan_plan* memplan_solve_with_proof(const memplan_problem* problem,
                                       const memplan_options* options,
                                       int (*write)(const char* text, size_t length,
                                                    void* user_data),
                                       void* user_data, char* error, size_t error_size) {
  using namespace memplan::c_api;
  std::unique_ptr<memplan_plan> plan;
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (problem == nullptr) return kNoProblem;
    if (write == nullptr) return "write must not be NULL";
    memplan::SolveOptions chosen;
    std::string fault = convert(options, &chosen);
    if (fault.empty()) fault = check_provable(problem->problem, chosen);
    if (!fault.empty()) return fault;
    Pieces pieces(write, user_data);
    std::ostream out(&pieces);
    chosen.proof = &out;
    plan = std::make_unique<memplan_plan>();
    fault = memplan::try_solve(problem->problem, chosen, &plan->plan);
    out.flush();
    plan->proof_complete = pieces.complete();
    return fault;
  });
  return done ? plan.release() : nullptr;
}
