// Tests of the stopper: deadline, interrupt, and what it costs to ask.
#include <limits>

#include "check.h"
#include "memplan/budget.h"

using namespace memplan;

namespace {
constexpr double kForever = std::numeric_limits<double>::infinity();
}

// Tests that without a deadline nothing ever stops.
TEST(no_deadline) {
  Stopper stopper(kForever);
  for (int i = 0; i < 1000; ++i) CHECK(!stopper.expired());
  CHECK(!stopper.look());
  CHECK(!stopper.stopped());
}

// Tests that a deadline that has passed is seen at once by look(), and within 64 calls by
// expired(), and that it stays seen.
TEST(deadline) {
  Stopper stopper(0);
  CHECK(!stopper.stopped());
  int calls = 1;
  while (!stopper.expired()) ++calls;
  CHECK_EQ(calls, 64);
  CHECK(stopper.stopped());
  CHECK(stopper.expired());
  CHECK(!stopper.interrupted());
  CHECK(Stopper(0).look());
}

// Tests that an interrupt by the caller stops, and is distinguished from the deadline.
TEST(interrupt) {
  int asked = 0;
  Stopper stopper(kForever, [&asked] { return ++asked == 1; });
  CHECK(stopper.look());
  CHECK(stopper.interrupted());
  CHECK(stopper.stopped());
  CHECK(stopper.look());  // though the function would now return false
}

// Tests that the interrupt is not asked at every look: it may have to take a lock.
TEST(interrupt_is_not_asked_too_often) {
  int asked = 0;
  Stopper stopper(kForever, [&asked] { return ++asked < 0; });
  const double start = stopper.elapsed();
  for (int i = 0; i < 1000; ++i) stopper.look();
  const double seconds = stopper.elapsed() - start;
  CHECK(asked >= 1);
  CHECK(asked <= 2 + seconds / 0.02);
}

// Tests that elapsed time only grows.
TEST(elapsed) {
  const Stopper stopper(kForever);
  const double first = stopper.elapsed();
  CHECK(first >= 0);
  CHECK(stopper.elapsed() >= first);
}

TEST_MAIN
