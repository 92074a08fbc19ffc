#include "ranked.h"

#include <algorithm>

namespace memplan {

void sort_ranked(Ranked* begin, Ranked* end) {
  std::sort(begin, end, [](const Ranked& a, const Ranked& b) {
    return a.key != b.key ? a.key < b.key : a.row < b.row;
  });
}

}  // namespace memplan
