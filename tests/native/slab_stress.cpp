// The slab without PyTorch: what its thread-safety and its memory are held to, under sanitizers.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pool.h"
#include "region.h"

namespace {

// How often this thread gets memory until there is none; below 0 there always is.
thread_local int news_left = -1;

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

bool is_left() { return news_left < 0 || (news_left > 0 && news_left-- > 0); }

}  // namespace

void* operator new(std::size_t bytes) { return counted(is_left() ? std::malloc(bytes) : nullptr); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  return counted(is_left() ? std::aligned_alloc(unit, whole) : nullptr);
}
// Inlined, they would look to the compiler like a mix-up with malloc.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace memplan {
namespace {

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      std::abort();                                                              \
    }                                                                            \
  } while (false)

std::atomic<int> gone{0};
void count_gone() { ++gone; }

Hash key(int operation, std::uint32_t ordinal = 0) {
  const auto name = hash_of(std::to_string(operation));
  return allocation_in(frame_in(kRoot, name, 0), ordinal);
}

// Operation i makes one allocation, of `size` at `offset` in a memory.
struct Planned {
  std::int64_t size, offset;
  std::uint32_t memory = 0;
};

Pool* make(const std::vector<Planned>& plan, std::size_t limit) {
  std::vector<Row> rows;
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    rows.push_back({{key(i), key(i)}, plan[i].size, plan[i].offset, plan[i].memory, 0, 0});
  }
  return Pool::make(std::move(rows), limit, Region::get(), count_gone);
}

char* place(Slab* slab, int operation, std::int64_t size) {
  slab->enter(hash_of(std::to_string(operation)));
  void* const memory = slab->place(static_cast<std::size_t>(size));
  slab->leave();
  return static_cast<char*>(memory);
}

void release(char* memory) {
  auto* const slab = static_cast<Slab*>(Region::get().owner(memory));
  CHECK(slab != nullptr);
  slab->release(memory);
}

// Frames number what has the same name, and forget it when the frame around them ends.
void test_frames() {
  Frames frames;
  const Hash a = hash_of("a"), b = hash_of("b");
  frames.enter(a);
  frames.enter(b);
  CHECK(frames.next() == allocation_in(frame_in(frame_in(kRoot, a, 0), b, 0), 0));
  CHECK(frames.next() == allocation_in(frame_in(frame_in(kRoot, a, 0), b, 0), 1));
  frames.leave();
  frames.enter(b);
  CHECK(frames.next() == allocation_in(frame_in(frame_in(kRoot, a, 0), b, 1), 0));
  frames.leave();
  CHECK(frames.next() == allocation_in(frame_in(kRoot, a, 0), 0));
  frames.leave();
  frames.enter(a);
  frames.enter(b);
  CHECK(frames.next() == allocation_in(frame_in(frame_in(kRoot, a, 1), b, 0), 0));
  for (int i = 0; i < 5; ++i) frames.leave();  // more than were entered: at the root
  CHECK(frames.next() == allocation_in(kRoot, 0));
}

// A range is given out when it is free, for a size that fits, and to nobody else meanwhile.
void test_ranges() {
  Pool* const pool = make({{128, 0}, {256, 128}, {384, 0}, {384, 0}, {64, kNotPlanned}}, 8);
  Slab* const slab = pool->begin();
  char* const a = place(slab, 0, 128);
  char* const b = place(slab, 1, 256);
  CHECK(b == a + 128);
  CHECK(reinterpret_cast<std::uintptr_t>(a) % 64 == 0);
  CHECK(place(slab, 2, 384) == nullptr);  // occupied by both
  release(a);
  CHECK(place(slab, 3, 384) == nullptr);  // by b still
  release(b);
  CHECK(place(slab, 4, 64) == nullptr);   // outlives
  CHECK(place(slab, 0, 192) == nullptr);  // the second of this name: unknown
  CHECK(!slab->is_holding());
  slab->end();
  CHECK(pool->begin() == slab);
  CHECK(place(slab, 0, 192) == nullptr);  // too large
  CHECK(place(slab, 2, 384) == a);
  CHECK(slab->is_holding());
  release(a);
  slab->end();
  const auto totals = pool->totals();
  CHECK(totals.calls == 2 && totals.slabs == 1);
  CHECK(totals.hits == 3 && totals.hit_bytes == 128 + 256 + 384);
  CHECK(totals.occupied == 2 && totals.outliving == 1);
  CHECK(totals.unknown == 1 && totals.resized == 1);
  pool->close();
}

