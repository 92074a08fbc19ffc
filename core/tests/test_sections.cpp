// Tests of the sweep: sections, spans, contraction and loads.
#include <limits>
#include <random>
#include <set>
#include <tuple>

#include "check.h"
#include "memplan/sections.h"

using namespace memplan;

namespace {

using Live = std::set<std::tuple<BufferIdx, Bytes, Bytes>>;  // what is held in a section

std::vector<Live> live_sets(const Sections& sections) {
  std::vector<Live> live(sections.count);
  for (BufferIdx b = 0; b + 1 < static_cast<BufferIdx>(sections.span_begin.size()); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      for (SectionIdx s = span.first; s <= span.last; ++s) {
        live[s].insert({b, span.lower, span.upper});
      }
    }
  }
  return live;
}

// What is held at time t, from the definition.
Live live_at(const Problem& problem, Time t) {
  Live live;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (t < problem.start[b] || t >= problem.end[b]) continue;
    Bytes lower = 0;
    Bytes upper = problem.size[b];
    for (const Gap& g : problem.gaps) {
      if (g.buffer == b && g.start <= t && t < g.end) {
        lower = g.lower;
        upper = g.upper;
      }
    }
    if (lower < upper) live.insert({b, lower, upper});
  }
  return live;
}

Problem random_problem(std::mt19937& random, Time horizon) {
  const auto pick = [&](int low, int high) {
    return static_cast<int>(random() % static_cast<unsigned>(high - low + 1)) + low;
  };
  Problem problem;
  const int n = pick(1, 9);
  for (BufferIdx b = 0; b < n; ++b) {
    const int start = pick(0, static_cast<int>(horizon) - 1);
    const int end = pick(start + 1, static_cast<int>(horizon));
    const int size = pick(0, 4);
    problem.start.push_back(start);
    problem.end.push_back(end);
    problem.size.push_back(size);
    if (pick(0, 2) == 0 && end - start >= 2) {
      const int from = pick(start, end - 1);
      const int to = pick(from + 1, end);
      const int lower = pick(0, size);
      problem.gaps.push_back({b, from, to, lower, pick(lower, size)});
    }
  }
  return problem;
}

bool contains(const Live& outer, const Live& inner) {
  for (const auto& item : inner) {
    if (outer.count(item) == 0) return false;
  }
  return true;
}

}  // namespace

// Tests that the example of MiniMalloc, section 6.2, has its three cross sections.
TEST(example_of_source_000) {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  for (const Contract contract : {Contract::kNo, Contract::kYes}) {
    const Sections sections = sweep(problem, contract);
    CHECK_EQ(sections.count, 3);
    CHECK(sections.start == (std::vector<Time>{0, 3, 9}));
    CHECK(sections.end == (std::vector<Time>{3, 9, 21}));
    CHECK(loads(sections) == (std::vector<Bytes>{12, 12, 8}));
    CHECK(sections.single_span);
  }
}

// Tests that contraction drops a section that its neighbour contains.
TEST(contraction_keeps_maximal_sections) {
  Problem problem;
  problem.start = {0, 2, 6};
  problem.end = {8, 4, 8};
  problem.size = {1, 1, 1};
  CHECK_EQ(sweep(problem, Contract::kNo).count, 4);  // [0,2) [2,4) [4,6) [6,8)
  const Sections sections = sweep(problem, Contract::kYes);
  CHECK(sections.start == (std::vector<Time>{2, 6}));
  CHECK(sections.end == (std::vector<Time>{4, 8}));
  CHECK_EQ(sections.spans[0].first, 0);
  CHECK_EQ(sections.spans[0].last, 1);
}

// Tests that no section is made of a time at which nothing is held.
TEST(holes_are_no_sections) {
  Problem problem;
  problem.start = {0, 5, 0};
  problem.end = {2, 7, 9};
  problem.size = {1, 1, 0};
  const Sections sections = sweep(problem, Contract::kNo);
  CHECK_EQ(sections.count, 2);
  CHECK_EQ(sections.span_begin[2], sections.span_begin[3]);  // size 0 has no span
}

// Tests that gaps cut a buffer in spans, with their windows.
TEST(gaps_become_spans) {
  Problem problem;
  problem.start = {0};
  problem.end = {10};
  problem.size = {8};
  problem.gaps = {{0, 2, 4, 0, 0}, {0, 4, 6, 3, 5}};
  const Sections sections = sweep(problem, Contract::kNo);
  CHECK_EQ(sections.spans.size(), std::size_t{3});
  CHECK_EQ(sections.spans[1].lower, 3);
  CHECK_EQ(sections.spans[1].upper, 5);
  CHECK(!sections.single_span);
  CHECK(loads(sections) == (std::vector<Bytes>{8, 2, 8}));
}

