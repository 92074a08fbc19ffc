// The program minimalloc, over the solvers of memplan: the flags, tables, words and exit codes of
// the program of that name. docs/minimalloc.md says where it differs.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "flags.h"
#include "memplan/minimalloc_compat.h"

namespace {

struct Options {
  std::int64_t capacity = 0;
  std::string input;
  std::string output;
  memplan::apps::Seconds timeout{std::numeric_limits<double>::infinity()};
  bool validate = false;
  bool print_solution = false;
  std::string heuristics = "WAT,TAW,TWA";
  bool published = false;
  bool help = false;
  bool version = false;
  minimalloc::SolverParams params;
};

std::vector<memplan::apps::Flag> list_flags(Options* options) {
  minimalloc::SolverParams& params = options->params;
  return {
      {"capacity", "the bytes that there are", &options->capacity},
      {"input", "the table of buffers (CSV)", &options->input},
      {"output", "the table with offsets to write", &options->output},
      {"timeout", "the time for the search, as 60s or 1h2m3.5s", &options->timeout},
      {"validate", "check the solution", &options->validate},
      {"minimize_capacity", "find the least height within the capacity", &params.minimize_capacity},
      {"print_solution", "print a picture in LaTeX", &options->print_solution},
      {"published", "search as in the paper; the switches below are its rules",
       &options->published},
      {"canonical_only", "canonical solutions only", &params.canonical_only},
      {"section_inference", "bound sections by what is left", &params.section_inference},
      {"dynamic_ordering", "lowest possible offset first", &params.dynamic_ordering},
      {"check_dominance", "skip offsets that leave room below", &params.check_dominance},
      {"unallocated_floor", "bound floors by least offsets", &params.unallocated_floor},
      {"static_preordering", "sort buffers at the start", &params.static_preordering},
      {"dynamic_decomposition", "split at free times", &params.dynamic_decomposition},
      {"monotonic_floor", "floors never sink", &params.monotonic_floor},
      {"hatless_pruning", "no alternatives with nothing above", &params.hatless_pruning},
      {"preordering_heuristics", "the orders, tried in turn", &options->heuristics},
      {"help", "show this", &options->help},
      {"version", "show the version", &options->version},
  };
}

// A document in LaTeX, in which the arena is 17 by 8.5 cm: time to the right, addresses up.
void draw(const minimalloc::Problem& problem, const minimalloc::Solution& solution) {
  double begin = 0;
  double end = 0;
  bool first = true;
  for (const minimalloc::Buffer& buffer : problem.buffers) {
    const auto lower = static_cast<double>(buffer.lifespan.lower());
    const auto upper = static_cast<double>(buffer.lifespan.upper());
    begin = first ? lower : std::min(begin, lower);
    end = first ? upper : std::max(end, upper);
    first = false;
  }
  const double right = 17 / std::max(end - begin, 1.0);
  const double up = 8.5 / std::max(static_cast<double>(problem.capacity), 1.0);
  std::cout << "\n\\documentclass[tikz]{standalone}\n\\begin{document}\n\\begin{tikzpicture}\n";
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const minimalloc::Buffer& buffer = problem.buffers[i];
    const double y = up * static_cast<double>(solution.offsets[i]);
    const double h = up * static_cast<double>(buffer.size);
    minimalloc::TimeValue from = buffer.lifespan.lower();
    for (std::size_t gap = 0; gap <= buffer.gaps.size(); ++gap) {
      const bool last = gap == buffer.gaps.size();
      const minimalloc::Lifespan rest{buffer.lifespan.upper(), 0};
      const minimalloc::Lifespan until = last ? rest : buffer.gaps[gap].lifespan;
      if (from < until.lower()) {
        const double x = right * (static_cast<double>(from) - begin);
        const double w = right * static_cast<double>(until.lower() - from);
        std::cout << "\\filldraw[fill=lightgray,draw=darkgray] (" << x << "," << y
                  << ") rectangle +(" << w << "," << h << ");  % ID = " << buffer.id
                  << "\n\\node at (" << x + w / 2 << "," << y + h / 2 << ") {" << buffer.id
                  << "};\n";
      }
      from = until.upper();
    }
  }
  std::cout << "\\draw[thick] (0,0) rectangle (17,8.5);\n\\end{tikzpicture}\n\\end{document}\n";
}

// Writes a file whole, or leaves what was there; a pipe or a device is written to directly.
bool write(const std::string& name, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool direct = fs::exists(name, error) && !fs::is_regular_file(name, error);
  fs::path target = name;
  constexpr int kMostLinks = 40;
  for (int links = 0; !direct && links < kMostLinks && fs::is_symlink(target, error); ++links) {
    target = target.parent_path() / fs::read_symlink(target, error);
  }
  const fs::path staged = direct ? target : fs::path(target.string() + ".tmp");
  std::ofstream file(staged, std::ios::binary);
  file << text;
  file.close();
  if (!direct && file) fs::rename(staged, target, error);
  if (file && !error) return true;
  if (!direct) fs::remove(staged, error);
  std::cerr << "The file " << name << " cannot be written.\n";
  return false;
}

int fail(const std::string& sentence) {
  std::cerr << sentence << "\n";
  return 1;
}

int run(Options& options) {
  std::ifstream file(options.input, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    return fail("Opening file " + options.input + " failed: name a table with --input.");
  }
  minimalloc::StatusOr<minimalloc::Problem> problem = minimalloc::FromCsv(text);
  if (!problem.ok()) return fail(problem.status().ToString());
  problem->capacity = options.capacity;
  options.params.timeout = std::chrono::duration<double>(options.timeout.count);
  if (options.published) options.params.published = minimalloc::Published;
  options.params.preordering_heuristics.clear();
  std::istringstream words(options.heuristics);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) options.params.preordering_heuristics.push_back(word);
  }

  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  minimalloc::Solver solver(options.params);
  const auto solution = solver.Solve(*problem);
  const std::chrono::duration<double> took = Clock::now() - begin;
  char elapsed[64];
  std::snprintf(elapsed, sizeof elapsed, "Elapsed time %.3fs\n", took.count());
  std::cerr << elapsed;
  if (!solution.ok()) return fail(solution.status().ToString());
  if (options.validate) {
    const minimalloc::ValidationResult result = minimalloc::Validate(*problem, *solution);
    if (result != minimalloc::kGood) return fail("Validation FAIL " + std::to_string(result));
    std::cerr << "Validation PASS, height " << solution->height << "\n";
  }
  if (options.print_solution) draw(*problem, *solution);
  if (options.output.empty()) return 0;
  return write(options.output, minimalloc::ToCsv(*problem, &*solution)) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::vector<memplan::apps::Flag> flags = list_flags(&options);
  const auto faults = memplan::apps::parse(std::vector<std::string>(argv + 1, argv + argc), flags);
  for (const std::string& fault : faults) std::cerr << "ERROR: " << fault << "\n";
  if (!faults.empty()) return 1;
  if (options.version) {
    std::cout << "minimalloc (memplan " MEMPLAN_VERSION ")\n";
    return 0;
  }
  if (options.help) {
    std::cout << "minimalloc --capacity=BYTES --input=FILE --output=FILE [flags]\n\n";
    for (const auto& flag : flags) std::cout << "  --" << flag.name << ": " << flag.says << "\n";
    return 1;
  }
  return run(options);
}
