#include <algorithm>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "c_api/door.h"
#include "memplan/solve.h"

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

void require_provable(const Problem& problem, const SolveOptions& options) {
  std::string able;
  bool proves = false;
  for (const Solver& each : solvers()) {
    if (!each.proves) continue;
    able += (able.empty() ? "" : ", ") + std::string(each.name);
    proves = proves || options.solver == each.name;
  }
  require(proves, (options.solver + " writes no proof: choose one of " + able + ".").c_str());
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  require(std::none_of(problem.gaps.begin(), problem.gaps.end(), windowed),
          "a proof cannot express windows");
}

}  // namespace

}  // namespace memplan::c_api

memplan_plan* memplan_solve_with_proof(const memplan_problem* problem,
                                       const memplan_options* options,
                                       int (*write)(const char* text, size_t length,
                                                    void* user_data),
                                       void* user_data, char* error, size_t error_size) {
  using namespace memplan::c_api;
  return guarded<memplan_plan*>(nullptr, error, error_size, [&] {
    require(problem != nullptr, kNoProblem);
    require(write != nullptr, "write must not be NULL");
    memplan::SolveOptions chosen = converted(options);
    require_provable(problem->problem, chosen);
    Pieces pieces(write, user_data);
    std::ostream out(&pieces);
    chosen.proof = &out;
    memplan::Plan plan = memplan::solve(problem->problem, chosen);
    out.flush();
    return new memplan_plan{std::move(plan), pieces.complete()};
  });
}
