"""Tests of `memplan.solve` and the rest of the public face: arguments, errors, interrupts."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import pickle
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import every_solver
import numpy as np
import oracle
import pytest
import strategies
from every_solver import EVERY, OURS
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import memplan as mp
from memplan import _core, solvers
from memplan.solvers import registry

INSTALLED = [name for name in registry.SOLVERS if not every_solver.is_missing(name)]


@pytest.fixture
def jagged() -> mp.Problem:
    """Return eight buffers of load 6 that need 7, found by brute force."""
    lives = [(4, 6, 2), (2, 6, 2), (3, 5, 1), (5, 7, 2), (0, 2, 3), (1, 4, 1), (1, 5, 1), (2, 3, 2)]
    return mp.Problem([mp.Buffer(f"b{i}", *life) for i, life in enumerate(lives)])


# What comes out --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", OURS)
@pytest.mark.parametrize("objective", ["fit", "min_peak", None])
def test_five(five: mp.Problem, solver: str, objective: str | None) -> None:
    """Tests that every solver of ours places the example of MiniMalloc for every objective."""
    plan = mp.solve(five, solver, objective)
    mp.verify(five, plan)
    assert (plan.status, plan.peak, plan.lower_bound, plan.capacity) == ("optimal", 12, 12, 12)
    assert plan.solver == solver
    assert plan.problem is five
    counted = ["backtracks", "major_backtracks"] if solver == "telamalloc" else []
    assert list(plan.stats) == ["solver", "nodes", "restarts", "seconds", "note", *counted]
    assert plan.stats["nodes"] > 0 or solver == "prover"  # which counts conflicts
    assert plan.stats["seconds"]
    assert all(second >= 0 for second in plan.stats["seconds"].values())


@settings(max_examples=60)
@given(
    problem=strategies.problems(max_buffers=6), solver=st.sampled_from(INSTALLED), data=st.data()
)
def test_small_problems_by_brute_force(
    problem: mp.Problem, solver: str, data: st.DataObject
) -> None:
    """Tests what every solver says of any mix of constraints against brute force."""
    objective = data.draw(st.sampled_from(["fit", "min_peak"]))
    assume(not every_solver.refuses(solver, problem))
    if problem.capacity is None and objective == "fit":
        objective = "min_peak"
    plan = mp.solve(problem, solver, objective, nodes=100_000, threads=1)
    best = oracle.minimum_peak(problem)
    if plan.has_offsets:
        mp.verify(problem, plan)
        assert best is not None
        assert plan.peak >= best >= plan.lower_bound
        if plan.status is mp.Status.OPTIMAL and objective == "min_peak":
            assert plan.peak == best
    elif plan.status is mp.Status.INFEASIBLE:
        assert best is None
        assert set(plan.conflict) <= set(problem.ids)
        assert plan.offsets is None
    else:
        assert plan.status is mp.Status.UNKNOWN


def test_the_offsets_are_read_only_and_outlive_the_plan(five: mp.Problem) -> None:
    """Tests the column that is shared with the core."""
    offsets = mp.solve(five).offsets
    assert offsets is not None
    assert (offsets.dtype, offsets.shape) == (np.int64, (5,))
    with pytest.raises(ValueError, match="read-only"):
        offsets[0] = 1
    assert sorted(set(offsets.tolist())) == [0, 4, 8]


def test_nothing_to_place() -> None:
    """Tests that no buffers at all are the easiest problem."""
    plan = mp.solve([])
    assert (plan.status, plan.peak, len(plan)) == ("optimal", 0, 0)
    assert mp.lower_bound([]) == 0


def test_infeasible_without_a_search(five: mp.Problem) -> None:
    """Tests that a capacity below the load is a status, and no error."""
    plan = mp.solve(five.with_capacity(11))
    assert (plan.status, plan.offsets, plan.peak) == ("infeasible", None, None)
    assert plan.lower_bound == 12


@pytest.mark.parametrize("solver", ["auto", "exact", "greedy", "large", "minimalloc", "prover"])
def test_a_pin_above_the_capacity_does_not_fit(solver: str) -> None:
    """Tests that it is an answer, and no mistake in the problem, also in groups and beside gaps."""
    rows = [mp.Buffer("a", 0, 10, 64), mp.Buffer("b", 2, 6, 32, pin=128)]
    plan = mp.solve(mp.Problem(rows, capacity=100), solver)
    assert (plan.status, plan.lower_bound, plan.conflict) == ("infeasible", 160, ("b",))
    assert "1 buffer alone cannot be placed" in plan.summary()
    found = mp.explain(mp.Problem(rows, capacity=100))
    assert (found.required, found.excess, found.subset) == (160, 60, ("b",))
    empty = [rows[0], mp.Buffer("b", 2, 6, 0, pin=128)]
    assert mp.solve(mp.Problem(empty, capacity=100), solver).lower_bound == 128
    pinned = mp.Buffer("a", 0, 10, 64, pin=64, gaps=(mp.Gap(2, 5),))
    assert mp.solve(mp.Problem([pinned], capacity=100), solver).lower_bound == 128
    if solver != "minimalloc":
        behind = mp.Problem(
            [mp.Buffer("a", 0, 10, 64, pin=32), mp.Buffer("b", 2, 6, 32)],
            capacity=100,
            groups=[["a", "b"]],
        )
        assert mp.solve(behind, solver).lower_bound == 128


def test_a_search_that_proves_a_misfit_names_the_conflict(jagged: mp.Problem) -> None:
    """Tests that the conflict comes as ids, and cannot be placed together."""
    limited = jagged.with_capacity(6)
    assert mp.lower_bound(limited) == 6
    for solver in ("minimalloc", "exact", "auto"):
        plan = mp.solve(limited, solver)
        assert plan.status is mp.Status.INFEASIBLE
        part = limited.subset([limited.index(id) for id in plan.conflict])
        assert len(part)
        assert oracle.fit(part, 6) is None


def test_the_smallest_peak_above_the_bound(jagged: mp.Problem) -> None:
    """Tests that a peak above the load is proved."""
    for solver in ("minimalloc", "exact", "auto"):
        plan = mp.solve(jagged, solver)
        assert (plan.status, plan.peak, plan.lower_bound) == ("optimal", 7, 7)


def test_a_budget_that_is_too_small_is_unknown(jagged: mp.Problem) -> None:
    """Tests that nothing is claimed when the nodes are over."""
    plan = mp.solve(jagged.with_capacity(6), "exact", nodes=1)
    assert (plan.status, plan.conflict) == ("unknown", ())


@pytest.mark.parametrize("solver", EVERY)
def test_no_time_at_all_is_no_error(five: mp.Problem, solver: str) -> None:
    """Tests that a timeout of 0 gives an honest answer."""
    plan = mp.solve(five, solver, timeout=0)
    if plan.has_offsets:
        mp.verify(five, plan)


@pytest.mark.parametrize("solver", EVERY)
def test_the_same_again(jagged: mp.Problem, solver: str) -> None:
    """Tests that neither repetition nor threads change the plan."""
    first = mp.solve(jagged, solver, nodes=5000, threads=1, seed=7)
    for threads in (1, 2, 4):
        again = mp.solve(jagged, solver, nodes=5000, threads=threads, seed=7)
        assert again.offsets is not None
        assert again.offsets.tolist() == first.offsets.tolist()  # type: ignore[union-attr]
        assert (again.status, again.stats["nodes"]) == (first.status, first.stats["nodes"])


# What goes in ----------------------------------------------------------------------------------


def test_buffers_in_place_of_a_problem(five: mp.Problem) -> None:
    """Tests that any iterable of buffers will do."""
    plan = mp.solve(iter(list(five.buffers)))
    assert (plan.peak, plan.capacity) == (12, None)
    assert plan.ids == five.ids
    assert mp.lower_bound(five.buffers) == 12


def test_a_frame_in_place_of_a_problem(five: mp.Problem) -> None:
    """Tests that a frame is known by its columns."""

    class Frame(dict[str, SimpleNamespace]):
        @property
        def columns(self) -> list[str]:
            return list(self)

    columns = {"id": np.array(five.ids), "lower": five.start, "upper": five.end, "size": five.size}
    frame = Frame({k: SimpleNamespace(to_numpy=lambda v=v: v) for k, v in columns.items()})
    assert mp.solve(frame).peak == 12


def test_a_gap_without_a_window_holds_nothing() -> None:
    """Tests that -1 / -1 reaches the core as an empty window, and a window as itself."""
    inner = mp.Buffer("inner", 2, 5, 6)
    for window, peak in ((None, 6), ((0, 2), 8), ((0, 6), 12)):
        outer = mp.Buffer("outer", 0, 9, 6, gaps=(mp.Gap(2, 5, window),))
        plan = mp.solve([outer, inner])
        assert (plan.status, plan.peak) == ("optimal", peak)


def test_pins_reserved_ranges_and_alignment_reach_the_core(five: mp.Problem) -> None:
    """Tests that every column is handed on."""
    pinned = five.with_capacity(None).with_pins({"b1": 20}).with_reserved([(0, 3), (30, 31)])
    plan = mp.solve(pinned)
    mp.verify(pinned, plan)
    assert plan.offset("b1") == 20
    aligned = mp.Problem.from_arrays([0, 0], [1, 1], [3, 3], alignment=[8, 8])
    assert mp.solve(aligned).peak == 11


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"solver": "magic"}, 'there is no solver "magic"; choose one of auto, greedy'),
        ({"solver": None}, "there is no solver"),
        ({"objective": "fast"}, 'objective is "fast"; it must be "fit" or "min_peak"'),
        ({"timeout": -1}, "timeout is -1; it must be seconds, 0 or more"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "1s"}, 'timeout is "1s"'),
        ({"timeout": True}, "timeout is True"),
        ({"nodes": 0}, "nodes is 0; it must be a whole number from 1 to"),
        ({"nodes": 1.5}, r"nodes is 1\.5"),
        ({"nodes": 1 << 63}, "nodes is 9223372036854775808"),
        ({"threads": 0}, "threads is 0; it must be a whole number from 1 to"),
        ({"threads": True}, "threads is True"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0 to"),
        ({"seed": 1 << 64}, "seed is 18446744073709551616"),
        ({"budget": mp.Budget(nodes=9), "nodes": 9}, "either a budget, or timeout and nodes"),
        ({"budget": mp.Budget(seconds=-2)}, "timeout is -2"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    five: mp.Problem, arguments: dict[str, object], sentence: str
) -> None:
    """Tests that the argument and its value are named."""
    with pytest.raises(mp.MemplanError, match=sentence) as caught:
        mp.solve(five, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_fit_needs_a_capacity(five: mp.Problem) -> None:
    """Tests that "fit" without a limit is refused, and not taken as something else."""
    with pytest.raises(mp.MemplanError, match='"fit" needs a capacity'):
        mp.solve(five.with_capacity(None), objective="fit")


@pytest.mark.parametrize("given", [None, 7, 1.5])
def test_what_is_no_problem(given: object) -> None:
    """Tests that something else entirely is refused as such."""
    with pytest.raises(mp.MemplanError, match="a problem must be"):
        mp.solve(given)
    with pytest.raises(mp.ProblemError, match="not a Buffer"):
        mp.solve([given])


def test_numpy_numbers_are_numbers(five: mp.Problem) -> None:
    """Tests that arguments may come out of arrays."""
    plan = mp.solve(
        five, timeout=np.float32(9), nodes=np.int32(99), threads=np.int64(1), seed=np.uint8(3)
    )
    assert plan.peak == 12
    assert mp.solve(five, timeout=10**400, seed=(1 << 64) - 1).peak == 12


def test_a_budget_is_nodes_and_seconds(jagged: mp.Problem) -> None:
    """Tests that a budget says what timeout and nodes say."""
    limited = jagged.with_capacity(6)
    apart = mp.solve(limited, "exact", nodes=1, timeout=60)
    together = mp.solve(limited, "exact", budget=mp.Budget(seconds=60, nodes=1))
    assert apart.status is together.status is mp.Status.UNKNOWN
    assert apart.stats["nodes"] == together.stats["nodes"]


# Options ---------------------------------------------------------------------------------------


def options_of(solver: str) -> list[str]:
    """Return the switches of a solver, without what takes names or objects."""
    others = ("orders", "select", "learned", "model", "policy")
    return [name for name in registry.SOLVERS[solver].options if name not in others]


@pytest.mark.parametrize(
    ("solver", "option"), [(solver, option) for solver in OURS for option in options_of(solver)]
)
def test_every_switch_is_known_to_the_core(five: mp.Problem, solver: str, option: str) -> None:
    """Tests that the registry and the bindings have the same switches, and that none is needed."""
    for value in (True, False):
        plan = mp.solve(five, solver, **{option: value})  # type: ignore[arg-type]
        assert plan.peak == 12
    with pytest.raises(mp.MemplanError, match=f"{option} of {solver} must be True or False"):
        mp.solve(five, solver, **{option: "yes"})  # type: ignore[arg-type]


CORE = Path(__file__).parents[2] / "core"
HEADERS = (CORE / "include" / "memplan", CORE / "published" / "include" / "memplan")


def rows_of(header: str, table: str) -> list[tuple[str, str]]:
    """Return name and default of the options in a table of the core."""
    file = next(folder / header for folder in HEADERS if (folder / header).is_file())
    text = file.read_text().partition(f"#define MEMPLAN_{table}_OPTIONS(OPTION)")[2]
    rows = text.partition("\n\n")[0].replace("\\\n", " ")
    found = re.findall(r"OPTION\(\s*[\w:<> ]+, (\w+), (Names\(.*?\)|[^,]+),\s+\"", rows)
    return [(name, default.replace("nullptr", "false")) for name, default in found]


def in_c(value: object) -> str:
    """Return a default as the tables of the core have it."""
    if isinstance(value, list):
        return f"Names({{{json.dumps(value)[1:-1]}}})" if value else "Names()"
    return json.dumps(value)


def test_the_registry_has_the_options_of_the_core() -> None:
    """Tests names and defaults of every solver against the tables in the headers of its parts."""
    tables = {
        "greedy": ["solve.h FIRST", "greedy.h GREEDY"],
        "minimalloc": ["minimalloc.h MINIMALLOC"],
        "telamalloc": ["telamalloc.h TELAMALLOC"],
        "exact": ["exact.h EXACT", "prover.h PROVER"],
        "prover": ["prover.h PROVER"],
        "large": ["solve.h FIRST", "large.h LARGE"],
        "single_object": ["somas.h SOMAS"],
        "many_objects": ["somas.h SOMAS"],
        "csp": ["rectangles.h CSP"],
        "meta_csp": ["rectangles.h META_CSP"],
    }
    tables["auto"] = [*tables["greedy"], *tables["large"], *tables["exact"]]
    assert set(OURS) < tables.keys()
    for solver, parts in tables.items():
        known = registry.SOLVERS[solver]
        expected = {name: default for part in parts for name, default in rows_of(*part.split())}
        for chosen in known.preset:
            del expected[chosen]
        assert known.options.keys() == expected.keys()
        assert {name: in_c(value) for name, value in known.defaults.items()} == expected


@pytest.mark.parametrize("solver", OURS)
def test_an_unknown_option_names_solver_and_option(five: mp.Problem, solver: str) -> None:
    """Tests that a typo is not taken silently, by Python or by the core."""
    with pytest.raises(mp.UnsupportedError, match=f'{solver} has no option "speed"; it has '):
        mp.solve(five, solver, speed=11)
    with pytest.raises((ValueError, mp.MemplanError), match=f"{solver} has no option speed"):
        _ask_native(solver, five, {"speed": 11})


def _ask_native(solver: str, problem: mp.Problem, options: dict[str, object]) -> _core.Plan:
    native, outside = solvers.native.core_problem(problem), registry.SOLVERS[solver].outside
    runs = None if outside is None else outside(options, problem)
    return _core.solve(native, solver, True, None, None, 1, 0, options, None, None, None, runs)


def _native(rng: np.random.Generator) -> _core.Problem:
    """Return columns of small numbers, edges and garbage, of lengths that need not agree."""
    edges = [0, -1, 1 << 62, (1 << 62) + 1, -(1 << 62) - 1, (1 << 63) - 1, -(1 << 63)]
    rows = int(rng.integers(0, 6))

    def column(count: int, most: int = 6) -> np.ndarray:
        values = rng.integers(0, most, count)
        wild = rng.random(count) < 0.03
        return np.where(wild, rng.choice(edges, count), values).astype(np.int64)

    def maybe(count: int) -> np.ndarray:
        return column(count if rng.random() < 0.97 else count + 1) if rng.random() < 0.2 else none

    none = np.empty(0, np.int64)
    start, gaps = column(rows), int(rng.random() < 0.2)
    begin = np.sort(column(rows + 1, 3)) if rng.random() < 0.2 else None
    return _core.Problem(
        start,
        start // 2 + 3 + column(rows, 3),
        column(rows),
        1 + abs(maybe(rows) // 2),
        maybe(rows),
        maybe(rows),
        column(gaps) % 7,
        *(column(gaps) for _ in range(4)),
        *(np.sort(column(gaps)) for _ in range(2)),
        int(rng.integers(-1, 20)) if rng.random() < 0.3 else None,
        None if begin is None else (begin, column(int(rng.integers(0, 5)), 5).astype(np.int32)),
        (column(rows, 3) % 5 - 1, column(rows)) if rng.random() < 0.2 else None,
    )


def test_the_native_door_takes_nothing_that_is_not_well_formed() -> None:
    """Tests 3 000 problems of random columns: what `check` refuses, no solver takes."""
    rng = np.random.default_rng(17)
    taken = refused = 0
    for k in range(3000):
        native = _native(rng)
        solver = OURS[k % len(OURS)]
        make = registry.SOLVERS[solver].outside
        outside = None if make is None else make({}, mp.Problem([]))
        fault = native.check()
        said = None
        try:
            answer = _core.solve(
                native, solver, True, None, 300, 1, 0, {}, None, None, None, outside
            )
        except ValueError as error:
            said = str(error)
        if said is None:
            assert not fault
            assert answer.status in set(mp.Status)
            taken += 1
        else:
            assert said == fault or (not fault and solver in said)
            refused += 1
    assert taken > 500
    assert refused > 500


def test_the_native_door_does_not_cut_numbers_short() -> None:
    """Tests that a row of a gap or a group beyond 32 bits is refused, and not another one."""
    one, none = np.ones(1, np.int64), np.empty(0, np.int64)
    wide = np.array([1 << 32], np.int64)
    buffers = (0 * one, 9 * one, one, none, none, none)
    with pytest.raises(ValueError, match="gap_buffer has 4294967296"):
        _core.Problem(*buffers, wide, one, one, one, one, none, none, None)
    with pytest.raises(ValueError, match="group has 4294967296"):
        _core.Problem(*buffers, *[none] * 7, None, None, (wide, one))


def test_orders(five: mp.Problem) -> None:
    """Tests that orders are names, and that an order that does not exist is named."""
    assert mp.solve(five, "minimalloc", orders=["TAW"]).peak == 12
    for order in solvers.greedy_orders():
        mp.verify(five, mp.solve(five.with_capacity(None), "greedy", orders=[order]))
    with pytest.raises(mp.MemplanError, match="colour"):
        mp.solve(five, "greedy", orders=["colour"])
    with pytest.raises(mp.MemplanError, match="'Q' is not one of the keys"):
        mp.solve(five, "minimalloc", orders=["WAQ"])
    for wrong in ("size", 3, [3]):
        with pytest.raises(mp.MemplanError, match="orders of greedy must be a list"):
            mp.solve(five, "greedy", orders=wrong)


def test_a_selection_is_one_name(five: mp.Problem) -> None:
    """Tests the strategies of figure 14 of TelaMalloc, and that another one is refused by name."""
    for name in ("tela", "size", "area", "lifetime", "lowest"):
        plan = mp.solve(five, "telamalloc", "fit", select=name)
        mp.verify(five, plan)
        assert int(plan.stats["nodes"]) - int(plan.stats["backtracks"]) <= len(five)  # type: ignore[call-overload]
    for wrong, words in (("tallest", "no selection 'tallest'"), (3, "must be one name")):
        with pytest.raises(mp.MemplanError, match=words):
            mp.solve(five, "telamalloc", "fit", select=wrong)


# The registry ----------------------------------------------------------------------------------


def test_who_supports_what() -> None:
    """Tests the table that `memplan solvers` prints."""
    assert OURS == ("auto", "greedy", "exact", "prover", "large", "minimalloc", "telamalloc")
    for name, solver in registry.SOLVERS.items():
        assert solver.name == name
    for name in OURS:
        lacking = {
            "prover": {"windows"},
            "minimalloc": {"conflicts", "groups"},
            "telamalloc": {"windows", "conflicts", "groups"},
        }
        kept = frozenset(registry.CONSTRAINTS) - lacking.get(name, set())
        assert registry.SOLVERS[name].supports == kept


def test_a_solver_that_lacks_a_constraint_refuses_by_name(
    monkeypatch: pytest.MonkeyPatch, five: mp.Problem
) -> None:
    """Tests that a problem with a constraint never reaches a solver without it."""
    first, second = mp.Buffer("a", 0, 1, 4), mp.Buffer("b", 1, 2, 4)
    features: dict[str, mp.Problem] = {
        "capacity": five,
        "alignment": mp.Problem([mp.Buffer("b", 0, 1, 4, alignment=4)]),
        "pins": mp.Problem([mp.Buffer("b", 0, 1, 4, pin=4)]),
        "reserved": mp.Problem([], reserved=[(0, 4)]),
        "gaps": mp.Problem([mp.Buffer("b", 0, 5, 4, gaps=(mp.Gap(1, 2),))]),
        "windows": mp.Problem([mp.Buffer("b", 0, 5, 4, gaps=(mp.Gap(1, 2, (0, 1)),))]),
        "hints": mp.Problem([mp.Buffer("b", 0, 1, 4, hint=4)]),
        "zero-size": mp.Problem([mp.Buffer("b", 0, 1, 0)]),
        "conflicts": mp.Problem([first, second], conflicts=[("a", "b")]),
        "groups": mp.Problem([first, second], groups=[("a", "b")]),
    }
    assert set(features) == set(registry.CONSTRAINTS)
    for constraint, problem in features.items():
        rest = frozenset(registry.CONSTRAINTS) - {constraint}
        lacking = registry.Solver("plain", "for this test", rest)
        monkeypatch.setattr(registry, "SOLVERS", {"plain": lacking})
        with pytest.raises(mp.UnsupportedError, match=f"plain does not support {constraint}"):
            registry.check("plain", problem)
        registry.check("plain", mp.Problem([mp.Buffer("b", 0, 1, 4)]))


# Bounds ----------------------------------------------------------------------------------------


def test_a_bound_has_a_rule_and_a_section(five: mp.Problem) -> None:
    """Tests where the load of the example is greatest."""
    bound = solvers.bound(five)
    assert (bound.bytes, bound.section) == (12, (0, 3))
    assert bound.rule
    assert mp.lower_bound(five) == 12


@given(problem=strategies.related(strategies.problems(max_buffers=6)))
def test_a_bound_is_below_every_plan(problem: mp.Problem) -> None:
    """Tests that no plan is better than the bound, which is no worse than the load."""
    best = oracle.minimum_peak(problem)
    bound = mp.lower_bound(problem)
    assert bound >= problem.max_load
    assert best is None or bound <= best


# Interrupts ------------------------------------------------------------------------------------


def run(program: str) -> str:
    """Run a program that must not need more than a minute; return what it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# A search that does not end by itself, and a signal in the middle of it: sixty-four buffers whose
