"""Tests of how explicit conflicts and groups are shown: in words and in the picture."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console, RenderableType

from memplan.analysis.inspection import inspect
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded
from memplan.view import plot
from memplan.view.relations import count_relations, list_reasons
from memplan.view.words import plans, problems

ROWS = [Buffer("a", 0, 1, 2), Buffer("b", 1, 2, 3), Buffer("c", 1, 4, 1), Buffer("d", 2, 3, 1024)]
PLAIN = Problem(ROWS)
BOUND = Problem(ROWS, conflicts=[("b", "d"), ("a", "d"), ("b", "c")], groups=[["b", "a"], ["d"]])


def lines(what: RenderableType) -> list[str]:
    """Return what a terminal of 100 columns shows."""
    file = io.StringIO()
    Console(file=file, width=100, markup=False, highlight=False).print(what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_problem_in_a_line() -> None:
    """Tests that its representation counts them where there are some."""
    assert repr(PLAIN) == "<Problem: 4 buffers, max load 1025>"
    assert repr(BOUND) == "<Problem: 4 buffers, max load 1025, 3 conflicts, 2 groups>"


def test_counts() -> None:
    """Tests that pairs and groups are counted, and that nothing is said of none."""
    assert count_relations(PLAIN) == []
    assert count_relations(BOUND) == [
        ("conflicts", "3 pairs beside lifetimes"),
        ("groups", "2 groups of 3 buffers, the longest 1,024 bytes (1 KiB)"),
    ]


def test_an_inspection_says_that_the_load_is_a_bound() -> None:
    """Tests that the greatest load is shown where conflicts and groups force more."""
    plain, bound = (
        [line.split() for line in lines(problems.inspection(inspect(Loaded(p, "json", len(p)))))]
        for p in (PLAIN, BOUND)
    )
    assert ["constraints", "none", "beside", "lifetimes", "and", "sizes"] in plain
    assert ["conflicts", "3", "pairs", "beside", "lifetimes"] in bound
    assert not any(line[:2] == ["max", "load"] for line in plain)
    (load,) = (line for line in bound if line[:2] == ["max", "load"])
    assert load[-5:] == ["conflicts", "and", "groups", "force", "more"]


def test_a_plan_says_what_bound_it() -> None:
    """Tests the facts that are shown with a plan."""
    plan = Plan.of(BOUND, [3, 0, 5, 6], lower_bound=1025)
    said = lines(plans.plan_summary(BOUND, plan, elapsed=1))
    assert "conflicts     3 pairs beside lifetimes" in said
    assert not any("beside" in line for line in lines(plans.plan_summary(PLAIN, plan, elapsed=1)))


def test_reasons_name_what_lifetimes_do_not_show() -> None:
    """Tests that pairs that meet in time anyway are not shown, and what is left of a group is."""
    assert list_reasons(PLAIN) == []
    assert list_reasons(BOUND) == [
        '"a" and "d" conflict though their lifetimes do not meet.',
        '"b" and "d" conflict though their lifetimes do not meet.',
        '"b" and "a" lie one behind the other: 5 bytes from end to end.',
    ]
    three = Problem(ROWS, groups=[["b", "c", "a"]])
    assert list_reasons(three.subset([0, 1])) == [
        '"b" and "a" are parts of one group: 6 bytes from end to end.'
    ]
    assert list_reasons(three.subset([0, 3])) == []


def test_conflicts_in_gaps() -> None:
    """Tests that a conflict of buffers that live at one time is shown where one has a gap."""
    rows = [Buffer("a", 0, 4, 2, gaps=(Gap(1, 3),)), Buffer("b", 1, 3, 2), Buffer("c", 2, 5, 2)]
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    assert list_reasons(Problem(rows, conflicts=pairs)) == [
        '"a" and "b" conflict also in their gaps.',
        '"a" and "c" conflict also in their gaps.',
    ]


def test_a_long_group_is_cut() -> None:
    """Tests that a group of many members stays a line."""
    rows = [Buffer(str(number), number, number + 1, 2) for number in range(20)]
    (said,) = list_reasons(Problem(rows, groups=[[str(number) for number in range(20)]]))
    assert said == (
        '"0", "1", "2", "3", "4", 14 more and "19" lie one behind the other: '
        "40 bytes from end to end."
    )


def test_reserved_ranges_beyond_the_capacity_do_not_count() -> None:
    """Tests the longest piece where ranges are below, across and above the capacity."""
    rows = ROWS[:2]
    for reserved, capacity, longest in (
        ([(2, 4)], 10, "6 bytes"),
        ([(2, 4), (6, 30)], 10, "2 bytes"),
        ([(2, 4), (40, 50)], 10, "6 bytes"),
        ([(0, 20)], 10, "0 bytes"),
    ):
        problem = Problem(rows, capacity, reserved)
        assert list_reasons(problem) == [f"Reserved ranges leave at most {longest} in one piece."]


def test_a_line_goes_around_a_group() -> None:
    """Tests the outlines in the picture: all addresses and all times of every group."""
    pytest.importorskip("matplotlib")
    plan = Plan.of(BOUND, [3, 0, 5, 6], lower_bound=1025)
    axes = plot.draw(BOUND, plan).axes[0]
    (drawn,) = [artist for artist in axes.collections if artist.get_gid() == "groups"]
    boxes = [path.get_extents() for path in drawn.get_paths()]
    assert np.array_equal([box.bounds for box in boxes], [(0, 0, 2, 5), (2, 6, 1, 1024)])
    plain = plot.draw(PLAIN, Plan.of(PLAIN, [0, 0, 3, 4], lower_bound=1025)).axes[0]
    assert not [artist for artist in plain.collections if artist.get_gid() == "groups"]
