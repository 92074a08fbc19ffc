"""What changed between two problems, models or plans, and what grew.

Buffers are matched by id. What is left over on both sides is the same buffer if both share the
memory of a tensor of one name; and it is taken for renamed where one buffer alone on either side
has that size, that lifetime and that kind of maker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from memplan.analysis.matching import matched
from memplan.analysis.sides import Side, Subject, reordered, taken
from memplan.notes import Note
from memplan.plan import Plan
from memplan.problem import Asked
from memplan.problem.columns import NONE
from memplan.solvers.refereed import NODES, quick_plan

__all__ = ["NODES", "Comparison", "Match", "Side", "compare", "grows_beyond"]


@dataclass(frozen=True, slots=True)
class Match:
    """A buffer that is on both sides, or on one.

    Attributes
    ----------
    before, after
        Its ids there; `None` where it is not.
    bytes_before, bytes_after
        Its sizes; 0 where it is not.
    """

    before: str | None
    after: str | None
    bytes_before: int
    bytes_after: int

    @property
    def id(self) -> str:
        """Its id: the new one, where it has one."""
        return self.before or "" if self.after is None else self.after

    @property
    def grown(self) -> int:
        """How many bytes it has more than before."""
        return self.bytes_after - self.bytes_before

    @property
    def bytes(self) -> int:
        """The size of it, the new one where it has one."""
        return self.bytes_before if self.after is None else self.bytes_after


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is different. All lists have the most bytes first, ties by id.

    Attributes
    ----------
    before, after
        The two sides.
    added, removed
        Buffers of one side only.
    grown, shrunk
        Buffers of both with another size, by how much that changed.
    renamed
        Buffers with another id that are taken for the same.
    arrived
        What is live at the peak after, and was not at the peak before; also what is new.
    left
        What was live at the peak before, and is not at the peak after; also what is gone.
    """

    before: Side
    after: Side
    added: tuple[Match, ...]
    removed: tuple[Match, ...]
    grown: tuple[Match, ...]
    shrunk: tuple[Match, ...]
    renamed: tuple[Match, ...]
    arrived: tuple[Match, ...]
    left: tuple[Match, ...]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed, left out or could not be compared; each side has its own."""
        return self.before.notes + self.after.notes


def compare(
    a: Asked | Plan,
    b: Asked | Plan,
    *,
    in_place: bool = False,
    nodes: int = NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Say what changed from `a` to `b`.

    The peak of a plan is its own. Problems are planned, whatever their capacity; with limits that
    are nodes alone the answer is the same on every machine, and problems with the same fingerprint
    have the same peak.

    Parameters
    ----------
    a, b
        Before and after: a problem, a plan, what `memplan.load` read, or what `memplan.plan_model`
        planned.
    in_place
        Whether operators of models may write over inputs, as in `memplan.plan_model`.
    nodes
        Search nodes for each of the two plans.
    timeout
        Seconds for each of them, or `None`. A clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.

    Raises
    ------
    MemplanError
        For anything else than these.
    PlanError
        For a plan whose offsets do not have the peak that it claims.
    Interrupted
        On Ctrl-C.

    Examples
    --------
    >>> import memplan as mp
    >>> before = mp.Problem([mp.Buffer("x", 0, 2, 4), mp.Buffer("y", 1, 3, 4)])
    >>> after = mp.Problem([mp.Buffer("x", 0, 2, 4), mp.Buffer("y", 1, 3, 6)])
    >>> found = mp.compare(before, after)
    >>> found.before.peak, found.after.peak, [match.id for match in found.grown]
    (8, 10, ['y'])
    """
    plan_of = partial(quick_plan, nodes=nodes, timeout=timeout, threads=threads, seed=seed)
    if in_place:
        limits = {"nodes": nodes, "timeout": timeout, "threads": threads, "seed": seed}
        a, b = _laid_out(a, b, limits)
    before, after = taken(a), taken(b)
    one = before.plan or plan_of(before.asked)
    unplanned = before.plan is None and after.plan is None
    if unplanned and before.asked.fingerprint == after.asked.fingerprint:
        other = reordered(one, after.asked)  # with a clock, a second search may differ
    else:
        other = after.plan or plan_of(after.asked)
    return _comparison(before.planned(one), after.planned(other))


def _laid_out(
    a: Asked | Plan, b: Asked | Plan, limits: Mapping[str, Any]
) -> tuple[Asked | Plan, Asked | Plan]:
    """Return models as they are planned best, where operators may write over inputs.

    The same model on both sides has the same plan: with a clock, a second search may differ.
    """
    from memplan.planning import Planned, plan_model  # a compiler without files does not wait
    from memplan.sources import Loaded, laid_out

    def best(model: Asked | Plan) -> Asked | Plan:
        if not isinstance(model, Loaded):
            return model
        free = replace(model, problem=model.problem.with_capacity(None))
        return plan_model(free, in_place=True, **limits)

    before = best(a)
    if isinstance(before, Planned) and isinstance(b, Loaded) and isinstance(a, Loaded):
        same = b if before.loaded.layout is None else laid_out(b, in_place=before.in_place)
        if a.problem.fingerprint == b.problem.fingerprint and (
            same.problem.fingerprint == before.problem.fingerprint
        ):
            return before, Planned(same, reordered(before.plan, same.problem))
    return before, best(b)


def grows_beyond(before: int, after: int, limit: int | Fraction) -> bool:
    """Whether an amount grows by more than so many bytes, or by more than a share of it.

    >>> grows_beyond(1000, 1010, Fraction(1, 100)), grows_beyond(1000, 1010, 9)
    (False, True)
    """
    allowed = limit * before if isinstance(limit, Fraction) else limit
    return after - before > allowed


def _comparison(before: Subject, after: Subject) -> Comparison:
    """Match the buffers of two sides that are planned, and list what is different."""
    partner = matched(before.names, after.names)
    old, new = before.answered, after.answered
    everything = [
        Match(
            None if other == NONE else old.ids[other],
            new.ids[row],
            0 if other == NONE else int(old.size[other]),
            int(new.size[row]),
        )
        for row, other in enumerate(partner)
    ]
    gone = set(range(len(old))).difference(partner)
    left = {row: Match(old.ids[row], None, int(old.size[row]), 0) for row in gone}
    left |= {other: everything[row] for row, other in enumerate(partner) if other in before.live}
    both = [match for match in everything if match.before is not None]
    arrived, departed = set(after.live), set(before.live)
    if before.loads is None or after.loads is None:
        arrived, departed = set(), set()  # nobody knows
    return Comparison(
        before=before.side(),
        after=after.side(),
        added=_sorted(match for match in everything if match.before is None),
        removed=_sorted(left[row] for row in gone),
        grown=_sorted((match for match in both if match.grown > 0), lambda match: match.grown),
        shrunk=_sorted((match for match in both if match.grown < 0), lambda match: -match.grown),
        renamed=_sorted(match for match in both if match.before != match.after),
        arrived=_sorted(everything[row] for row in arrived if partner[row] not in departed),
        left=_sorted(
            (left[row] for row in departed.difference(partner[row] for row in arrived)),
            lambda match: match.bytes_before,
        ),
    )


def _sorted(
    matches: Iterable[Match], amount: Callable[[Match], int] = lambda match: match.bytes
) -> tuple[Match, ...]:
    return tuple(sorted(matches, key=lambda match: (-amount(match), match.id)))