# optimum is above their load, for a search without its best rules.
HARD = """
import signal
import memplan as mp
from memplan_lab.bench import generators

problem = generators.flat_load(64, 1).with_capacity(100_000)
options = dict.fromkeys(("section_inference", "dominance", "unallocated_floor"), False)

def search():
    mp.solve(problem, "minimalloc", "min_peak", **options)
    print("ended by itself")

signal.setitimer(signal.ITIMER_REAL, 0.3)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_gives_the_best_plan() -> None:
    """Tests that an interrupt ends the search with `Interrupted`, which has the plan so far."""
    answer = run(
        HARD
        + """
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    search()
except mp.Interrupted as stop:
    mp.verify(problem, stop.plan)
    print(isinstance(stop, KeyboardInterrupt), stop.plan.status)
"""
    )
    assert answer == "True feasible\n"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_what_another_signal_handler_raises_comes_through() -> None:
    """Tests that a timeout of the caller's own is not taken for Ctrl-C."""
    answer = run(
        HARD
        + """
class Late(Exception):
    pass

def late(*_):
    raise Late("too late")

signal.signal(signal.SIGALRM, late)
try:
    search()
except Late as error:
    print("Late:", error)
"""
    )
    assert answer == "Late: too late\n"


def test_other_threads_go_on_during_a_search() -> None:
    """Tests that the search runs without the GIL: two of them count to the same answer."""
    rng = np.random.default_rng(5)
    start = rng.integers(0, 60, 80)
    problem = mp.Problem.from_arrays(
        start, start + rng.integers(5, 30, 80), rng.integers(1, 1 << 16, 80)
    )
    plans: list[mp.Plan] = []

    def work() -> None:
        plans.append(mp.solve(problem, "exact", nodes=20_000, threads=1))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(plans) == 2
    assert plans[0].peak == plans[1].peak
    assert plans[0].stats["nodes"] == plans[1].stats["nodes"]


