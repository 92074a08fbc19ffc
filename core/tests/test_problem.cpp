// Tests of check(): every rule of the model, each with the sentence it answers with.
#include <algorithm>
#include <functional>

#include "check.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "model/items.h"
#include "oracle.h"

using namespace memplan;

namespace {

// Three buffers: 0 and 1 live together, 2 lives after them.
Problem valid() {
  Problem problem;
  problem.start = {0, 2, 8};
  problem.end = {8, 8, 10};
  problem.size = {16, 8, 4};
  problem.alignment = {1, 8, 4};
  problem.pin = {kNoOffset, 16, kNoOffset};
  problem.hint = {0, kNoOffset, kNoOffset};
  problem.gaps = {{0, 2, 4, 0, 8}, {0, 6, 8, 0, 0}};
  problem.reserved = {{100, 200}, {300, 301}};
  problem.capacity = 64;
  return problem;
}

// What check() says after one change to the valid problem.
std::string after(const std::function<void(Problem&)>& change) {
  Problem problem = valid();
  change(problem);
  return memplan::check(problem);
}

// Groups whose leads a caller gives, also such as put members in one place.
Problem with_leads(oracle::Generator& random, unsigned seed) {
  Problem problem = random.problem(2 + seed % 4, 5, 4, oracle::features(seed % 2 == 0 ? 8 : 0));
  if (seed % 3 == 0) random.relate(&problem, 4);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    problem.group.push_back(0);
    problem.lead.push_back(random.pick(0, 7));
  }
  return problem;
}

}  // namespace

#define CHECK_SAYS(change, sentence) \
  CHECK_EQ(after([](Problem& p) { change; }), std::string(sentence))

// Tests that well-formed problems pass, the empty one and those without options among them.
TEST(valid_problems_pass) {
  CHECK_EQ(memplan::check(valid()), "");
  CHECK_EQ(memplan::check(Problem{}), "");
  Problem plain;
  plain.start = {-(Time{1} << 62)};
  plain.end = {Time{1} << 62};
  plain.size = {kMaxBytes};
  CHECK_EQ(memplan::check(plain), "");
}

// Tests that columns of different lengths are refused by name.
TEST(columns) {
  CHECK_SAYS(p.start.pop_back(), "start has 2 rows, but size has 3");
  CHECK_SAYS(p.end.push_back(0), "end has 4 rows, but size has 3");
  CHECK_SAYS(p.alignment.pop_back(), "alignment has 2 rows, but size has 3");
  CHECK_SAYS(p.pin.pop_back(), "pin has 2 rows, but size has 3");
  CHECK_SAYS(p.hint.pop_back(), "hint has 2 rows, but size has 3");
  CHECK_SAYS(p.hint.clear(), "");
}

// Tests the bounds of the capacity.
TEST(capacity) {
  CHECK_SAYS(p.capacity = 0, "capacity is 0, but must be between 1 and 2^62");
  CHECK_SAYS(p.capacity = kMaxBytes + 1,
             "capacity is 4611686018427387905, but must be between 1 and 2^62");
  CHECK_SAYS(p.capacity.reset(), "");
}

// Tests lifetime, size, alignment and hint of a single buffer.
TEST(buffers) {
  CHECK_SAYS(p.end[2] = 8, "buffer 2: end is 8, but must be after start 8");
  CHECK_SAYS(p.size[2] = -1, "buffer 2: size is -1, but must be between 0 and 2^62");
  CHECK_SAYS(p.size[2] = kMaxBytes + 1,
             "buffer 2: size is 4611686018427387905, but must be between 0 and 2^62");
  CHECK_SAYS(p.size[2] = 0, "");
  CHECK_SAYS(p.alignment[0] = 0, "buffer 0: alignment is 0, but must be between 1 and 2^62");
  CHECK_SAYS(p.hint[1] = -2, "buffer 1: hint is -2, but must be between 0 and 2^62");
}

