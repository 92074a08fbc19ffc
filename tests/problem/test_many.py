"""Tests that numbers at many sizes at once are those of each size."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rounds import rounds

from memplan.problem.many import Many, ManyError, Run

Code = Callable[..., Any]


def run_at_all(code: Code, points: list[tuple[int, ...]]) -> dict[tuple[int, ...], Any]:
    """Return what some code makes at each point, by running it with numbers for many points."""
    found: dict[tuple[int, ...], Any] = {}
    left = points
    while left:
        run, columns = Run(len(left)), np.array(left, np.int64).T
        made = code(*map(run.number, columns))
        kept = [point for point, is_left in zip(left, run.left, strict=True) if is_left]
        assert kept[0] == left[0]
        for point, at in zip(kept, np.flatnonzero(run.left), strict=True):
            found[point] = int(made.values[at]) if isinstance(made, Many) else made
        left = [point for point, is_left in zip(left, run.left, strict=True) if not is_left]
    return found


def draw(source: random.Random, depth: int) -> str:
    """Return an expression of `a` and `b`, with questions in it."""
    if depth == 0:
        return source.choice(["a", "b", "a", "b", "0", "1", "2", "3", "7"])
    one, other, more = (draw(source, depth - 1) for _ in range(3))
    return source.choice(
        [
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {other})",
            f"({one} // 3)",
            f"(-(-{one} // {other}) if {other} else {more})",
            f"({one} % {other} if {other} > 0 else {more})",
            f"max({one}, {other})",
            f"min({one}, {other})",
            f"({one} if {other} == {more} else {other})",
            f"({one} if {other} < {more} <= {one} else {more})",
            f"floor(Fraction(1, 2) * {one} + Fraction(1, 3))",
            f"ceil({one} / Fraction(4))",
            f"abs({one})",
            f"({one} ** 2 if {other} >= 0 and not {more} else {one})",
            f"[{one}, {other}][{more} % 2]",
            f"sorted(({one}, {other}, {more}))[1]",
            f"(({one} in ({other}, {more}) or {other} in (1, 2)) + {one})",
        ]
    )


def test_any_code_makes_at_each_size_what_it_makes_there() -> None:
    """Tests random expressions with questions against plain numbers at every point."""
    source, questions = random.Random(3), 0
    points = [(a, b) for a in range(7) for b in range(-3, 5)]
    names = {"floor": math.floor, "ceil": math.ceil, "Fraction": Fraction}
    for _ in range(rounds(150, 5_000)):
        text = draw(source, 3)
        code: Code = eval(f"lambda a, b: {text}", dict(names))
        source.shuffle(points)
        try:
            found = run_at_all(code, points)
        except ManyError:
            continue
        questions += len(set(found.values())) > 1
        assert found == {point: code(*point) for point in points}, text
    assert questions > rounds(80, 3_000)


def test_sizes_with_another_answer_are_set_aside() -> None:
    """Tests each kind of question, and what asks for a plain number."""
    ask: list[tuple[Callable[[Many], object], list[bool]]] = [
        (lambda n: n == 1, [True, False, False]),
        (lambda n: n != 1, [True, False, False]),
        (lambda n: n < 3, [True, True, False]),
        (lambda n: n < 3, [True, True, False]),
        (lambda n: n >= 1, [True, True, True]),
        (lambda n: n in (2, 3), [True, False, False]),
        (bool, [True, True, True]),
        (lambda n: bool(n - 2), [True, False, True]),
        (int, [True, False, False]),
        (lambda n: int(n // 2), [True, False, False]),
        (float, [True, False, False]),
        (hash, [True, False, False]),
        (str, [True, False, False]),
        (lambda n: f"{n:,}", [True, False, False]),
        (lambda n: {n: 1}, [True, False, False]),
        (lambda n: range(n), [True, False, False]),
        (lambda n: np.array([n], np.int64), [True, False, False]),
        (lambda n: n + np.int64(3) == np.int64(4), [True, False, False]),
        (lambda n: n is None, [True, True, True]),
        (lambda n: n == "1", [True, True, True]),
        (lambda n: (n, 5) == (n, 5), [True, True, True]),
        (lambda n: (n, 5) == (1, 5), [True, False, False]),
    ]
    for number, (question, left) in enumerate(ask):
        run = Run(3)
        question(run.number(np.array([1, 2, 3])))
        assert run.left.tolist() == left, number


def test_what_cannot_be_computed_is_an_error() -> None:
    """Tests numbers beyond 2^62, quotients that are not whole, and other exponents."""
    run = Run(2)
    one, large = run.number(np.array([2, 3])), run.number(np.array([1 << 40, 5]))
    wrong: list[Callable[[], object]] = [
        lambda: large * large,
        lambda: large * (1 << 30),
        lambda: one + (1 << 63),
        lambda: one**one,
        lambda: one**9,
        lambda: one ** Fraction(1, 2),
        lambda: (one / 2).values,
        lambda: large / one,
    ]
    for each in wrong:
        with pytest.raises(ManyError):
            each()
    with pytest.raises(ZeroDivisionError):
        one // run.number(np.array([0, 1]))
    with pytest.raises(TypeError):
        one + "1"  # type: ignore[operator]
    assert (large * 2 - large).values.tolist() == [1 << 40, 5]
