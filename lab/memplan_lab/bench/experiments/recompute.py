"""What re-runs cost at several capacities, ours with its bounds, beside planners of others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from memplan import _core
from memplan.base.errors import MemplanError
from memplan.levers.rewrite.again.native import (
    bound_certificate_of,
    core_recompute_problem,
    floor_certificate_of,
    order_certificate_of,
)
from memplan.levers.rewrite.order import core_problem
from memplan.problem import RecomputeProblem
from memplan.referee import verify_recompute
from memplan_lab.bench.again import checkmate, moccasin, suite
from memplan_lab.bench.again.chen import keep_every_kth
from memplan_lab.bench.again.moccasin import Found
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
    read_list,
    read_seconds,
    read_share,
    ready,
)
from memplan_lab.bench.tables import DASH, Shown

_SECONDS: Final = 4.0  # of each of our searches, if there is no limit of states


def _keep(problem: RecomputeProblem, capacity: int, seconds: float) -> Found:
    return Found(keep_every_kth(problem, capacity))


# By name: what looks for a sequence whose first runs keep the order, and fits. `None` if the
# problem is too large for it.
PEERS: Final[Mapping[str, Callable[[RecomputeProblem, int, float], Found | None]]] = {
    "every-kth": _keep,
    "cp-sat": moccasin.solve,
    "ilp": checkmate.solve,
}


def _list_cases(settings: Settings) -> Iterator[Case]:
    for one in suite.cases(settings["case"], settings["data"]):
        yield Case(one.name, ready(one.problem), {"family": one.family})


def _list_arms(settings: Settings) -> Iterator[Arm]:
    seconds, states = settings["timeout"], settings["nodes"]
    if seconds is None and states is None:
        seconds = _SECONDS
    peers, limit = settings["peer"] or (), settings["peer-seconds"]
    run = partial(measure, settings["share"], (seconds, states), peers, limit)
    yield Arm("memplan", run)


def measure(
    shares: Sequence[float],
    budget: tuple[float | None, int | None],
    peers: Sequence[str],
    limit: float,
    problem: RecomputeProblem,
) -> Iterator[dict[str, Any]]:
    """Search an order and re-runs for each capacity, and ask peers from the same order."""
    begun = _cpu_seconds()
    core = core_problem(problem.program)
    given = core.peak_of(list(range(len(problem))))
    best = _core.best_order(core, *budget, [])
    ordered = suite.put_in_order(problem, best.order) if best.peak < given else problem
    used = _cpu_seconds() - begun
    for share in shares:
        row = {
            "operators": len(problem),
            "storages": len(problem.program.size),
            "share": share,
            "capacity": int(given * share),
            "given": given,
            "ordered": min(given, best.peak),
            **_search(ordered, int(given * share), budget),
        }
        row["gains_nothing"] = row["ordered"] <= row["floor"]
        row["cpu_seconds"] += used
        yield {**row, "peers": {name: _ask(name, ordered, row, limit) for name in peers}}


def _search(
    problem: RecomputeProblem, capacity: int, budget: tuple[float | None, int | None]
) -> dict[str, Any]:
    """Return our re-runs and bounds, which the referee accepts."""
    begun = _cpu_seconds()
    found = _core.recompute(core_recompute_problem(problem), capacity, *budget, True, [])
    used = _cpu_seconds() - begun
    claim = verify_recompute(
        problem,
        found.runs or None,
        capacity,
        extra=found.extra if found.runs else None,
        bound=found.bound,
        certificate=bound_certificate_of(found),
        order_bound=found.order_bound,
        order_certificate=order_certificate_of(found),
        floor=found.floor,
        floor_certificate=floor_certificate_of(found),
    )
    return {
        "floor": claim.floor,
        "plain": problem.plain,
        "extra": claim.extra if found.runs else None,
        "bound": claim.bound,
        "order_bound": claim.order_bound,
        "status": found.status,
        "cpu_seconds": used,
    }


def _ask(name: str, problem: RecomputeProblem, row: Row, limit: float) -> dict[str, Any] | None:
    """Ask a peer; the referee checks its sequence. `None` if the program is too large for it."""
    if row["capacity"] < row["floor"]:
        return None
    begun = _cpu_seconds()
    found = PEERS[name](problem, row["capacity"], limit)
    used = _cpu_seconds() - begun
    if found is None:
        return None
    extra = None
    if found.runs is not None:
        extra = verify_recompute(problem, found.runs, row["capacity"]).extra
        if extra < row["order_bound"]:
            raise MemplanError(
                f"{name} found re-runs that cost {extra}, but {row['order_bound']} is proved to be "
                "the least cost in this order"
            )
    proved = found.is_optimal or found.is_refuted
    return {"extra": extra, "is_proved": proved, "cpu_seconds": used}


def _cpu_seconds() -> float:
    """Return the CPU time of all threads of this process, and of processes that it has ended."""
    return sum(os.times()[:4])


def _is_above(row: Row) -> bool:
    return bool(row["capacity"] >= row["floor"])


def _cost(name: str) -> Callable[[Rows], str]:
    return lambda rows: _per_cent(rows[0][name], rows[0]) if _is_above(rows[0]) else DASH


def _per_cent(cost: int | None, row: Row) -> str:
    return "nothing" if cost is None else f"{100 * cost / max(row['plain'], 1):.3f}"


def _tell_proved(row: Row) -> str:
    if not _is_above(row):
        nothing = row["gains_nothing"]
        return "nothing is gained" if nothing else f"floor {row['floor'] / row['given']:.1%}"
    if row["status"] in ("optimal", "infeasible"):
        return "yes"
    return "in order" if row["extra"] is not None and row["extra"] <= row["order_bound"] else "no"


def _of_peer(name: str) -> tuple[Column, Column]:
    """Return what a peer found, with a * if it is proved, and its time."""

    def cost(rows: Rows) -> str:
        answer = rows[0]["peers"][name]
        if answer is None:
            return DASH
        return _per_cent(answer["extra"], rows[0]) + ("*" if answer["is_proved"] else "")

    def seconds(rows: Rows) -> str:
        answer = rows[0]["peers"][name]
        return DASH if answer is None else f"{answer['cpu_seconds']:.1f}"

    return Column(name, cost), Column("CPU s", seconds)


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown | Table]:
    columns = (
        Column("program", "{case}"),
        Column("n", "{operators:,}"),
        Column("share", "{share:.0%}"),
        Column("found", _cost("extra")),
        Column("bound", _cost("bound")),
        Column("in order", _cost("order_bound")),
        Column("proved", lambda rows: _tell_proved(rows[0])),
        Column("CPU s", "{cpu_seconds:.2f}"),
        *(column for name in rows[0]["peers"] for column in _of_peer(name)),
    )
    yield Table("Re-runs", columns)
    headings = ("sequences by", "capacities", "found", "proved", "as cheap as ours", "CPU s")
    yield Shown("All", headings, list(_summarise(rows)))


def _summarise(rows: Rows) -> Iterator[tuple[str, ...]]:
    """Yield a line for our search and one for each peer, over the capacities from the floor on."""
    own = [row for row in rows if _is_above(row)]
    found = sum(row["extra"] is not None for row in own)
    yield (
        *("memplan", f"{len(own)}", f"{found}"),
        f"{sum(_tell_proved(row) != 'no' for row in own)}",
        *(f"{found}", f"{sum(row['cpu_seconds'] for row in own):.1f}"),
    )
    for name in rows[0]["peers"]:
        answers = [(row, row["peers"][name]) for row in own if row["peers"][name] is not None]
        costs = [(row["extra"], one["extra"]) for row, one in answers if one["extra"] is not None]
        yield (
            *(name, f"{len(answers)}", f"{len(costs)}"),
            f"{sum(one['is_proved'] for _, one in answers)}",
            f"{sum(ours is None or cost <= ours for ours, cost in costs)}",
            f"{sum(one['cpu_seconds'] for _, one in answers):.1f}",
        )


EXPERIMENT = Experiment(
    "recompute",
    "what re-runs cost at several capacities, with a bound for every order, beside peers",
    figures={
        "share": "the capacity as a share of `given`, and in bytes: `capacity`",
        "given": "bytes that the program needs without re-runs, and `ordered` in the best order",
        "floor": "bytes that every sequence needs, in any order; proved",
        "plain": "the cost of running every operator once",
        "extra": "the cost of our re-runs; none if nothing was found",
        "bound": "no sequence that fits costs less, in any order; checked by the referee",
        "order_bound": "none costs less whose first runs keep the order of the search; checked too",
        "gains_nothing": "whether it is proved that re-runs never help",
        "cpu_seconds": "of the searches for the order and for re-runs",
        "peers": "the answer of each peer, which starts from the same order",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    takes=("case", "peer", "data", "limit", "timeout", "nodes"),
    own={
        "share": Setting(
            suite.SHARES,
            "capacities, as shares of what the program needs without re-runs",
            read_list(read_share),
        ),
        "peer-seconds": Setting(600.0, "CPU seconds of a peer for each capacity", read_seconds),
    },
    peers=tuple(PEERS),
)
