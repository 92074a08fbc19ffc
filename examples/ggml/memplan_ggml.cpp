#include "memplan_ggml.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "memplan.h"  // of `make onefile`; with an installed library <memplan/c_api.h>

namespace {

// The budget of a search for a plan, in nodes: about 1 ms for a graph of 700 blocks.
constexpr int64_t kNodes = 5000, kNodesInChunks = 2000;
constexpr int64_t kLongest = int64_t{1} << 40;  // of times and, in units, of addresses

using Place = std::pair<int, size_t>;  // chunk, offset

// From `time` on only the first `kept` bytes of a block are allocated.
struct Cut {
  int32_t block;
  int64_t time;
  size_t kept;
};

struct Block {
  size_t size;
  int64_t start, end;
  Place host;
};

// What one allocator of ggml did for one graph; a time is the number of an event.
struct Allocator {
  const void* key;
  size_t alignment, limit;
  std::vector<Block> blocks;
  std::vector<Cut> cuts;  // in order of time
  std::map<Place, int32_t> live;
  std::vector<size_t> kept;  // by block: how many of its bytes are allocated now
  std::vector<Place> planned;
  size_t taken = 0;
  int64_t now = 0;
  bool odd = false;  // a block was not freed from its end
};

struct Session {
  bool enabled = true, recording = false, taking = false;
  memplan_ggml_observer observer = nullptr;
  void* user_data = nullptr;
  std::vector<Allocator> allocators;

  Allocator* find(const void* key) {
    for (Allocator& each : allocators) {
      if (each.key == key) return &each;
    }
    return nullptr;
  }
};

thread_local Session session;

std::vector<size_t> heights_of(const Allocator& from, const std::vector<Place>& places) {
  std::vector<size_t> heights;
  for (size_t b = 0; b < places.size(); ++b) {
    const size_t chunk = static_cast<size_t>(places[b].first);
    if (heights.size() <= chunk) heights.resize(chunk + 1);
    heights[chunk] = std::max(heights[chunk], places[b].second + from.blocks[b].size);
  }
  return heights;
}

size_t sum(const std::vector<size_t>& heights) {
  return std::accumulate(heights.begin(), heights.end(), size_t{0});
}

// The most bytes that are allocated at once.
size_t find_load(const Allocator& of) {
  std::vector<int64_t> change(static_cast<size_t>(of.now) + 1);
  const auto add = [&](int64_t time, size_t bytes, int sign) {
    change[static_cast<size_t>(time)] += sign * static_cast<int64_t>(bytes);
  };
  std::vector<size_t> kept;
  for (const Block& block : of.blocks) {
    kept.push_back(block.size);
    add(block.start, block.size, 1);
  }
  for (const Cut& cut : of.cuts) {
    size_t& now = kept[static_cast<size_t>(cut.block)];
    add(cut.time, now - cut.kept, -1);
    now = cut.kept;
  }
  for (size_t b = 0; b < kept.size(); ++b) add(of.blocks[b].end, kept[b], -1);
  int64_t load = 0, most = 0;
  for (const int64_t each : change) most = std::max(most, load += each);
  return static_cast<size_t>(most);
}

// The blocks as a problem of memplan, in units of the alignment. Several chunks are one arena with
// a strip between two of them that no block may touch.
class Planner {
 public:
  explicit Planner(const Allocator& of) : unit_(of.alignment) {
    std::vector<int64_t> start, end, size, lower, cut_start, cut_end, upper;
    std::vector<int32_t> block;
    for (const Block& each : of.blocks) {
      start.push_back(each.start);
      end.push_back(each.end);
      size.push_back(static_cast<int64_t>(each.size / unit_));
    }
    problem_ =
        memplan_problem_create(size.size(), start.data(), end.data(), size.data(), nullptr, 0);
    std::vector<Cut> cuts = of.cuts;
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const Cut& a, const Cut& b) { return a.block < b.block; });
    for (size_t c = 0; c < cuts.size(); ++c) {
      const bool more = c + 1 < cuts.size() && cuts[c + 1].block == cuts[c].block;
      block.push_back(cuts[c].block);
      cut_start.push_back(cuts[c].time);
      cut_end.push_back(more ? cuts[c + 1].time : end[static_cast<size_t>(cuts[c].block)]);
      lower.push_back(0);
      upper.push_back(static_cast<int64_t>(cuts[c].kept / unit_));
    }
    memplan_problem_set_gaps(problem_, block.size(), block.data(), cut_start.data(), cut_end.data(),
                             lower.data(), upper.data(), nullptr, 0);
    memplan_default_options(&options_, sizeof options_);
  }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;
  ~Planner() { memplan_problem_free(problem_); }

  // Chunk i has at most caps[i] bytes, but the chunk `low` shall be as low as possible. Empty if no
  // plan was found.
  std::vector<Place> place(const std::vector<size_t>& caps, size_t low) {
    const size_t count = caps.size();
    const size_t highest = *std::max_element(caps.begin(), caps.end());
    const int64_t stride = static_cast<int64_t>(highest / unit_) + 1;
    std::vector<size_t> chunks(count);  // from below; `low` is the last
    std::iota(chunks.begin(), chunks.end(), size_t{0});
    std::rotate(chunks.begin() + static_cast<std::ptrdiff_t>(low),
                chunks.begin() + static_cast<std::ptrdiff_t>(low) + 1, chunks.end());
    std::vector<int64_t> from, to;
    for (size_t at = 0; at + 1 < count; ++at) {
      from.push_back(static_cast<int64_t>(at) * stride +
                     static_cast<int64_t>(caps[chunks[at]] / unit_));
      to.push_back(static_cast<int64_t>(at + 1) * stride);
    }
    const int64_t base = static_cast<int64_t>(count - 1) * stride;
    const int64_t capacity = base + static_cast<int64_t>(caps[low] / unit_);
    std::vector<Place> places;
    if (capacity < 1 || capacity > kLongest) return places;
    memplan_problem_set_reserved(problem_, from.size(), from.data(), to.data(), nullptr, 0);
    memplan_problem_set_capacity(problem_, capacity, nullptr, 0);
    options_.solver = count == 1 ? "auto" : "greedy";
    options_.nodes = count == 1 ? kNodes : kNodesInChunks;
    memplan_plan* plan = memplan_solve(problem_, &options_, nullptr, 0);
    const int64_t* offsets = memplan_plan_offsets(plan);
    for (size_t b = 0; offsets != nullptr && b < memplan_plan_count(plan); ++b) {
      const size_t chunk = chunks[static_cast<size_t>(offsets[b] / stride)];
      places.emplace_back(chunk, static_cast<size_t>(offsets[b] % stride) * unit_);
    }
    memplan_plan_free(plan);
    return places;
  }

 private:
  size_t unit_;
  memplan_problem* problem_ = nullptr;
  memplan_options options_;
};

