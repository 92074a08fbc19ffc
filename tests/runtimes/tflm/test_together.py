"""Tests that the C++ of docs/together.md gives each interpreter the shared arena and its offsets.

The interfaces are TFLM's as far as the page uses them, written here; by hand the page was compiled
with TFLM itself.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from compilers import require_compiler
from tflite_models import Writer, chain, constant, floats

import memplan as mp
from memplan.cli import main
from memplan.runtimes.tflm.measure import ask
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, load

PAGE = Path(__file__).parents[3] / "docs" / "together.md"
ARENAS = """
#pragma once
#include <cstddef>
#include <cstdint>
#define TF_LITE_REMOVE_VIRTUAL_DELETE void operator delete(void*) {}
namespace tflite {
class IPersistentBufferAllocator {
 public:
  virtual uint8_t* AllocatePersistentBuffer(size_t size, size_t alignment) = 0;
};
class INonPersistentBufferAllocator {
 public:
  virtual uint8_t* GetOverlayMemoryAddress() const = 0;
};
}
"""
PERSISTENT = """
#pragma once
#include "tensorflow/lite/micro/arena_allocator/ibuffer_allocator.h"
namespace tflite {
class PersistentArenaBufferAllocator : public IPersistentBufferAllocator {
 public:
  PersistentArenaBufferAllocator(uint8_t* buffer, size_t size) : tail_(buffer + size) {}
  uint8_t* AllocatePersistentBuffer(size_t size, size_t) override { return tail_ -= size; }
 private:
  uint8_t* tail_;
};
}
"""
HEAD = """
#pragma once
#include "tensorflow/lite/micro/arena_allocator/ibuffer_allocator.h"
namespace tflite {
class NonPersistentArenaBufferAllocator : public INonPersistentBufferAllocator {
 public:
  NonPersistentArenaBufferAllocator(uint8_t* buffer, size_t) : buffer_(buffer) {}
  uint8_t* GetOverlayMemoryAddress() const override { return buffer_; }
 private:
  uint8_t* buffer_;
};
}
"""
SHIM = """
#pragma once
#include <cstdint>
namespace tflite {
struct BufferDescriptor { int32_t offset; };
struct BufferPlan { int32_t buffer_count; BufferDescriptor buffer_plan_entries[]; };
class MicroMemoryPlanner {
 public:
  virtual int GetOffsetForBuffer(int index) = 0;
};
class NonPersistentMemoryPlannerShim : public MicroMemoryPlanner {
 public:
  explicit NonPersistentMemoryPlannerShim(const BufferPlan* plan) : plan_(plan) {}
  int GetOffsetForBuffer(int index) override { return plan_->buffer_plan_entries[index].offset; }
 private:
  const BufferPlan* plan_;
};
}
"""
ALLOCATOR = """
#pragma once
#include "tensorflow/lite/micro/arena_allocator/ibuffer_allocator.h"
#include "tensorflow/lite/micro/memory_planner/non_persistent_buffer_planner_shim.h"
namespace tflite {
class MicroAllocator {
 public:
  uint8_t* Place(int index) {
    return head_->GetOverlayMemoryAddress() + planner_->GetOffsetForBuffer(index);
  }
  uint8_t* Keep(size_t size) { return own_->AllocatePersistentBuffer(size, 16); }
 protected:
  MicroAllocator(IPersistentBufferAllocator* own, INonPersistentBufferAllocator* head,
                 MicroMemoryPlanner* planner) : own_(own), head_(head), planner_(planner) {}
  virtual ~MicroAllocator() {}
 private:
  IPersistentBufferAllocator* own_;
  INonPersistentBufferAllocator* head_;
  MicroMemoryPlanner* planner_;
  TF_LITE_REMOVE_VIRTUAL_DELETE
};
}
"""
FILES = {
    "arena_allocator/ibuffer_allocator.h": ARENAS,
    "arena_allocator/persistent_arena_buffer_allocator.h": PERSISTENT,
    "arena_allocator/non_persistent_arena_buffer_allocator.h": HEAD,
    "memory_planner/non_persistent_buffer_planner_shim.h": SHIM,
    "micro_allocator.h": ALLOCATOR,
}
MAIN = """
#include <cstdio>
int main() {
  for (int i = 0; i < WAKE_COUNT; ++i) printf("%td ", wake_program.allocator.Place(i) - shared);
  printf("\\n");
  for (int i = 0; i < VAD_COUNT; ++i) printf("%td ", vad_program.allocator.Place(i) - shared);
  uint8_t* kept = wake_program.allocator.Keep(16);
  bool inside = kept >= wake_program.kept && kept < wake_program.kept + sizeof(wake_program.kept);
  printf("\\n%d %zu\\n", inside, sizeof(shared));
}
"""


def test_the_page_compiles_and_places_buffers_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests two programs that keep their outputs: offsets of both headers, and the arena."""
    compiler = require_compiler("g++", "clang++", flags=["-std=c++17"])
    monkeypatch.chdir(tmp_path)
    Path("plans").mkdir()
    for name, types in (("wake", ("RELU", "TANH", "NEG")), ("vad", ("NEG", "RELU"))):
        Path(f"{name}.tflite").write_bytes(Writer().write(chain(*types)))
    words = ["plan", "wake.tflite", "vad.tflite", "--keep", "outputs"]
    assert main([*words, "-o", "plans", "-q"]) == 0
    expected, arenas = [], set()
    for name in ("wake", "vad"):
        plan = ["--plan", f"plans/{name}.plan.json", "--shim", f"{name}.h", "--name", name]
        assert main(["apply", f"{name}.tflite", *plan]) == 0
        text = Path(f"{name}.h").read_text()
        expected.append(re.findall(r"^ +\{(\d+)\},$", text, re.M))
        arenas.add(re.findall(r"_ARENA_BYTES (\d+)", text)[0])
        assert re.search(rf"{name.upper()}_KEPT_OFFSET_t{len(expected) % 2 + 2} \d+\n", text)
    for name, text in FILES.items():
        path = Path("tensorflow/lite/micro") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (code,) = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.S)
    Path("main.cc").write_text(code + MAIN)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wno-non-virtual-dtor", "-Werror", "-I."]
    subprocess.run([compiler, *flags, "main.cc", "-o", "program"], check=True)
    run = subprocess.run(["./program"], capture_output=True, check=True, text=True)
    wake, vad, rest = run.stdout.splitlines()
    assert [wake.split(), vad.split()] == expected
    assert {rest} == {f"1 {arena}" for arena in arenas}


