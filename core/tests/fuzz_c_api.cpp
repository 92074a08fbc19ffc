// A mutator of calls of the C interface: any bytes become a problem, options and a few calls, and
// whatever comes back is held against what the header promises.
//
//   fuzz_c_api COUNT [SEED]     so many inputs of random bytes; the same seed, the same inputs
//   fuzz_c_api FILE...          inputs from files
//
// A breach ends the process with the bytes of the input in `crash.bin`. The entry is that of
// libFuzzer: clang++ -fsanitize=fuzzer,address,undefined -D MEMPLAN_LIBFUZZER fuzz_c_api.cpp ...
// needs no driver.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#if defined(__unix__)
#include <sys/time.h>
#endif

#include "memplan/c_api_published.h"
#include "oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
#if defined(__GNUC__)
// Of the sanitizers, where there is one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace {

using memplan::kMaxBytes;
using memplan::Problem;

const Problem* at_work = nullptr;
long long calls = 0, answers = 0, plans = 0, optima = 0, refutations = 0, proofs = 0;

void print(const char* name, const std::vector<std::int64_t>& column) {
  std::fprintf(stderr, "%s:", name);
  for (const std::int64_t value : column) std::fprintf(stderr, " %lld", (long long)value);
  std::fprintf(stderr, "\n");
}

void print(const Problem& p) {
  print("start", p.start);
  print("end", p.end);
  print("size", p.size);
  print("alignment", p.alignment);
  print("pin", p.pin);
  print("hint", p.hint);
  print("group", {p.group.begin(), p.group.end()});
  print("lead", p.lead);
  for (const memplan::Gap& g : p.gaps) print("gap", {g.buffer, g.start, g.end, g.lower, g.upper});
  for (const memplan::Reserved& r : p.reserved) print("reserved", {r.lower, r.upper});
  if (p.capacity) print("capacity", {*p.capacity});
  for (memplan::BufferIdx b = 0; b < p.count() && !p.conflicts.empty(); ++b) {
    print("conflicts", {p.conflicts.first(b), p.conflicts.last(b)});
  }
}

[[noreturn]] void breach(const std::string& what) {
  std::fprintf(stderr, "the C interface broke a promise: %s\n", what.c_str());
  if (at_work != nullptr) print(*at_work);
  std::abort();
}

void expect(bool ok, const std::string& what) {
  if (!ok) breach(what);
}

// Choices from the bytes of an input; zeros when they are used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  int below(int n) { return byte() % n; }
  bool one_in(int n) { return below(n) == n - 1; }

  // Mostly small; now and then at an edge of what is allowed, or of what there is.
  std::int64_t number(int small) {
    static constexpr std::int64_t kEdges[] = {0,
                                              -1,
                                              -2,
                                              kMaxBytes,
                                              kMaxBytes - 1,
                                              kMaxBytes + 1,
                                              -kMaxBytes,
                                              1 - kMaxBytes,
                                              -1 - kMaxBytes,
                                              kMaxBytes / 2,
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::numeric_limits<std::int64_t>::min()};
    const std::int64_t few = below(small);
    if (!wild_ || !one_in(8)) return few;
    const std::int64_t edge = kEdges[static_cast<std::size_t>(below(std::size(kEdges)))];
    return one_in(4) && edge > 0 && edge < kMaxBytes ? edge + few : edge;
  }
  void let_wild(bool wild) { wild_ = wild; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
  bool wild_ = false;
};

// A buffer for a sentence, on the heap in its exact size, so that a sanitizer sees its end.
class Sentence {
 public:
  explicit Sentence(std::size_t size) : size_(size), text_(size == 0 ? nullptr : new char[size]) {
    if (size_ > 0) std::memset(text_.get(), '?', size_);
    if (size_ > 0) text_[0] = '\0';
  }
  char* text() { return text_.get(); }
  std::size_t size() const { return size_; }
  std::string sentence() const {
    if (size_ == 0) return {};
    expect(std::memchr(text_.get(), '\0', size_) != nullptr, "a sentence has no end");
    return text_.get();
  }

 private:
  std::size_t size_;
  std::unique_ptr<char[]> text_;
};

constexpr std::size_t kRoom = 400;
constexpr std::size_t kLongest = 300;