// Removes empty chunks; the highest comes first.
void put_in_order(const Allocator& of, std::vector<Place>& places) {
  const std::vector<size_t> heights = heights_of(of, places);
  std::vector<size_t> order(heights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return heights[a] > heights[b]; });
  std::vector<int> number(order.size());
  for (size_t at = 0; at < order.size(); ++at) number[order[at]] = static_cast<int>(at);
  for (Place& place : places) place.first = number[static_cast<size_t>(place.first)];
  // A block of no bytes may have been alone in its chunk.
  for (size_t b = 0; b < places.size(); ++b) {
    if (of.blocks[b].size == 0) places[b] = {0, 0};
  }
}

bool is_better(const Allocator& of, const std::vector<size_t>& heights,
               const std::vector<size_t>& than) {
  const auto above = [&](const std::vector<size_t>& each) {
    return std::count_if(each.begin(), each.end(), [&](size_t h) { return h > of.limit; });
  };
  return heights.size() <= than.size() && above(heights) <= above(than) &&
         std::make_pair(heights.size(), sum(heights)) < std::make_pair(than.size(), sum(than)) &&
         sum(heights) <= sum(than);
}

// Lowers one chunk after the other while the others stay as high as they are, until that fails.
void shrink(const Allocator& of, Planner& planner, size_t load, std::vector<Place>& places) {
  std::vector<size_t> heights = heights_of(of, places);
  for (size_t low = 0; low < heights.size() && sum(heights) > load; ++low) {
    std::vector<Place> found = planner.place(heights, low);
    std::vector<size_t> now = heights_of(of, found);
    if (found.empty() || sum(now) > sum(heights)) return;
    now.resize(heights.size());
    places = std::move(found);
    heights = std::move(now);
  }
}

// Places that are better than ggml's, or none.
std::vector<Place> find_places(const Allocator& of, const std::vector<size_t>& host, size_t load) {
  if (of.odd || of.alignment == 0 || sum(host) == load) return {};
  Planner planner(of);
  size_t largest = 0;
  for (const Block& block : of.blocks) largest = std::max(largest, block.size);
  const size_t limit = of.limit / of.alignment * of.alignment;
  // One chunk above the limit is enough if only one tensor is at a time; otherwise all may be.
  const size_t high = std::min(std::max(limit, largest), sum(host));
  for (const size_t others : {std::min(limit, high), high}) {
    std::vector<size_t> caps(host.size(), others);
    caps[0] = high;
    std::vector<Place> places = planner.place(caps, caps.size() - 1);
    if (!places.empty() && caps.size() > 1) shrink(of, planner, load, places);
    put_in_order(of, places);
    if (!places.empty() && is_better(of, heights_of(of, places), host)) return places;
    if (others == high || caps.size() == 1) break;
  }
  return {};
}

