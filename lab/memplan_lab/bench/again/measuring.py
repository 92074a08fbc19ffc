"""What re-runs cost at several capacities: ours with its bounds, and the peers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memplan import _core
from memplan.base.errors import MemplanError, listed, quoted
from memplan.problem import RecomputeProblem
from memplan.referee import verify_recompute
from memplan.rewrite.again.native import (
    bound_certificate_of,
    core_recompute_problem,
    floor_certificate_of,
    order_certificate_of,
)
from memplan.rewrite.order import core_problem
from memplan_lab.bench.again import checkmate, moccasin
from memplan_lab.bench.again.chen import keep_every_kth
from memplan_lab.bench.again.moccasin import Found
from memplan_lab.bench.again.suite import Case, put_in_order

__all__ = ["PEERS", "Answer", "Row", "measure"]


def _keep(problem: RecomputeProblem, capacity: int, seconds: float) -> Found:
    return Found(keep_every_kth(problem, capacity))


# By name: what looks for a sequence whose first runs keep the order, and fits. `None` if the
# problem is too large for it.
PEERS: Final[Mapping[str, Callable[[RecomputeProblem, int, float], Found | None]]] = {
    "every-kth": _keep,
    "cp-sat": moccasin.solve,
    "ilp": checkmate.solve,
}


@dataclass(frozen=True)
class Answer:
    """What a peer found."""

    extra: int | None  # the cost of its re-runs, or `None` if it found nothing
    is_proved: bool  # whether it proved that its model has nothing cheaper, or nothing at all
    cpu_seconds: float  # of all its threads and processes


@dataclass(frozen=True)
class Row:
    """A program and a capacity."""

    # name, family, operators, storages: Which program, and how large it is.
    name: str
    family: str
    operators: int
    storages: int
    # share, capacity: The capacity, as a share of `given` and in bytes.
    share: float
    capacity: int
    # given, ordered: What the program needs without re-runs, in the given and in the best order
    # found.
    given: int
    ordered: int
    floor: int  # what every sequence needs, in any order; proved
    plain: int  # the cost of running every operator once
    extra: int | None  # the cost of our re-runs, or `None` if nothing was found
    bound: int  # no sequence that fits costs less, in any order; checked by the referee
    # None costs less whose first runs keep the order that the search started from; checked too.
    order_bound: int
    status: str  # "optimal", "feasible", "unknown" or "infeasible"; for any order
    cpu_seconds: float  # of the search for the order and of that for re-runs
    # By name: the answer of a peer, which starts from the same order as our search; `None` if the
    # program is too large for it.
    peers: Mapping[str, Answer | None] = field(default_factory=dict)

    @property
    def gains_nothing(self) -> bool:
        """Whether it is proved that re-runs never help, in whatever capacity."""
        return self.ordered <= self.floor


def measure(
    cases: Iterable[Case],
    *,
    shares: Sequence[float],  # capacities, as shares of what a program needs in its given order
    seconds: float | None,
    states: int | None,
    peers: Sequence[str],  # names of `PEERS`
    limit: float,  # cPU seconds of each answer of a peer
) -> Iterator[Row]:
    """Search and compare; yield a row for each program and capacity."""
    for name in peers:
        if name not in PEERS:
            known = listed(PEERS, quote=False)
            raise MemplanError(f"there is no peer {quoted(name)}; choose {known}")
    for case in cases:
        begun = _cpu_seconds()
        core = core_problem(case.problem.program)
        given = core.peak_of(list(range(len(case.problem))))
        best = _core.best_order(core, seconds, states, [])
        ordered = put_in_order(case.problem, best.order) if best.peak < given else case.problem
        used = _cpu_seconds() - begun
        for share in shares:
            row = _search(case, ordered, share, given, seconds, states)
            yield replace(
                row,
                ordered=min(given, best.peak),
                cpu_seconds=row.cpu_seconds + used,
                peers={name: _ask(name, ordered, row, limit) for name in peers},
            )


def _search(
    case: Case,
    problem: RecomputeProblem,
    share: float,
    given: int,
    seconds: float | None,
    states: int | None,
) -> Row:
    capacity = int(given * share)
    begun = _cpu_seconds()
    found = _core.recompute(core_recompute_problem(problem), capacity, seconds, states, True, [])
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
    return Row(
        *(case.name, case.family, len(problem), len(problem.program.size)),
        share=share,
        capacity=capacity,
        given=given,
        ordered=given,
        floor=claim.floor,
        plain=problem.plain,
        extra=claim.extra if found.runs else None,
        bound=claim.bound,
        order_bound=claim.order_bound,
        status=found.status,
        cpu_seconds=used,
    )


def _ask(name: str, problem: RecomputeProblem, row: Row, limit: float) -> Answer | None:
    """Ask a peer; the referee checks its sequence."""
    if row.capacity < row.floor:
        return None
    begun = _cpu_seconds()
    found = PEERS[name](problem, row.capacity, limit)
    used = _cpu_seconds() - begun
    if found is None:
        return None
    extra = None
    if found.runs is not None:
        extra = verify_recompute(problem, found.runs, row.capacity).extra
        if extra < row.order_bound:
            raise MemplanError(
                f"{row.name}: {name} found re-runs that cost {extra}, but {row.order_bound} is "
                "proved to be the least cost in this order"
            )
    return Answer(extra, found.is_optimal or found.is_refuted, used)


def _cpu_seconds() -> float:
    """Return the CPU time of all threads of this process, and of processes that it has ended."""
    return sum(os.times()[:4])
