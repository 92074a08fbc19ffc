"""Tests of symbolic sizes, and of the strides of views, which decide what shares memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import GraphError
from memplan.runtimes.torch.read.sizes import Sizes
from memplan.runtimes.torch.read.values import Meta, Value, view_strides

pytestmark = pytest.mark.slow

S = "Symbol('s77', positive=True, integer=True)"


def number(expression: str) -> int:
    """Return the value of an expression for s77 = 10."""
    meta = Meta("float32", 4, (expression,), (1,))
    return (
        Sizes([("x", meta)], {}, {"s77": 10} if "s77" in expression else {})
        .value("x", meta)
        .sizes[0]
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"Add(Mul(Integer(8), {S}), Integer(-1))", 79),
        (f"Max(Integer(3), Min({S}, Integer(7)))", 7),
        (f"Pow({S}, Integer(2))", 100),
        (f"FloorDiv({S}, Integer(3))", 3),
        (f"CeilDiv({S}, Integer(3))", 4),
        (f"ModularIndexing({S}, Integer(2), Integer(3))", 2),
        (f"PythonMod({S}, Integer(4))", 2),
        (f"Mul(Rational(1, 2), {S})", 5),
        (f"CeilToInt(FloatTrueDiv(ToFloat({S}), Float('4.0', precision=53)))", 3),
        (f"FloorToInt(IntTrueDiv({S}, Integer(4)))", 2),
        (f"TruncToInt(Mul(Float('0.25'), {S}))", 2),
    ],
)
def test_expressions(expression: str, value: int) -> None:
    """Tests that sizes are computed as torch's functions define them."""
    assert number(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "Pow(Integer(10), Integer(1000000000))",
        "FloorDiv(Integer(1), Integer(0))",
        "Integer(1.5)",
        "Integer(True)",
        "Integer()",
        "FloorDiv(Integer(1))",
        "Float('nan')",
        "Float('1e999999999')",
        "lambda: 0",
        "1 +",
        "Add(" * 5000 + "Integer(1)" + ")" * 5000,
        "Mul(" + ", ".join(["Integer(99999999999)"] * 99) + ")",
        "\0",
    ],
)
def test_expressions_that_are_none(expression: str) -> None:
    """Tests that an expression can neither run anything nor run away."""
    with pytest.raises(GraphError, match="cannot be computed"):
        number(expression)
    with pytest.raises(GraphError, match="not a whole number"):
        number("Rational(1, 2)")


shapes = st.lists(st.integers(1, 4), min_size=0, max_size=4)


@given(shapes, st.randoms(use_true_random=False))
def test_view_strides_agree_with_numpy(sizes: list[int], random: Any) -> None:
    """Tests that a reshape is a view exactly where NumPy needs no copy, with its strides."""
    axes = list(range(len(sizes)))
    random.shuffle(axes)
    array = np.zeros(sizes, np.int8).transpose(axes)
    if array.ndim and random.random() < 0.3:
        array = np.broadcast_to(array, (2, *array.shape))
    elif array.ndim and random.random() < 0.5:
        array = array[..., :: random.choice([1, 2])]
    new = [size for size in array.shape if size != 1] + [1] * random.randrange(2)
    random.shuffle(new)
    if len(new) > 1 and random.random() < 0.5:
        new[0:2] = [new[0] * new[1]]
    elif array.size % 2 == 0 and new and new[0] % 2 == 0:
        new[0:1] = [2, new[0] // 2]
    shaped = array.reshape(new)
    found = view_strides(array.shape, array.strides, new)
    assert (found is not None) == np.shares_memory(shaped, array)
    if found is not None:
        mine = Value("", "int8", 1, tuple(new), found)
        assert mine.layout == Value("", "int8", 1, tuple(new), shaped.strides).layout
