// Tests of traces: the lines on rounds are true, complete and the same every time.
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"
#include "every_solver.h"
#include "memplan/round.h"
#include "memplan/solve.h"
#include "oracle.h"

using namespace memplan;

namespace {

// A round without its seconds, and with copies of its words, which the call does not keep.
struct Line {
  std::string engine, stage, part, ended_by;
  Bytes target, lower_bound, peak;
  std::int64_t nodes, conflicts;

  explicit Line(const Round& round)
      : engine(round.engine),
        stage(round.stage),
        part(round.part),
        ended_by(round.ended_by),
        target(round.target),
        lower_bound(round.lower_bound),
        peak(round.has_plan ? round.peak : -1),
        nodes(round.nodes),
        conflicts(round.conflicts) {}
  std::string text() const {
    std::ostringstream out;
    out << engine << '/' << stage << '/' << part << ' ' << target << ' ' << lower_bound << ' '
        << peak << ' ' << nodes << ' ' << conflicts << ' ' << ended_by;
    return out.str();
  }
};

struct Traced {
  Plan plan;
  std::vector<Line> lines;
};

Traced traced(const Problem& problem, SolveOptions options) {
  Traced result;
  options.trace = [&result](const Round& round) { result.lines.emplace_back(round); };
  result.plan = solve(problem, options);
  return result;
}

std::string text(const std::vector<Line>& lines) {
  std::string all;
  for (const Line& line : lines) all += line.text() + "\n";
  return all;
}

SolveOptions options(const std::string& solver, std::int64_t nodes, int threads = 1) {
  SolveOptions result = options_for(solver);
  result.budget.nodes = nodes;
  result.threads = threads;
  return result;
}

// Buffers of random lifetimes and of sizes that rarely add up: above the load, and hard.
Problem jagged(unsigned seed, int count) {
  oracle::Generator random(seed);
  Problem problem;
  for (int b = 0; b < count; ++b) {
    problem.start.push_back(random.pick(0, 30));
    problem.end.push_back(problem.start.back() + random.pick(4, 20));
    problem.size.push_back(random.pick(2000, 11000));
  }
  return problem;
}

// The same load at every time: at each step two buffers end, and two of the same total size begin.
Problem flat(unsigned seed, BufferIdx count) {
  oracle::Generator random(seed);
  Problem problem;
  std::vector<BufferIdx> live;
  const auto begin = [&](Time at, Bytes size) {
    live.push_back(problem.count());
    problem.start.push_back(at);
    problem.end.push_back(at + 1);
    problem.size.push_back(size);
  };
  for (int k = 0; k < 8; ++k) begin(0, 20 + random.pick(0, 60));
  for (Time now = 1; problem.count() < count; ++now) {
    Bytes freed = 0;
    for (int k = 0; k < 2; ++k) {
      const auto gone =
          static_cast<std::size_t>(random.pick(0, static_cast<Bytes>(live.size()) - 1));
      freed += problem.size[live[gone]];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    for (const BufferIdx b : live) problem.end[b] = now + 1;
    const Bytes part = random.pick(freed / 4, 3 * freed / 4);
    begin(now, part);
    begin(now, freed - part);
  }
  return problem;
}

const std::set<std::string> kEnds = {"plan", "refuted",   "nodes", "steps",
                                     "time", "interrupt", "end"};

void check_lines(const Traced& traced) {
  std::int64_t nodes = 0;
  Bytes bound = 0, peak = kMaxBytes + 1;
  for (const Line& line : traced.lines) {
    CHECK(kEnds.count(line.ended_by) == 1);
    CHECK(line.nodes >= 0);
    nodes += line.nodes;
    if (!line.part.empty()) {
      CHECK(line.part == "window" || line.part == "kernel");
      continue;
    }
    CHECK(line.lower_bound >= bound);
    bound = line.lower_bound;
    if (line.peak < 0) continue;
    CHECK(line.peak <= peak);
    peak = line.peak;
    if (line.ended_by == "plan" && line.engine != "large") CHECK(line.peak <= line.target);
    if (line.ended_by == "refuted") CHECK(line.lower_bound > line.target);
  }
  CHECK_EQ(nodes, traced.plan.stats.nodes);
  CHECK(bound <= traced.plan.lower_bound);
  if (traced.plan.has_offsets()) CHECK(peak >= traced.plan.peak);
}

}  // namespace

// Tests that every node is in a line, and that no line contradicts the answer.
TEST(rounds_add_up_to_the_answer) {
  int lines = 0;
  for (const Solver& each : every_solver()) {
    const std::string solver = each.name;
    const bool plain = solver.find("csp") != std::string::npos || solver == "somas";
    for (unsigned seed = 0; seed < 20; ++seed) {
      oracle::Features with = plain ? oracle::Features{} : oracle::features(seed % 16);
      if (solver == "prover" || solver == "telamalloc") {
        with.gaps = false;
      }
      const Problem problem = oracle::Generator(seed).problem(4 + seed % 9, 8, 9, with);
      for (const std::int64_t nodes : {30, 1000}) {
        const Traced found = traced(problem, options(solver, nodes));
        check_lines(found);
        lines += static_cast<int>(found.lines.size());
      }
    }
  }
  CHECK(lines > 300);
}

TEST(a_trace_changes_nothing_and_repeats_with_any_number_of_threads) {
  for (const char* solver : {"auto", "exact", "prover", "large", "greedy"}) {
    const Problem problem = flat(5, 40);
    const Plan alone = solve(problem, options(solver, 30000));
    const Traced one = traced(problem, options(solver, 30000));
    const Traced two = traced(problem, options(solver, 30000, 2));
    check_lines(one);
    CHECK(one.plan.offsets == alone.offsets);
    CHECK_EQ(one.plan.stats.nodes, alone.stats.nodes);
    CHECK_EQ(one.plan.stats.note, alone.stats.note);
    CHECK_EQ(text(two.lines), text(one.lines));
  }
}

// Tests that search, prover, chain, greedy and windows have their lines where `auto` asks them all.
TEST(every_engine_is_in_the_trace) {
  std::set<std::string> seen;
  for (const Line& line : traced(flat(5, 100), options("auto", 20000)).lines) {
    seen.insert(line.part.empty() ? line.engine : line.part);
    if (line.engine == "prover") CHECK_EQ(line.conflicts, line.nodes);
    if (line.engine == "large") CHECK(!line.stage.empty());
  }
  for (const char* engine : {"greedy", "large", "exact", "prover", "window"}) {
    CHECK_EQ(seen.count(engine), std::size_t{1});
  }
}

// Tests the chain of conflicts and groups, kernels, and a refutation that is written down.
TEST(kernels_ejections_and_proofs_are_in_the_trace) {
  Problem problem = jagged(7, 60);
  oracle::Generator(9).relate(&problem, 4);
  const Traced related = traced(problem, options("auto", 60000));
  check_lines(related);
  std::set<std::string> seen;
  for (const Line& line : related.lines) {
    seen.insert(line.stage);
    seen.insert(line.part);
  }
  CHECK(seen.count("ejection") == 1);
  CHECK(seen.count("kernel") == 1);

  // Above its load, so that a proof is more than a sum.
  Problem gap;
  gap.start = {4, 2, 3, 5, 0, 1, 1, 2};
  gap.end = {6, 6, 5, 7, 2, 4, 5, 3};
  gap.size = {2, 2, 1, 2, 3, 1, 1, 2};
  SolveOptions proving = options("exact", 100000);
  std::ostringstream proof;
  proving.proof = &proof;
  const Traced proved = traced(gap, proving);
  CHECK(proved.plan.status == Status::kOptimal);
  CHECK_EQ(proved.lines.back().engine, std::string("proof"));
  CHECK_EQ(proved.lines.back().stage, std::string("written"));
  CHECK_EQ(proved.lines.back().ended_by, std::string("refuted"));
}

// Tests that a budget of nodes ends a proof as well: the search refutes this at once, while the
// prover would take minutes.
TEST(a_proof_ends_with_its_budget) {
  Problem problem;
  problem.start = {2, 1, 1, 0, 1, 0, 0, 2, 2, 0, 2, 0, 2, 2, 0, 2, 2, 2, 0, 0, 1, 1, 2, 0, 1, 0, 1};
  problem.end = {5, 3, 4, 1, 2, 1, 1, 5, 5, 1, 3, 3, 5, 5, 3, 3, 3, 5, 3, 3, 3, 3, 4, 3, 3, 1, 2};
  problem.size = {7,  8, 12, 1,  10, 14, 15, 5,  13, 18, 6, 13, 11, 11,
                  17, 9, 15, 13, 3,  19, 16, 13, 13, 9,  3, 6,  16};
  problem.reserved = {{40, 41}};
  SolveOptions proving = options("exact", 2000);
  std::ostringstream proof;
  proving.proof = &proof;
  const Traced found = traced(problem, proving);
  CHECK(found.plan.status == Status::kOptimal);
  CHECK_EQ(found.lines.back().engine, std::string("proof"));
  CHECK_EQ(found.lines.back().ended_by, std::string("nodes"));
  CHECK_EQ(proof.str(), std::string());
}

TEST(an_end_from_outside_is_named) {
  SolveOptions stopped = options("exact", 1 << 30);
  stopped.interrupt = [] { return true; };
  const Traced interrupted = traced(flat(5, 60), stopped);
  CHECK(!interrupted.lines.empty());
  CHECK_EQ(interrupted.lines.back().ended_by, std::string("interrupt"));

  // The time may also end between two rounds. Then the last line has another end, and a longer
  // budget has another chance; most machines need one.
  std::string end;
  for (double seconds = 0.05; end != "time" && seconds < 100; seconds *= 2) {
    SolveOptions late = options("exact", 1 << 30);
    late.budget.seconds = seconds;
    const Traced timed = traced(flat(5, 100), late);
    CHECK(!timed.lines.empty());
    end = timed.lines.back().ended_by;
  }
  CHECK_EQ(end, std::string("time"));
}

TEST_MAIN
