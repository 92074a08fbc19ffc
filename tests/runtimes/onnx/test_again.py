"""Tests of ONNX models in which operators run again: the files, and what onnxruntime does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import again_oracle as oracle
import onnx
from onnx_models import model, node, value
from ort_orders import random_model

import memplan as mp
from memplan.levers.pipeline import arrange
from memplan.levers.rewrite.again import Emitted
from memplan.levers.rewrite.again.columns import again_of
from memplan.levers.rewrite.again.emitted import emit
from memplan.programs.graph import lay_out
from memplan.programs.sources import lay_out_again, load
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.measure import measure_difference
from memplan.runtimes.onnx.read import read_bytes
from memplan.runtimes.onnx.write.again import write_again
from memplan.runtimes.onnx.write.writer import OnnxFile

pytestmark = pytest.mark.slow


def step(depth: int = 5) -> Any:
    """Return a model that reads on the way back what it made on the way there.

    One result is read through a view, whose shape is computed from a shape.
    """
    nodes = [node("Sin", f"x{i}", f"x{i + 1}") for i in range(depth)]
    nodes += [node("Shape", "x1", "shape"), node("Reshape", "x2 shape", "v")]
    read = {2: "v"}
    last = f"x{depth}"
    for i in reversed(range(depth)):
        nodes.append(node("Mul", f"{last} {read.get(i + 1, f'x{i + 1}')}", f"g{i}"))
        last = f"g{i}"
    return model(nodes, [value("x0", [64, 64])], [value("g0", [64, 64])])


def saved(made: Any, folder: Path) -> Path:
    """Return the path of a model that was written."""
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def measured(path: Path) -> int:
    """Return what onnxruntime needs, as it says itself."""
    found = arrange(OnnxFile(path, fused=False)).best.written
    assert found.how.startswith("measured")
    return found.arena


def test_a_file_with_re_runs(tmp_path: Path) -> None:
    """Tests that onnxruntime makes the same bits in less memory, and what the file has."""
    pytest.importorskip("onnxruntime")
    path = saved(step(), tmp_path)
    found = arrange(
        OnnxFile(path, takes_offsets=False, fused=False), in_place=True, again=True, capacity=66_000
    )
    assert found.fits
    assert found.again is not None
    assert found.again.repeated > 0
    mp.verify_recompute(found.given.loaded, found.again)
    assert found.comparison is not None
    assert found.comparison.difference == 0
    written = onnx.load_from_string(found.data)
    onnx.checker.check_model(written, full_check=True)
    names = [name for each in written.graph.node for name in each.output]
    assert len(names) == len({*names})
    assert any(name.endswith("(again)") for name in names)
    assert [each.name for each in written.graph.output] == ["g0"]
    out = tmp_path / "again.onnx"
    out.write_bytes(found.data)
    assert measured(out) < measured(path)


def test_random_models_compute_the_same(tmp_path: Path) -> None:
    """Tests random sequences of random models, bit for bit, and the load of what is read again."""
    pytest.importorskip("onnxruntime")
    repeated = 0
    for seed in range(25):
        draw = random.Random(seed)
        made = random_model(draw)
        path = saved(made, tmp_path)
        data = path.read_bytes()
        given = lay_out_again(load(path), in_place=False)
        assert given.layout is not None
        question = again_of(given.layout)
        runs = oracle.random_runs(question.problem, draw)
        repeated += len(runs) - len(question.problem)
        emitted = emit(question, runs)
        written = write_again(data, given.layout.graph, emitted, path)
        assert measure_difference(data, written) == 0
        again = lay_out_again(read_bytes(written, path, Options()), in_place=False)
        assert again.problem.max_load == lay_out(emitted.graph).problem.max_load
    assert repeated > 25


def test_an_output_that_nothing_reads_is_renamed(tmp_path: Path) -> None:
    """Tests that a copy of a node makes no name twice."""
    nodes = [node("Split", "x", "a b", axis=0), node("Relu", "a", "c"), node("Add", "c a", "y")]
    path = saved(model(nodes, [value("x", [4, 8])], [value("y", [2, 8])], opset=13), tmp_path)
    given = lay_out_again(load(path), in_place=False)
    assert given.layout is not None
    question = again_of(given.layout)
    emitted = emit(question, (0, 1, 0, 2))
    written = onnx.load_from_string(
        write_again(path.read_bytes(), given.layout.graph, emitted, path)
    )
    onnx.checker.check_model(written)
    assert [list(each.output) for each in written.graph.node][2] == ["a (again)", "b (again)"]


def test_operators_of_another_file_are_refused(tmp_path: Path) -> None:
    """Tests that one sentence names the file."""
    path = saved(step(), tmp_path)
    graph = load(path).graph
    assert graph is not None
    other = saved(step(2), tmp_path)
    emitted = Emitted(graph, tuple(range(len(graph.operators))))
    with pytest.raises(mp.FormatError, match="its operators are not those of the file"):
        write_again(other.read_bytes(), graph, emitted, other)
