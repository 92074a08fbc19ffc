"""Checks of best known peaks against the corpus, and updates from results of benchmarks.

A benchmark's result is only a claim. A smaller peak, or a proof, is adopted if the same solver
reaches it again here, and the referee accepts its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify
from memplan.solvers import lower_bound, solve
from memplan_lab.bench.best_known import Best, pack_offsets
from memplan_lab.bench.records import Corpus, Record

__all__ = ["Claim", "Finding", "Update", "check", "stock_plan", "update"]

STOCK = "auto"
STOCK_NODES = 20_000  # with a limit of nodes, a search gives the same result on any machine
_PATIENCE = 4.0  # the time as a multiple of the benchmark's: this machine may be slower
_LEAST_SECONDS = 10.0
# The limit is a multiple of the nodes that a proof took, because a chain of searches divides it.
_ROOM = 2


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a benchmark: what a solver reached."""

    # name, fingerprint: Those of the problem.
    name: str
    fingerprint: str
    peak: int  # in bytes
    proved: bool  # whether the benchmark claims that there is no smaller peak
    # solver, seed: As for `memplan.solve`.
    solver: str
    seed: int
    seconds: float  # the time limit of the solver


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `wrong` is a sentence, or empty if the peak is right."""

    name: str
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """The result of testing claims."""

    # All lines, by fingerprint: old lines, and new ones, which may replace old ones.
    bests: Mapping[str, Best]
    improved: tuple[Best, ...]  # the new lines
    refused: tuple[Finding, ...]  # claims that are wrong, or could not be repeated


def stock_plan(problem: Problem) -> Plan:
    """Return the plan of the default search within a limit of nodes, verified.

    The file of a corpus has the peaks of these plans.
    """
    return _solve_and_verify(problem, STOCK, nodes=STOCK_NODES)


def check(corpus: Corpus, bests: Mapping[str, Best]) -> Iterator[Finding]:
    """Check the best known peaks of a corpus with the referee, problem by problem.

    If a problem has a line, its offsets are the plan. Otherwise the standard search must reach the
    peak that the corpus has. A peak that is called proved must be proved again.
    """
    for record in corpus:
        best = bests.get(record.problem.fingerprint)
        try:
            wrong = _wrong_by_search(record) if best is None else _wrong_line(record, best)
        except MemplanError as error:
            wrong = str(error)
        yield Finding(record.name, wrong)


def _wrong_line(record: Record, best: Best) -> str:
    best.plan(record.problem)
    if best.peak > record.best_peak:
        return f"{best.peak} is not the best known peak, which is {record.best_peak}"
    if best.proved and best.peak > lower_bound(record.problem):
        again = _solve_and_verify(
            record.problem, best.solver, nodes=max(1, best.nodes), seed=best.seed
        )
        if again.lower_bound < best.peak:
            return f"{best.solver} does not prove {best.peak} within {best.nodes} nodes"
    return ""


def _wrong_by_search(record: Record) -> str:
    plan = stock_plan(record.problem)
    if plan.peak is None or plan.peak > record.best_peak:
        return f"{STOCK} reaches {plan.peak}, and the corpus has {record.best_peak}: show a plan"
    if record.best_proved and plan.lower_bound < record.best_peak:
        return f"{STOCK} does not prove {record.best_peak} within {STOCK_NODES} nodes"
    return ""


def update(
    corpus: Corpus,
    bests: Mapping[str, Best],
    claims: Iterable[Claim],
    *,
    on_claim: Callable[[Claim], object] | None = None,
) -> Update:
    """Adopt the claims that beat or prove the best known peaks, if they can be repeated."""
    known, improved = dict(bests), dict[str, Best]()
    refused: list[Finding] = []
    for claim in sorted(claims, key=lambda one: (one.name, one.peak, not one.proved)):
        try:
            record = corpus[claim.name]
            rank = _rank(record, known.get(claim.fingerprint))
            if (claim.peak, not claim.proved) >= rank:
                continue
            if on_claim is not None:
                on_claim(claim)
            best = _solve_claim(claim, record.problem)
            if (best.peak, not best.proved) >= rank:
                raise MemplanError("it is not proved here")
        except MemplanError as error:
            refused.append(Finding(claim.name, f"{claim.solver} claims {claim.peak}: {error}"))
            continue
        known[best.fingerprint] = improved[best.fingerprint] = best
    return Update(known, tuple(improved.values()), tuple(refused))


def _rank(record: Record, best: Best | None) -> tuple[int, bool]:
    """Return the least known peak and whether it lacks a proof; a smaller pair is better."""
    rank = (record.best_peak, not record.best_proved)
    return rank if best is None else min(rank, (best.peak, not best.proved))


def _solve_claim(claim: Claim, problem: Problem) -> Best:
    """Solve the claim's problem again; raise an error if the plan does not reach its peak."""
    if claim.fingerprint != problem.fingerprint:
        raise MemplanError("its fingerprint is that of another problem")
    bound = lower_bound(problem)
    if claim.peak < bound:
        raise MemplanError(f"no plan is below {bound}")
    seconds = max(_LEAST_SECONDS, _PATIENCE * claim.seconds)
    plan = _solve_and_verify(problem, claim.solver, seconds=seconds, seed=claim.seed)
    if plan.peak is None or plan.peak > claim.peak:
        raise MemplanError(f"it reaches {plan.peak} here, in {seconds:.0f} s")
    proved = plan.status is Status.OPTIMAL
    nodes = plan.stats.get("nodes")
    return Best(
        fingerprint=claim.fingerprint,
        name=claim.name,
        peak=plan.peak,
        lower_bound=plan.peak if proved else bound,
        solver=claim.solver,
        seed=claim.seed,
        nodes=_ROOM * nodes if isinstance(nodes, int) else 0,
        version=version("memplan"),
        offsets=pack_offsets(plan),
    )


def _solve_and_verify(
    problem: Problem,
    solver: str,
    *,
    seconds: float | None = None,
    nodes: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return a plan for the least peak, which is verified if it has offsets."""
    free = problem.with_capacity(None)
    plan = solve(free, solver, "min_peak", seconds, nodes, 1, seed)
    if plan.has_offsets:
        verify(free, plan)
    return plan
