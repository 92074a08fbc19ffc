// Tracks where a program is: the modules and operators around it, and the number of the next
// allocation there.
//
// A frame is identified by a hash of the frame around it, its name, and its number among the frames
// of that name there. So an operator has the same hash if other operators ran before it elsewhere.
//
//     .            frame(root, ".", 0)
//       .conv1     frame(f("."), ".conv1", 0)
//         aten::…  frame(f(".conv1"), "aten::…", 0)
//           #0     allocation(f("aten::…"), 0)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace memplan {

using Hash = std::uint64_t;

__extension__ typedef unsigned __int128 TwoHashes;

// The product is folded, so that every bit of both inputs affects every bit of the result.
inline Hash mix(Hash a, Hash b) {
  const TwoHashes product = TwoHashes{a ^ 0x9e3779b97f4a7c15u} * (b ^ 0xe7037ed1a0b428dbu);
  return static_cast<Hash>(product) ^ static_cast<Hash>(product >> 64);
}

inline Hash hash_of(std::string_view name) {
  Hash hash = name.size();
  for (const char c : name) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

constexpr Hash kRoot = 0x243f6a8885a308d3u;

inline Hash frame_in(Hash around, Hash name, std::uint32_t ordinal) {
  return mix(mix(around, name), ordinal);
}

// The result is never 0, which stands for "none" in a table. It may equal the hash of a frame, as
// tables hold only allocations.
inline Hash allocation_in(Hash frame, std::uint32_t ordinal) {
  return mix(frame, ~Hash{ordinal}) | 1;
}

// What the autograd engine puts before the name of a node; see recorder.py.
constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";

// Caches the hashes of names of operators. The slot of a name comes from its address, which is
// mostly that of the operator's own. But names of autograd nodes are in short-lived strings, so an
// address may hold another name the next time, and the text decides.
class NameHashes {
 public:
  Hash operator()(const char* name) {
    Known& entry = known_[(reinterpret_cast<Hash>(name) * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
    if (std::strcmp(entry.name, name) == 0) return entry.hash;
    const std::string_view text(name);
    const bool is_node = text.substr(0, kNode.size()) == kNode;
    const Hash hash = hash_of(text.substr(is_node ? kNode.size() : 0));
    if (text.size() < sizeof entry.name) {
      std::memcpy(entry.name, name, text.size() + 1);
      entry.hash = hash;
    }
    return hash;
  }

 private:
  static constexpr int kBits = 9;
  struct Known {
    char name[120] = "";
    Hash hash = hash_of("");
  };
  std::array<Known, 1 << kBits> known_{};
};

// The frames of one thread. They allocate memory only if nested deeper or wider than ever before.
class Frames {
 public:
  Frames() {
    frames_.reserve(64);
    names_.reserve(256);
    clear();
  }

  void clear() {
    frames_.assign(1, {kRoot, 0, 0});
    names_.clear();
  }

  void enter(Hash name) {
    const Frame& around = frames_.back();
    const std::size_t end = names_.size();
    std::size_t at = around.names;
    while (at < end && names_[at].name != name) ++at;
    if (at == end) names_.push_back({name, 0});
    const Hash frame = frame_in(around.hash, name, names_[at].count++);
    frames_.push_back({frame, 0, static_cast<std::uint32_t>(names_.size())});
  }

  void leave() {
    // Frames that were entered before the call began may be left during it.
    if (frames_.size() == 1) return;
    names_.resize(frames_.back().names);
    frames_.pop_back();
  }

  // Returns the hash of the current allocation.
  Hash next() {
    Frame& frame = frames_.back();
    return allocation_in(frame.hash, frame.allocations++);
  }

 private:
  struct Name {
    Hash name;
    std::uint32_t count;
  };
  struct Frame {
    Hash hash;
    std::uint32_t allocations;
    std::uint32_t names;  // where the names of what was entered from here begin in names_
  };

  std::vector<Frame> frames_;
  std::vector<Name> names_;
};

}  // namespace memplan