void expect_sentence(const Sentence& error, const std::string& of) {
  expect(!error.sentence().empty(), of + " failed without a sentence");
  expect(error.sentence().size() < kLongest, of + " has too long a sentence: " + error.sentence());
}

// ---- problems

// The columns as they are handed over. What the library says of them is compared with this copy.
struct Asked {
  Problem problem;
  std::vector<std::int32_t> first, second;  // pairs of conflicts
};

template <typename T>
const T* data_or_null(const std::vector<T>& column) {
  return column.empty() ? nullptr : column.data();
}

Asked draw_problem(Bytes& in) {
  Asked asked;
  Problem& p = asked.problem;
  const int count = in.below(in.one_in(4) ? 30 : 10);
  const int horizon = 2 + in.below(12), largest = 1 + in.below(20);
  for (int b = 0; b < count; ++b) {
    const std::int64_t start = in.number(horizon), length = in.number(horizon);
    p.start.push_back(start);
    p.end.push_back(length < kMaxBytes && start < kMaxBytes && start > -kMaxBytes && length >= 0
                        ? start + 1 + length
                        : length);
    p.size.push_back(in.number(largest));
  }
  const auto column = [&](std::vector<std::int64_t>* into, int small, std::int64_t offset) {
    for (int b = 0; b < count; ++b) {
      const std::int64_t value = in.number(small);
      into->push_back(value > kMaxBytes || value < 0 ? value : value + offset);
    }
  };
  const int with = in.byte() & (in.one_in(3) ? 0xff : in.byte());
  if ((with & 1) != 0) {
    column(&p.alignment, 8, 1);
    const bool powers = !in.one_in(4);
    for (std::int64_t& unit : p.alignment) {
      if (powers && unit > 0 && unit < 9) unit = std::int64_t{1} << (unit % 4);
    }
  }
  if ((with & 2) != 0) column(&p.hint, 2 * largest, -1);
  if ((with & 4) != 0) {
    column(&p.pin, 4 * largest, -1);
    const bool rough = in.one_in(16);
    for (memplan::BufferIdx b = 0; b < count; ++b) {
      if (!in.one_in(4)) p.pin[b] = memplan::kNoOffset;
      const std::int64_t unit = p.alignment_of(b);
      if (!rough && p.pin[b] > 0 && unit > 0) p.pin[b] -= p.pin[b] % unit;
    }
  }
  if ((with & 8) != 0 && count > 0) {
    for (int b = 0; b < count; ++b) {
      if (!in.one_in(3)) continue;
      const std::int64_t start = p.start[b] / 2 + p.end[b] / 2;
      const std::int64_t end = in.one_in(16) ? in.number(horizon) : p.end[b];
      p.gaps.push_back({in.one_in(16) ? in.below(20) - 1 : b,
                        in.one_in(16) ? in.number(horizon) : start, end, in.number(4), 0});
      p.gaps.back().upper = in.one_in(2) ? p.gaps.back().lower : in.number(largest);
    }
  }
  if ((with & 16) != 0) {
    std::int64_t at = in.number(3 * largest);
    for (int k = 0; k <= in.below(3); ++k) {
      const std::int64_t upper = at < kMaxBytes ? at + in.below(6) : at;
      p.reserved.push_back({at, upper});
      at = upper < kMaxBytes && upper > -kMaxBytes ? upper + in.number(9) / 2 : upper;
    }
  }
  if ((with & 32) != 0) {
    const std::int64_t any = in.number(5 * largest);
    p.capacity = in.one_in(8) ? any : 1 + any / 2;
  }
  if ((with & 64) != 0 && count > 0) {
    for (int k = in.below(12); k > 0; --k) {
      asked.first.push_back(in.one_in(40) ? in.below(40) - 9 : in.below(count));
      asked.second.push_back(in.one_in(40) ? in.below(40) - 9 : in.below(count));
    }
  }
  if ((with & 128) != 0) {
    const bool rough = in.one_in(16);
    std::int64_t length[3] = {0, 0, 0};
    for (int b = 0; b < count; ++b) {
      p.group.push_back(rough ? in.below(9) - 5 : in.below(6) - 3);
      if (!rough && p.group[b] < 0) p.group[b] = memplan::kNoGroup;
      // What a buffer in no group has there is not read.
      p.lead.push_back(rough || p.group[b] < 0 ? in.number(2 * largest) : 0);
      if (rough || p.group[b] < 0) continue;
      p.lead[b] = length[p.group[b]];
      // Few alignments hold together at random, and those of empty members matter too.
      if (!p.alignment.empty() && p.size[b] > 0 && !in.one_in(3)) p.alignment[b] = 1;
      if (p.size[b] > 0 && p.size[b] < kMaxBytes / 64) length[p.group[b]] += p.size[b];
    }
  }
  return asked;
}

