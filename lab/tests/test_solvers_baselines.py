"""Tests of published planners, each against what its publication says of it."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
import strategies
from every_solver import BASELINES, is_missing, param
from hypothesis import assume, given
from hypothesis import strategies as st

import memplan as mp
from memplan.solvers import outside, registry
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

needs_ortools = pytest.mark.skipif(is_missing("mincost_flow"), reason="ortools is not installed")

KEPT = {
    "bump": {"pins", "reserved", "gaps", "windows", "conflicts", "groups"},
    "greedy_by_size": {"pins", "reserved", "gaps", "windows", "conflicts", "groups"},
    "gergov": set(),
    "shared_objects": {"reserved", "gaps"},
    "mincost_flow": {"reserved"},
    "single_object": {"gaps", "conflicts", "groups"},
    "many_objects": {"gaps", "conflicts", "groups"},
    "mip": {"pins", "reserved", "gaps"},
    "csp": {"pins", "reserved", "gaps"},
    "meta_csp": {"pins", "reserved", "gaps"},
    "cp_sat": {"pins", "reserved", "gaps"},
    "contention_skyline": {"pins", "reserved", "gaps", "windows", "conflicts", "groups"},
    "bfc": set(),
    "xla_best_fit": {"pins", "reserved", "gaps", "windows", "conflicts", "groups"},
    "tflm_greedy": {"pins", "reserved", "gaps"},
    "hill_climb": {"pins", "reserved", "gaps"},
}


@pytest.fixture
def course() -> mp.Problem:
    """Return the four tensors of static memory planning, in kilobytes."""
    lives = [(0, 10, 100), (2, 12, 50), (3, 8, 80), (10, 15, 100)]
    return mp.Problem([mp.Buffer(f"T{n}", *life) for n, life in enumerate(lives, 1)])


# What all have in common -----------------------------------------------------------------------


def test_who_keeps_what() -> None:
    """Tests the table of `memplan solvers`, and that the solvers of ours are no baselines."""
    assert set(BASELINES) == set(KEPT)
    for name, kept in KEPT.items():
        plain = {"capacity", "alignment", "hints", "zero-size"}
        if name in ("single_object", "many_objects"):
            plain.remove("alignment")
        assert registry.SOLVERS[name].supports == plain | kept


@pytest.mark.parametrize("solver", [param(solver) for solver in BASELINES])
def test_a_budget_that_is_too_small_is_unknown(solver: str, course: mp.Problem) -> None:
    """Tests that three nodes do not place four buffers, and that nothing is claimed."""
    plan = mp.solve(course.with_capacity(230), solver, nodes=3)
    assert (plan.status, plan.offsets, plan.lower_bound) == ("unknown", None, 230)


@pytest.mark.parametrize("solver", [param(solver) for solver in BASELINES])
def test_a_capacity_below_the_bound_is_infeasible(solver: str, course: mp.Problem) -> None:
    """Tests that the bound refutes a capacity, whatever a planner could do."""
    plan = mp.solve(course.with_capacity(229), solver)
    assert (plan.status, plan.offsets, plan.lower_bound) == ("infeasible", None, 230)


def test_a_plan_beyond_the_capacity_is_kept_back(course: mp.Problem) -> None:
    """Tests that a planner that does not fit says how much it would need."""
    plan = mp.solve(course.with_capacity(329), "bump")
    assert (plan.status, plan.offsets) == ("unknown", None)
    assert plan.stats["note"] == "its plan needs 330 bytes"
    plan = mp.solve(course.with_capacity(330), "bump")
    assert (plan.status, plan.peak) == ("fits", 330)  # no more was asked


@pytest.mark.parametrize("solver", ["bump", "gergov", "shared_objects"])
def test_an_unknown_option_is_refused(solver: str, course: mp.Problem) -> None:
    """Tests that a typo is not taken silently."""
    with pytest.raises(mp.UnsupportedError, match=f'{solver} has no option "speed"; it has '):
        mp.solve(course, solver, speed=11)


def test_a_missing_library_names_its_extra(
    course: mp.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the sentence for each planner that needs a library."""
    monkeypatch.setattr(registry, "is_installed", lambda _: False)
    needy = {name: solver.extra for name, solver in registry.SOLVERS.items() if solver.libraries}
    ortools = "memplan-lab[ortools]"
    assert needy == {"mip": "memplan-lab[mip]", "mincost_flow": ortools, "cp_sat": ortools}
    for name, extra in needy.items():
        with pytest.raises(mp.MissingExtraError, match=rf"{name} needs .*'{re.escape(extra)}'"):
            mp.solve(course, name)
    mp.verify(course, mp.solve(course, "bump"))


