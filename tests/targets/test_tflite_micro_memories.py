"""Tests of several memories for TFLM: the planner in C++, and one arena with a hole."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from compilers import require_compiler
from tflite_models import Writer, chain

import memplan as mp
from memplan.fitting import fit_memories
from memplan.memories.text import parse_memories
from memplan.sources.tflite.model import load, parse
from memplan.targets.tflite_micro import apply
from memplan.targets.tflite_micro.memories import HoleError, make_hole, make_planner
from memplan.yardsticks.tflite_micro import Request, list_requests, place_requests

MOBILE = Path(__file__).parents[2] / "examples" / "models" / "mobile.tflite"
TWO = ("sram=20KiB", "psram=8MiB")

# The interface that TFLM has, in our words: what a planner must do, and no more.
INTERFACE = {
    "compatibility.h": "#define TF_LITE_REMOVE_VIRTUAL_DELETE void operator delete(void*) {}\n",
    "micro_log.h": "#include <cstdio>\n#define MicroPrintf(...) std::printf(__VA_ARGS__)\n",
    "memory_planner/micro_memory_planner.h": """
#pragma once
#include <cstddef>
enum TfLiteStatus { kTfLiteOk, kTfLiteError };
namespace tflite {
class MicroMemoryPlanner {
 public:
  virtual ~MicroMemoryPlanner() {}
  virtual TfLiteStatus AddBuffer(int size, int first, int last) = 0;
  virtual TfLiteStatus AddBuffer(int, int, int, int) { return kTfLiteError; }
  virtual size_t GetMaximumMemorySize() = 0;
  virtual int GetBufferCount() = 0;
  virtual TfLiteStatus GetOffsetForBuffer(int index, int* offset) = 0;
  virtual bool preserves_all_tensors() const = 0;
};
}  // namespace tflite
""",
}

# Fills every buffer when it is first used, and looks at it when it was last used, as TFLM would.
PROGRAM = """
#include <cstdint>
#include <cstring>
#include "planner.h"
struct Request { int size, first, last; };
static const Request requests[] = {REQUESTS};
static const int count = sizeof requests / sizeof *requests;
alignas(16) static uint8_t fast[NET_BYTES_sram];
alignas(16) static uint8_t slow[NET_BYTES_psram];
int main() {
  NetPlanner planner(fast, slow);
  uint8_t* at[count];
  int last = 0, offset;
  for (const Request& r : requests) {
    if (planner.AddBuffer(r.size, r.first, r.last) != kTfLiteOk) return 1;
    if (r.last > last) last = r.last;
  }
  if (planner.AddBuffer(16, 0, 0) == kTfLiteOk) return 2;
  if (planner.GetBufferCount() != count || planner.GetMaximumMemorySize() > sizeof fast) return 3;
  bool far = false;
  for (int i = 0; i < count; ++i) {
    if (planner.GetOffsetForBuffer(i, &offset) != kTfLiteOk) return 4;
    at[i] = fast + offset;
    far |= at[i] >= slow && at[i] < slow + sizeof slow;
  }
  for (int time = 0; time <= last; ++time) {
    for (int i = 0; i < count; ++i) {
      if (requests[i].first == time) std::memset(at[i], i + 1, requests[i].size);
    }
    for (int i = 0; i < count; ++i) {
      for (int b = 0; requests[i].last == time && b < requests[i].size; ++b) {
        if (at[i][b] != (uint8_t)(i + 1)) return 5;
      }
    }
  }
  NetPlanner larger(fast, slow), longer(fast, slow), fewer(fast, slow), odd(fast + 1, slow);
  if (larger.AddBuffer(requests[0].size + 1, requests[0].first, requests[0].last) == kTfLiteOk ||
      longer.AddBuffer(requests[0].size, requests[0].first, last + 9) == kTfLiteOk ||
      fewer.GetOffsetForBuffer(0, &offset) == kTfLiteOk) return 6;
  for (const Request& r : requests) odd.AddBuffer(r.size, r.first, r.last);
  if (odd.GetOffsetForBuffer(0, &offset) == kTfLiteOk) return 7;
  return far ? 0 : 8;
}
"""


@pytest.mark.slow
def test_the_planner_in_c(tmp_path: Path) -> None:
    """Tests addresses in two arrays as TFLM asks for them, and all that the planner refuses."""
    model = load(MOBILE)
    found = mp.assign(MOBILE, parse_memories(TWO))
    assert found.loaded is not None
    assert found.loaded.layout is not None
    header = make_planner(model, found, "net")
    write_interface(tmp_path)
    requests = ", ".join(
        f"{{{each.size}, {each.first}, {each.last}}}" for each in list_requests(model)
    )
    (tmp_path / "planner.h").write_text(header)
    assert run_program(tmp_path, PROGRAM.replace("REQUESTS", requests)) == 0


def write_interface(folder: Path) -> None:
    """Write what a planner includes of TFLM."""
    base = folder / "tensorflow" / "lite" / "micro"
    for name, text in INTERFACE.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)


def run_program(folder: Path, text: str) -> int:
    """Compile a program with all warnings and checks, and return its exit code."""
    (folder / "main.cc").write_text(text)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address"]
    compiler = require_compiler("g++", "clang++", flags=flags)
    command = [compiler, *flags, "-fno-rtti", f"-I{folder}", str(folder / "main.cc")]
    subprocess.run([*command, "-o", str(folder / "main")], check=True)
    return subprocess.run([folder / "main"], capture_output=True, check=False).returncode


BASES = ("sram=20KiB,base=0x3FC88000", "psram=8MiB,base=0x3C000000")


def test_a_hole_between_two_memories() -> None:
    """Tests that TFLM's own rule keeps everything inside of the memories, if the hole is taken."""
    memories = parse_memories(BASES)
    found = fit_memories(MOBILE, memories, {})
    assert found.housed is not None
    assert set(found.files) == {"mobile.tflite", "mobile_memories.h"}
    model = parse(found.files["mobile.tflite"], "made")
    (offset, size), arena = read_hole(found.files["mobile_memories.h"].decode())
    assert arena == (memories[1].base, memories[0].base + (20 << 10) - memories[1].base)
    assert (offset, offset + size) == (8 << 20, memories[0].base - memories[1].base)
    placed = place_requests(model, [Request(size, 0, 1 << 30, offset)])
    used = [(at, at + each.size) for at, each in placed if at != offset]
    assert all(end <= offset or at >= offset + size for at, end in used)
    assert max(end for _, end in used) <= arena[1]
    assert min(at for at, _ in used) < offset


