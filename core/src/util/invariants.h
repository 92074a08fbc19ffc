// Assertions, which state an invariant at the place where it must hold.
//
// With MEMPLAN_ASSERTIONS (on in the preset `sanitize`) a condition that does not hold ends the
// program with its place. Without it, conditions are compiled for their names and types only, and
// cost nothing.
//
// A structure on which others rely has `bool check_invariants() const`: which checks all that its
// comments say. It is a list of assertions that then returns true, so that one line calls it in
// tests, `CHECK(trail.check_invariants())`, and between steps, `MEMPLAN_ASSERT(...)`. One that
// would leave code behind without assertions begins with `if (!kAssertions) return true;`.
#pragma once

#ifdef MEMPLAN_ASSERTIONS

#include <cstdio>
#include <cstdlib>

namespace memplan {

constexpr bool kAssertions = true;

[[noreturn]] inline void fail_assertion(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace memplan

#define MEMPLAN_ASSERT(...)             \
  ((__VA_ARGS__) ? static_cast<void>(0) \
                 : ::memplan::fail_assertion(__FILE__, __LINE__, #__VA_ARGS__))

#else

namespace memplan {

constexpr bool kAssertions = false;

}  // namespace memplan

#define MEMPLAN_ASSERT(...) static_cast<void>(false && (__VA_ARGS__))

#endif
