// The least that a test needs: named cases, and a failure that shows what was expected.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Register {
  Register(const char* name, std::function<void()> body) { cases().push_back({name, body}); }
};

inline void require(bool ok, const char* text, const char* file, int line) {
  if (ok) return;
  std::ostringstream out;
  out << file << ":" << line << ": " << text;
  throw std::runtime_error(out.str());
}

template <typename A, typename B>
void require_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream out;
  out << file << ":" << line << ": " << text << ": " << a << " is not " << b;
  throw std::runtime_error(out.str());
}

// How often a property is tried at random: `usual` times cover each mix of constraints, and `deep`
// times, which MEMPLAN_DEEP=1 asks for, look for what is rare; MEMPLAN_DEEP=N tries an Nth of them.
inline unsigned rounds(unsigned usual, unsigned deep) {
  const char* const share = std::getenv("MEMPLAN_DEEP");
  return share == nullptr
             ? usual
             : std::max(usual, deep / static_cast<unsigned>(std::max(1, std::atoi(share))));
}

// Runs all cases, or those with `part` in their names, and shows the slow ones.
inline int run(const std::string& part) {
  using Clock = std::chrono::steady_clock;
  int ran = 0;
  int failed = 0;
  for (const Case& c : cases()) {
    if (std::string(c.name).find(part) == std::string::npos) continue;
    const Clock::time_point start = Clock::now();
    try {
      c.body();
    } catch (const std::exception& e) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", c.name, e.what());
    }
    ++ran;
    const std::chrono::duration<double> took = Clock::now() - start;
    if (took.count() > 0.5) std::printf("%5.1f s %s\n", took.count(), c.name);
  }
  std::printf("%d cases, %d failed\n", ran, failed);
  return failed == 0 && ran > 0 ? 0 : 1;
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define TEST(name)                                                       \
  static void name();                                                    \
  static const check::Register CHECK_JOIN(register_, name)(#name, name); \
  static void name()
#define CHECK(x) check::require((x), #x, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check::require_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define TEST_MAIN \
  int main(int argc, char** argv) { return check::run(argc > 1 ? argv[1] : ""); }