def read_hole(header: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the hole of a header, and its arena: offset or address, and bytes."""
    hole = re.search(r"all\[\] = \{\{(\d+), (\d+)\}\};", header)
    arena = re.search(r"_ARENA (0x\w+)u\n#define \w+ (\d+)u", header)
    assert hole
    assert arena
    return (int(hole[1]), int(hole[2])), (int(arena[1], 16), int(arena[2]))


HOLED = """
#include <cstdint>
#include "holed.h"
// What TFLM does with the arena before its planner gets it, and what it asks.
int main() {
  static uint8_t memory[8192];
  NetPlanner planner;
  if (planner.Init(memory, sizeof memory) == kTfLiteOk) return 1;
  uint8_t* const begin = reinterpret_cast<uint8_t*>(uintptr_t{NET_ARENA}) + 64;
  if (planner.Init(begin, NET_ARENA_BYTES) != kTfLiteOk) return 2;
  if (planner.room > 8 << 20 || planner.begin != begin) return 3;
  if (planner.GetBufferCount() != 0 || planner.count != 1) return 4;
  int offset = 0;
  if (planner.GetOffsetForBuffer(0, &offset) != kTfLiteOk || offset != 1) return 5;
  return 0;
}
"""
GREEDY = """
#pragma once
#include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"
namespace tflite {
class GreedyMemoryPlanner : public MicroMemoryPlanner {
 public:
  virtual TfLiteStatus Init(unsigned char* scratch, int size) {
    begin = scratch;
    room = size;
    return kTfLiteOk;
  }
  TfLiteStatus AddBuffer(int, int, int) override { return kTfLiteError; }
  TfLiteStatus AddBuffer(int, int, int, int) override { return ++count, kTfLiteOk; }
  size_t GetMaximumMemorySize() override { return 0; }
  int GetBufferCount() override { return count; }
  TfLiteStatus GetOffsetForBuffer(int index, int* offset) override {
    return *offset = index, kTfLiteOk;
  }
  bool preserves_all_tensors() const override { return false; }
  unsigned char* begin = nullptr;
  int room = 0, count = 0;
};
}  // namespace tflite
"""


@pytest.mark.slow
def test_the_planner_of_a_hole_in_c(tmp_path: Path) -> None:
    """Tests that its books lie below the hole, and that TFLM's numbers are those of the model."""
    model, data = load(MOBILE), MOBILE.read_bytes()
    found = mp.assign(MOBILE, parse_memories(BASES))
    assert found.loaded is not None
    assert found.loaded.layout is not None
    end = 0x3FC88000 + (20 << 10)
    _, header = make_hole(data, model, found, "net", end)
    write_interface(tmp_path)
    path = tmp_path / "tensorflow" / "lite" / "micro" / "memory_planner"
    (path / "greedy_memory_planner.h").write_text(GREEDY)
    (tmp_path / "holed.h").write_text(header)
    assert run_program(tmp_path, HOLED) == 0


def test_a_hole_that_cannot_be_is_refused() -> None:
    """Tests a bottom that is too small, memories without a hole, and some too far apart."""
    model, data = load(MOBILE), MOBILE.read_bytes()

    def refuse(*texts: str) -> str:
        memories = parse_memories(texts)
        found = mp.assign(MOBILE, memories)
        assert found.loaded is not None
        assert found.loaded.layout is not None
        end = max(each.base + (each.capacity or 0) for each in memories)
        with pytest.raises(HoleError) as error:
            make_hole(data, model, found, "net", end)
        return str(error.value)

    assert "at the bottom of the arena" in refuse("a=1KiB,base=0x1000", "b=8MiB,base=0x100000")
    assert "there is no hole" in refuse("a=16KiB,base=0x4000", "b=8MiB,base=0x8000")
    far = ("a=16KiB,base=0x10000000", "b=8MiB,base=0xC0000000")
    assert "TFLM counts up to 2^31" in refuse(*far)


def test_a_planner_where_there_are_no_addresses() -> None:
    """Tests the files of a model that does not fit into the fast memory, and of one that does."""
    found = fit_memories(MOBILE, parse_memories(TWO), {})
    assert found.housed is not None
    assert [*found.files] == ["mobile_memories.h"]
    text = found.files["mobile_memories.h"].decode()
    assert re.search(r"class MobilePlanner final", text)
    enough = fit_memories(MOBILE, parse_memories(("sram=1MiB", "psram=8MiB")), {})
    assert enough.housed is None
    assert [*enough.files] == ["mobile.tflite"]


def test_offsets_of_the_file_are_dropped(tmp_path: Path) -> None:
    """Tests that a model that has a plan is written without it beside the planner."""
    path, planned = tmp_path / "chain.tflite", tmp_path / "planned.tflite"
    path.write_bytes(Writer().write(chain("RELU", "TANH", "NEG", shape=(64, 64))))
    apply(path, planned)
    found = fit_memories(planned, parse_memories(("a=16KiB", "b=1MiB")), {})
    assert found.housed is not None
    assert set(found.files) == {"planned_memories.h", "planned.tflite"}
    assert parse(planned.read_bytes(), "planned").offsets != ()
    assert set(parse(found.files["planned.tflite"], "made").offsets) <= {-1}