// Each memory of a plan is a block of its own, whose offsets begin at 0; also one that is not used.
void test_memories() {
  Pool* const pool = make({{128, 0}, {128, 0, 2}, {64, 64}, {64, 64, 2}}, 1);
  Slab* const slab = pool->begin();
  char* const a = place(slab, 0, 128);
  char* const b = place(slab, 1, 128);
  CHECK(std::abs(a - b) >= static_cast<std::ptrdiff_t>(Region::kUnit));
  CHECK(reinterpret_cast<std::uintptr_t>(b) % 64 == 0);
  CHECK(place(slab, 2, 64) == nullptr);
  release(a);
  CHECK(place(slab, 3, 64) == nullptr);  // b is still in the other memory
  release(b);
  slab->end();
  CHECK(pool->begin() == slab);
  char* const c = place(slab, 2, 64);
  char* const d = place(slab, 3, 64);
  CHECK(c == a + 64 && d == b + 64);
  release(c);
  release(d);
  slab->end();
  CHECK(pool->totals().slab_bytes == 256);
  pool->close();
  CHECK(Region::get().owner(a) == nullptr && Region::get().owner(b) == nullptr);
}

// Operators are watched after a call that was not as recorded, and only then.
void test_learns() {
  Pool* const pool = make({{64, 0}}, 1);
  Slab* slab = pool->begin();
  CHECK(slab->by() == kModules);
  release(place(slab, 0, 64));
  slab->end();
  slab = pool->begin();
  CHECK(slab->by() == kModules);
  CHECK(place(slab, 1, 64) == nullptr);
  slab->end();
  slab = pool->begin();
  CHECK(slab->by() == kOperators);
  slab->end();
  pool->close();
}

// Ranges of hundreds of cells: bits in many words.
void test_many_cells() {
  std::vector<Planned> plan;
  for (int i = 0; i < 300; ++i) plan.push_back({64, 64 * i});
  plan.push_back({64 * 300, 0});
  plan.push_back({64 * 200, 64 * 50});
  Pool* const pool = make(plan, 1);
  Slab* const slab = pool->begin();
  char* const all = place(slab, 300, 64 * 300);
  for (int i = 0; i < 300; ++i) CHECK(place(slab, i, 64) == nullptr);
  release(all);
  slab->end();
  CHECK(pool->begin() == slab);
  char* const middle = place(slab, 301, 64 * 200);
  for (int i = 0; i < 300; ++i) {
    char* const cell = place(slab, i, 64);
    CHECK((cell != nullptr) == (i < 50 || i >= 250));
    if (cell != nullptr) release(cell);
  }
  release(middle);
  slab->end();
  pool->close();
}

// What lives keeps its slab from others; the last release, on any thread, gives it back.
void test_give_back() {
  Pool* const pool = make({{64, 0}, {64, 64}}, 2);
  Slab* const first = pool->begin();
  char* const a = place(first, 0, 64);
  char* const b = place(first, 1, 64);
  first->end();
  Slab* const second = pool->begin();
  CHECK(second != nullptr && second != first);
  CHECK(pool->begin() == nullptr);  // two at most
  CHECK(pool->totals().without == 1);
  std::thread([&] { release(a); }).join();
  CHECK(pool->begin() == nullptr);  // b lives
  std::thread([&] { release(b); }).join();
  CHECK(pool->begin() == first);
  first->end();
  second->end();
  pool->close();
}

// A pool that is closed is there until its last tensor is gone, and then it is gone.
void test_close() {
  const int before = gone;
  Pool* const pool = make({{64, 0}}, 4);
  Slab* const held = pool->begin();
  char* const a = place(held, 0, 64);
  held->end();
  Slab* const running = pool->begin();
  pool->begin()->end();
  pool->close();
  char* const b = place(running, 0, 64);
  CHECK(b != nullptr);
  running->end();
  std::memset(a, 1, 64);
  std::memset(b, 1, 64);
  release(a);
  CHECK(Region::get().owner(a) == nullptr);
  CHECK(gone == before);
  release(b);
  CHECK(gone == before + 1);
}

// Addresses are used again, and no two slabs share them.
void test_region() {
  Region& region = Region::get();
  int one, two;
  constexpr std::size_t kBig = 5 * Region::kUnit / 2;
  void* const a = region.map(100, &one);
  void* const b = region.map(kBig, &two);
  CHECK(region.owner(a) == &one);
  CHECK(region.owner(static_cast<char*>(b) + kBig - 1) == &two);
  CHECK(reinterpret_cast<std::uintptr_t>(b) % Region::kUnit == 0);
  region.unmap(a, 100);
  CHECK(region.owner(a) == nullptr);
  void* const c = region.map(kBig, &one);  // does not fit where a was
  CHECK(region.owner(b) == &two && region.owner(c) == &one);
  CHECK(region.map(100, &one) == a);
  CHECK(region.owner(&one) == nullptr);
  CHECK(region.map(std::size_t{1} << 50, &one) == nullptr);
  region.unmap(a, 100);
  region.unmap(b, kBig);
  region.unmap(c, kBig);
}

