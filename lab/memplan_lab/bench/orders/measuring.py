"""The best orders of graphs, with proofs, and the orders of other tools."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from memplan import _core
from memplan.base.errors import MemplanError, MissingExtraError, listed, quoted
from memplan.problem import OrderBound, OrderProblem, Problem
from memplan.referee import verify_order
from memplan.rewrite.order import core_problem
from memplan.solvers import solve
from memplan_lab.bench.orders import oracle
from memplan_lab.bench.orders.peers import PEERS
from memplan_lab.bench.orders.program import program_of
from memplan_lab.bench.orders.suite import Case

__all__ = ["ORACLE", "RULES", "Row", "measure"]

RULES = tuple(_core.order_rules())
ORACLE = "cp-sat"


@dataclass(frozen=True)
class Row:
    """One graph."""

    # name, family, operators, storages: Which graph, and how large it is.
    name: str
    family: str
    operators: int
    storages: int
    without: str  # the rules that were off
    # given, peak, bound: The peak of the given order, the peak of the best one found, and the
    # bound; in bytes.
    given: int
    peak: int
    bound: int
    certified: int  # the bound that the referee accepts, by a cut and without the search
    states: int  # the number of states that the searches explored
    cpu_seconds: float  # of the search, one thread
    planned: int | None = None  # the peak of a plan for the best order; `None` where a rule was off
    # By name: the peak of the peer's order, or `None` if it gave up or is not installed.
    peers: Mapping[str, int | None] = field(default_factory=dict)
    # The least peak by CP-SAT, and its bound; `None` if it was not asked or the graph is large.
    oracle: tuple[int, int] | None = None

    @property
    def proved(self) -> bool:
        """Whether no order has a smaller peak."""
        return self.peak == self.bound


def measure(
    cases: Iterable[Case],
    *,
    seconds: float | None,
    states: int | None,
    peers: Sequence[str],  # names of `PEERS`, and `ORACLE`
    without: Sequence[str] = (),
) -> Iterator[Row]:
    """Search and compare; yield a row for each graph, or for each rule that is off."""
    for what, names, known in (("peer", peers, (*PEERS, ORACLE)), ("rule", without, RULES)):
        for name in names:
            if name not in known:
                raise MemplanError(
                    f"there is no {what} {quoted(name)}; choose {listed(known, quote=False)}"
                )
    for case in cases:
        yield _compare(_search(case, seconds, states, ""), case.problem, peers, seconds)
        for rule in without:
            yield _search(case, seconds, states, rule)


def _search(case: Case, seconds: float | None, states: int | None, without: str) -> Row:
    problem = case.problem
    core = core_problem(problem)
    given = core.peak_of(list(range(len(problem))))
    begin = time.process_time()
    found = _core.best_order(core, seconds, states, [without] if without else [])
    used = time.process_time() - begin
    certificate = None
    if found.operator >= 0:
        flow = np.array(found.flow, dtype=np.int64).reshape(-1, 3)
        certificate = OrderBound(found.operator, tuple(found.done), flow)
    claim = verify_order(problem, found.order, peak=found.peak, certificate=certificate)
    return Row(
        *(case.name, case.family, len(problem), len(problem.size), without),
        *(given, found.peak, found.bound, claim.bound, found.states),
        cpu_seconds=used,
        planned=None if without else _plan_best(problem, found.order, found.peak, seconds, states),
    )


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


def _compare(row: Row, problem: OrderProblem, peers: Sequence[str], seconds: float | None) -> Row:
    core = core_problem(problem)
    program = program_of(problem)
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
    return replace(
        row, peers=peaks, oracle=oracle.least_peak(program, seconds or 60.0) if small else None
    )