std::string write_events(const Allocator& of, const std::vector<size_t>& host) {
  std::vector<std::string> lines(static_cast<size_t>(of.now));
  for (size_t b = 0; b < of.blocks.size(); ++b) {
    const Block& block = of.blocks[b];
    lines[static_cast<size_t>(block.start)] = "+ " + std::to_string(block.size);
    if (block.end < of.now) {
      lines[static_cast<size_t>(block.end)] = "- " + std::to_string(b);
    }
  }
  for (const Cut& cut : of.cuts) {
    lines[static_cast<size_t>(cut.time)] =
        "- " + std::to_string(cut.block) + " " + std::to_string(cut.kept);
  }
  std::string text = "ggml-events 1\nalignment " + std::to_string(of.alignment) + "\n";
  if (of.limit < SIZE_MAX / 2) text += "limit " + std::to_string(of.limit) + "\n";
  text += "ggml";
  for (const size_t height : host) text += " " + std::to_string(height);
  text += "\n";
  for (const std::string& line : lines) {
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

// Returns whether the plan is better than ggml's own addresses, which it has otherwise.
bool plan(Allocator& of) {
  const std::clock_t begun = std::clock();
  std::vector<Place> places;
  for (const Block& block : of.blocks) places.push_back(block.host);
  const std::vector<size_t> host = heights_of(of, places);
  const size_t load = find_load(of);
  of.planned = find_places(of, host, load);
  const bool better = !of.planned.empty();
  if (!better) of.planned = std::move(places);
  if (session.observer == nullptr) return better;
  const std::vector<size_t> now = heights_of(of, of.planned);
  memplan_ggml_result result = {};
  result.blocks = of.blocks.size();
  result.host_bytes = sum(host);
  result.bytes = sum(now);
  result.host_chunks = static_cast<int>(host.size());
  result.chunks = static_cast<int>(now.size());
  result.bound = load;
  result.cpu_seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  const std::string events = of.odd ? "" : write_events(of, host);
  session.observer(&result, of.odd ? nullptr : events.c_str(), session.user_data);
  return better;
}

}  // namespace

void memplan_ggml_begin(void) {
  session.allocators.clear();
  session.recording = session.enabled;
  session.taking = false;
}

void memplan_ggml_allocated(const void* key, size_t alignment, size_t limit, size_t size, int chunk,
                            size_t offset) {
  if (!session.recording) return;
  Allocator* to = session.find(key);
  if (to == nullptr) {
    session.allocators.emplace_back();
    to = &session.allocators.back();
    to->key = key;
    to->alignment = alignment;
    to->limit = limit;
  }
  const Place at{chunk, offset};
  const int64_t time = to->now++;
  if (size != 0) to->live[at] = static_cast<int32_t>(to->blocks.size());
  to->blocks.push_back({size, time, kLongest, at});
  to->kept.push_back(size);
}

int memplan_ggml_freed(const void* key, int chunk, size_t offset, size_t size) {
  if (session.taking) return 1;
  Allocator* from = session.recording ? session.find(key) : nullptr;
  if (from == nullptr || size == 0) return 0;
  // The block that holds the first byte is the last one that begins there or before.
  auto at = from->live.upper_bound({chunk, offset});
  if (at == from->live.begin()) {
    from->odd = true;
    return 0;
  }
  --at;
  const size_t block = static_cast<size_t>(at->second);
  const size_t before = offset - at->first.second;
  if (at->first.first != chunk || before + size != from->kept[block]) {
    from->odd = true;
    return 0;
  }
  const int64_t time = from->now++;
  from->kept[block] = before;
  if (before != 0) {
    from->cuts.push_back({static_cast<int32_t>(block), time, before});
  } else {
    from->blocks[block].end = time;
    from->live.erase(at);
  }
  return 0;
}

int memplan_ggml_plan(void) {
  if (!session.recording) return 0;
  session.recording = false;
  for (Allocator& each : session.allocators) {
    for (Block& block : each.blocks) block.end = std::min(block.end, each.now);
    if (plan(each)) session.taking = true;
  }
  return session.taking ? 1 : 0;
}

int memplan_ggml_take(const void* key, size_t size, int* chunk, size_t* offset) {
  if (!session.taking) return 0;
  Allocator* from = session.find(key);
  if (from == nullptr || from->taken == from->blocks.size() ||
      from->blocks[from->taken].size != size) {
    std::fputs("memplan: ggml laid a graph out in two ways; no plan holds for both\n", stderr);
    std::abort();
  }
  const Place at = from->planned[from->taken++];
  *chunk = at.first;
  *offset = at.second;
  return 1;
}

void memplan_ggml_end(void) {
  session.recording = session.taking = false;
  session.allocators.clear();
}

void memplan_ggml_enable(int enabled) { session.enabled = enabled != 0; }

void memplan_ggml_observe(memplan_ggml_observer observer, void* user_data) {
  session.observer = observer;
  session.user_data = user_data;
}