// Hands it over; NULL where that was refused, with a sentence and rightly.
memplan_problem* hand_over(Bytes& in, Asked* asked) {
  Problem& p = asked->problem;
  Sentence error(kRoom);
  const bool nothing = in.one_in(64);
  memplan_problem* to =
      memplan_problem_create(p.size.size(), nothing ? nullptr : p.start.data(), p.end.data(),
                             p.size.data(), error.text(), error.size());
  if (to == nullptr) {
    expect(nothing, "a problem was refused");
    expect_sentence(error, "create");
    return nullptr;
  }
  const auto done = [&](int ok, const char* what) { expect(ok == 1, what + error.sentence()); };
  const auto size = error.size();
  done(memplan_problem_set_alignment(to, data_or_null(p.alignment), error.text(), size), "align");
  done(memplan_problem_set_pins(to, data_or_null(p.pin), error.text(), size), "pins");
  done(memplan_problem_set_hints(to, data_or_null(p.hint), error.text(), size), "hints");
  done(memplan_problem_set_groups(to, data_or_null(p.group), data_or_null(p.lead), error.text(),
                                  size),
       "groups");
  done(memplan_problem_set_capacity(to, p.capacity.value_or(MEMPLAN_NONE), error.text(), size),
       "capacity");
  if (p.capacity == MEMPLAN_NONE) p.capacity.reset();

  std::vector<std::int32_t> buffer;
  std::vector<std::int64_t> start, end, lower, upper;
  for (const memplan::Gap& gap : p.gaps) {
    buffer.push_back(gap.buffer);
    start.push_back(gap.start);
    end.push_back(gap.end);
    lower.push_back(gap.lower);
    upper.push_back(gap.upper);
  }
  done(memplan_problem_set_gaps(to, buffer.size(), buffer.data(), start.data(), end.data(),
                                lower.data(), upper.data(), error.text(), size),
       "gaps");
  lower.clear();
  upper.clear();
  for (const memplan::Reserved& range : p.reserved) {
    lower.push_back(range.lower);
    upper.push_back(range.upper);
  }
  done(memplan_problem_set_reserved(to, lower.size(), lower.data(), upper.data(), error.text(),
                                    size),
       "reserved");

  std::vector<std::pair<memplan::BufferIdx, memplan::BufferIdx>> pairs;
  bool sound = true;
  for (std::size_t i = 0; i < asked->first.size(); ++i) {
    const std::int32_t a = asked->first[i], b = asked->second[i];
    sound = sound && a >= 0 && b >= 0 && a < p.count() && b < p.count() && a != b;
    pairs.emplace_back(a, b);
  }
  const int ok = memplan_problem_set_conflicts(to, pairs.size(), asked->first.data(),
                                               asked->second.data(), error.text(), size);
  expect((ok == 1) == sound, "conflicts");
  if (ok == 0) expect_sentence(error, "conflicts");
  if (ok == 1 && !pairs.empty()) p.conflicts = oracle::relation(p.count(), pairs);

  // A failure leaves what was there.
  if (in.one_in(16) && p.count() > 0) {
    expect(memplan_problem_set_gaps(to, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    0) == 0,
           "gaps of NULL");
    expect(memplan_problem_set_reserved(to, 1, nullptr, nullptr, nullptr, 0) == 0, "NULL ranges");
    expect(memplan_problem_set_groups(to, nullptr, p.size.data(), nullptr, 0) == 0, "NULL group");
    expect(memplan_problem_set_conflicts(to, 1, nullptr, nullptr, nullptr, 0) == 0, "NULL pairs");
  }
  return to;
}

