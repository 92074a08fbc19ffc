"""What `arrange` returns: the programs that it tried, and what each lever brought."""

from __future__ import annotations

from dataclasses import dataclass, field

from memplan.answer import Step
from memplan.base.drawing import Reported
from memplan.base.errors import CapacityError, MemplanError
from memplan.base.notes import Note
from memplan.levers.rewrite import (
    Recomputed,
    Reordered,
    find_floor,
    verify_order,
    verify_recompute,
)
from memplan.levers.rewrite.bands import Cut, Frontier, Point
from memplan.levers.writers import Comparison, Variant, Written, graph_of
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan.solvers.planning import Planned, PlanningInterrupted

__all__ = ["Arranged", "Draft"]


@dataclass(frozen=True)
class Draft:
    """A program after some levers, with its plan, as it is written, and the work that it adds."""

    variant: Variant
    planned: Planned
    written: Written
    point: Point | None = None
    steps: tuple[Step, ...] = ()  # what the levers did
    extra: float = 0.0

    @property
    def arena(self) -> int:
        """What its runtime needs, in bytes."""
        return self.written.arena

    @property
    def repeats_work(self) -> bool:
        """Whether it is in bands, or runs operators again."""
        return self.point is not None or self.variant.again is not None


@dataclass(frozen=True)
class Arranged(Reported):
    """A program after the rewrites, with its verified plan, and what they brought and cost.

    Attributes
    ----------
    name
        Of the program, in sentences.
    given
        The program as it was.
    plain
        The best program without more work.
    best
        The program that was chosen.
    steps
        What each lever brought, in turn.
    order
        The search for an order, if one was made, whether or not the order was taken.
    frontier
        All programs in bands that could have been chosen, if bands were looked for.
    comparison
        How the outputs compare with those of the program; `None` without bands and re-runs, or if
        the runtime does not run them here.
    has_runtime
        Whether there is a runtime whose outputs can be compared.
    capacity
        What the arena may have.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    different
        The largest difference of the outputs of bands that were left out for it; see `arrange`.
    """

    _report = "arranged"

    name: str
    given: Variant
    plain: Draft
    best: Draft
    steps: tuple[Step, ...]
    order: Reordered | None = None
    frontier: Frontier | None = None
    comparison: Comparison | None = None
    has_runtime: bool = False
    capacity: int | None = None
    seconds: float = 0.0
    drafts: tuple[Draft, ...] = field(default=(), repr=False)
    interrupted: bool = False
    different: float | None = None

    def require_whole(self) -> Arranged:
        """Return this, for callers who cannot say that it is only the best so far.

        Raises
        ------
        PlanningInterrupted
            If Ctrl-C ended the search.
        """
        if self.interrupted:
            raise PlanningInterrupted(self.planned)
        return self

    def verify(self) -> None:
        """Check the plan, the order of operators and the re-runs with the referee again.

        Raises
        ------
        PlanError
            If one does not hold, or does not have the bounds that it claims.
        """
        if self.plan.has_offsets:
            verify(self.planned.problem, self.plan)
        if self.order is not None:
            verify_order(self.order.given, self.order)
        if self.again is not None:
            verify_recompute(self.again.given, self.again)

    @property
    def planned(self) -> Planned:
        """The program with its plan."""
        return self.best.planned

    @property
    def plan(self) -> Plan:
        """The plan, which the referee has accepted."""
        return self.planned.plan

    @property
    def data(self) -> bytes:
        """The file; empty where the writer writes none."""
        return self.best.written.data

    @property
    def arena(self) -> int:
        """What the runtime needs, in bytes."""
        return self.best.arena

    @property
    def peak(self) -> int:
        """As `arena`: of a runtime that takes no plan, the most bytes that are live at one time."""
        return self.arena

    @property
    def given_peak(self) -> int:
        """As `peak`, of the program as it was."""
        return self.drafts[0].arena

    @property
    def cut(self) -> Cut | None:
        """The operators of the bands that were chosen; `None` without bands."""
        return self.best.variant.cut

    @property
    def fits(self) -> bool:
        """Whether the arena is within the capacity."""
        return self.capacity is None or self.arena <= self.capacity

    @property
    def again(self) -> Recomputed | None:
        """The program with copies of operators that was chosen; `None` if none run again."""
        return self.best.variant.again

    @property
    def point(self) -> Point | None:
        """The bands that were chosen; `None` without bands."""
        return self.best.point

    @property
    def is_reordered(self) -> bool:
        """Whether operators run in another order than in the given program."""
        return self.best.variant.order is not None

    @property
    def extra(self) -> float:
        """The work that is added, as a share of that of the program.

        That of bands counts multiplications, that of re-runs picoseconds.
        """
        return self.best.extra

    @property
    def macs(self) -> int:
        """Multiplications that bands repeat."""
        return 0 if self.cut is None else self.cut.macs - self.cut.uncut.macs

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed when the program was read, and what the runtime says of the result."""
        return tuple(dict.fromkeys((*self.planned.notes, *self.best.written.notes)))

    @property
    def bound(self) -> int:
        """Proved: no plan of the chosen program in its order has a smaller peak."""
        return self.plan.lower_bound

    @property
    def bound_of_orders(self) -> int | None:
        """Proved: no order of the given program needs less; `None` if no order was looked for."""
        return None if self.order is None else self.order.bound

    def explain(self) -> str:
        """Return in a few words what holds up the arena, if bands were looked for."""
        if self.frontier is None:
            return ""
        if self.different is not None and self.point is None:
            return (
                f": in bands, outputs differ by up to {self.different:g}; --accept inexact writes "
                "them"
            )
        return f": {self.frontier.explain(self.point or self.frontier.points[0])}"

    def require_fit(self, max_extra: float | None = None) -> None:
        """Refuse a program that does not fit.

        Raises
        ------
        CapacityError
            If the arena is above the capacity; the sentence says by how much, and what holds it up.
        """
        if self.capacity is None or self.fits:
            return
        limit = "" if max_extra is None else f" with at most {max_extra:.0%} more work"
        raise CapacityError(
            f"{self.name}: the smallest arena found has {self.arena} bytes{limit}, "
            f"{self.arena - self.capacity} more than the capacity of {self.capacity}"
            f"{self.explain()}: nothing was written"
        )

    def require_equal(self) -> None:
        """Refuse a program whose outputs differ from those of the program, or were not compared.

        Raises
        ------
        MemplanError
            If they do; the sentence says by how much.
        """
        if not (self.best.repeats_work and self.has_runtime):
            return
        if self.comparison is None:
            raise MemplanError(
                f"{self.name}: the runtime does not run this model here, so the outputs of the new "
                "one were not compared; --accept inexact writes it nevertheless"
            )
        if self.comparison.difference:
            what = "in bands, outputs" if self.again is None else "outputs"
            raise MemplanError(
                f"{self.name}: {what} differ from those of the model by up to "
                f"{self.comparison.difference:g}; --accept inexact writes them nevertheless"
            )

    def find_floor(self) -> tuple[int, str]:
        """Return what no program that these levers make goes below, and what holds it up."""
        if self.given.loaded.graph is None:
            return self.bound, "the bound on every plan"
        return find_floor(graph_of(self.given))
