"""The best orders of graphs, with proofs, beside the orders of other tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import geometric_mean, mean, median
from typing import Any

import numpy as np

from memplan import _core
from memplan.base.errors import MemplanError, MissingExtraError, listed, quoted
from memplan.levers.rewrite.order import core_problem
from memplan.problem import OrderBound, OrderProblem, Problem
from memplan.referee import verify_order
from memplan.solvers import solve
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Rows,
    Setting,
    Settings,
    Table,
    read_count,
    ready,
    tell,
)
from memplan_lab.bench.orders import oracle, suite
from memplan_lab.bench.orders.peers import PEERS
from memplan_lab.bench.orders.program import program_of
from memplan_lab.bench.tables import Shown

RULES = tuple(_core.order_rules())
ORACLE = "cp-sat"
_QUICK = 1.0  # CPU seconds within which nearly all must be proved


def _list_cases(settings: Settings) -> Iterator[Case]:
    for each in suite.cases(settings["data"]):
        if settings["largest"] is None or len(each.problem) <= settings["largest"]:
            yield Case(each.name, ready(each.problem), {"family": each.family})


def _list_arms(settings: Settings) -> Iterator[Arm]:
    budget = settings["timeout"], settings["nodes"]
    yield Arm("memplan", partial(measure, budget, settings["peer"] or ()))
    for rule in settings["without"]:
        yield Arm("memplan", partial(search, budget, rule))


Budget = tuple[float | None, int | None]  # seconds and states of each search


def measure(budget: Budget, peers: Sequence[str], problem: OrderProblem) -> dict[str, Any]:
    """Return our order and those of others."""
    core, program = core_problem(problem), program_of(problem)
    peaks: dict[str, int | None] = {}
    for name in peers:
        if name == ORACLE:
            continue
        try:
            order = PEERS[name](program)
        except MissingExtraError:
            order = None
        peaks[name] = None if order is None else core.peak_of(order)
    small = ORACLE in peers and len(problem) <= oracle.LARGEST
    return {
        **search(budget, "", problem),
        "peers": peaks,
        "oracle": oracle.least_peak(program, budget[0] or 60.0) if small else None,
    }


def search(budget: Budget, without: str, problem: OrderProblem) -> dict[str, Any]:
    """Return the best order, which the referee accepts, with or without a rule."""
    core = core_problem(problem)
    begin = time.process_time()
    found = _core.best_order(core, *budget, [without] if without else [])
    seconds = time.process_time() - begin
    certificate = None
    if found.operator >= 0:
        flow = np.array(found.flow, dtype=np.int64).reshape(-1, 3)
        certificate = OrderBound(found.operator, tuple(found.done), flow)
    claim = verify_order(problem, found.order, peak=found.peak, certificate=certificate)
    return {
        "operators": len(problem),
        "storages": len(problem.size),
        "without": without,
        "given": core.peak_of(list(range(len(problem)))),
        "peak": found.peak,
        "bound": found.bound,
        "proved": found.peak == found.bound,
        "certified": claim.bound,
        "states": found.states,
        "cpu_seconds": seconds,
        "planned": None if without else _plan_best(problem, found.order, found.peak, *budget),
    }


def _plan_best(
    problem: OrderProblem,
    order: Sequence[int],
    peak: int,
    seconds: float | None,
    states: int | None,
) -> int | None:
    """Return the peak of a plan for the best order, as it is or before it was tidied."""
    planned = _plan(problem, order, seconds)
    if planned == peak:
        return planned
    other = _core.best_order(core_problem(problem), seconds, states, ["tidying"])
    again = _plan(problem, other.order, seconds) if other.peak <= peak else None
    return min((each for each in (planned, again) if each is not None), default=None)


def _plan(problem: OrderProblem, order: Sequence[int], seconds: float | None) -> int | None:
    """Return the peak of a plan for the storages in an order."""
    place = np.empty(len(problem), dtype=np.int64)
    place[order] = np.arange(len(problem))
    used = np.diff(problem.user_begin) > 0
    begin = problem.user_begin[:-1][used]
    first = np.minimum.reduceat(place[problem.user], begin)
    last = np.maximum.reduceat(place[problem.user], begin)
    works = np.flatnonzero(problem.workspace)
    made = Problem.from_arrays(
        np.concatenate([np.where(problem.given[used], 0, first), place[works]]),
        np.concatenate([np.where(problem.wanted[used], len(problem), last + 1), place[works] + 1]),
        np.concatenate([problem.size[used], problem.workspace[works]]),
    )
    return solve(made, timeout=seconds, threads=1).peak


def _gain(row: Row) -> float | None:
    return 1 - row["peak"] / row["given"] if row["given"] else None


def _gap(row: Row) -> float:
    return float(row["peak"] / max(row["bound"], 1) - 1)


def _is_quick(row: Row) -> bool:
    return bool(row["proved"] and row["cpu_seconds"] <= _QUICK)


def _count_planned(rows: Rows) -> str:
    planned = [row["planned"] == row["peak"] for row in rows if row["planned"] is not None]
    return f"{sum(planned):,} of {len(planned):,}"


SUMMARY = (
    Column("graphs", "{family}"),
    Column("n", tell("{:,}", len, "peak")),
    Column("proved", tell("{:,}", sum, "proved")),
    Column("by a cut", tell("{:,}", sum, lambda row: row["certified"] == row["peak"])),
    Column("within 1 s", tell("{:,}", sum, _is_quick)),
    Column("median", tell("{:.3f} s", median, "cpu_seconds")),
    Column("worst", tell("{:.2f} s", max, "cpu_seconds")),
    Column("lower", tell("{:,}", sum, lambda row: row["peak"] < row["given"])),
    Column("mean gain", tell("{:.1%}", mean, _gain)),
    Column("best gain", tell("{:.1%}", max, _gain)),
    Column("planned at the load", _count_planned),
    Column("largest gap", tell("{:.2%}", max, _gap)),
)

WITHOUT = (
    Column("without", lambda rows: rows[0]["without"] or "(nothing)"),
    Column("proved", tell("{}", lambda each: f"{sum(each):,} of {len(each):,}", "proved")),
    Column("states", tell("{:,}", sum, "states")),
    Column("CPU", tell("{:.2f} s", sum, "cpu_seconds")),
    Column("worst", tell("{:.2f} s", max, "cpu_seconds")),
    Column("largest gap", tell("{:.2%}", max, _gap)),
)


def _multiple(name: str) -> Callable[[Row], float | None]:
    """Return the peak of an order as a multiple of the best one."""

    def ratio(row: Row) -> float | None:
        peak = row["given"] if name == "given" else row["peers"][name]
        return None if peak is None or not row["peak"] else float(peak / row["peak"])

    return ratio


def _make_details(rows: Rows, _: Settings) -> Iterator[Shown]:
    whole = [row for row in rows if not row["without"]]
    columns = (
        Column("graph", "{case}"),
        Column("n", "{operators:,}"),
        Column("given", "{given:,}"),
        Column("best", "{peak:,}"),
        Column("bound", "{bound:,}"),
        Column("proved", lambda rows: "yes" if rows[0]["proved"] else "no"),
        Column("states", "{states:,}"),
        Column("CPU s", "{cpu_seconds:.3f}"),
        *(
            Column(f"{name}/best", tell("{:.3f}", max, _multiple(name)))
            for name in ("given", *whole[0]["peers"])
        ),
    )
    yield Table("Graphs", columns).show(whole)


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown | Table]:
    whole = [row for row in rows if not row["without"]]
    yield Table("Orders", SUMMARY, by=("family",), total={"family": "all"}).show(whole)
    if whole[0]["peers"]:
        lines = []
        for name in ("given", *whole[0]["peers"]):
            ratios = [each for each in map(_multiple(name), whole) if each is not None]
            if ratios:
                best = sum(ratio <= 1 for ratio in ratios)
                means = f"{geometric_mean(ratios):.4f}", f"{max(ratios):.3f}"
                lines.append((name, f"{len(ratios):,}", f"{best:,}", *means))
        yield Shown("Orders of others", ("order", "graphs", "best", "mean", "worst"), lines)
    if len(whole) < len(rows):
        yield Table("Rules", WITHOUT, by=("without",))


def _read_rules(text: str) -> tuple[str, ...]:
    names = RULES if text == "all" else tuple(text.split(","))
    for name in names:
        if name not in RULES:
            known = listed(RULES, quote=False)
            raise MemplanError(f"there is no rule {quoted(name)}; choose {known}")
    return names


EXPERIMENT = Experiment(
    "order",
    "the least peak over all orders of operators, with proof, beside the orders of others",
    figures={
        "without": "a rule that was off",
        "given": "bytes: the peak of the given order",
        "peak": "of the best order found, and the `bound`",
        "certified": "the bound that the referee accepts, by a cut and without the search",
        "states": "that the searches explored",
        "cpu_seconds": "of the search, one thread",
        "planned": "the peak of a plan for the best order",
        "peers": "the peak of each peer's order; none if it gave up or is not installed",
        "oracle": "the least peak by CP-SAT, and its bound",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    details=_make_details,
    takes=("case", "peer", "data", "limit", "timeout", "nodes"),
    own={
        "largest": Setting(None, "the most operators of a graph", read_count),
        "without": Setting((), "also search without each of these rules, or `all`", _read_rules),
    },
    peers=(*PEERS, ORACLE),
)
