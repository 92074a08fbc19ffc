#include "memplan/somas.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "published/somas/blocks.h"
#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

using objects::Block;
using objects::Fitter;
using objects::Stretch;

void require_supported(const Problem& problem, const char* solver) {
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  const char* what = nullptr;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.alignment_of(b) != 1) what = "alignment";
    if (problem.pin_of(b) != kNoOffset) what = "pins";
  }
  if (!problem.reserved.empty()) what = "reserved ranges";
  if (std::any_of(problem.gaps.begin(), problem.gaps.end(), windowed)) what = "windows";
  if (what == nullptr) return;
  fail(std::string(solver) + " does not support " + what + ".");
}

Fitter fitter_of(const std::string& name) {
  if (name == "first") return Fitter::kFirst;
  if (name == "best") return Fitter::kBest;
  fail("there is no fit '" + name + "': choose first or best.");
}

// An object, with the blocks in it in the order in which they came.
struct Object : Stretch {
  std::vector<const Block*> blocks;
};

class Assignment {
 public:
  Assignment(const Problem& problem, const Sections& sections, const SomasOptions& options,
             Stopper& stopper)
      : problem_(problem),
        fitter_(fitter_of(options.fit)),
        note_(options.sort + ", " + options.fit + " fit"),
        blocks_(objects::sorted(problem, sections, options.sort, stopper)),
        stopper_(stopper),
        unsafe_(problem, sections),
        offsets_(problem.size.size(), kNoOffset) {}

  void in_one_object(std::int64_t node_budget) {
    Object object;
    object.right = kMaxBytes;
    for (const Block& block : blocks_) {
      if (nodes_ >= node_budget || stopper_.look()) return;
      unsafe_.look_from(block.tensors);
      if (!put_into(&object, block)) return;
    }
  }

  void in_many_objects(std::int64_t node_budget) {
    std::vector<Object> all;
    Bytes end = 0;
    for (const Block& block : blocks_) {
      if (nodes_ >= node_budget || stopper_.look()) return;
      unsafe_.look_from(block.tensors);
      const auto takes = [&](Object& object) {
        return !is_spanned_by_unsafe(object, block) && put_into(&object, block);
      };
      if (std::any_of(all.begin(), all.end(), takes)) continue;
      if (block.size > kMaxBytes - end) return;
      Object object;
      object.offset = end;
      object.right = end += block.size;
      put(&object, block, object.offset);
      all.push_back(std::move(object));
    }
  }

  Plan plan(const char* solver) {
    Plan plan;
    plan.stats.solver = solver;
    plan.stats.nodes = nodes_;
    plan.stats.restarts = 1;
    plan.stats.interrupted = stopper_.interrupted();
    plan.stats.note = note_;
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      if (offsets_[b] == kNoOffset) return plan;
      plan.peak = std::max(plan.peak, offsets_[b] + problem_.size[b]);
    }
    if (problem_.capacity && plan.peak > *problem_.capacity) {
      plan.peak = 0;
      return plan;
    }
    MEMPLAN_ASSERT(is_safe());
    plan.status = Status::kFeasible;
    plan.offsets = std::move(offsets_);
    return plan;
  }

 private:
  // Algorithm 7, lines 8 to 10.
  bool is_spanned_by_unsafe(const Object& object, const Block& block) const {
    const Block& first = *object.blocks[0];
    if (block.tensors.size() > 1 || first.tensors.size() > 1) return false;
    return unsafe_.with(0, first.tensors[0]);
  }

  bool put_into(Object* object, const Block& block) {
    find_avoided(block, *object);
    avoided_ = objects::merge(std::move(avoided_));
    const Bytes offset = objects::fit(block.size, head(block), avoided_, *object, fitter_);
    if (offset == kNoOffset) return false;
    put(object, block, offset);
    return true;
  }

  // For the comparisons of Algorithm 10, lines 2 to 5. What a list of tensors must avoid are
  // offsets, not addresses, so that lines 10 and 16 ask for more room than it needs; they are as
  // printed. One byte at least: where an empty gap ends, the next interval begins.
  Bytes head(const Block& block) const {
    const Bytes size = problem_.size[block.tensors[0]];
    return block.tensors.size() == 1 ? size : std::max<Bytes>(1, size);
  }

  // Algorithm 8.
  void find_avoided(const Block& block, const Object& object) {
    avoided_.clear();
    for (std::size_t k = 0; k < block.tensors.size(); ++k) {
      const BufferIdx fresh = block.tensors[k];
      const Bytes before = lead(block, fresh);
      for (const Block* placed : object.blocks) {
        for (const BufferIdx tensor : placed->tensors) {
          if (!unsafe_.with(k, tensor)) continue;
          Bytes lower = offsets_[tensor];
          if (block.tensors.size() > 1) lower += 1 - problem_.size[fresh] - before;
          const Bytes upper = offsets_[tensor] + problem_.size[tensor] - before;
          lower = std::max(lower, object.offset);
          if (lower < upper) avoided_.push_back({lower, upper});
        }
      }
    }
  }

  // Algorithm 13. Distances are those of the problem: what is left of a group, where others of it
  // are planned elsewhere, has holes.
  void put(Object* object, const Block& block, Bytes offset) {
    for (const BufferIdx b : block.tensors) MEMPLAN_ASSERT(offsets_[b] == kNoOffset);
    for (const BufferIdx b : block.tensors) offsets_[b] = offset + lead(block, b);
    object->blocks.push_back(&block);
    nodes_ += static_cast<std::int64_t>(block.tensors.size());
  }

  Bytes lead(const Block& block, BufferIdx b) const {
    return block.tensors.size() == 1 ? 0 : problem_.lead[b] - problem_.lead[block.tensors[0]];
  }

  // Whether no two that may be needed at one time share an address. It is not checked for very many
  // tensors.
  bool is_safe() {
    constexpr BufferIdx kMany = 256;
    for (BufferIdx a = 0; a < problem_.count() && problem_.count() <= kMany; ++a) {
      unsafe_.look_from({a});
      for (BufferIdx b = 0; b < a; ++b) {
        MEMPLAN_ASSERT(!unsafe_.with(0, b) || offsets_[a] + problem_.size[a] <= offsets_[b] ||
                       offsets_[b] + problem_.size[b] <= offsets_[a]);
      }
    }
    return true;
  }
  const Problem& problem_;
  Fitter fitter_;
  std::string note_;
  std::vector<Block> blocks_;
  Stopper& stopper_;
  objects::Unsafe unsafe_;
  std::vector<Interval> avoided_;  // of the block and object at hand; its memory is kept
  std::vector<Bytes> offsets_;
  std::int64_t nodes_ = 0;
};

}  // namespace

Plan somas(const Problem& problem, const Sections& sections, const SomasOptions& options,
           std::int64_t node_budget, Stopper& stopper) {
  if (options.objects != "single" && options.objects != "many") {
    fail("there are no objects '" + options.objects + "': choose single or many.");
  }
  const bool many = options.objects == "many";
  const char* solver = many ? "many_objects" : "single_object";
  require_supported(problem, solver);
  Assignment assignment(problem, sections, options, stopper);
  if (many) {
    assignment.in_many_objects(node_budget);
  } else {
    assignment.in_one_object(node_budget);
  }
  return assignment.plan(solver);
}

}  // namespace memplan
