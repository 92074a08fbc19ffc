"""What changed between two problems, models or plans, and what grew.

Buffers are matched by id first. Two of the others match if they have the memory of a tensor of the
same name. Of the rest, two count as one renamed buffer if on each side only one buffer has that
size, that lifetime and that kind of maker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from memplan.analysis.matching import Names, match_rows
from memplan.analysis.sides import Side, Subject, make_subject, reorder
from memplan.base.drawing import Reported
from memplan.base.notes import Note
from memplan.problem import Asked
from memplan.problem.columns import NONE
from memplan.problem.plan import Plan
from memplan.solvers.refereed import NODES, quick_plan
from memplan.solvers.stopping import stoppable

__all__ = ["NODES", "Comparison", "Match", "Side", "compare", "grows_beyond"]


@dataclass(frozen=True, slots=True)
class Match:
    """A buffer that is on both sides, or on one only.

    Attributes
    ----------
    before, after
        Its ids on the two sides; `None` where it does not exist.
    bytes_before, bytes_after
        Its sizes on the two sides; 0 where it does not exist.
    """

    before: str | None
    after: str | None
    bytes_before: int
    bytes_after: int

    @property
    def id(self) -> str:
        """Its new id, or the old one if it was removed."""
        return self.before or "" if self.after is None else self.after

    @property
    def grown(self) -> int:
        """How many bytes it has grown."""
        return self.bytes_after - self.bytes_before

    @property
    def bytes(self) -> int:
        """Its new size, or the old one if it was removed."""
        return self.bytes_before if self.after is None else self.bytes_after


@dataclass(frozen=True, slots=True)
class Comparison(Reported):
    """The differences between two sides. All lists have the most bytes first, ties by id.

    Attributes
    ----------
    before, after
        The two sides.
    added, removed
        Buffers of one side only.
    grown, shrunk
        Buffers of both sides whose size changed, by the amount of the change.
    renamed
        Buffers that match though their ids differ.
    arrived
        Buffers live at the peak after and not at the peak before, including new ones.
    left
        Buffers live at the peak before and not at the peak after, including removed ones.
    shares_nothing
        Whether these are two programs, so that growth says nothing: no tensor of the one side has
        a name of the other, and at most half of the buffers look the same.
    interrupted
        Whether Ctrl-C ended the searches for plans; the best so far are compared.
    """

    _report = "comparison"

    before: Side
    after: Side
    added: tuple[Match, ...]
    removed: tuple[Match, ...]
    grown: tuple[Match, ...]
    shrunk: tuple[Match, ...]
    renamed: tuple[Match, ...]
    arrived: tuple[Match, ...]
    left: tuple[Match, ...]
    shares_nothing: bool
    interrupted: bool = False

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed, left out or cannot be compared, on either side."""
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
    """Compare two problems, models or plans, and return what changed from `a` to `b`.

    A plan is compared as it is. A problem is planned first, without its capacity. If only nodes
    limit the search, the answer is the same on every machine. Problems with the same fingerprint
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
        If `a` or `b` is anything else.
    PlanError
        For a plan whose offsets do not have the peak that it claims.

    Examples
    --------
    >>> import memplan as mp
    >>> before = mp.Problem([mp.Buffer("x", 0, 2, 4), mp.Buffer("y", 1, 3, 4)])
    >>> after = mp.Problem([mp.Buffer("x", 0, 2, 4), mp.Buffer("y", 1, 3, 6)])
    >>> found = mp.compare(before, after)
    >>> found.before.peak, found.after.peak, [match.id for match in found.grown]
    (8, 10, ['y'])
    """
    limits: Any = {"nodes": nodes, "timeout": timeout, "threads": threads, "seed": seed}
    with stoppable() as stop:
        found = _compare(a, b, in_place, limits)
        return replace(found, interrupted=stop.is_set)


def _compare(
    a: Asked | Plan, b: Asked | Plan, in_place: bool, limits: Mapping[str, Any]
) -> Comparison:
    """Return what `compare` does, as part of a question."""
    plan_of: Callable[[Asked], Plan] = partial(quick_plan, **limits)
    if in_place:
        a, b = _plan_models(a, b, limits)
    before, after = make_subject(a), make_subject(b)
    one = before.plan or plan_of(before.asked)
    unplanned = before.plan is None and after.plan is None
    if unplanned and before.asked.fingerprint == after.asked.fingerprint:
        other = reorder(one, after.asked)  # with a clock, a second search may differ
    else:
        other = after.plan or plan_of(after.asked)
    return _compare_sides(before.with_plan(one), after.with_plan(other))


def _plan_models(
    a: Asked | Plan, b: Asked | Plan, limits: Mapping[str, Any]
) -> tuple[Asked | Plan, Asked | Plan]:
    """Plan models whose operators may write over inputs; return other sides as they are.

    The same model on both sides gets the same plan, as a second search with a clock may differ.
    """
    # Imported here, so that comparing problems does not load the readers of files.
    from memplan.programs.sources import Loaded, lay_out_again
    from memplan.solvers.planning import Planned, plan_model

    def best(model: Asked | Plan) -> Asked | Plan:
        if not isinstance(model, Loaded):
            return model
        free = replace(model, problem=model.problem.with_capacity(None))
        return plan_model(free, in_place=True, **limits)

    before = best(a)
    if isinstance(before, Planned) and isinstance(b, Loaded) and isinstance(a, Loaded):
        same = b if before.loaded.layout is None else lay_out_again(b, in_place=before.in_place)
        if a.problem.fingerprint == b.problem.fingerprint and (
            same.problem.fingerprint == before.problem.fingerprint
        ):
            return before, Planned(same, reorder(before.plan, same.problem))
    return before, best(b)


def grows_beyond(before: int, after: int, limit: int | Fraction) -> bool:
    """Return whether an amount grows by more than so many bytes, or by more than a share of it.

    >>> grows_beyond(1000, 1010, Fraction(1, 100)), grows_beyond(1000, 1010, 9)
    (False, True)
    """
    allowed = limit * before if isinstance(limit, Fraction) else limit
    return after - before > allowed


def _compare_sides(before: Subject, after: Subject) -> Comparison:
    """Match the buffers of two sides that are planned, and list what is different."""
    partner = match_rows(before.names, after.names)
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
        arrived, departed = set(), set()  # they are not known
    return Comparison(
        before=before.side(),
        after=after.side(),
        added=_sort(match for match in everything if match.before is None),
        removed=_sort(left[row] for row in gone),
        grown=_sort((match for match in both if match.grown > 0), lambda match: match.grown),
        shrunk=_sort((match for match in both if match.grown < 0), lambda match: -match.grown),
        renamed=_sort(match for match in both if match.before != match.after),
        arrived=_sort(everything[row] for row in arrived if partner[row] not in departed),
        left=_sort(
            (left[row] for row in departed.difference(partner[row] for row in arrived)),
            lambda match: match.bytes_before,
        ),
        shares_nothing=_share_nothing(before.names, after.names, len(both)),
    )


def _share_nothing(before: Names, after: Names, matches: int) -> bool:
    """Return whether two sides have no name in common, and few matches: those are by chance."""
    sides = len(before.ids), len(after.ids)
    names = [{name for row in side.tensors for name in row} for side in (before, after)]
    return all(sides) and names[0].isdisjoint(names[1]) and 2 * matches <= max(sides)


def _sort(
    matches: Iterable[Match], amount: Callable[[Match], int] = lambda match: match.bytes
) -> tuple[Match, ...]:
    return tuple(sorted(matches, key=lambda match: (-amount(match), match.id)))