def remembering(*more: OperatorInfo) -> Model:
    """Return a model that adds a variable to its input, and what `more` does with the result."""
    tensors = (
        floats("x", 4, 4),
        floats("state", 4, 4, variable=True),
        floats("sum", 4, 4),
        floats("y", 4, 4),
        constant("axis", "int32", 1),
        floats("z", 4, 1),
    )
    steps = (OperatorInfo("ADD", (0, 1), (2,)), OperatorInfo("TANH", (2,), (3,)), *more)
    return Model("m", (SubGraph("main", tensors, steps, (0,), (5 if more else 3,)),))


def plan_pair(first: Model, folder: Path) -> tuple[Path, Path]:
    """Plan a model and a small one in one arena; return the file of the first, and its plan."""
    paths = folder / "a.tflite", folder / "b.tflite"
    for path, model in zip(paths, (first, chain("RELU", "NEG", shape=(40, 4))), strict=True):
        path.write_bytes(Writer(OPTIONS).write(model))
    (folder / "plans").mkdir()
    words = ["plan", *map(str, paths), "--keep", "states", "--keep", "outputs"]
    assert main([*words, "-o", str(folder / "plans"), "-q"]) == 0
    return paths[0], folder / "plans" / "a.plan.json"


OPTIONS = {"ADD": (11, {0: ("b", 0)}), "MEAN": (27, {0: ("b", 1)})}


def test_a_variable_has_its_kept_place_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the offset of its tensor, which TFLM obeys, and what `apply` says of the arena."""
    model, plan = plan_pair(remembering(), tmp_path)
    shared = mp.load_plan(plan).shared
    assert shared is not None
    capsys.readouterr()
    words = ["apply", str(model), "--plan", str(plan), "-o", str(tmp_path / "w.tflite")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"shared  {shared.arena:,} bytes" in said
    assert "of arena with b; 2 buffers kept" in said
    written = load(tmp_path / "w.tflite")
    places = {each.id: each.offset for each in shared.kept}
    names = [each.name for each in written.tensors()]
    assert written.offsets[names.index("state")] == places["state"]
    answer = ask(tmp_path / "w.tflite")
    if answer is not None:  # the head holds the variable
        top = max(each.offset + each.size for each in shared.kept)
        assert answer.head == max(top, mp.load_plan(plan).peak or 0)


def test_scratch_that_tflm_would_place_elsewhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that no file is written where another program may keep bytes, but a header is."""
    model, plan = plan_pair(remembering(OperatorInfo("MEAN", (3, 4), (5,))), tmp_path)
    made = mp.load_plan(plan)
    moved = mp.Plan(  # above all, where no first fit would place it
        ids=made.ids,
        size=made.size,
        offsets=[
            1024 if id.endswith("(workspace)") else at
            for id, at in zip(made.ids, made.offsets, strict=True)
        ],
        stats={"shared": {**made.stats["shared"], "arena": 1056}},
        fingerprint=made.fingerprint,
    )
    mp.save(moved, plan)
    words = ["apply", str(model), "--plan", str(plan)]
    assert main([*words, "-o", str(tmp_path / "w.tflite")]) == 2
    assert "TFLM would place kernel scratch at" in capsys.readouterr().err
    assert not (tmp_path / "w.tflite").exists()
    assert main([*words, "--shim", str(tmp_path / "w.h")]) == 0
    assert "MEMORY_PLAN_ARENA_BYTES 1056" in (tmp_path / "w.h").read_text()
