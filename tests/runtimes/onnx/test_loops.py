"""Tests of ONNX loops whose states change their shape from round to round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
from onnx_models import BOOL, INT64, graph, ints, loaded, model, node, on_disk, value, weight

from memplan.base.errors import FormatError
from memplan.base.notes import Code
from memplan.programs.sources.loaded import Loaded
from memplan.programs.sources.measuring import join_notes, measure
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read

ROW = 64 * 4  # bytes


def growing(step: list[Any], rounds: int | None = 5, weights: Any = ()) -> Any:
    """Return a loop with a state of four rows, of which `step` makes the next one."""
    steps = [*step, node("Identity", "c", "c2")] if "c2" not in step[-1].output else step
    body = graph(
        steps,
        [value("i", [], INT64), value("c", [], BOOL), value("s", None)],
        [value("c2", [], BOOL), value("s2", None)],
        weights,
        "body",
    )
    go = weight("t", [], BOOL)
    go.raw_data = b"\1"
    inputs = [value("x", [4, 64])]
    if rounds is None:
        inputs.append(value("k", [], INT64))
    nodes = [node("Loop", "k t x", "y", body=body), node("Relu", "y", "z")]
    held = [go] if rounds is None else [go, ints("k", rounds)]
    return model(nodes, inputs, [value("z", None)], held, opset=17)


def sizes(found: Loaded) -> dict[str, int]:
    """Return the bytes of each buffer, in rows."""
    return dict(
        zip(found.problem.ids, (int(size) // ROW for size in found.problem.size), strict=True)
    )


APPEND = node("Concat", "s x", "s2", axis=0)
DOUBLE = node("Concat", "s s", "s2", axis=0)


@pytest.mark.parametrize(
    ("step", "before", "after"), [(APPEND, 20, 24), (DOUBLE, 64, 128)], ids=["rows", "doubled"]
)
def test_a_state_that_grows_is_planned_as_in_the_last_round(
    tmp_path: Path, step: Any, before: int, after: int
) -> None:
    """Tests that no size is asked for, and that the result is copied beside the last state."""
    found = loaded(tmp_path, growing([step]))
    rows = sizes(found)
    assert (rows["s"], rows["s2"], rows["y"], rows["z"]) == (before, after, after, after)
    assert found.problem.max_load == (before + 2 * after + 3) * ROW  # and three single numbers
    assert found.notes == ()
    given = read(tmp_path / "model.onnx", Options(dims={"y:0": after, "y:1": 64}))
    assert given.problem.max_load == found.problem.max_load


def test_a_body_without_the_next_state_is_refused(tmp_path: Path) -> None:
    """Tests a damaged body, which has fewer results than states."""
    wrong = growing([APPEND])
    loop = next(each for each in wrong.graph.node if each.op_type == "Loop")
    del loop.attribute[0].g.output[1]
    with pytest.raises(FormatError):
        loaded(tmp_path, wrong)


def test_a_state_that_shrinks_is_planned_as_in_the_first_round(tmp_path: Path) -> None:
    """Tests that what is behind the loop is as small as it is after the last round."""
    step = node("Slice", "s from to axis", "s2")
    weights = [ints("from", [0]), ints("to", [-1]), ints("axis", [0])]
    found = loaded(tmp_path, growing([step], 3, weights))
    rows = sizes(found)
    assert (rows["s"], rows["s2"], rows["y"]) == (4, 3, 1)
    assert found.notes == ()


def test_loops_without_rounds_or_with_the_same_shape(tmp_path: Path) -> None:
    """Tests the ends: a loop that never runs, and one whose state stays as it is."""
    assert sizes(loaded(tmp_path, growing([APPEND], 0)))["y"] == 4
    found = loaded(tmp_path, growing([node("Add", "s x", "s2")]))
    assert sizes(found)["s2"] == sizes(found)["y"] == 4
    assert found.notes == ()


def test_rounds_that_are_not_known_are_noted(tmp_path: Path) -> None:
    """Tests that the result is asked for, and that the first round is planned with a note."""
    big = weight("big", [])
    ends = [APPEND, node("ReduceMax", "s", "r", keepdims=0), node("LessOrEqual", "r big", "c2")]
    for what in (growing([APPEND], None), growing(ends, weights=[big])):
        path = on_disk(tmp_path, what)
        with pytest.raises(FormatError, match="y"):
            read(path, Options())
        found = read(path, Options(dims={"y:0": 24, "y:1": 64}))
        (note,) = found.notes
        assert note.code is Code.DIM_ASSUMED
        assert note.tensors[0] == "s"
        assert sizes(found)["s2"] == 8


@pytest.mark.slow
def test_the_runtime_needs_what_is_planned_or_there_is_an_alarm(tmp_path: Path) -> None:
    """Tests the figure of onnxruntime: a loop that is planned too small is an alarm."""
    pytest.importorskip("onnxruntime")
    ends = [APPEND, node("ReduceMax", "s", "r", keepdims=0), node("LessOrEqual", "r big", "c2")]
    for what, dims, alarms in (
        (growing([APPEND]), {}, 0),
        (growing([node("Add", "s x", "s2")]), {}, 0),
        (growing(ends, weights=[weight("big", [])]), {"y:0": 24, "y:1": 64}, 1),
    ):
        path = on_disk(tmp_path, what)
        figure = measure("onnx", path, Options(dims=dims))
        assert figure is not None
        codes = [note.code for note in join_notes((), [figure])]
        assert codes == [Code.MEASURED_ABOVE] * alarms
        if not alarms:
            load = read(path, Options(dims=dims)).problem.max_load
            assert load - 3 * ROW <= figure.bytes <= load
