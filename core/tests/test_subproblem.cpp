// Tests that a part of a problem asks of its rows what the whole does.
#include "check.h"
#include "model/subproblem.h"
#include "oracle.h"

using namespace memplan;

TEST(rows_keep_all_that_is_asked_of_them) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    oracle::Generator random(seed);
    const Problem whole = random.problem(6, 6, 5, {true, true, true, true, true});
    std::vector<BufferIdx> rows;
    for (BufferIdx b = 5; b >= 0; --b) {
      if (random.pick(0, 1) == 0) rows.push_back(b);
    }
    const Problem part = subproblem(whole, rows);
    CHECK_EQ(part.count(), static_cast<BufferIdx>(rows.size()));
    CHECK(memplan::check(part).empty());
    for (BufferIdx i = 0; i < part.count(); ++i) {
      CHECK_EQ(part.alignment_of(i), whole.alignment_of(rows[i]));
      CHECK_EQ(part.hint_of(i), whole.hint_of(rows[i]));
      for (Bytes offset = 0; offset < 20; ++offset) {
        CHECK_EQ(oracle::legal(part, i, offset), oracle::legal(whole, rows[i], offset));
      }
      for (BufferIdx k = 0; k < i; ++k) {
        for (Bytes offset = 0; offset < 8; ++offset) {
          CHECK_EQ(oracle::conflict(part, i, offset, k, 3),
                   oracle::conflict(whole, rows[i], offset, rows[k], 3));
        }
      }
    }
  }
}

TEST_MAIN