// ---- options

struct Callbacks {
  int asked = 0, reports = 0, most = 0;
  bool has_plan = false;
  std::int64_t peak = 0, bound = 0;
  std::string proof;
  std::size_t proof_most = 0;
};

int interrupt(void* user_data) {
  auto* callbacks = static_cast<Callbacks*>(user_data);
  if (callbacks == nullptr) return 1;  // options of a version that had none
  return ++callbacks->asked > callbacks->most ? 1 : 0;
}

void progress(const memplan_progress* known, void* user_data) {
  auto* callbacks = static_cast<Callbacks*>(user_data);
  if (callbacks == nullptr) return;
  ++callbacks->reports;
  expect(known->seconds >= 0 && known->nodes >= 0, "progress runs backwards");
  expect(known->lower_bound >= callbacks->bound, "the bound of progress falls");
  expect(!callbacks->has_plan || (known->has_plan == 1 && known->peak <= callbacks->peak),
         "the peak of progress rises");
  expect(std::strlen(known->phase) < 40, "a phase without an end");
  callbacks->bound = known->lower_bound;
  callbacks->has_plan = known->has_plan == 1;
  callbacks->peak = known->peak;
}

int take_proof(const char* text, std::size_t length, void* user_data) {
  auto* callbacks = static_cast<Callbacks*>(user_data);
  callbacks->proof.append(text, length);
  return callbacks->proof.size() <= callbacks->proof_most ? 1 : 0;
}

constexpr const char* kPublished[] = {"minimalloc", "telamalloc", "somas", "csp", "meta_csp"};
constexpr const char* kSolvers[] = {"auto",  "greedy", "minimalloc", "telamalloc", "exact",
                                    "large", "prover", "somas",      "csp",        "meta_csp"};

struct Chosen {
  memplan_options options;
  bool sound = true;  // the options by themselves
};

Chosen draw_options(Bytes& in, Callbacks* callbacks, bool bounded) {
  Chosen chosen;
  memplan_options& o = chosen.options;
  memplan_default_options(&o, sizeof o);
  o.solver = kSolvers[static_cast<std::size_t>(in.below(std::size(kSolvers)))];
  o.objective = in.below(2);
  o.nodes = 1 + in.byte() * (1 + in.below(8));
  o.threads = 1 + (in.one_in(16) ? in.below(3) : 0);
  o.seed = in.byte();
  o.user_data = callbacks;
  callbacks->most = in.byte();
  if (in.one_in(4)) o.interrupt = interrupt;
  if (in.one_in(2)) o.progress = progress;
  if (!in.one_in(6)) return chosen;
  switch (in.below(8)) {
    case 0:
      o.solver = in.one_in(2) ? "oracle" : nullptr;
      break;
    case 1:
      o.objective = static_cast<std::int32_t>(in.number(256)) - 1;
      break;
    case 2: {
      static const double kSeconds[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-9, 1e300, -1};
      o.seconds = kSeconds[static_cast<std::size_t>(in.below(std::size(kSeconds)))];
      break;
    }
    case 3:
      if (!bounded) break;
      o.nodes =
          in.one_in(2) ? -1 : in.number(3);  // below 0 is no limit: the interrupt is the only end
      callbacks->most = 0;
      o.interrupt = interrupt;
      break;
    case 4:
      o.threads = static_cast<std::int32_t>(in.number(4)) - 2;
      if (o.threads > 64) o.threads = 64;
      break;
    case 5:
      o.struct_size = in.one_in(4) ? std::numeric_limits<std::size_t>::max() - in.byte()
                                   : static_cast<std::size_t>(in.below(sizeof o + 1));
      break;
    case 6:
      std::memset(&o, in.byte() % 2 == 0 ? 0 : 0xff, sizeof o.struct_size);
      break;
    default:
      o.seed = static_cast<std::uint64_t>(in.number(256));
  }
  // Of an older version's options, what was not known then is not looked at.
  const bool older = o.struct_size >= sizeof o.struct_size && o.struct_size < sizeof o &&
                     o.struct_size % alignof(memplan_options) == 0;
  chosen.sound = older || o.struct_size == sizeof o;
  if (older) return chosen;
  chosen.sound = chosen.sound && (o.objective == MEMPLAN_FIT || o.objective == MEMPLAN_MIN_PEAK) &&
                 !std::isnan(o.seconds) && o.threads >= 1;
  return chosen;
}