// Tests a pin against range, alignment and reserved ranges; above the capacity, nothing fits.
TEST(pins) {
  CHECK_SAYS(p.pin[1] = -8, "buffer 1: pin is -8, but must be at least 0 and end at or below 2^62");
  CHECK_SAYS(p.pin[1] = 20, "buffer 1: pin is 20, but must be a multiple of the alignment 8");
  CHECK_SAYS(p.pin[1] = 64, "");
  CHECK_SAYS((p.pin[1] = 96, p.capacity.reset()),
             "buffer 1: pin 96 and size 8 touch the reserved range [100, 200)");
  CHECK_SAYS((p.pin[1] = 200, p.capacity.reset()), "");
  CHECK_SAYS((p.pin[1] = 104, p.size[1] = 0, p.capacity.reset()), "");
}

// Tests that pins collide exactly where two buffers hold one address at one time.
TEST(colliding_pins) {
  CHECK_SAYS((p.pin[0] = 8),
             "buffer 1: pin 16 collides with the pin 8 of buffer 0, which is alive at the same "
             "time");
  CHECK_SAYS((p.pin[0] = 0), "");
  CHECK_SAYS((p.pin[2] = 16), "");               // at another time
  CHECK_SAYS((p.pin[0] = 8, p.end[1] = 4), "");  // within the gap, below its window
  CHECK_SAYS((p.pin[0] = 9, p.end[1] = 4),       // within the gap, in its window
             "buffer 1: pin 16 collides with the pin 9 of buffer 0, which is alive at the same "
             "time");
  CHECK_SAYS((p.pin[0] = 16, p.pin[1] = 16, p.start[1] = 6), "");  // nothing is held in the gap
}

// Tests the gaps: known buffer, inside the lifetime, window inside the size, sorted, disjoint.
TEST(gaps) {
  CHECK_SAYS(p.gaps[1].buffer = 3, "gap 1: there is no buffer 3");
  CHECK_SAYS(p.gaps[0].end = 2, "buffer 0: gap [2, 2) is empty");
  CHECK_SAYS(p.gaps[1].end = 9, "buffer 0: gap [6, 9) is not inside the lifetime [0, 8)");
  CHECK_SAYS(p.gaps[0].upper = 17,
             "buffer 0: the window [0, 17) of gap [2, 4) is not inside the size 16");
  CHECK_SAYS(p.gaps[0].lower = 9,
             "buffer 0: the window [9, 8) of gap [2, 4) is not inside the size 16");
  CHECK_SAYS((p.gaps[0].start = 5, p.gaps[0].end = 8, p.gaps[1].start = 4, p.gaps[1].end = 5),
             "buffer 0: gap [4, 5) is not sorted by buffer and start");
  CHECK_SAYS(p.gaps[0].end = 7, "buffer 0: gap [6, 8) overlaps gap [2, 7)");
  CHECK_SAYS(p.gaps[0].end = 6, "");
}

// Tests the reserved ranges: in range, not empty, sorted, disjoint.
TEST(reserved) {
  CHECK_SAYS(p.reserved[1].upper = 300,
             "reserved range [300, 300) must be between 0 and 2^62 and not empty");
  CHECK_SAYS(p.reserved[0].lower = -1,
             "reserved range [-1, 200) must be between 0 and 2^62 and not empty");
  CHECK_SAYS(p.reserved[1].lower = 199,
             "reserved range [199, 301) is not sorted, or overlaps the one before it");
  CHECK_SAYS(p.reserved[1].lower = 200, "");
}

