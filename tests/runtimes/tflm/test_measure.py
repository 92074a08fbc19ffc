"""Tests that TensorFlow Lite Micro's planner is followed to the byte, and obeys our plans."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, chain, constant, floats, for_each_model
from tflite_random import measure_heads, random_program
from tflite_written import (
    WRITTEN,
    written,
)

from memplan import plan_model, solve
from memplan.base.notes import Code
from memplan.cli import main
from memplan.programs.sources.measuring import join_notes, measure
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm import arena
from memplan.runtimes.tflm import measure as tflite_micro
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.tflm.arena import minimal_arena
from memplan.runtimes.tflm.measure import Request, compute_head, list_requests
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, SubGraph, load, parse
from memplan.view.units import exact

pytestmark = pytest.mark.slow

every_model = for_each_model()


@every_model
def test_tflm_plans_every_model_as_re_implemented(path: Path | None) -> None:
    """Tests that both heads are the same number of bytes, scratch and sub-graphs included."""
    pytest.importorskip("tflite_micro")
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    figure = measure("tflite", path, Options())
    assert figure is not None
    assert figure.how == "measured"
    assert figure.bytes == compute_head(load(path))


@pytest.mark.parametrize("name", WRITTEN)
def test_tflm_plans_small_models_as_re_implemented(tmp_path: Path, name: str) -> None:
    """Tests control flow, pins, scratch of kernels and tensors that no operator uses."""
    pytest.importorskip("tflite_micro")
    path = written(tmp_path, name)
    figure = measure("tflite", path, Options())
    assert figure is not None
    assert figure.how == "measured"
    assert figure.bytes == compute_head(load(path))


@every_model
def test_our_peak_is_never_above_tflm_s(path: Path | None) -> None:
    """Tests the plan against the re-implemented one, which is TFLM's."""
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    plan = solve(tflite.read(path, Options()).problem)
    assert plan.peak is not None
    assert plan.peak <= compute_head(load(path))


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.deep)])
def test_no_bound_is_above_tflm_s_head(count: int, tmp_path: Path) -> None:
    """Tests random programs with tensors that are read by nothing, unused, variable, or in and out.

    The runtime is the oracle: our plan and its bound are never above the head that it measures, and
    the re-implementation is equal to it.
    """
    pytest.importorskip("tflite_micro")
    rng = random.Random(count)
    files = [Writer().write(random_program(rng)) for _ in range(count)]
    path = tmp_path / "model.tflite"
    for data, head in zip(files, measure_heads(files), strict=True):
        path.write_bytes(data)
        plan = solve(tflite.read(path, Options()).problem)
        assert head == compute_head(parse(data, "random"))
        assert plan.peak is not None
        assert plan.lower_bound <= plan.peak <= head


RUN = """
import json, os, sys, tempfile
import flatbuffers, numpy as np
from tflite_micro import runtime
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as S

path, offsets, given = json.load(sys.stdin)
data = open(path, "rb").read()
model = S.ModelT.InitFromPackedBuf(data, 0)
count = len(model.subgraphs[0].outputs)

def outputs(data):
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 26)
    rng, found = np.random.default_rng(7), []
    for _ in range(2):
        for index in range(len(model.subgraphs[0].inputs)):
            details = interpreter.get_input_details(index)
            shape, dtype = details["shape"], np.dtype(details["dtype"])
            value = np.asarray(rng.standard_normal(shape) * 50).astype(dtype)
            if given is not None:
                value = np.full(shape, given[index], dtype)
            interpreter.set_input(value, index)
        interpreter.invoke()
        found += [np.array(interpreter.get_output(index)) for index in range(count)]
    return found, interpreter

before, _ = outputs(data)
plan = S.BufferT()
plan.data = np.array([1, len(model.subgraphs), len(offsets), *offsets], "<i4").view(np.uint8)
entry = S.MetadataT()
entry.name, entry.buffer = "OfflineMemoryAllocation", len(model.buffers)
model.buffers.append(plan)
model.metadata = [*(model.metadata or []), entry]
builder = flatbuffers.Builder(len(data))
builder.Finish(model.Pack(builder), b"TFL3")
after, interpreter = outputs(bytes(builder.Output()))
interpreter.print_allocations()
same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True))
print(json.dumps([same, float(np.ravel(before[0])[0])]))
"""


def obeyed(path: Path, in_place: bool, given: list[float] | None = None) -> tuple[int, bool, float]:
    """Return the head of TFLM under our plan less our peak; if its outputs stay; the first."""
    loaded = tflite.read(path, Options(in_place=in_place))
    plan = solve(loaded.problem)
    assert loaded.layout is not None
    assert plan.offsets is not None
    assert plan.peak is not None
    offsets = [-1] * sum(1 for _ in load(path).tensors())
    for row, storage in enumerate(loaded.layout.rows):
        for tensor in loaded.layout.storages[storage].tensors:
            if tensor < len(offsets):
                offsets[tensor] = int(plan.offsets[row])
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([str(path), offsets, given]).encode(),
        capture_output=True,
        check=True,
    )
    found = tflite_micro._HEAD.search(run.stderr.decode())
    assert found is not None
    same, first = json.loads(run.stdout.splitlines()[-1])
    return int(found.group(1)) - plan.peak, same, first