def test_interrupted_is_a_keyboard_interrupt_with_a_plan(five: mp.Problem) -> None:
    """Tests that it passes `except Exception`, and process borders."""
    plan = mp.solve(five)
    stop = mp.Interrupted(plan)
    assert not isinstance(stop, Exception)
    assert stop.plan is plan
    kind, arguments = stop.__reduce__()
    assert kind(*arguments).plan is plan


def test_an_interrupt_of_the_core_is_raised(
    monkeypatch: pytest.MonkeyPatch, five: mp.Problem
) -> None:
    """Tests the step from the core's word to the exception, without a signal."""
    plan = mp.solve(five)
    monkeypatch.setattr(solvers.native, "solve", lambda *_, **__: (plan, True))
    with pytest.raises(mp.Interrupted) as caught:
        mp.solve(five)
    assert caught.value.plan is plan


# The face --------------------------------------------------------------------------------------


def test_version() -> None:
    """Tests that module, package, laboratory, list of changes and citation have one version."""
    assert mp.__version__ == importlib.metadata.version("memplan")
    root = Path(__file__).parents[2]
    laboratory = tomllib.loads((root / "lab" / "pyproject.toml").read_text())["project"]
    assert laboratory["version"] == mp.__version__
    assert f"memplan=={mp.__version__}" in laboratory["dependencies"]
    newest = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == mp.__version__
    assert f"\nversion: {mp.__version__}\n" in (root / "CITATION.cff").read_text()