// Tests that conflicts are sorted and symmetric, and that the error names the right pair, whether
// the entry is the first, one between others, or the last of its row.
TEST(conflicts) {
  CHECK_SAYS((p.conflicts = {{0, 1, 3, 4}, {1, 0, 2, 1}}), "");
  CHECK_SAYS((p.conflicts = {{0, 1, 1, 1}, {3}}), "buffer 0: conflicts: there is no buffer 3");
  CHECK_SAYS((p.conflicts = {{0, 1, 1, 1}, {0}}),
             "buffer 0: conflicts: it cannot conflict with itself");
  CHECK_SAYS((p.conflicts = {{0, 2, 3, 4}, {2, 1, 0, 0}}),
             "buffer 0: conflicts: 1 is not sorted, or occurs twice");
  CHECK_SAYS((p.conflicts = {{0, 1, 1, 1}, {2}}),
             "buffer 0: conflicts: it names 2, but that does not name it");
  CHECK_SAYS((p.conflicts = {{0, 0, 0, 1}, {1}}),
             "buffer 2: conflicts: it names 1, but that does not name it");
  CHECK_SAYS((p.conflicts = {{0, 0, 1, 3}, {2, 0, 1}}),
             "buffer 2: conflicts: it names 0, but that does not name it");
  CHECK_SAYS((p.conflicts = {{0, 1, 2, 4}, {2, 2, 0, 1}}), "");
  CHECK_SAYS((p.conflicts = {{0, 2, 2, 3}, {1, 2, 0}}),
             "buffer 0: conflicts: it names 1, but that does not name it");
  CHECK_SAYS((p.conflicts = {{0, 1, 1, 3}, {2, 0, 1}}),
             "buffer 2: conflicts: it names 1, but that does not name it");
}

TEST(members_of_a_group_share_no_address) {
  int refused = 0, touching = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    oracle::Generator random(seed);
    const Problem problem = with_leads(random, seed);
    bool shares = false, touches = false;
    for (BufferIdx a = 0; a < problem.count(); ++a) {
      for (BufferIdx b = 0; b < problem.count(); ++b) {
        if (a == b || problem.size[a] == 0 || problem.size[b] == 0) continue;
        const Bytes end = problem.lead[a] + problem.size[a];
        shares = shares || (problem.lead[a] <= problem.lead[b] && problem.lead[b] < end);
        touches = touches || problem.lead[b] == end;
      }
    }
    CHECK_EQ(!memplan::check(problem).empty(), shares);
    refused += shares ? 1 : 0;
    touching += touches && !shares ? 1 : 0;
  }
  CHECK(refused > 500 && touching > 100);
}

TEST(a_group_fits_where_no_two_members_meet) {
  int fitting = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    oracle::Generator random(seed);
    const Problem problem = with_leads(random, seed);
    constexpr Bytes kCapacity = 12;
    const std::vector<Bytes>& at = problem.lead;
    bool fits = oracle::peak(problem, at) - *std::min_element(at.begin(), at.end()) <= kCapacity;
    for (BufferIdx a = 0; a < problem.count(); ++a) {
      for (BufferIdx b = 0; b < a; ++b) {
        fits = fits && !oracle::conflict(problem, a, at[a], b, at[b]);
      }
    }
    CHECK_EQ(make_items(problem, sweep(problem), kCapacity).misfits.empty(), fits);
    fitting += fits ? 1 : 0;
  }
  CHECK(fitting > 300 && fitting < 1700);
}

// Tests that the load of a section may reach 2^62 and no more, however many buffers make it.
TEST(load) {
  CHECK_SAYS((p.pin.clear(), p.gaps.clear(), p.size[0] = kMaxBytes - 8), "");
  CHECK_SAYS((p.pin.clear(), p.gaps.clear(), p.size[0] = kMaxBytes - 7),
             "buffer 0: size: it and the buffers alive with it at time 2 hold more than 2^62 "
             "bytes together");
  Problem many;
  many.start.assign(9, 0);
  many.end.assign(9, 1);
  many.size.assign(9, kMaxBytes);  // the sum overflows 64 bits
  CHECK(memplan::check(many).find("2^62") != std::string::npos);
}

TEST_MAIN
