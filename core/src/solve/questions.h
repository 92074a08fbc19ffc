// The questions by which a search that can only say "fits" or "does not fit" comes to the least
// peak (docs/algorithms.md, "Together").
#pragma once

#include <cstdint>
#include <functional>

#include "memplan/plan.h"
#include "memplan/types.h"
#include "solve/incumbent.h"

namespace memplan {

class Questions {
 public:
  // Is there a plan with a peak of at most `limit`? Asked again for the same limit, a search may go
  // on where it was.
  using Search = std::function<Plan(Bytes limit, std::int64_t nodes)>;

  // `name` is whom the statistics speak of.
  Questions(Incumbent& incumbent, Search search, const char* name);

  bool can_ask() const { return search_ != nullptr; }

  // Both with `slice` nodes for a question, and false where none used most of it: more would not
  // help. From the bound upwards, with `nodes` in all.
  bool from_below(std::int64_t slice, std::int64_t nodes);
  // Easier ones, a half nearer to the best plan each.
  bool halve(std::int64_t slice);

 private:
  Status ask(Bytes limit, std::int64_t nodes);

  Incumbent& incumbent_;
  Search search_;
  const char* name_;
  Bytes stride_ = 0;  // from the bound to the next question
};

// One search, alone: its questions in rounds, until none is left or the budget is spent.
void ask_in_rounds(Incumbent& incumbent, Questions::Search search, const char* name);

}  // namespace memplan
