"""Tests of ONNX operators that neither the library nor a rule knows: their sizes are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx_models import BOOL, FLOAT, graph, loaded, model, node, on_disk, value

from memplan.base.errors import FormatError
from memplan.base.notes import Code
from memplan.programs.sources.loaded import Loaded
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read

X = value("x", [4, 8])


def custom(kind: str, inputs: str, outputs: str, domain: str = "my.ops", **others: Any) -> Any:
    """Return an operator of another domain."""
    return node(kind, inputs, outputs, domain=domain, **others)


def built(*nodes: Any, inputs: Any = (X,), outputs: str = "y") -> Any:
    """Return a model with these operators."""
    made = model(nodes, list(inputs), [value(name, None) for name in outputs.split()], opset=17)
    made.opset_import.add(domain="my.ops", version=1)
    made.opset_import.add(domain="ai.onnx.ml", version=3)
    return made


def bytes_of(found: Loaded) -> dict[str, int]:
    """Return the bytes of all tensors."""
    assert found.graph is not None
    return {tensor.name: tensor.bytes for tensor in found.graph.tensors}


def assumed(found: Loaded) -> list[tuple[str, ...]]:
    """Return the tensors of notes on what was assumed."""
    return [note.tensors for note in found.notes if note.code is Code.DIM_ASSUMED]


def given(**shapes: tuple[int, ...]) -> dict[str, int]:
    """Return sizes by "TENSOR:AXIS"."""
    return {f"{name}:{at}": n for name, shape in shapes.items() for at, n in enumerate(shape)}


def test_sizes_of_a_custom_operator_are_given(tmp_path: Path) -> None:
    """Tests that they are asked for, and that the element type is that of the tensors around."""
    what = built(node("Relu", "x", "a"), custom("Attention", "a", "b"), node("Relu", "b", "y"))
    with pytest.raises(FormatError, match=r"give a size for each axis, like --dim b:0=2"):
        loaded(tmp_path, what)
    found = read(on_disk(tmp_path, what), Options(dims=given(b=(1, 64, 32))))
    assert bytes_of(found)["y"] == bytes_of(found)["b"] == 64 * 32 * 4
    assert assumed(found) == []


def test_element_types_are_those_that_operators_take(tmp_path: Path) -> None:
    """Tests two results, of which one is read as places; what is not known is said."""
    what = built(
        custom("Two", "x", "a i"), node("Gather", "a i", "g"), node("Cast", "g", "y", to=FLOAT)
    )
    path = on_disk(tmp_path, what)
    found = read(path, Options(dims=given(a=(4, 6), i=(3,))))
    assert (bytes_of(found)["a"], bytes_of(found)["i"], bytes_of(found)["y"]) == (96, 24, 72)
    assert assumed(found) == [("a", "i")]
    what = built(custom("P", "x", "c"), node("Where", "c x x", "y"))
    found = read(on_disk(tmp_path, what), Options(dims=given(c=(4, 8))))
    assert bytes_of(found)["c"] == 32
    assert assumed(found) == []


def test_custom_operators_in_a_row_and_in_a_branch(tmp_path: Path) -> None:
    """Tests operators that read what others of their kind make, also inside an If."""
    what = built(custom("P", "x", "a"), custom("Q", "a", "b"), node("Cast", "b", "y", to=FLOAT))
    found = read(on_disk(tmp_path, what), Options(dims=given(a=(4,), b=(7, 2))))
    assert (bytes_of(found)["a"], bytes_of(found)["y"]) == (16, 56)
    assert assumed(found) == [("a", "b")]
    branches = {
        "then_branch": graph(
            [custom("P", "x", "p"), node("Relu", "p", "t")], (), [value("t", None)]
        ),
        "else_branch": graph([node("Neg", "x", "e")], (), [value("e", None)]),
    }
    what = built(
        node("If", "c", "z", **branches), node("Exp", "z", "y"), inputs=(X, value("c", [], BOOL))
    )
    found = read(on_disk(tmp_path, what), Options(dims=given(p=(4, 8))))
    assert bytes_of(found)["p"] == bytes_of(found)["y"] == 128


def test_operators_of_classic_models(tmp_path: Path) -> None:
    """Tests a pipeline of ai.onnx.ml whose scaler the library gives no shape."""
    what = built(
        custom("Scaler", "x", "s", "ai.onnx.ml", offset=[0.0], scale=[1.0]),
        custom("LinearRegressor", "s", "r", "ai.onnx.ml", coefficients=[1.0] * 8, intercepts=[0.0]),
        node("Sigmoid", "r", "y"),
        inputs=(value("x", ["N", 8]),),
    )
    dims = {"N": 4, **given(s=(4, 8), r=(4, 1))}
    found = read(on_disk(tmp_path, what), Options(dims=dims))
    assert (bytes_of(found)["s"], bytes_of(found)["y"]) == (128, 16)
