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
from tflite_models import Writer, chain

from memplan.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "together.md"
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
    words = ["plan", "wake.tflite", "vad.tflite", "--together", "--keep", "outputs"]
    assert main([*words, "-o", "plans", "-q"]) == 0
    expected, largest = [], 0
    for name in ("wake", "vad"):
        plan = ["--plan", f"plans/{name}.plan.json", "--shim", f"{name}.h", "--name", name]
        assert main(["apply", f"{name}.tflite", *plan]) == 0
        text = Path(f"{name}.h").read_text()
        expected.append(re.findall(r"^ +\{(\d+)\},$", text, re.M))
        largest = max(largest, int(re.findall(r"_BYTES (\d+)", text)[0]))
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
    assert rest == f"1 {largest}"