@pytest.mark.parametrize("in_place", [False, True])
@every_model
def test_tflm_obeys_our_plan_and_computes_the_same(path: Path | None, in_place: bool) -> None:
    """Tests lifetimes, scratch and in-place choices by running them: head and outputs."""
    pytest.importorskip("tflite_micro")
    if path is None or any(find_folded(load(path)).values()):
        pytest.skip("TFLM does not run this file as it is")
    assert obeyed(path, in_place)[:2] == (0, True)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("looping", [1.0], 16.0),  # eight ones are doubled until they are 100 or more together
        ("branching", [1, 0.5], np.tanh(1.0)),
        ("branching", [0, 0.5], 2 * np.tanh(0.5)),
        ("branching to one", [1, 0.5], 2.0),
        ("branching to one", [0, 0.5], 2 * np.tanh(0.5)),
    ],
)
def test_control_flow_computes_the_same_under_our_plan(
    tmp_path: Path, name: str, given: list[float], expected: float, in_place: bool
) -> None:
    """Tests that what we take as dead in a branch or loop is dead."""
    pytest.importorskip("tflite_micro")
    above, same, first = obeyed(written(tmp_path, name), in_place, given)
    assert (above, same) == (0, True)
    assert first == pytest.approx(expected, rel=1e-6)


def test_the_order_is_by_size_and_then_the_last_first() -> None:
    """Tests the worked example: 32 bytes first, then of two equal ones the one added last."""
    model = chain("RELU", "RELU")
    sizes = (4, 8, 4)
    tensors = tuple(floats(f"t{index}", size) for index, size in enumerate(sizes))
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=tensors),))
    asked = [Request(16, 0, 1, of=0), Request(32, 1, 2, of=1), Request(16, 2, 2, of=2)]
    assert list(list_requests(model)) == asked
    assert compute_head(model) == 48


def test_nothing_to_plan_needs_nothing() -> None:
    """Tests a model whose only tensor is a constant."""
    model = Model("m", (SubGraph("", (constant("c", "int8", 4),), (), (), (0,)),))
    assert compute_head(model) == 0


def test_the_figure_is_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a figure says how it came to be, also where TFLM is not installed or refuses."""
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU", "NO_SUCH_OPERATOR")))
    figure = measure("tflite", path, Options())
    assert figure is not None
    assert (figure.how, figure.bytes) == ("re-implemented", 128)
    path.write_bytes(Writer().write(chain("RELU")))
    monkeypatch.setattr(tflite_micro, "ask", lambda *_: None)
    figure = measure("tflite", path, Options())
    assert figure is not None
    assert figure.how == "re-implemented"


def test_a_runtime_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the child has a time limit, after which the re-implementation answers."""
    pytest.importorskip("tflite_micro")
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU")))
    monkeypatch.setattr(tflite_micro, "_TIMEOUT", 0.001)
    figure = measure("tflite", path, Options())
    assert figure is not None
    assert figure.how == "re-implemented"


def test_another_batch_is_not_measured(tmp_path: Path) -> None:
    """Tests that sizes which are not in the file go to the re-implementation."""
    model = chain("RELU")
    tensors = tuple(floats(f"t{i}", 1, 8, open_axes=(0,)) for i in range(2))
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=tensors),))
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(model))
    figure = measure("tflite", path, Options(dims={"batch": 4}))
    assert figure is not None
    assert (figure.how, figure.bytes) == ("re-implemented", 256)


def test_a_head_above_that_of_the_planned_sizes_is_an_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that TFLM's greedy placing alone is none, and that what it does not explain is one."""
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU")))
    size = compute_head(load(path))
    for head, codes in ((size, []), (size + 16, [Code.MEASURED_ABOVE])):
        answer = tflite_micro.Answer("TFLM", head)
        monkeypatch.setattr(tflite_micro, "ask", lambda path, model, answer=answer: answer)
        figure = measure("tflite", path, Options())
        assert figure is not None
        assert [note.code for note in join_notes((), [figure])] == codes


@pytest.mark.parametrize("spare", [-16, 0])
def test_a_capacity_is_of_the_whole_arena(
    spare: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the smallest arena that TFLM accepts: it fits, and 16 bytes less do not."""
    pytest.importorskip("tflite_micro")
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU", "TANH", shape=(64, 64))))
    arena = minimal_arena(path)
    assert arena is not None
    capacity = arena + spare
    assert main(["inspect", str(path), "--capacity", str(capacity)]) == 0
    said = capsys.readouterr().out
    verdict = "It fits into" if spare == 0 else "It does not fit into"
    assert said.startswith(f"{verdict} {exact(capacity)} of arena.")
    assert "64-bit" in said
    assert main(["plan", str(path), "--capacity", str(capacity), "--json"]) == (spare < 0)
    found = json.loads(capsys.readouterr().out)
    answer = tflite_micro.ask(path)
    assert answer is not None
    assert found["arena"]["capacity"] == capacity
    assert found["arena"]["beside"] == answer.tail
    assert found["capacity"] == (capacity - answer.tail if spare == 0 else found["capacity"])
    planned = plan_model(path, capacity=capacity)
    assert planned.plan.has_offsets == (spare == 0)


def test_what_is_unknown_is_never_said_to_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a machine without TFLM: the plan fits, what is beside it is unknown, and is a note."""
    monkeypatch.setattr(arena, "ask", lambda *_: None)
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(chain("RELU")))
    assert main(["inspect", str(path), "--capacity", "128", "--no-runtime"]) == 0
    said = capsys.readouterr().out
    assert "It fits" not in said
    assert said.startswith("The planned part fits into 128 bytes of arena; what the runtime needs")
    assert main(["inspect", str(path), "--capacity", "112", "--no-runtime"]) == 0
    assert capsys.readouterr().out.startswith("It does not fit into 112 bytes of arena.")
    assert main(["plan", str(path), "--capacity", "128", "--strict"]) == 2
    assert "[arena-unmeasured]" in capsys.readouterr().err
