// Replays lists of what ggml allocated for graphs (docs/ggml.md), with ggml's rule for addresses,
// in our words, and with memplan behind it, as ggml_blocks.h and ggml_graph.h call it.
//
//     replay [--random COUNT] FILE...
//
// The exit code is 1 if memplan takes more bytes or chunks than ggml, if two blocks overlap, or if
// the rule does not give the chunks that the list has from ggml itself.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "memplan_ggml.h"

namespace {

constexpr size_t kMostChunks = 16;

struct Place {
  int chunk;
  size_t offset;
};

struct Event {
  bool frees;
  size_t block;  // that is freed
  size_t bytes;  // that are allocated, or kept
};

struct List {
  size_t alignment = 1, limit = SIZE_MAX / 2;
  std::vector<size_t> recorded;
  std::vector<Event> events;
};

// Chunks as ggml lays blocks into them: holes in order of addresses, the last one without an end.
class Chunks {
 public:
  explicit Chunks(size_t limit) : limit_(limit) {}

  Place allocate(size_t size) {
    const auto [chunk, hole] = choose(size);
    Chunk& in = chunks_[chunk];
    const size_t offset = in.holes[hole].offset;
    in.holes[hole].offset += size;
    in.holes[hole].size -= size;
    if (in.holes[hole].size == 0) in.holes.erase(in.holes.begin() + static_cast<long>(hole));
    in.top = std::max(in.top, offset + size);
    return {static_cast<int>(chunk), offset};
  }

  void free(Place at, size_t size) {
    std::vector<Hole>& holes = chunks_[static_cast<size_t>(at.chunk)].holes;
    auto next = std::find_if(holes.begin(), holes.end(),
                             [&](const Hole& hole) { return hole.offset >= at.offset; });
    next = holes.insert(next, {at.offset, size});
    if (next + 1 != holes.end() && next->offset + next->size == (next + 1)->offset) {
      next->size += (next + 1)->size;
      holes.erase(next + 1);
    }
    if (next != holes.begin() && (next - 1)->offset + (next - 1)->size == next->offset) {
      (next - 1)->size += next->size;
      holes.erase(next);
    }
  }

  std::vector<size_t> tops() const {
    std::vector<size_t> found;
    for (const Chunk& each : chunks_) found.push_back(each.top);
    return found;
  }

 private:
  struct Hole {
    size_t offset, size;
  };
  struct Chunk {
    std::vector<Hole> holes;
    size_t top = 0;
  };

  std::pair<size_t, size_t> choose(size_t size) {
    // The tightest hole below the last one, in the last chunk that has one.
    for (size_t chunk = chunks_.size(); chunk-- > 0;) {
      const std::vector<Hole>& holes = chunks_[chunk].holes;
      size_t best = holes.size();
      for (size_t h = 0; h + 1 < holes.size(); ++h) {
        if (holes[h].size < size) continue;
        if (best == holes.size() || holes[h].size <= holes[best].size) best = h;
      }
      if (best != holes.size()) return {chunk, best};
    }
    // The last hole that ends closest to the chunk's top: best below it, else above it by the
    // least.
    size_t best = chunks_.size();
    const auto rest = [&](size_t c) {
      return static_cast<int64_t>(chunks_[c].top) -
             static_cast<int64_t>(chunks_[c].holes.back().offset + size);
    };
    for (size_t c = 0; c < chunks_.size(); ++c) {
      if (chunks_[c].holes.empty() || chunks_[c].holes.back().size < size) continue;
      const bool better = best == chunks_.size() || (rest(best) < 0 && rest(c) > rest(best)) ||
                          (rest(c) >= 0 && rest(c) < rest(best));
      if (better) best = c;
    }
    if (best != chunks_.size()) return {best, chunks_[best].holes.size() - 1};
    if (chunks_.size() == kMostChunks) throw std::runtime_error("more than 16 chunks");
    const bool last = chunks_.size() + 1 == kMostChunks;
    chunks_.push_back({{{0, last ? SIZE_MAX / 2 : std::max(size, limit_)}}});
    return {chunks_.size() - 1, 0};
  }

