"""Tests of `memplan.view.curve` and `memplan.view.units`: the load over time, and amounts."""

from __future__ import annotations

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from memplan.problem import Buffer, Problem
from memplan.problem.loads import Loads
from memplan.view import units
from memplan.view.curve import column_loads, load_curve


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.50 KiB"),
        ((1 << 20) - 1, "1023.99 KiB"),
        (1 << 20, "1 MiB"),
        ((1 << 20) + 1, "1.00 MiB"),
        (1 << 62, "4 EiB"),
        (1 << 80, "1048576 EiB"),
    ],
)
def test_bytes_in_a_unit_are_exact_or_cut(count: int, expected: str) -> None:
    """Tests that a round number is shown only for what is exactly that."""
    assert units.human(count) == expected


def test_exact_bytes_say_both() -> None:
    """Tests that no byte is lost, and that small numbers are not said twice."""
    assert units.exact(1 << 20) == "1,048,576 bytes (1 MiB)"
    assert units.exact(12) == "12 bytes"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.00123, "1.23 ms"), (0.5, "500 ms"), (1.234, "1.23 s"), (12_345.6, "12,346 s")],
)
def test_seconds_have_a_unit(value: float, expected: str) -> None:
    """Tests three digits and the unit."""
    assert units.seconds(value) == expected


def test_the_load_of_the_example_is_drawn(five: Problem) -> None:
    """Tests the whole drawing in plain characters: two levels, the axis, the peak."""
    drawn = load_curve(Loads(five), width=31, height=3, ascii_only=True)
    assert drawn.splitlines() == [
        "12 bytes |#########",
        "         |#####################",
        "         |#####################",
        "       0 +---------------------",
        "          ^ 0                21",
    ]


def test_blocks_show_eighths(five: Problem) -> None:
    """Tests that a load between two rows is a part of a block."""
    drawn = load_curve(Loads(five), width=31, height=1).splitlines()
    assert drawn[0] == "12 bytes │█████████▆▆▆▆▆▆▆▆▆▆▆▆"


@given(strategies.problems(min_buffers=1), st.integers(1, 30))
def test_a_column_is_the_greatest_load_of_its_time(problem: Problem, columns: int) -> None:
    """Tests columns narrower and wider than a unit of time against a scan of all sections."""
    loads = Loads(problem)
    if not len(loads):
        return
    first, last = int(loads.start[0]), int(loads.end[-1])
    for at, load in enumerate(column_loads(loads, columns).tolist()):
        begin = first + at * (last - first) // columns
        end = max(begin + 1, first + (at + 1) * (last - first) // columns)
        meets = (loads.start < end) & (loads.end > begin)
        assert load == loads.load[meets].max()


def test_a_short_peak_survives_a_long_time() -> None:
    """Tests that one unit of 2^62 is seen, and that such times do not overflow."""
    far = 1 << 62
    rows = [Buffer("flat", -far, far, 1), Buffer("spike", 77, 78, 7)]
    loads = Loads(Problem(rows))
    assert column_loads(loads, 50).max() == 8
    assert "^ 77" in load_curve(loads)


def test_the_time_of_a_late_peak_stands_before_its_mark() -> None:
    """Tests the axis where there is no room to the right of the peak."""
    loads = Loads(Problem([Buffer("a", 0, 1000, 1), Buffer("b", 999, 1000, 1)]))
    axis = load_curve(loads, width=60).splitlines()[-1]
    assert axis.endswith("999 ^")
    assert len(axis) == 60


def test_nothing_is_drawn_for_nothing() -> None:
    """Tests that a problem without buffers has a sentence for a curve."""
    assert load_curve(Loads(Problem([]))) == "no buffer holds anything at any time"
