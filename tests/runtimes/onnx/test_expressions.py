"""Tests of dimensions whose names are expressions of other names."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import loaded, model, node, value

from memplan.base.errors import FormatError
from memplan.runtimes.onnx.read.sizes_expressions import evaluate, names_in

DIMS = {"height": 17, "batch": 3, "seq": 5, "s0": 7, "s77": 9}

# What tools write, and its size with the dimensions above.
WRITTEN = {
    "floor(height/2 - 1/2) + 1": 9,
    "2*batch": 6,
    "batch*seq": 15,
    "Min(batch, seq)": 3,
    "Max(1, s0, batch)": 7,
    "ceiling(height/2)": 9,
    "s0//2": 3,
    "((s77 - 1)//2) + 1": 5,
    "batch**2": 9,
    "batch**2*seq": 45,
    "-batch + 10": 7,
    "height - batch - seq": 9,
    "2*-batch+10": 4,
    "Mod(height, 5)": 2,
    "(batch - height) % seq": 1,
    "floor(-batch/2) + 9": 7,
    "CeilDiv(height, 4)": 5,
    "FloorDiv(height, 4)": 4,
    "Abs(batch - height)": 14,
    "12*(height/12)": 17,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_expressions_are_exact(text: str) -> None:
    """Tests what the tools write."""
    assert evaluate(text, DIMS) == WRITTEN[text]


def test_values_are_those_of_python() -> None:
    """Tests random expressions against Python's own arithmetic on fractions."""
    rng = random.Random(0)
    there = {**{name: Fraction(size) for name, size in DIMS.items()}, "F": Fraction}
    there |= {"floor": lambda one: Fraction(floor(one)), "ceiling": lambda one: Fraction(ceil(one))}

    def draw(depth: int) -> tuple[str, str]:
        """Return an expression, and the same one for Python."""
        if depth == 0:
            number = str(rng.randint(1, 9))
            return rng.choice([(number, f"F({number})"), *((name, name) for name in DIMS)])
        one, other = draw(depth - 1), draw(depth - 1)
        kind = rng.choice(["+", "-", "*", "/", "//", "%", "floor", "ceiling"])
        if kind in there:
            return f"{kind}({one[0]})", f"{kind}({one[1]})"
        return f"({one[0]} {kind} {other[0]})", f"({one[1]} {kind} {other[1]})"

    sizes = 0
    for _ in range(500):
        ours, theirs = draw(rng.randint(1, 4))
        try:
            expected = Fraction(eval(theirs, {}, dict(there)))
        except ZeroDivisionError:
            assert evaluate(ours, DIMS) is None
            continue
        is_size = names_in(ours) and expected.denominator == 1 and expected >= 0
        assert evaluate(ours, DIMS) == (expected if is_size else None), ours
        sizes += bool(is_size)
    assert sizes > 50


@pytest.mark.parametrize(
    "text",
    [
        *(
            "N",
            "batch-size",
            "unk__1",
            "7",
            "",
            "2*",
            "f(batch)",
            "1.5*batch",
            "batch)",
            "batch seq",
        ),
        "(" * 100 + "batch" + ")" * 100,
        "-" * 100 + "batch",
        "9" * 30 + "*batch",
        "batch*" * 100 + "batch",
        "Mod(batch)",
        "__import__('os')",
        "batch\u0663",
    ],
)
def test_what_is_no_expression_is_a_name(text: str) -> None:
    """Tests plain names, texts that cannot be read, and those beyond the limits."""
    assert names_in(text) == frozenset()
    assert evaluate(text, DIMS) is None


@pytest.mark.parametrize(
    "text",
    ["batch/2", "batch - 9", "batch/(seq - 5)", "batch**seq**seq", "batch**-1", "other + batch"],
)
def test_what_has_no_size(text: str) -> None:
    """Tests a fraction, a negative number, a division by 0, a large power, and an open name."""
    assert names_in(text)
    assert evaluate(text, DIMS) is None


def own(declared: list[int | str]) -> Any:
    """Return a model with an operator that no library knows, and its declared result."""
    what = model(
        [onnx.helper.make_node("Own", ["x"], ["r"], "it", domain="com.example")],
        [value("x", ["batch", "height"])],
        [value("r", declared)],
    )
    what.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    return what


def test_declared_results_are_evaluated(tmp_path: Path) -> None:
    """Tests sizes of the result of an operator that only the file describes."""
    what = own(["2*batch", "floor(height/2 - 1/2) + 1"])
    found = loaded(tmp_path, what, batch=3, height=18)
    assert found.graph is not None
    assert found.graph.tensors[-1].shape == (6, 9)
    assert not found.notes
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, what)
    assert 'open: batch (axis 0 of "x"), height (axis 1 of "x"); give' in refused.value.message


def test_only_names_are_asked_for(tmp_path: Path) -> None:
    """Tests inputs whose sizes are expressions, of names that stand nowhere else."""
    what = model(
        [node("Add", "x z", "y")],
        [value("x", ["past + 1", "2*heads"]), value("z", ["past + 1", 1])],
        [value("y", None)],
    )
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, what)
    asked = refused.value.message.partition("open: ")[2].partition(";")[0]
    assert asked == 'heads (axis 1 of "x"), past (axis 0 of "x")'
    found = loaded(tmp_path, what, past=4, heads=3)
    assert found.graph is not None
    assert found.graph.tensors[-1].shape == (5, 6)
    found = loaded(tmp_path, what, **{"past + 1": 8, "heads": 3})
    assert found.graph is not None
    assert found.graph.tensors[-1].shape == (8, 6)


def test_an_expression_without_a_size_is_asked_for_itself(tmp_path: Path) -> None:
    """Tests half of an odd size."""
    with pytest.raises(FormatError, match=r'open: batch/2 \(axis 0 of "r"\); give'):
        loaded(tmp_path, own(["batch/2", "height"]), batch=3, height=4)


def test_an_expression_that_is_wrong_does_not_count(tmp_path: Path) -> None:
    """Tests an output whose declared size is another one than the operator makes."""
    what = model([node("Exp", "x", "y")], [value("x", ["N"])], [value("y", ["2*N"])])
    found = loaded(tmp_path, what, N=4)
    assert [note.code for note in found.notes] == ["shape-overridden"]
    assert '"y" is [4], not [8]' in found.notes[0].text