  size_t limit_;
  std::vector<Chunk> chunks_;
};

// Lays a list out once: ggml's rule, or addresses of a plan where there is one.
std::vector<size_t> lay_out(const List& list, const void* key) {
  struct Live {
    Place at;
    size_t kept;
  };
  Chunks chunks(list.limit);
  std::vector<Live> blocks;
  std::vector<size_t> tops;
  for (const Event& event : list.events) {
    if (event.frees) {
      Live& block = blocks[event.block];
      const Place from{block.at.chunk, block.at.offset + event.bytes};
      const size_t freed = block.kept - event.bytes;
      block.kept = event.bytes;
      if (!memplan_ggml_freed(key, from.chunk, from.offset, freed)) chunks.free(from, freed);
      continue;
    }
    const size_t size = (event.bytes + list.alignment - 1) / list.alignment * list.alignment;
    Place at;
    if (!memplan_ggml_take(key, size, &at.chunk, &at.offset)) {
      at = chunks.allocate(size);
      memplan_ggml_allocated(key, list.alignment, list.limit, size, at.chunk, at.offset);
    }
    for (const Live& other : blocks) {
      if (size != 0 && other.kept != 0 && at.chunk == other.at.chunk &&
          at.offset < other.at.offset + other.kept && other.at.offset < at.offset + size) {
        throw std::runtime_error("two blocks overlap");
      }
    }
    if (at.offset % list.alignment != 0) throw std::runtime_error("a block is not aligned");
    blocks.push_back({at, size});
    tops.resize(std::max(tops.size(), static_cast<size_t>(at.chunk) + 1));
    size_t& top = tops[static_cast<size_t>(at.chunk)];
    top = std::max(top, at.offset + size);
  }
  return tops;
}

size_t sum(const std::vector<size_t>& of) {
  size_t total = 0;
  for (const size_t each : of) total += each;
  return total;
}

// Lays a list out as ggml does with memplan behind it, and checks what comes out.
memplan_ggml_result replay(const List& list, std::string* again = nullptr) {
  struct Seen {
    memplan_ggml_result result = {};
    std::string events;
  } seen;
  memplan_ggml_observe(
      [](const memplan_ggml_result* result, const char* events, void* data) {
        static_cast<Seen*>(data)->result = *result;
        static_cast<Seen*>(data)->events = events == nullptr ? "" : events;
      },
      &seen);
  memplan_ggml_begin();
  const std::vector<size_t> host = lay_out(list, &list);
  const bool planned = memplan_ggml_plan() != 0;
  const std::vector<size_t> now = planned ? lay_out(list, &list) : host;
  memplan_ggml_end();
  memplan_ggml_observe(nullptr, nullptr);
  const auto fail = [](const char* what) { throw std::runtime_error(what); };
  if (!list.recorded.empty() && list.recorded != host) fail("ggml's rule gives other chunks");
  if (sum(now) > sum(host)) fail("memplan takes more bytes");
  if (now.size() > host.size()) fail("memplan takes more chunks");
  const auto above = [&](const std::vector<size_t>& each) {
    return std::count_if(each.begin(), each.end(), [&](size_t top) { return top > list.limit; });
  };
  if (above(now) > above(host)) fail("memplan has more chunks above the limit");
  const memplan_ggml_result& result = seen.result;
  if (result.bytes != sum(now) || result.host_bytes != sum(host)) fail("it reports other bytes");
  if (result.bytes < result.bound) fail("its bound is wrong");
  if (again != nullptr) *again = seen.events;
  return result;
}

List parse(std::istream& from) {
  List list;
  std::string line;
  if (!std::getline(from, line) || line != "ggml-events 1") {
    throw std::runtime_error("this is no list of events");
  }
  while (std::getline(from, line)) {
    std::istringstream words(line);
    std::string word;
    size_t first = 0, second = 0;
    if (!(words >> word) || word[0] == '#') continue;
    if (word == "ggml") {
      while (words >> first) list.recorded.push_back(first);
      continue;
    }
    words >> first;
    if (word == "alignment") list.alignment = first;
    if (word == "limit") list.limit = first;
    if (word == "+") list.events.push_back({false, 0, first});
    if (word == "-") {
      words >> second;
      list.events.push_back({true, first, second});
    }
  }
  return list;
}

// A list of blocks that live as tensors of layers do, and of which some are cut.
List draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  List list;
  list.alignment = size_t{1} << below(8);
  if (below(2) == 0) list.limit = list.alignment * (1 + below(200));
  std::vector<std::pair<size_t, size_t>> live;  // block, kept
  const size_t count = 1 + below(60), long_lived = 2 + below(6);
  for (size_t b = 0; b < count; ++b) {
    const size_t units = below(12) == 0 ? 0 : 1 + below(below(4) == 0 ? 100 : 20);
    list.events.push_back({false, 0, units * list.alignment});
    if (units != 0) live.emplace_back(b, units * list.alignment);
    while (live.size() > long_lived || (!live.empty() && below(3) == 0)) {
      const size_t at = below(live.size());
      auto& [block, kept] = live[at];
      const size_t rest = kept / list.alignment;
      kept = rest > 1 && below(3) == 0 ? list.alignment * (1 + below(rest - 1)) : 0;
      list.events.push_back({true, block, kept});
      if (kept == 0) live.erase(live.begin() + static_cast<long>(at));
    }
  }
  return list;
}

int replay_random(unsigned count) {
  size_t host = 0, bytes = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    List list;
    try {
      list = draw(seed);
      std::string written;
      const memplan_ggml_result result = replay(list, &written);
      std::istringstream text(written);
      if (replay(parse(text)).bytes != result.bytes)
        throw std::runtime_error("it is not the same again");
      host += result.host_bytes;
      bytes += result.bytes;
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()) == "more than 16 chunks") continue;
      std::printf("list %u: %s\n", seed, error.what());
      return 1;
    }
  }
  std::printf("%u lists: %.3f of ggml's bytes\n", count,
              static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(host, 1)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::puts("replay [--random COUNT] FILE...");
    return 2;
  }
  int first = 1;
  if (argc > 2 && std::string(argv[1]) == "--random") {
    if (replay_random(static_cast<unsigned>(std::stoul(argv[2]))) != 0) return 1;
    first = 3;
  }
  std::printf("%-36s %6s %14s %6s %14s %6s %6s %7s\n", "list", "blocks", "ggml", "chunks",
              "memplan", "chunks", "ratio", "ms");
  for (int i = first; i < argc; ++i) {
    const std::string path = argv[i];
    std::ifstream file(path);
    try {
      if (!file) throw std::runtime_error("it cannot be read");
      const memplan_ggml_result r = replay(parse(file));
      std::printf(
          "%-36s %6zu %14zu %6d %14zu %6d %6.3f %7.3f\n",
          path.substr(path.find_last_of('/') + 1).c_str(), r.blocks, r.host_bytes, r.host_chunks,
          r.bytes, r.chunks,
          static_cast<double>(r.bytes) / static_cast<double>(std::max<size_t>(r.host_bytes, 1)),
          1000 * r.cpu_seconds);
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
      return 1;
    }
  }
  return 0;
}
