#include <memory>

#include "exact/search_makers.h"
#include "exact/tiling.h"

namespace memplan::exact {

namespace {

class TilingSearch final : public AnySearch {
 public:
  explicit TilingSearch(const Task& task) : tiling_(task) {}
  Verdict run(const Strategy& /*strategy*/, std::int64_t budget, Stopper* stopper,
              const std::atomic<bool>* cancel) override {
    return tiling_.run(budget, stopper, cancel);
  }
  std::int64_t nodes() const override { return tiling_.nodes(); }
  const std::vector<Bytes>& offsets() const override { return tiling_.offsets(); }
  bool in_conflict(int id) const override { return tiling_.in_conflict(id); }
  bool exhausted() const override { return tiling_.exhausted(); }

 private:
  Tiling tiling_;
};

}  // namespace

std::unique_ptr<AnySearch> tiling_search(const Task& task) {
  if (!Tiling::applies(task)) return nullptr;
  return std::make_unique<TilingSearch>(task);
}

}  // namespace memplan::exact
