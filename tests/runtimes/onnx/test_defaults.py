"""Tests of inputs with a default, which a caller may replace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import INT64, graph, ints, model, node, on_disk, value, weight

import memplan as mp
from memplan.base.notes import Code, Note
from memplan.cli import main

REST = [node("Relu", "r", "y")]


def _model(nodes: list[Any], weights: list[Any], version: int = 10) -> Any:
    """Return a model whose weights are inputs too."""
    inputs = [value(one.name, list(one.dims), one.data_type) for one in weights]
    made = model(nodes, [value("x", [2, 3]), *inputs], [value("y", None)], weights)
    made.ir_version = version
    return made


def _branches(other: list[Any]) -> dict[str, Any]:
    return {
        "then_branch": graph([node("Relu", "x", "a")], (), [value("a", None)], (), "then"),
        "else_branch": graph(other, (), [value("b", None)], (), "else"),
    }


def _choose(*other: Any) -> Any:
    """Return a model of an If whose condition has a default."""
    condition = onnx.TensorProto(name="c", data_type=9, raw_data=b"\1")
    return _model([node("If", "c", "y", **_branches(list(other)))], [condition])


CASES = {
    "reshape": (_model([node("Reshape", "x s", "r"), *REST], [ints("s", [3, 2])]), "s"),
    "slice": (
        _model([node("Slice", "x a b", "r"), *REST], [ints("a", [0, 0]), ints("b", [1, 2])]),
        "a b",
    ),
    "computed": (
        _model(
            [node("Mul", "s t", "u"), node("Reshape", "x u", "r"), *REST],
            [ints("s", [3, 1]), ints("t", [1, 2])],
        ),
        "s t",
    ),
    "one of several": (
        _model(
            [node("Add", "x w", "q"), node("Reshape", "q s", "r"), *REST],
            [weight("w", [3]), ints("s", [3, 2])],
        ),
        "s",
    ),
    "scalars": (
        _model(
            [node("MelWeightMatrix", "a b c d e", "r"), *REST],
            [ints("a", 4), ints("b", 16), ints("c", 8000), weight("d", []), weight("e", [])],
        ),
        "a b",
    ),
    "branches of other sizes": (_choose(node("Concat", "x x", "b", axis=0)), "c"),
    "branches of other ranks": (
        _choose(node("Flatten", "x", "d", axis=0), node("Squeeze", "d", "b")),
        "c",
    ),
    # These have the same sizes whatever the values are.
    "values only": (_model([node("Add", "x w", "y")], [weight("w", [3])]), ""),
    "one size": (_model([node("Reshape", "x s", "r"), *REST], [ints("s", [-1])]), ""),
    "branches of one size": (_choose(node("Neg", "x", "b")), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_rest_on_a_default_have_a_note(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests which defaults are named, and that notes are errors where they are asked for."""
    made, names = CASES[name]
    path = on_disk(tmp_path, made)
    notes = [note for note in mp.load(path).notes if note.code is Code.DIM_ASSUMED]
    assert [note.tensors for note in notes] == ([tuple(names.split())] if names else [])
    assert main(["plan", str(path), "--strict", "--no-runtime"]) == (2 if names else 0)
    assert ("which a caller may replace" in capsys.readouterr().err) == bool(names)
    before = type(made)()
    before.CopyFrom(made)
    before.ir_version = 3  # onnxruntime replaces no weights then
    assert mp.load(on_disk(tmp_path, before)).notes == ()


def test_a_default_of_a_version_can_be_replaced(tmp_path: Path) -> None:
    """Tests onnxruntime itself: since version 4 a caller may replace a default, before not."""
    runtime = pytest.importorskip("onnxruntime")
    np = pytest.importorskip("numpy")
    made, _ = CASES["reshape"]
    feeds = {"x": np.zeros((2, 3), "f4"), "s": np.array([1, 6])}
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    for version in (3, 4, 10):
        made = _model([node("Reshape", "x s", "r"), *REST], [ints("s", [3, 2])], version)
        session = runtime.InferenceSession(made.SerializeToString(), options)
        if version < 4:
            with pytest.raises(Exception, match="Invalid input name"):
                session.run(None, feeds)
        else:
            assert session.run(None, feeds)[0].shape == (1, 6)
        noted = mp.load(on_disk(tmp_path, made)).notes
        assert [type(note) for note in noted] == [Note] * (version >= 4)


def test_other_values_of_a_default_are_planned(tmp_path: Path) -> None:
    """Tests that sizes that are given count, and need no note."""
    path = on_disk(tmp_path, _model([node("Tile", "x k", "r"), *REST], [ints("k", [1, 1])]))
    loaded = mp.load(path)
    assert [note.tensors for note in loaded.notes] == [("k",)]
    assert loaded.problem.size.tolist() == [256, 256]
    larger = mp.load(path, dims={"r:0": 200, "r:1": 3})
    assert larger.notes == ()
    assert larger.problem.size.tolist() == [2560, 2560]


def test_what_is_computed_from_defaults_takes_memory(tmp_path: Path) -> None:
    """Tests that it is not done before the run, as it is for weights that no caller replaces."""
    nodes = [node("Transpose", "w", "v"), node("MatMul", "x v", "y")]
    made = _model(nodes, [weight("w", [5, 3])])
    assert mp.load(on_disk(tmp_path, made)).problem.ids == ("v", "y")
    made.ir_version = 3
    assert mp.load(on_disk(tmp_path, made)).problem.ids == ("y",)
    made.ir_version = 10
    del made.graph.input[1:]
    assert mp.load(on_disk(tmp_path, made)).problem.ids == ("y",)


def test_a_loop_with_a_default_count(tmp_path: Path) -> None:
    """Tests that what a loop gathers rests on the number of its rounds."""
    body = graph(
        [node("Identity", "go", "on"), node("Relu", "s", "t"), node("Neg", "s", "p")],
        [value("i", [], INT64), value("go", [], 9), value("s", [2, 3])],
        [value("on", [], 9), value("t", [2, 3]), value("p", [2, 3])],
        (),
        "body",
    )
    made = _model([node("Loop", "n - x", "z r", body=body), *REST], [ints("n", 4)])
    loaded = mp.load(on_disk(tmp_path, made))
    assert [note.tensors for note in loaded.notes] == [("n",)]
    del made.graph.input[1:]
    assert mp.load(on_disk(tmp_path, made)).notes == ()
