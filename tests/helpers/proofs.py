"""Proofs for the tests: a prover that splits on every pair, and the head that all proofs have."""

from __future__ import annotations

from itertools import combinations

from memplan.problem import Problem
from memplan.referee.ground import Ground
from memplan.referee.orders import Known, Literal, contradict


def head(problem: Problem, cap: int, unit: int = 1) -> list[str]:
    """Return the first four lines of a proof."""
    return [
        "memplan-proof 1",
        f"problem {problem.fingerprint}",
        f"unit {unit}",
        f"cap {cap}",
    ]


def split(problem: Problem, cap: int, unit: int = 1) -> list[str] | None:
    """Return a proof that no plan has a peak of at most `cap`, or None if some plan has.

    Decides pair after pair, both ways. Where all of them are decided and nothing contradicts,
    the least offsets are a plan: so this ends with one or the other.
    """
    ground = Ground(problem)
    ground.look_at(ground.live, cap)
    rows = sorted(ground.size)
    facts = Known(
        ground,
        {row: ground.lift(row, 0) for row in rows},
        {row: ground.sink(row, ground.room(row, cap)) for row in rows},
        set(),
    )
    facts.broken = cap < ground.idle_peak() or any(facts.lower[r] > facts.upper[r] for r in rows)
    pairs = [pair for pair in combinations(rows, 2) if ground.conflict(*pair)]
    named = [Literal(row, ">=", 0) for row in rows]  # true, and so all rules look at all rows
    lines = head(problem, cap, unit)
    clauses = 0

    def conclude(decisions: list[Literal], *support: str) -> int:
        nonlocal clauses
        clauses += 1
        lines.extend(support)
        lines.append(" ".join(["c", str(clauses), *(text(d.opposite()) for d in decisions)]))
        return clauses

    def refute(decisions: list[Literal], rest: list[tuple[int, int]]) -> int | None:
        if contradict(facts, [*named, *decisions]):
            premises = " ".join(map(text, [*named, *decisions]))
            return conclude(decisions, f"d - <- {premises}".rstrip())
        if not rest:
            return None
        (one, other), *others = rest
        below = refute([*decisions, Literal(one, "<", other)], others)
        above = None if below is None else refute([*decisions, Literal(other, "<", one)], others)
        if below is None or above is None:
            return None
        return conclude(decisions, f"use {below}", f"use {above}")

    if facts.broken:
        conclude([])
    elif refute([], pairs) is None:
        return None
    return [*lines, "refuted"]


def text(literal: Literal) -> str:
    """Return a literal as proofs write it."""
    return f"{literal.row}{literal.sign}{literal.other}"
