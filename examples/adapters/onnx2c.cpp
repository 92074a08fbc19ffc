// Tensors of onnx2c in one arena, in place of one union for each set of tensors, or of the first
// fit of TensorArenaPlanner.
#include <ostream>
#include <string>

#include "rows.h"
#include "tensor_arena_planner.h"

namespace toC {

// Lifetimes include the node that uses a tensor last.
ArenaPlan plan_by_memplan(const std::vector<TensorLifetime>& lifetimes) {
  std::vector<memplan_adapters::Row> rows;
  for (const TensorLifetime& each : lifetimes) {
    rows.push_back({static_cast<int64_t>(each.first_use), static_cast<int64_t>(each.last_use) + 1,
                    static_cast<int64_t>(each.size_bytes), static_cast<int64_t>(each.alignment)});
  }
  int64_t peak = 0;
  const std::vector<int64_t> offsets = memplan_adapters::plan_rows(rows, &peak);
  if (offsets.size() != rows.size()) return TensorArenaPlanner().plan(lifetimes);
  ArenaPlan plan;
  plan.arena_size = static_cast<size_t>(peak);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const TensorLifetime& each = lifetimes[i];
    plan.allocations.push_back({each.tensor, static_cast<size_t>(offsets[i]), each.size_bytes,
                                each.alignment, each.first_use, each.last_use});
  }
  return plan;
}

// The same as C for versions that only know unions: one union, in which a struct puts each tensor
// at its offset. `declared(tensor)` is its declaration, "float tensor_7[1][64]" for one.
template <typename Declared>
void write_union(std::ostream& out, const ArenaPlan& plan, const Declared& declared) {
  out << "union tensor_union_0 {\n";
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const ArenaAllocation& each = plan.allocations[i];
    out << "  struct {";
    if (each.offset > 0) out << " char before_" << i << "[" << each.offset << "];";
    out << " " << declared(each.tensor) << "; };\n";
  }
  out << "};\nstatic union tensor_union_0 tu0;\n";
}

}  // namespace toC
