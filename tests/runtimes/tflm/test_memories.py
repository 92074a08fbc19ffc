"""Tests of several memories for TFLM: the planner in C++, and one arena with a hole."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from compilers import require_compiler
from tflite_models import Writer, chain
from tflite_written import SMALL, WRITTEN, written

from memplan.machine.memories import Assigned, Memory, assign
from memplan.machine.memories.text import parse_memories
from memplan.runtimes.fitting import fit_memories
from memplan.runtimes.tflm.measure import Request, list_requests, place_requests
from memplan.runtimes.tflm.read.model import load, parse
from memplan.runtimes.tflm.write import apply
from memplan.runtimes.tflm.write.memories import HoleError, make_hole, make_planner

MOBILE = Path(__file__).parents[3] / "examples" / "models" / "mobile.tflite"
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
static const Request requests[] = {REQUESTS {0, 0, 0}};
static const int count = sizeof requests / sizeof *requests - 1;
ARRAYS
int main() {
  CLASS planner(NAMES);
  uint8_t* at[count + 1];
  int last = 0, offset;
  for (int i = 0; i < count; ++i) {
    const Request& r = requests[i];
    if (planner.AddBuffer(r.size, r.first, r.last) != kTfLiteOk) return 1;
    if (r.last > last) last = r.last;
  }
  if (planner.AddBuffer(16, 0, 0) == kTfLiteOk) return 2;
  if (planner.GetBufferCount() != count || planner.GetMaximumMemorySize() > sizeof FIRST) return 3;
  for (int i = 0; i < count; ++i) {
    if (planner.GetOffsetForBuffer(i, &offset) != kTfLiteOk) return 4;
    at[i] = FIRST + offset;
  }
  for (int time = 0; time <= last; ++time) {
    for (int i = 0; i < count; ++i) {
      if (requests[i].first == time) std::memset(at[i], i + 1, requests[i].size);
    }
    for (int i = 0; i < count; ++i) {
      const bool ends = requests[i].first >= 0 && requests[i].last == time;
      for (int b = 0; ends && b < requests[i].size; ++b) {
        if (at[i][b] != (uint8_t)(i + 1)) return 5;
      }
    }
  }
  CLASS larger(NAMES), longer(NAMES), fewer(NAMES), odd(FIRST + 1 REST);
  if (larger.AddBuffer(requests[0].size + 1, requests[0].first, requests[0].last) == kTfLiteOk ||
      longer.AddBuffer(requests[0].size, requests[0].first, last + 9) == kTfLiteOk ||
      (count && fewer.GetOffsetForBuffer(0, &offset) == kTfLiteOk)) return 6;
  for (int i = 0; i < count; ++i) {
    odd.AddBuffer(requests[i].size, requests[i].first, requests[i].last);
  }
  if (odd.GetOffsetForBuffer(0, &offset) == kTfLiteOk) return 7;
  return 0;
}
"""


@pytest.mark.slow
def test_the_planner_in_c(tmp_path: Path) -> None:
    """Tests addresses in two arrays as TFLM asks for them, and all that the planner refuses."""
    found = assign(MOBILE, parse_memories(TWO))
    assert all(plan.peak for plan in found.plans)
    require_planner(tmp_path, MOBILE, found, "net")


@pytest.mark.slow
def test_bands_save_traffic_of_a_slow_memory(tmp_path: Path) -> None:
    """Tests that a program in bands is taken where less of it lies outside.

    Its planner has a row for each request that TFLM makes for the model that was written. Pieces
    lie at their places in the picture that joins them, as in one arena, where TFLM runs them.
    """
    pytest.importorskip("tflite_micro")
    from memplan_lab.bench.int8_networks import mobilenet_v2

    path = tmp_path / "net.tflite"
    path.write_bytes(mobilenet_v2(64, width=0.35, classes=10))
    memories = parse_memories(("sram=104KiB", "psram=1MiB"))
    found = fit_memories(path, memories, {}, nodes=2000)
    whole = fit_memories(path, memories, {}, nodes=2000, max_extra=0.0)
    assert (found.change, 0 < found.extra <= 0.1, whole.extra) == ("bands", True, 0)
    assert found.housed is not None
    assert whole.housed is not None
    found.housed.found.verify()
    assert found.housed.found.traffic < whole.housed.found.traffic
    model = parse(found.files["net.tflite"], "net.tflite")
    row = re.compile(r"\{(-?\d+), (-?\d+), (-?\d+), \d+, \d+\}")
    rows = row.findall(found.files["net_memories.h"].decode())
    asked = [(each.size, each.first, each.last) for each in list_requests(model)]
    assert [tuple(map(int, each)) for each in rows] == asked


