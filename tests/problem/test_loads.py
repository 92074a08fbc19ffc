"""Tests of `memplan.problem.loads`: which buffers hold how much, when."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.problem.loads import Held, Loads, available, capacity_for


def held_by_oracle(problem: Problem) -> dict[int, dict[str, int]]:
    """Return for every unit of time which buffers hold how many bytes."""
    origin, held = oracle.first_time(problem), {}
    for row, id in enumerate(problem.ids):
        for time, bits in oracle.held_by_time(problem, row):
            if bits:
                held.setdefault(origin + time, {})[id] = bits.bit_count()
    return held


@given(strategies.problems())
def test_sections_and_what_they_hold_agree_with_brute_force(problem: Problem) -> None:
    """Tests that every unit of time lies in a section with its load and its buffers."""
    loads, expected = Loads(problem), held_by_oracle(problem)
    found = {}
    for section in range(len(loads)):
        held = {each.id: each.bytes for each in loads.held(section)}
        assert loads.load[section] == sum(held.values())
        for time in range(loads.start[section], loads.end[section]):
            if held:
                found[time] = held
    assert found == expected
    assert loads.peak == problem.max_load == max(loads.load, default=0)


@given(strategies.problems(min_buffers=1))
def test_sections_follow_each_other(problem: Problem) -> None:
    """Tests that sections leave no hole in time, and that time passes in each."""
    loads = Loads(problem)
    assert (loads.start < loads.end).all()
    assert (loads.start[1:] == loads.end[:-1]).all()


def test_held_buffers_come_largest_first(five: Problem) -> None:
    """Tests the order of what is held, ties by id, and what is said about each buffer."""
    problem = Problem([*five.buffers, Buffer("b0", start=2, end=4, size=9)])
    loads = Loads(problem)
    assert loads.peak_section is not None
    held = loads.held(loads.peak_section)
    assert held[0] == Held("b0", bytes=9, size=9, start=2, end=4)
    assert [each.id for each in held] == ["b0", "b1", "b3", "b5"]


def test_a_window_counts_for_what_it_holds() -> None:
    """Tests that a gap with a window counts its window, and one without counts nothing."""
    gaps = (Gap(2, 4), Gap(6, 8, window=(1, 4)))
    loads = Loads(Problem([Buffer("a", start=0, end=8, size=10, gaps=gaps)]))
    assert loads.load.tolist() == [10, 0, 10, 3]
    assert loads.held(3) == [Held("a", bytes=3, size=10, start=0, end=8)]


def test_huge_sizes_do_not_overflow() -> None:
    """Tests that 2^62 bytes that end as 2^62 others start are a load of 2^62."""
    half = 1 << 61
    rows = [Buffer(f"{t}.{i}", start=t, end=t + 1, size=half) for t in range(3) for i in range(2)]
    assert Loads(Problem(rows)).load.tolist() == [1 << 62] * 3


def test_nothing_held_is_no_section() -> None:
    """Tests that no buffers, or buffers of size 0 alone, have no sections and no peak."""
    for rows in ([], [Buffer("a", start=0, end=1, size=0)]):
        loads = Loads(Problem(rows))
        assert (len(loads), loads.peak, loads.peak_section) == (0, 0, None)
        assert loads.ranges_above(0) == []


@pytest.mark.parametrize(
    ("limit", "runs"),
    [(12, []), (11, [(0, 1)]), (8, [(0, 1)]), (7, [(0, 2)]), (-1, [(0, 2)])],
)
def test_ranges_above_a_limit_are_maximal(
    five: Problem, limit: int, runs: list[tuple[int, int]]
) -> None:
    """Tests that neighbouring sections above a limit are one range, at the borders as well."""
    assert Loads(five).ranges_above(limit) == runs


def test_ranges_above_a_limit_are_split_where_the_load_is_lower() -> None:
    """Tests that two hills are two ranges."""
    rows = [Buffer("a", 0, 9, 1), Buffer("b", 1, 3, 5), Buffer("c", 5, 7, 5)]
    assert Loads(Problem(rows)).ranges_above(5) == [(1, 1), (3, 3)]


@given(strategies.problems(min_buffers=1), st.data())
def test_the_highest_section_of_some_buffers(problem: Problem, data: st.DataObject) -> None:
    """Tests that the greatest load in the time of some buffers is found."""
    rows = data.draw(st.lists(st.sampled_from(range(len(problem))), min_size=1, unique=True))
    names = {problem.ids[row] for row in rows}
    times = [held for held in held_by_oracle(problem).values() if names & held.keys()]
    section = (loads := Loads(problem)).highest_of(np.array(rows))
    if not times:
        assert section is None
    else:
        assert section is not None
        assert loads.load[section] == max(sum(held.values()) for held in times)
        assert names & {each.id for each in loads.held(section)}


@given(strategies.reserved_ranges(), st.integers(1, 24))
def test_what_reserved_ranges_leave(reserved: list[Reserved], amount: int) -> None:
    """Tests both counts of free bytes against a count of addresses, and against each other."""
    taken = {a for block in reserved for a in range(block.lower, block.upper)}
    assert available(reserved, amount) == len(set(range(amount)) - taken)
    capacity = capacity_for(reserved, amount)
    assert available(reserved, capacity) == amount
    assert available(reserved, capacity - 1) < amount
