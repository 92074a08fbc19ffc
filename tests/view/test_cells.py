"""Tests of `memplan.view.cells`: a plan on a grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.problem import Buffer, Gap, Problem
from memplan.problem.spans import spans
from memplan.view import cells
from memplan_lab.bench import generators


def grid(
    problem: Problem, offsets: list[int], top: int, columns: int, rows: int
) -> list[list[int]]:
    """Return the owners of a plan's cells, the highest first, as one looks at them."""
    found = cells.find_owners(spans(problem), np.array(offsets), top, columns, rows)
    return found[::-1].tolist()


def test_cells_that_are_sections(five: Problem, five_offsets: list[int]) -> None:
    """Tests that a grid as fine as the plan is the plan."""
    assert grid(five, five_offsets, 12, 7, 3) == [
        [0, 1, 1, -1, -1, -1, -1],
        [2, 2, 2, 3, 3, 3, 3],
        [4, 4, 4, 4, 4, 4, 4],
    ]


def test_gaps_are_empty_but_for_their_windows() -> None:
    """Tests a gap, a gap with a window, and one that is smaller than a cell."""
    gaps = (Gap(1, 2), Gap(3, 4, (4, 8)), Gap(40, 41))
    problem = Problem([Buffer("a", start=0, end=50, size=8, gaps=gaps)])
    shown = grid(problem, [0], 8, 50, 2)
    assert shown[0][:6] == [0, -1, 0, 0, 0, 0]
    assert shown[1][:6] == [0, -1, 0, -1, 0, 0]
    assert grid(problem, [0], 8, 5, 2) == [[0] * 5] * 2


def test_most_of_a_cell_counts() -> None:
    """Tests that parts of a buffer count together, and that small things stay if alone."""
    rows = [
        Buffer("a", start=0, end=10, size=4, gaps=(Gap(4, 6),)),
        Buffer("b", start=0, end=10, size=6),
        Buffer("c", start=10, end=11, size=1),
        Buffer("d", start=19, end=20, size=1),
    ]
    problem = Problem(rows)
    assert grid(problem, [0, 4, 0, 9], 10, 2, 1) == [[1, 2]]
    assert grid(problem, [0, 4, 0, 9], 10, 20, 10)[0][19] == 3
    halves = Problem([Buffer("a", 0, 10, 6, gaps=(Gap(4, 5),)), Buffer("b", 0, 10, 5)])
    assert grid(halves, [0, 6], 12, 1, 1) == [[0]]


@pytest.mark.parametrize("columns", [1, 3, 7, 80])
def test_no_rounding_into_neighbours(columns: int) -> None:
    """Tests that borders between cells are exact, also far from 0 and over all of time."""
    for first, length in ((0, columns), (-(1 << 62), (1 << 63) // columns * columns)):
        edges = [first + length * at // columns for at in range(columns + 1)]
        rows = [Buffer(str(at), edges[at], edges[at + 1], 1 + at) for at in range(columns)]
        assert grid(Problem(rows), [0] * columns, columns, columns, 1) == [list(range(columns))]
    stack = Problem([Buffer(str(at), 0, 1, 3) for at in range(columns)])
    shown = grid(stack, [3 * at for at in range(columns)], 3 * columns, 1, columns)
    assert shown == [[at] for at in reversed(range(columns))]


@given(
    st.lists(
        st.tuples(*(st.integers(0, 9) for _ in range(4))).map(
            lambda t: (t[0], t[0] + 1 + t[1], 1 + t[2], t[3])
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_owners_are_those_of_exact_areas(
    boxes: list[tuple[int, int, int, int]], columns: int, rows: int
) -> None:
    """Tests any boxes, overlapping as well, against areas in fractions."""
    problem = Problem([Buffer(str(at), *box[:3]) for at, box in enumerate(boxes)])
    offsets = [box[3] for box in boxes]
    top = max(offset + box[2] for offset, box in zip(offsets, boxes, strict=True))
    first, last = min(box[0] for box in boxes), max(box[1] for box in boxes)
    found = cells.find_owners(spans(problem), np.array(offsets), top, columns, rows)
    wide, tall = Fraction(last - first, columns), Fraction(top, rows)
    for (row, column), owner in np.ndenumerate(found):
        areas = [
            max(0, min(end, first + wide * (column + 1)) - max(start, first + wide * column))
            * max(0, min(low + size, tall * (row + 1)) - max(low, tall * row))
            for start, end, size, low in boxes
        ]
        if max(areas) == 0:
            assert owner == -1
        else:
            assert areas[owner] >= max(areas) - Fraction(1, 10**6)


def test_neighbours_have_different_shades() -> None:
    """Tests that few shades do for the plan of a network, and that one is a matter of course."""
    problem = generators.nn_like(3_000, 1)
    offset = np.cumsum(problem.size) - problem.size
    found = cells.find_owners(spans(problem), offset, int(problem.size.sum()), 90, 60)
    shade = cells.choose_shades(found, 7)
    assert set(shade) == {row for row, _ in cells.count_cells(found)}
    for one, other in ((found[1:], found[:-1]), (found[:, 1:], found[:, :-1])):
        for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True):
            assert a == b or -1 in (a, b) or shade[a] != shade[b]
    assert set(cells.choose_shades(found, 1).values()) == {0}


def test_counts_are_most_first() -> None:
    """Tests the order, ties by row, and that empty cells count for no buffer."""
    assert cells.count_cells(np.array([[2, 2, -1], [0, 1, 2], [1, 0, -1]])) == [
        (2, 3),
        (0, 2),
        (1, 2),
    ]
    assert cells.count_cells(np.full((2, 2), -1)) == []