# Names that are one in C, that begin with a digit, and that only this library takes.
ODD = ("a.b", "a-b", "a_b", "int", "0", "-0", "memory_0", "漢字")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "memories", "name"),
    [
        ("nothing", ODD, "int"),
        ("bytes", ["a", "0"], "2nd *\\/"),
        ("many", ODD, ""),
        ("one", ["漢字"], "plan"),
        ("unused", ["0"], "net"),
        ("branching", ["a", "0"], "class"),
        ("looping", ODD, "a__b"),
        ("mean", ["-", "0", "b"], "x" * 99),
        ("svdf", ["a", "memory_0", "0"], "micro_memory"),
    ],
)
def test_planners_at_the_edges_in_c(
    tmp_path: Path, file: str, memories: list[str], name: str
) -> None:
    """Tests models without an operator, with tensors of a byte and of none, and sub-graphs.

    The names of models and memories are of all sorts, and some memories hold nothing.
    """
    if file in WRITTEN:
        path = written(tmp_path, file)
    else:
        path = tmp_path / "model.tflite"
        path.write_bytes(Writer().write(SMALL[file]))
    sizes = [Memory(each, 64, read=at, write=at) for at, each in enumerate(memories)]
    found = assign(path, [*sizes[:-1], replace(sizes[-1], capacity=None)])
    require_planner(tmp_path, path, found, name)


def require_planner(folder: Path, path: Path, found: Assigned, name: str) -> None:
    """Fail if a planner lets two buffers of TFLM that are in use at one time share a byte."""
    model = load(path)
    header = make_planner(model, found, name)
    write_interface(folder)
    asked = [f"{{{each.size}, {each.first}, {each.last}}}," for each in list_requests(model)]
    (folder / "planner.h").write_text(header)
    made = re.search(r"static (\w+) planner\(([^)]*)\);", header)
    assert made
    arrays = made[2].split(", ")
    words = {
        "REQUESTS": " ".join(asked),
        "CLASS": made[1],
        "NAMES": made[2],
        "FIRST": arrays[0],
        "REST": "".join(f", {each}" for each in arrays[1:]),
        "ARRAYS": "\n".join(
            f"alignas(16) static uint8_t {array}[{size}];"
            for array, size in zip(
                arrays, re.findall(r"#define (\w+_BYTES_\w+)", header), strict=True
            )
        ),
    }
    text = re.sub(r"\b[A-Z]{4,}\b", lambda word: words[word[0]], PROGRAM)
    assert run_program(folder, text) == 0


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
@pytest.mark.parametrize("name", ["net", "greedy_memory"])
def test_the_planner_of_a_hole_in_c(tmp_path: Path, name: str) -> None:
    """Tests that its books lie below the hole, and that TFLM's numbers are those of the model.

    The second one has the name of the class of TFLM that it extends.
    """
    model, data = load(MOBILE), MOBILE.read_bytes()
    found = assign(MOBILE, parse_memories(BASES))
    assert found.loaded is not None
    assert found.loaded.layout is not None
    end = 0x3FC88000 + (20 << 10)
    _, header = make_hole(data, model, found, name, end)
    write_interface(tmp_path)
    path = tmp_path / "tensorflow" / "lite" / "micro" / "memory_planner"
    (path / "greedy_memory_planner.h").write_text(GREEDY)
    (tmp_path / "holed.h").write_text(header)
    class_, upper = name.title().replace("_", "") + "Planner", name.upper()
    assert run_program(tmp_path, HOLED.replace("NetPlanner", class_).replace("NET", upper)) == 0


def test_a_hole_that_cannot_be_is_refused() -> None:
    """Tests a bottom that is too small, memories without a hole, and some too far apart."""
    model, data = load(MOBILE), MOBILE.read_bytes()

    def refuse(*texts: str) -> str:
        memories = parse_memories(texts)
        found = assign(MOBILE, memories)
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
