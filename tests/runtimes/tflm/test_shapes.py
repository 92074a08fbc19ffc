"""Tests that shapes of TFLite operators are those that LiteRT computes, for any attributes."""

from __future__ import annotations

import random
from collections import Counter
from math import prod
from typing import Any

import pytest
from rounds import rounds
from tflite_shapes import OPERATORS, draw_operator

from memplan.runtimes.tflm.operators import TABLE
from memplan.runtimes.tflm.read.model import parse
from memplan.runtimes.tflm.read.shapes import infer_shape

Shape = tuple[int, ...]


def compute_here(data: bytes) -> Shape | str | None:
    """Return the shape of the result of a file's operator, or why it cannot run."""
    main = parse(data, "m").subgraphs[0]
    (operator,) = main.operators
    try:
        return infer_shape(operator, [None if i < 0 else main.tensors[i] for i in operator.inputs])
    except ValueError as why:
        return str(why)


def compute_there(litert: Any, data: bytes) -> Shape | None:
    """Return the shape that LiteRT computes; `None` if it refuses the operator, or makes nothing.

    A window that is larger than its input makes nothing.
    """
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        runtime = litert.Interpreter(model_content=data, experimental_op_resolver_type=plain)
        runtime.allocate_tensors()
    except (RuntimeError, ValueError):
        return None
    (made,) = runtime.get_output_details()
    return tuple(int(size) for size in made["shape"])


def compare(seed: int, count: int) -> Counter[str]:
    """Compare so many random operators, and count those of which both have a shape, by type."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    rng, compared, kinds = random.Random(seed), Counter[str](), list(OPERATORS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        data = draw_operator(rng, kind)
        here, there = compute_here(data), compute_there(litert, data)
        if here is None or there is None:
            continue
        if isinstance(here, str):
            assert prod(there) == 0, (kind, here, there)
            continue
        one = {"SELECT_V2"} if prod(here) == 1 else set()  # of scalars, LiteRT keeps what is stored
        assert here == there or (kind in one and prod(there) == 1), (kind, here, there)
        compared[kind] += 1
    return compared


def test_shapes_are_those_of_litert() -> None:
    """Tests 20 random operators of each type."""
    compared = compare(0, 20 * len(OPERATORS))
    assert {kind for kind in OPERATORS if compared[kind] < 4} == set()


@pytest.mark.deep
def test_shapes_of_many_operators_are_those_of_litert() -> None:
    """Tests thousands of random operators."""
    compare(1, rounds(10_000, 100_000))


def test_every_rule_is_drawn() -> None:
    """Tests that no rule for shapes is without a test."""
    assert set(OPERATORS) == {name for name, row in TABLE.items() if row.shape}
