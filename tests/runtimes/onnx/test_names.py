"""Tests of tensors of sub-graphs that have the name of a tensor around them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
from onnx_models import BOOL, INT64, graph, model, node, value, weight

import memplan as mp
from memplan.cli import main

KINDS = ["made", "weight", "input", "result"]  # what has the name inside
PLACES = ["x", "w", "n", "before", "y", "end"]  # which name of the outer graph it has
VISIBLE = {"x", "w", "n", "before"}  # these exist when the sub-graph runs


def _body(kind: str, name: str, state: str | None) -> tuple[list[Any], list[Any], list[Any], str]:
    """Return operators, inputs and weights of a sub-graph, and which tensor is its result.

    It computes with "state", an input of it, or with a tensor outside where it has no inputs.
    """
    inputs = [] if state is None else [value(state, [2, 3])]
    source, weights, result = state or ("before" if name == "x" else "x"), [], "result"
    if kind == "made":  # of another shape than the tensor outside
        operators = [
            node("Concat", f"{source} {source}", name, axis=0),
            node("ReduceSum", name, "sum", keepdims=0),
            node("Add", f"{source} sum", result),
        ]
    elif kind == "weight":
        weights = [weight(name, [1, 3])]
        operators = [node("Add", f"{source} {name}", result)]
    elif kind == "input":
        inputs, operators = [value(name, [2, 3])], [node("Relu", name, result)]
    else:
        operators, result = [node("Relu", source, name)], name
    return operators, inputs, weights, result


def _model(kind: str, name: str, operator: str) -> Any:
    """Return a model with a sub-graph in which a tensor has the name of one outside."""
    operators, inputs, weights, result = _body(kind, name, None if operator == "If" else "state")
    end = value(result, [2, 3])
    if operator == "Loop":
        around = [value("i", [], INT64), value("go", [], BOOL)]
        goes = node("Identity", "go", "goes")
        outputs = [value("goes", [], BOOL), end]
        body = graph([goes, *operators], [*around, *inputs], outputs, weights, "body")
        outer = node("Loop", "n - x", "y", body=body)
    else:
        branch = graph(operators, inputs, [end], weights, "branch")
        # What either branch reads from outside, onnxruntime holds against the names of both.
        read = "before" if name == "x" else "x"
        other = graph([node("Neg", read, "negated")], [], [value("negated", [2, 3])])
        outer = node("If", "go", "y", then_branch=branch, else_branch=other)
    return model(
        [node("Add", "x w", "before"), outer, node("Mul", "y before", "end")],
        [value("x", [2, 3]), value("n", [], INT64), value("go", [], BOOL)],
        [value("end", [2, 3])],
        [weight("w", [2, 3])],
    )


@pytest.mark.parametrize("operator", ["Loop", "If"])
def test_a_name_in_a_sub_graph_hides_one_outside_or_is_refused(
    operator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a plan is that of other names, and that what onnxruntime refuses is refused."""
    path = tmp_path / "model.onnx"
    for kind, name in itertools.product(KINDS, PLACES):
        if kind == "input" and operator == "If":
            continue
        made = _model(kind, name, operator)
        path.write_bytes(made.SerializeToString())
        is_refused = kind in ("made", "result") and name in VISIBLE
        assert _is_accepted(path) in (None, not is_refused), (kind, name)
        if is_refused:
            for command in ("plan", "order", "bands"):
                assert main([command, str(path)]) == 2
                text = capsys.readouterr().err
                assert text.count("\n") == 1
                assert name in text
            continue
        sizes = sorted(mp.load(path).problem.size.tolist())
        path.write_bytes(_model(kind, "apart", operator).SerializeToString())
        assert sizes == sorted(mp.load(path).problem.size.tolist()), (kind, name)


def _is_accepted(path: Path) -> bool | None:
    """Whether onnxruntime takes a model; `None` where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    except Exception:  # the runtime has classes of its own for each reason
        return False
    return True


def test_names_are_told_apart_at_every_depth(tmp_path: Path) -> None:
    """Tests a name that three nested graphs have, each for a tensor of another shape."""
    path = tmp_path / "model.onnx"
    rows = weight("t", [1, 3])
    inner = graph([node("Add", "x t", "a")], [], [value("a", [2, 3])], [rows])
    other = graph([node("Neg", "x", "b")], [], [value("b", [2, 3])])
    middle = graph(
        [node("If", "go", "c", then_branch=inner, else_branch=other), node("Add", "c t", "d")],
        [],
        [value("d", [2, 3])],
        [weight("t", [2, 1])],
    )
    last = graph([node("Add", "x t", "e")], [], [value("e", [2, 3])])
    made = model(
        [node("If", "go", "y", then_branch=middle, else_branch=last)],
        [value("x", [2, 3]), value("go", [], BOOL)],
        [value("y", [2, 3])],
        [weight("t", [2, 3])],
    )
    path.write_bytes(made.SerializeToString())
    loaded = mp.load(path)
    assert loaded.graph is not None
    shapes = {one.name: one.shape for one in loaded.graph.tensors if one.name.endswith("t")}
    assert sorted(shapes.values(), key=str) == [(1, 3), (2, 1), (2, 3)]
    reads = [operator for operator in loaded.graph.walk() if operator.type == "Add"]
    pairs = {loaded.graph.tensors[one.inputs[1]].shape for one in reads}
    assert pairs == {(1, 3), (2, 1), (2, 3)}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("x", 'operator "Abs" in graph "g" makes tensor "x", which is an input or a weight'),
        ("w", 'operator "Abs" in graph "g" makes tensor "w", which is an input or a weight'),
        ("v", 'graph "g" has two inputs "x"'),
    ],
)
def test_what_the_caller_gives_is_not_made_again(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a name that two inputs have, or an operator and an input or weight of its graph."""
    path = tmp_path / "model.onnx"
    inputs = [value("x", [2, 3])] * (2 if name == "v" else 1)
    nodes = [node("Relu", "x", "a"), node("Add", "a w", "y"), node("Abs", "y", name)]
    made = model(nodes, inputs, [value("y", None)], [weight("w", [2, 3])])
    path.write_bytes(made.SerializeToString())
    assert _is_accepted(path) in (None, False)
    assert main(["plan", str(path)]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert sentence in text
