"""What a lever is: it makes programs that compute the same as a given one, in less memory.

A lever is one file with one class, and a row in `memplan.levers.LEVERS`. The pipeline plans what it
makes, in every scenario and every machine, and takes the best; so a lever knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from memplan.answer import Claim, Step
from memplan.base.errors import MemplanError
from memplan.levers.rewrite.again import Costs
from memplan.levers.writers import Variant, Writer
from memplan.programs.sources import Loaded
from memplan.programs.sources.loaded import explain_bare

__all__ = ["Aim", "Candidate", "Lever", "explain_missing"]


@dataclass(frozen=True)
class Aim:
    """What a lever is asked for.

    Attributes
    ----------
    goals
        The bytes that a program should need, the most first; empty if as few as possible.
    in_place
        Whether operators may write over inputs in the program that is planned in the end.
    has_order
        Whether an order is looked for by a lever of its own.
    pure
        See `memplan.levers.rewrite.reorder`.
    costs, spill
        See `memplan.levers.rewrite.recompute`.
    max_extra
        The most work that may be added, as a share of that of the program.
    states
        A limit on the work of each search, as in `memplan.levers.rewrite.reorder`.
    seconds
        Returns how long the next search may take; `None` for no limit.
    """

    goals: Iterable[int] = ()
    in_place: bool = False
    has_order: bool = False
    pure: tuple[str, ...] = ()
    costs: Costs | None = None
    spill: str | None = None
    max_extra: float = float("inf")
    states: int | None = None
    seconds: Callable[[], float | None] = field(default=lambda: None)


@dataclass(frozen=True)
class Candidate:
    """A program that could be planned.

    Attributes
    ----------
    variant
        As a runtime would read it.
    steps
        What the levers did.
    extra
        The work that they added, as a share of that of the program.
    base
        The program before its operators were put in another order; `None` if they were not.
    """

    variant: Variant
    steps: tuple[Step, ...] = ()
    extra: float = 0.0
    base: Variant | None = None


class Lever(Protocol):
    """Makes other programs that compute the same.

    Attributes
    ----------
    name
        In words, as people ask for it.
    needs_goal
        Whether it does nothing without bytes that the program should need.
    """

    name: str
    needs_goal: bool = False

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """Return why it can do nothing for a program and its runtime; empty if it can."""

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """Yield programs, those first that add the least work.

        Raises
        ------
        PlanError
            If there is none for any goal; the sentence says why.
        """

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """Return bytes that no program which this lever makes goes below, in any plan."""
        return 0

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """Return a program with the same done to it, by `step.data`: at another size, or later."""
        raise MemplanError(f"{self.name} cannot be done to a program again, as at another size")

    def list_claims(self, program: Loaded, step: Step, aim: Aim) -> Iterable[Claim]:
        """Return what the referee can check of a step: that it is right, and what it proved."""
        return ()


def explain_missing(program: Variant) -> str:
    """Return that a program has no operators; empty if it has."""
    loaded = program.loaded
    what = "so that nothing of it can be changed"
    return "" if loaded.graph is not None else explain_bare(loaded.source, what)