def test_the_referee_is_not_measured(course: mp.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the time of a planner does not have that of the check of its plan."""
    monkeypatch.delattr(outside, "verify")
    mp.verify(course, mp.solve(course, "bump"))


def test_who_does_not_ask_does_not_pay() -> None:
    """Tests that neither memplan nor a solver of ours loads a baseline or its library."""
    unwanted = ("memplan_lab.baselines", "highspy", "ortools")
    program = f"""
import sys, memplan
memplan.solve([memplan.Buffer("a", 0, 1, 4)])
print([name for name in {unwanted} if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr


# bump ------------------------------------------------------------------------------------------


def test_bump_goes_up_by_start() -> None:
    """Tests offsets with alignment, around a pin and a reserved range, and of nothing at all."""
    problem = mp.Problem(
        [
            mp.Buffer("late", 9, 10, 4),
            mp.Buffer("first", 0, 1, 3),
            mp.Buffer("even", 1, 2, 4, alignment=4),
            mp.Buffer("fixed", 2, 3, 2, pin=8),
            mp.Buffer("nothing", 2, 3, 0),
            mp.Buffer("over", 3, 4, 5),
        ],
        reserved=[(11, 13)],
    )
    plan = mp.solve(problem, "bump")
    mp.verify(problem, plan)
    assert plan.offsets is not None
    assert plan.offsets.tolist() == [18, 0, 4, 8, 0, 13]


@given(problem=strategies.problems(features=frozenset({"gaps", "windows", "hints"})))
def test_bump_shares_nothing(problem: mp.Problem) -> None:
    """Tests that the peak is the sum of all sizes."""
    plan = mp.solve(problem, "bump")
    mp.verify(problem, plan)
    assert plan.peak == problem.size.sum()


def test_bump_keeps_groups_together() -> None:
    """Tests a group that begins with its first member, one with a pin, and one that is aligned."""
    buffers = [
        mp.Buffer("late", 8, 9, 4),
        mp.Buffer("a", 5, 6, 3),
        mp.Buffer("b", 1, 2, 2),
        mp.Buffer("first", 0, 1, 3),
        mp.Buffer("fixed", 0, 1, 2, pin=20),
        mp.Buffer("behind", 3, 4, 6),
        mp.Buffer("odd", 2, 3, 3),
        mp.Buffer("even", 2, 3, 4, alignment=4),
    ]
    groups = [("a", "b"), ("fixed", "behind"), ("odd", "even")]
    problem = mp.Problem(buffers, groups=groups)
    plan = mp.solve(problem, "bump")
    mp.verify(problem, plan)
    assert plan.offsets is not None
    # first, the group of b, a byte that aligns "even", its group; "late" reaches beyond no pin.
    assert plan.offsets.tolist() == [16, 3, 6, 0, 20, 22, 9, 12]


def test_bump_refuses_a_group_on_the_pin_of_a_group_of_one() -> None:
    """Tests that a pinned group of one member counts as a pin, even if it comes later."""
    problem = mp.Problem(
        [
            mp.Buffer("lower", 0, 1, 1),
            mp.Buffer("alone", 0, 1, 3, pin=0),
            mp.Buffer("upper", 0, 1, 1, pin=3),
        ],
        groups=[("lower", "upper"), ("alone",)],
    )
    assert mp.solve(problem, "bump").status is mp.Status.UNKNOWN


@given(problem=strategies.related(strategies.problems()))
def test_bump_finds_a_plan_for_groups(problem: mp.Problem) -> None:
    """Tests that plans with groups, pins and reserved ranges pass the referee."""
    plan = mp.solve(problem.with_capacity(None), "bump")
    if plan.offsets is not None:
        mp.verify(problem.with_capacity(None), plan)


# greedy_by_size --------------------------------------------------------------------------------


def by_size(problem: mp.Problem) -> list[int]:
    """Return the offsets of Pisarchyk and Lee's algorithm, by its definition."""
    lifetime = problem.end - problem.start
    offsets: dict[int, int] = {}
    for row in np.lexsort((-lifetime, -problem.size)).tolist():
        size = int(problem.size[row])
        meets = (problem.start < problem.end[row]) & (problem.end > problem.start[row])
        taken = sorted((at, at + int(problem.size[o])) for o, at in offsets.items() if meets[o])
        top, best, room = 0, None, None
        for lower, upper in taken:
            if lower - top >= size and (room is None or lower - top < room):
                best, room = top, lower - top
            top = max(top, upper)
        offsets[row] = top if best is None else best
    return [offsets[row] for row in range(len(problem))]


@given(problem=strategies.problems(max_buffers=12, features=frozenset()))
def test_greedy_by_size_is_as_published(problem: mp.Problem) -> None:
    """Tests every offset against the definition: largest first, into the smallest gap that fits."""
    plan = mp.solve(problem, "greedy_by_size")
    mp.verify(problem, plan)
    assert plan.solver == "greedy_by_size"
    assert plan.offsets is not None
    assert plan.offsets.tolist() == by_size(problem)


def test_greedy_by_size_on_a_network() -> None:
    """Tests the same where hundreds of gaps are left."""
    problem = generators.nn_like(1000, 4)
    plan = mp.solve(problem, "greedy_by_size")
    assert plan.offsets is not None
    assert plan.offsets.tolist() == by_size(problem)


# Shared objects --------------------------------------------------------------------------------


def objects_of(problem: mp.Problem, plan: mp.Plan) -> dict[int, set[int]]:
    """Return the rows by offset, checked to be objects: same place, or no common address."""
    assert plan.offsets is not None
    held = np.flatnonzero(problem.size > 0).tolist()
    offset, size = plan.offsets.tolist(), problem.size.tolist()
    for a, b in combinations(held, 2):
        apart = offset[a] + size[a] <= offset[b] or offset[b] + size[b] <= offset[a]
        assert offset[a] == offset[b] or apart
    objects: dict[int, set[int]] = {}
    for row in held:
        objects.setdefault(offset[row], set()).add(row)
    return objects


@pytest.mark.parametrize("order", ["size", "start", "end"])
@pytest.mark.parametrize("fit", ["first", "best", "worst"])
def test_the_objects_of_the_course(course: mp.Problem, order: str, fit: str) -> None:
    """Tests static memory planning: T4 takes over from T1, in every order and with every fit."""
    plan = mp.solve(course, f"shared_objects:order={order},fit={fit}")
    mp.verify(course, plan)
    assert plan.peak == 230
    assert sorted(map(sorted, objects_of(course, plan).values())) == [[0, 3], [1], [2]]


@pytest.mark.parametrize(("fit", "object"), [("first", 0), ("best", 8), ("worst", 14)])
def test_which_object_a_fit_takes(fit: str, object: int) -> None:
    """Tests the choice between objects of 8, 6 and 10 bytes, made in this order, for 5."""
    lives = [(0, 3, 8), (1, 3, 6), (2, 3, 10), (3, 4, 5)]
    problem = mp.Problem([mp.Buffer(f"b{n}", *life) for n, life in enumerate(lives)])
    plan = mp.solve(problem, "shared_objects", order="start", fit=fit)
    mp.verify(problem, plan)
    assert plan.offset("b3") == object
    assert plan.peak == 24


def test_an_object_that_is_too_small_is_passed_over() -> None:
    """Tests static memory planning: a buffer which fits no free object gets a new one."""
    problem = mp.Problem([mp.Buffer("small", 0, 1, 4), mp.Buffer("large", 1, 2, 9)])
    assert mp.solve(problem, "shared_objects", order=["start"]).peak == 13
    assert mp.solve(problem, "shared_objects", order=["size"]).peak == 9


@pytest.mark.parametrize("solver", [param("shared_objects"), param("mincost_flow")])
@given(problem=strategies.problems(max_buffers=10, features=frozenset({"alignment", "reserved"})))
def test_buffers_share_all_of_a_place_or_nothing(solver: str, problem: mp.Problem) -> None:
    """Tests that memory is divided into objects."""
    plan = mp.solve(problem, solver)
    mp.verify(problem, plan)
    objects_of(problem, plan)


@given(problem=strategies.problems(max_buffers=8, features=frozenset({"gaps"})))
def test_a_gap_lends_an_object(problem: mp.Problem) -> None:
    """Tests that gaps are made use of, and legally."""
    plan = mp.solve(problem, "shared_objects")
    mp.verify(problem, plan)
    objects_of(problem, plan)
    inner, outer = mp.Buffer("in", 2, 3, 6), mp.Buffer("out", 0, 5, 6, gaps=(mp.Gap(1, 4),))
    assert mp.solve([outer, inner], "shared_objects").peak == 6


@pytest.mark.parametrize("value", ["tight", ["first", "best"], True, 3])
def test_a_fit_that_does_not_exist(course: mp.Problem, value: object) -> None:
    """Tests that the option and what it may be are named."""
    with pytest.raises(mp.MemplanError, match="fit of shared_objects must be one of best, first"):
        mp.solve(course, "shared_objects", fit=value)


# mincost_flow ----------------------------------------------------------------------------------


@needs_ortools
@given(problem=strategies.problems(max_buffers=12, features=frozenset()), size=st.integers(1, 9))
def test_a_flow_of_equals_is_optimal(problem: mp.Problem, size: int) -> None:
    """Tests that buffers of one size take as many objects as are live at once, and no more."""
    equal = mp.Problem.from_arrays(problem.start, problem.end, np.full(len(problem), size))
    plan = mp.solve(equal, "mincost_flow")
    mp.verify(equal, plan)
    assert (plan.status, plan.peak) == ("optimal", equal.max_load)


@needs_ortools
def test_a_flow_knows_what_growing_costs() -> None:
    """Tests that like goes to like, whichever is listed first."""
    lives = [(0, 1, 4), (0, 1, 10), (1, 2, 10), (1, 2, 4)]
    problem = mp.Problem([mp.Buffer(f"b{n}", *life) for n, life in enumerate(lives)])
    for seed in range(5):
        plan = mp.solve(problem.shuffled(seed), "mincost_flow")
        assert (plan.status, plan.peak) == ("optimal", 14)


@needs_ortools
def test_a_flow_does_not_see_beyond_one_reuse() -> None:
    """Tests the weakness of the formulation: an object that was large once is taken for small.

    Of two objects, of 9 and of 6 bytes, the one of 9 is handed to a buffer of 4; by what each
    holds last, it looks cheaper to grow from 6 to 9 than from 4 to 9.
    """
    lives = [(0, 1, 9), (1, 2, 4), (0, 2, 6), (2, 3, 9)]
    problem = mp.Problem([mp.Buffer(f"b{n}", *life) for n, life in enumerate(lives)])
    plan = mp.solve(problem, "mincost_flow")
    mp.verify(problem, plan)
    assert (plan.peak, mp.solve(problem, "shared_objects").peak) == (18, 15)


@needs_ortools
def test_too_many_reuses_are_not_begun(course: mp.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a flow, which cannot be cut short, is not begun above some size."""
    from memplan_lab.baselines import mincost_flow

    monkeypatch.setattr(mincost_flow, "_MOST_ARCS", 0)
    plan = mp.solve(course, "mincost_flow")
    assert (plan.status, plan.offsets) == ("unknown", None)
    assert "too many for a flow" in str(plan.stats["note"])


@needs_ortools
def test_a_library_that_does_not_load_says_why(
    course: mp.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the sentence where OR-tools is there, but another library is in its way."""
    monkeypatch.setitem(sys.modules, "ortools.graph.python.min_cost_flow", None)
    with pytest.raises(mp.MemplanError, match="mincost_flow cannot load OR-tools") as caught:
        mp.solve(course, "mincost_flow")
    assert "highspy" in str(caught.value)


@given(problem=strategies.problems(max_buffers=10))
def test_hints_are_wishes(problem: mp.Problem) -> None:
    """Tests that no baseline follows hints."""
    assume(not problem.has_pins and not problem.has_windows)
    plan = mp.solve(problem, "shared_objects")
    bare = mp.solve(problem.without_hints(), "shared_objects")
    if plan.offsets is None or bare.offsets is None:
        assert plan.status == bare.status
    else:
        assert plan.offsets.tolist() == bare.offsets.tolist()
