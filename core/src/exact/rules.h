// The preferences of the search. No rule changes the answer, only what is tried first.
#pragma once

#include <cstdint>

namespace memplan::exact {

// Which section to branch on; least key first. f = floor, o = options, s = slack, w = weight.
enum class SectionRule : std::uint8_t {
  kOptionsSlack = 0,
  kFloorOptionsSlack = 1,
  kSlackOptions = 2,
  kFloorSlackOptions = 3,
  kOptionsFloor = 4,
  kOptionsPerWeight = 6,
  kFloorOptionsPerWeight = 8,
};

// Which buffer to put on the floor of that section first.
enum class ValueRule : std::uint8_t {
  kArea = 0,
  kLongest = 1,
  kLargest = 2,
  kShortest = 4,
};

struct Rules {
  SectionRule section = SectionRule::kSlackOptions;
  ValueRule value = ValueRule::kArea;
};

struct Strategy : Rules {
  double noise = 0;         // relative, on the value key
  bool from_right = false;  // ties between sections go to the last one
  std::uint64_t seed = 0;

  bool floor_first() const {
    return section == SectionRule::kFloorOptionsSlack ||
           section == SectionRule::kFloorSlackOptions ||
           section == SectionRule::kFloorOptionsPerWeight;
  }
};

}  // namespace memplan::exact