// Tests that a gap in which the whole buffer is held changes nothing.
TEST(full_window_is_no_gap) {
  Problem problem;
  problem.start = {0};
  problem.end = {10};
  problem.size = {8};
  problem.gaps = {{0, 2, 4, 0, 8}};
  const Sections sections = sweep(problem);
  CHECK_EQ(sections.spans.size(), std::size_t{1});
  CHECK(sections.single_span);
}

// Tests that a buffer without gaps around its lifetime but with a window for all of it is not
// taken for a whole one.
TEST(window_for_life_is_not_single) {
  Problem problem;
  problem.start = {0};
  problem.end = {10};
  problem.size = {8};
  problem.gaps = {{0, 0, 10, 0, 4}};
  CHECK(!sweep(problem).single_span);
}

// Tests that an empty problem has no sections.
TEST(empty_problem) {
  const Sections sections = sweep(Problem{});
  CHECK_EQ(sections.count, 0);
  CHECK_EQ(sections.span_begin.size(), std::size_t{1});
  CHECK(loads(sections).empty());
}

// Tests that times at the ends of their range and sizes of 2^62 pass through.
TEST(extremes) {
  Problem problem;
  const Time low = std::numeric_limits<Time>::min();
  const Time high = std::numeric_limits<Time>::max();
  problem.start = {low, 0};
  problem.end = {0, high};
  problem.size = {kMaxBytes, kMaxBytes};
  const Sections sections = sweep(problem);
  CHECK_EQ(sections.count, 2);
  CHECK(loads(sections) == (std::vector<Bytes>{kMaxBytes, kMaxBytes}));
}

// Tests sections, spans and loads of random problems against the definition at every time, and
// that contraction keeps exactly the maximal live sets.
TEST(random_problems_match_the_definition) {
  std::mt19937 random(1);
  constexpr Time kHorizon = 12;
  for (int round = 0; round < 2000; ++round) {
    const Problem problem = random_problem(random, kHorizon);
    const Sections all = sweep(problem, Contract::kNo);
    const std::vector<Live> live = live_sets(all);
    const std::vector<Bytes> load = loads(all);
    std::size_t held = 0;
    for (SectionIdx s = 0; s < all.count; ++s) {
      Bytes sum = 0;
      for (const auto& [b, lower, upper] : live[s]) sum += upper - lower;
      CHECK_EQ(load[s], sum);
      for (Time t = all.start[s]; t < all.end[s]; ++t, ++held)
        CHECK(live[s] == live_at(problem, t));
    }
    for (Time t = 0; t < kHorizon; ++t) held -= live_at(problem, t).empty() ? 0 : 1;
    CHECK_EQ(held, std::size_t{0});

    // A buffer may hold the same window in two spans, which `Live` cannot tell apart; such
    // problems have their maximality checked by the cases above.
    const Sections kept = sweep(problem, Contract::kYes);
    const std::vector<Live> maximal = live_sets(kept);
    for (const Live& inner : live) {
      bool covered = false;
      for (const Live& outer : maximal) covered = covered || contains(outer, inner);
      CHECK(covered);
    }
    if (!problem.gaps.empty()) continue;
    for (std::size_t i = 0; i < maximal.size(); ++i) {
      for (std::size_t j = 0; j < maximal.size(); ++j) {
        CHECK(i == j || !contains(maximal[i], maximal[j]));
      }
    }
  }
}

// Tests times far apart, which are sorted, against the same ones close together, which are not; and
// the widest range there is.
TEST(times_far_apart_give_the_same_sections) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const Problem near = random_problem(random, 2 + round % 12);
    for (const Time factor : {Time{1000}, kMaxTime / 16}) {
      Problem far = near;
      for (std::vector<Time>* times : {&far.start, &far.end}) {
        for (Time& time : *times) time = factor * (time - 7);
      }
      for (Gap& gap : far.gaps) {
        gap.start = factor * (gap.start - 7);
        gap.end = factor * (gap.end - 7);
      }
      for (const Contract contract : {Contract::kYes, Contract::kNo}) {
        const Sections expected = sweep(near, contract);
        const Sections sections = sweep(far, contract);
        CHECK(live_sets(sections) == live_sets(expected));
        CHECK_EQ(sections.count, expected.count);
        for (SectionIdx s = 0; s < sections.count; ++s) {
          CHECK_EQ(sections.start[s], factor * (expected.start[s] - 7));
          CHECK_EQ(sections.end[s], factor * (expected.end[s] - 7));
        }
      }
    }
  }
}

TEST_MAIN