def test_every_public_name_is_there() -> None:
    """Tests `__all__`, also where names are loaded when they are asked for."""
    for name in mp.__all__:
        assert getattr(mp, name) is not None
        assert name in dir(mp)
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        mp.slove  # type: ignore[attr-defined]  # noqa: B018


def test_plans_survive_a_copy(five: mp.Problem) -> None:
    """Tests that a plan whose offsets the core owns can be pickled."""
    plan = mp.solve(five)
    assert plan.offsets is not None
    assert pickle.loads(pickle.dumps(plan.offsets)).tolist() == plan.offsets.tolist()


def test_the_core_refuses_columns_that_do_not_match(five: mp.Problem) -> None:
    """Tests that columns of different lengths never reach memory that is not theirs."""
    column: Callable[[int], np.ndarray] = lambda n: np.zeros(n, dtype=np.int64)  # noqa: E731
    empty, one = column(0), column(1)
    columns = [five.start, five.end, five.size, *[empty] * 10]
    for at in range(6, 11):
        gaps = list(columns)
        gaps[6] = one if at != 6 else empty
        for other in range(7, 11):
            gaps[other] = one if other != at and at != 6 else empty
        if at == 6:
            gaps[7] = one
        with pytest.raises(ValueError, match="rows"):
            _core.Problem(*gaps, None)
    with pytest.raises(ValueError, match="reserved_upper has 0 rows"):
        _core.Problem(*columns[:11], one, empty, None)
    short = _core.Problem(five.start, five.end[:4].copy(), five.size, *columns[3:], None)
    assert "end has 4 rows" in short.check()
    with pytest.raises(ValueError, match="end has 4 rows"):
        _core.lower_bound(short)