// Wherever the memory for its books ends, a call gets no slab, and nothing is lost.
void test_no_memory_for_a_slab() {
  Region& region = Region::get();
  int owner;
  void* const first = region.map(1, &owner);
  region.unmap(first, 1);
  Pool* const pool = make({{64, 0}}, 1);
  int refused = 0;
  Slab* slab = nullptr;
  for (; slab == nullptr; ++refused) {
    CHECK(refused < 100 && pool->totals().without == refused);
    news_left = refused;
    slab = pool->begin();
    news_left = -1;
  }
  CHECK(refused > 3);
  CHECK(place(slab, 0, 64) == first);  // no addresses were lost
  release(static_cast<char*>(first));
  slab->end();
  pool->close();
}

// A pool is made whole or not at all.
void test_no_memory_for_a_pool() {
  const int before = gone;
  Pool* pool = nullptr;
  int refused = 0;
  for (; pool == nullptr; ++refused) {
    CHECK(refused < 100);
    std::vector<Row> rows = {{{key(0), key(0)}, 64, 0, 0, 0, 0}};
    news_left = refused;
    try {
      pool = Pool::make(std::move(rows), 1, Region::get(), count_gone);
    } catch (const std::bad_alloc&) {
    }
    news_left = -1;
  }
  CHECK(refused > 3 && gone == before);
  pool->close();
  CHECK(gone == before + 1);
}

// Blocks in flight between threads; each is filled by who claims it, and checked by who frees it.
class Mailbox {
 public:
  void put(char* memory, std::int64_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back({memory, size});
  }
  bool free_one() {
    std::pair<char*, std::int64_t> block;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (blocks_.empty()) return false;
      block = blocks_.front();
      blocks_.pop_front();
    }
    const auto [memory, size] = block;
    for (std::int64_t at = 1; at < size; ++at) CHECK(memory[at] == memory[0]);
    release(memory);
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<char*, std::int64_t>> blocks_;
};

// Random plans with ranges that overlap on purpose, calls on many threads that come and go,
// releases on others, also after the call and after the pool is closed.
void test_threads(unsigned seed) {
  constexpr int kThreads = 6, kCalls = 150, kRows = 40;
  std::mt19937 random(seed);
  std::vector<Planned> plan;
  for (int i = 0; i < kRows; ++i) {
    plan.push_back({64 * static_cast<std::int64_t>(1 + random() % 20),
                    64 * static_cast<std::int64_t>(random() % 100),
                    static_cast<std::uint32_t>(random() % 2)});
  }
  const int before = gone;
  Pool* const pool = make(plan, 4);
  Mailbox mailbox;
  std::atomic<std::int64_t> hits{0};
  const auto work = [&](unsigned mine) {
    std::mt19937 chance(mine);
    for (int call = 0; call < kCalls; ++call) {
      if (Slab* const slab = pool->begin()) {
        for (int i = 0; i < kRows; ++i) {
          char* const memory = place(slab, i, plan[i].size);
          if (memory != nullptr) {
            std::memset(memory, static_cast<int>(chance() % 256),
                        static_cast<std::size_t>(plan[i].size));
            mailbox.put(memory, plan[i].size);
            ++hits;
          }
          if (chance() % 3 != 0) mailbox.free_one();
        }
        slab->end();
      }
      mailbox.free_one();
    }
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, seed * 100 + i);
    for (std::thread& thread : threads) thread.join();
  }
  const auto totals = pool->totals();
  CHECK(totals.hits == hits && hits > 0);
  CHECK(totals.calls + totals.without == 2 * kThreads * kCalls);
  CHECK(totals.slabs <= 4);
  pool->close();
  std::thread other([&] {
    while (mailbox.free_one()) continue;
  });
  while (mailbox.free_one()) continue;
  other.join();
  CHECK(gone == before + 1);
}

}  // namespace
}  // namespace memplan

int main() {
  memplan::test_frames();
  memplan::test_ranges();
  memplan::test_memories();
  memplan::test_learns();
  memplan::test_many_cells();
  memplan::test_give_back();
  memplan::test_close();
  memplan::test_region();
  memplan::test_no_memory_for_a_slab();
  memplan::test_no_memory_for_a_pool();
  for (unsigned seed = 1; seed <= 10; ++seed) memplan::test_threads(seed);
  std::puts("all right");
}
