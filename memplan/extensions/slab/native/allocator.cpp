#include "allocator.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "region.h"

namespace memplan {

thread_local Slab* current_slab __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr auto kCpu = c10::DeviceType::CPU;

c10::Allocator* previous = nullptr;
std::uint8_t priority = 0;
int installed = 0;
// Whether another allocator was installed over this one and forwards requests to it. Then this one
// stays in its place: installed over the other, each would call the other without end.
bool is_beneath = false;
std::mutex mutex;  // guards these variables, and installing and removing

thread_local bool has_operator_frames = false;

void report(void* memory, std::int64_t bytes) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    c10::reportMemoryUsageToProfiler(memory, bytes, 0, 0, c10::Device(kCpu));
  }
}

// Releases memory of slabs and of the previous allocator, as libraries may free either kind with
// the deleter of the allocator that is installed at that time.
void release(void* memory) {
  auto* const slab = static_cast<Slab*>(Region::get().owner(memory));
  if (slab == nullptr) return previous->raw_deallocate(memory);
  report(memory, -slab->release(memory));
}

class SlabAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    Slab* const slab = current_slab;
    // The profiler reports no allocations of 0 bytes, so these must not be counted here either.
    const bool has_place = slab != nullptr && bytes != 0 && slab->is_in(Region::get());
    void* const memory = has_place ? slab->place(bytes) : nullptr;
    if (memory == nullptr) return previous->allocate(bytes);
    report(memory, static_cast<std::int64_t>(bytes));
    return {memory, memory, &release, c10::Device(kCpu)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return previous->raw_deleter() == nullptr ? nullptr : &release;
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// It is never destroyed, as storages keep a pointer to the allocator that made them.
SlabAllocator& slab_allocator() {
  static auto* const allocator = new SlabAllocator;
  return *allocator;
}

bool is_watching() { return current_slab != nullptr && current_slab->by() == kOperators; }

std::unique_ptr<at::ObserverContext> enter_operator(const at::RecordFunction& function) {
  if (is_watching()) current_slab->enter(function.name());
  return nullptr;
}

void leave_operator(const at::RecordFunction&, at::ObserverContext*) {
  if (is_watching()) current_slab->leave();
}

}  // namespace

void install_allocator() {
  SlabAllocator& ours = slab_allocator();  // this may throw, so it comes before any change
  const std::lock_guard<std::mutex> lock(mutex);
  if (installed++ != 0 || is_beneath) return;
  c10::Allocator* const there = c10::GetAllocator(kCpu);
  if (there == &ours) return;
  previous = there;
  // Use the lowest priority that works, as a higher one would shut out others without end.
  for (priority = 0; c10::GetAllocator(kCpu) != &ours; ++priority) {
    c10::SetAllocator(kCpu, &ours, priority);
  }
  --priority;
}

void remove_allocator() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (--installed != 0) return;
  is_beneath = c10::GetAllocator(kCpu) != &slab_allocator();
  if (!is_beneath) c10::SetAllocator(kCpu, previous, priority);
}

bool is_in_slab(const void* memory) { return Region::get().owner(memory) != nullptr; }

OperatorFrames::OperatorFrames() : is_first_(!has_operator_frames) {
  if (!is_first_) return;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(enter_operator, leave_operator)
                                           .scopes({at::RecordScope::FUNCTION}));
  has_operator_frames = true;
}

OperatorFrames::~OperatorFrames() {
  if (!is_first_) return;
  at::removeCallback(handle_);
  has_operator_frames = false;
}

bool move_out(void* storage) {
  auto* const impl = static_cast<c10::StorageImpl*>(storage);
  // The checks are skipped, as they throw for the storages of wrappers, which have no memory.
  const void* const data = impl->_mutable_data_ptr_no_checks().get();
  // NumPy makes storages that it views fixed, because its arrays hold the address.
  if (!is_in_slab(data) || !impl->resizable()) return false;
  c10::DataPtr ordinary = previous->allocate(impl->nbytes());
  std::memcpy(ordinary.get(), data, impl->nbytes());
  impl->set_data_ptr_noswap(std::move(ordinary));
  return true;
}

}  // namespace memplan
