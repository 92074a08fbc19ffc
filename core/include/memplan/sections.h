// The sweep: time cut into sections in which the set of live buffers does not change.
//
//   address
//     |      +-----b1----+              time:      0    3    9    21
//     |      +--b0--+----+----b2----+   sections:  |-0--|-1--|-2--|
//     +------0------3----9---------21   b1 lives in sections 0..1, b2 in 2..2
#pragma once

#include <vector>

#include "memplan/problem.h"
#include "memplan/types.h"

namespace memplan {

// A buffer holds [offset + lower, offset + upper) in the sections first..last (inclusive).
// A buffer without gaps has exactly one span, with lower = 0 and upper = its size.
struct Span {
  SectionIdx first = 0;
  SectionIdx last = 0;
  Bytes lower = 0;
  Bytes upper = 0;
};

struct Sections {
  SectionIdx count = 0;
  std::vector<Time> start;               // section s begins here (count of them)
  std::vector<Time> end;                 // and ends here; contracted sections leave holes between
  std::vector<std::int32_t> span_begin;  // count + 1 entries: buffer b owns spans[span_begin[b] ..]
  std::vector<Span> spans;               // none for a buffer of size 0 or one that holds nothing
  bool single_span = true;               // every buffer has at most one span, its whole size
};

// See docs/algorithms/index.md, "Sections and contraction".
enum class Contract {
  kNo,   // every section of MiniMalloc, section 6.2
  kYes,  // only sections whose live set is maximal: the others imply nothing new
};

// O(n log n) in the number of buffers and gaps.
Sections sweep(const Problem& problem, Contract contract = Contract::kYes);

// The sum of live bytes in every section (MiniMalloc, equation 1).
std::vector<Bytes> loads(const Sections& sections);

}  // namespace memplan