// ---- answers

// What two answers to one problem must agree on.
struct Known {
  std::int64_t least_found = std::numeric_limits<std::int64_t>::max();
  std::int64_t bound = 0;
  bool infeasible = false;
};

void check_answer(const Problem& p, const memplan_plan* plan, bool fit, Known* known) {
  const memplan_status status = memplan_plan_status(plan);
  expect(status >= MEMPLAN_OPTIMAL && status <= MEMPLAN_FITS, "an unknown status");
  expect(std::strlen(memplan_status_name(status)) > 3, "a status without a name");
  expect(std::strlen(memplan_plan_solver(plan)) > 0, "a plan without a solver");
  expect(std::strlen(memplan_plan_note(plan)) < kLongest, "a note too long");
  expect(memplan_plan_nodes(plan) >= 0, "nodes below 0");
  const std::int64_t bound = memplan_plan_lower_bound(plan);
  expect(bound >= 0, "a bound below 0");
  known->bound = std::max(known->bound, bound);
  for (std::size_t i = 0; i < memplan_plan_conflict_count(plan); ++i) {
    const std::int32_t b = memplan_plan_conflict(plan)[i];
    expect(b >= 0 && b < p.count(), "a conflict of no buffer");
  }
  const std::int64_t* offsets = memplan_plan_offsets(plan);
  const bool has_plan = status != MEMPLAN_INFEASIBLE && status != MEMPLAN_UNKNOWN;
  expect((offsets != nullptr) == has_plan, "a status without its offsets, or the reverse");
  if (status == MEMPLAN_INFEASIBLE) {
    expect(p.capacity.has_value() || bound > kMaxBytes, "infeasible without a capacity");
    known->infeasible = true;
  }
  if (status == MEMPLAN_OPTIMAL) ++optima;
  if (status == MEMPLAN_INFEASIBLE) ++refutations;
  if (memplan_plan_proof_complete(plan) == 1) ++proofs;
  if (!has_plan) return;
  ++plans;
  expect(memplan_plan_count(plan) == p.size.size(), "offsets are missing");
  const std::vector<std::int64_t> placed(offsets, offsets + p.size.size());
  for (std::size_t b = 0; b < placed.size(); ++b) {
    expect(placed[b] >= 0 && placed[b] <= kMaxBytes - p.size[b], "an offset out of range");
  }
  if (!oracle::valid(p, placed)) {
    print("offsets", placed);
    breach(std::string(memplan_plan_solver(plan)) + " made a plan that is not valid");
  }
  const std::int64_t peak = oracle::peak(p, placed);
  expect(memplan_plan_peak(plan) == peak, "the peak is another one");
  expect(bound <= peak, "the bound is above the peak");
  if (status == MEMPLAN_OPTIMAL) expect(bound == peak, "optimal above its bound");
  if (status == MEMPLAN_FITS) expect(fit && peak <= *p.capacity, "a fit of another question");
  known->least_found = std::min(known->least_found, peak);
}

using Entry = memplan_plan*(const memplan_problem*, const memplan_options*, char*, std::size_t);
constexpr Entry* kAlone[] = {memplan_solve_greedy, memplan_solve_search};

// The door of a solver by its name.
Entry* door_of(const memplan_options& options) {
  const std::string name = options.solver == nullptr ? "" : options.solver;
  const auto has_name = [&name](const char* each) { return name == each; };
  const bool published = std::any_of(std::begin(kPublished), std::end(kPublished), has_name);
  return published ? memplan_solve_published : memplan_solve;
}

void call(Bytes& in, const Problem& p, const memplan_problem* problem, bool well_formed,
          Known* known) {
  ++calls;
  Callbacks callbacks;
  const int which = in.below(5);
  const Chosen chosen = draw_options(in, &callbacks, which != 4);
  const memplan_options& options = chosen.options;
  Sentence error(in.one_in(4) ? static_cast<std::size_t>(in.below(40)) : kRoom);
  const bool no_problem = in.one_in(64);
  const memplan_problem* asked = no_problem ? nullptr : problem;
  memplan_plan* plan = nullptr;
  if (which == 4) {
    callbacks.proof_most = in.one_in(3) ? in.byte() : std::size_t{1} << 20;
    plan = memplan_solve_with_proof(asked, &options, in.one_in(32) ? nullptr : take_proof,
                                    &callbacks, error.text(), error.size());
    const bool ended = callbacks.proof.size() >= 8 &&
                       callbacks.proof.compare(callbacks.proof.size() - 8, 8, "refuted\n") == 0 &&
                       callbacks.proof.size() <= callbacks.proof_most;
    expect((memplan_plan_proof_complete(plan) == 1) == ended, "a proof that breaks off");
  } else {
    Entry* const entry = which % 3 == 0 ? door_of(options) : kAlone[which % 3 - 1];
    plan = entry(asked, &options, error.text(), error.size());
    expect(memplan_plan_proof_complete(plan) == 0, "a proof that was not asked for");
  }
  if (plan == nullptr) {
    if (error.size() == kRoom) expect_sentence(error, "a call");
    expect(memplan_plan_status(plan) == MEMPLAN_UNKNOWN && memplan_plan_offsets(plan) == nullptr,
           "NULL has a plan");
    return;
  }
  expect(well_formed && chosen.sound && !no_problem, "a call that should have failed");
  expect(callbacks.asked <= callbacks.most || memplan_plan_interrupted(plan) == 1 ||
             options.interrupt == nullptr,
         "an interrupt is not reported");
  ++answers;
  check_answer(p, plan, options.objective == MEMPLAN_FIT, known);
  memplan_plan_free(plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  in.let_wild(in.one_in(3));
  Asked asked = draw_problem(in);
  at_work = &asked.problem;
  memplan_problem* problem = hand_over(in, &asked);
  if (problem == nullptr) return 0;
  Sentence fault(kRoom);
  const bool well_formed = memplan_problem_check(problem, fault.text(), fault.size()) == 1;
  if (!well_formed) expect_sentence(fault, "check");
  Known known;
  for (int k = 1 + in.below(3); k > 0; --k) call(in, asked.problem, problem, well_formed, &known);
  const bool found = known.least_found < std::numeric_limits<std::int64_t>::max();
  expect(!found || known.bound <= known.least_found, "a bound above a plan");
  expect(!found || !known.infeasible, "infeasible, with a plan");
  memplan_problem_free(problem);
  return 0;
}

#ifndef MEMPLAN_LIBFUZZER

namespace {

constexpr unsigned kMostSeconds = 30;  // of CPU for one input; a busy machine changes nothing

std::vector<std::uint8_t> input;

void save() {
  std::ofstream("crash.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()),
             static_cast<std::streamsize>(input.size()));
}

void save_and_die(int signal) {
  save();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "1000";
  if (first.find_first_not_of("0123456789") != std::string::npos) {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i], std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    return 0;
  }
  std::signal(SIGABRT, save_and_die);
#if defined(__unix__)
  std::signal(SIGVTALRM, save_and_die);
#endif
#if defined(__GNUC__)
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save);
#endif
  const long long count = std::atoll(first.c_str());
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  double slowest = 0;
  const std::clock_t begin = std::clock();
  const auto since = [](std::clock_t then) {
    return static_cast<double>(std::clock() - then) / CLOCKS_PER_SEC;
  };
  for (long long k = 0; k < count; ++k) {
    input.resize(random() % 400);
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());
    const std::clock_t then = std::clock();
#if defined(__unix__)
    const itimerval limit = {{0, 0}, {kMostSeconds, 0}};
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
#endif
    LLVMFuzzerTestOneInput(input.data(), input.size());
    slowest = std::max(slowest, since(then));
  }
  std::printf("%lld inputs in %.1f s of CPU, the slowest %.3f s\n", count, since(begin), slowest);
  std::printf(
      "%lld calls, %lld answered: %lld plans (%lld optimal), %lld refutations, %lld proofs\n",
      calls, answers, plans, optima, refutations, proofs);
  return slowest < kMostSeconds ? 0 : 1;
}

#endif
