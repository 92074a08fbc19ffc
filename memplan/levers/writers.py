"""What a rewrite asks of a runtime: a program as it takes it, in order, in bands, and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from memplan.base.errors import MemplanError
from memplan.base.notes import Note
from memplan.levers.rewrite import Recomputed, Reordered
from memplan.levers.rewrite.bands import Cut, Uncut
from memplan.programs.graph import Graph
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.loaded import explain_bare
from memplan.solvers.planning import Planned

__all__ = ["Comparison", "Plain", "Variant", "Writer", "Written", "graph_of"]


@dataclass(frozen=True)
class Variant:
    """A program as a runtime would read it, before it is planned.

    Attributes
    ----------
    loaded
        Its layout.
    data
        Its file; empty if the writer needs none.
    order
        Of which the operators are in another order than in the given program.
    cut
        The bands that it has.
    again
        Of which operators run again.
    """

    loaded: Loaded
    data: bytes = b""
    order: Reordered | None = None
    cut: Cut | None = None
    again: Recomputed | None = None


@dataclass(frozen=True)
class Written:
    """A planned program as its runtime takes it.

    Attributes
    ----------
    data
        The file.
    arena
        What the runtime needs for it, in bytes.
    how
        How that is known: "measured", "of the plan".
    is_whole
        Whether the arena is all that the runtime needs.
    notes
        What the runtime says of it.
    before
        What it needs without a plan in its file; `None` if it has no way of its own.
    details
        What the writer tells of it beyond that.
    run
        What its runtime has to be told, in words; empty if nothing.
    """

    data: bytes
    arena: int
    how: str = "of the plan"
    is_whole: bool = True
    notes: tuple[Note, ...] = ()
    before: int | None = None
    details: Any = None
    run: str = ""


@dataclass(frozen=True)
class Comparison:
    """What two programs gave for the same random inputs.

    Attributes
    ----------
    difference
        0 if all outputs have the same bits; otherwise the largest difference of two elements.
    time
        The CPU time of the second one, as a multiple of that of the first one; `None` if it was
        not taken.
    """

    difference: float
    time: float | None = None


class Writer(Protocol):
    """A program, and a runtime that it is written for.

    Attributes
    ----------
    name
        Of the program, in sentences: its file.
    trials
        How many programs in bands are planned and written, of which the best is kept.
    has_runtime
        Whether outputs can be compared; kernels of the user are not known.
    takes_offsets
        Whether the runtime takes a plan. If not, what counts is the load, and none is made.
    runs_again
        Whether it runs copies of operators.
    moves
        Whether it can move tensors to another memory and back.
    keeps_order
        Whether a file that says an order needs less than one that leaves it to the runtime, also
        where the best order is the given one.
    """

    name: str
    trials: int = 1
    has_runtime: bool = False
    takes_offsets: bool = True
    runs_again: bool = False
    moves: bool = False
    keeps_order: bool = False

    def check_bands(self) -> None:
        """Refuse bands that cannot be written because a library is missing, before the work."""
        return

    def open(self) -> Variant:
        """Return the program as it is."""

    def bare(self, given: Variant) -> Loaded:
        """Return the program without offsets of its file, which belong to its own order."""
        return given.loaded

    def put(self, given: Variant, change: Reordered | Recomputed | Cut) -> Variant:
        """Return the program as a lever changed it."""
        if isinstance(change, Reordered):
            return self.put_in_order(given, change)
        if isinstance(change, Recomputed):
            return self.put_again(given, change)
        return self.put_in_bands(given, change)

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """Return the program with its operators in another order."""

    def put_again(self, given: Variant, found: Recomputed) -> Variant:
        """Return the program with copies of operators, if the runtime runs them."""
        raise MemplanError(f"{self.name}: its runtime runs no copies of operators")

    def uncut(self, given: Variant) -> Uncut:
        """Return the program as bands are cut from it, with what the runtime adds to them."""
        return Uncut(graph_of(given))

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """Return the program in bands, which are cut from `uncut(given)`."""

    def write(self, given: Variant, planned: Planned) -> Written:
        """Return the file of a program with its plan, and what the runtime needs for it."""

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """Compare the outputs of two programs; `None` if the runtime does not run them here."""
        return None


@dataclass(frozen=True)
class Plain(Writer):
    """Programs for no runtime in particular: what counts is the peak of the plan."""

    loaded: Loaded
    name: str = "the program"
    trials: int = 1
    has_runtime: bool = False
    takes_offsets: bool = True
    runs_again: bool = True
    moves: bool = True

    def open(self) -> Variant:
        """See `Writer`."""
        return Variant(self.loaded)

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `Writer`."""
        return replace(given, loaded=found.loaded, order=found)

    def put_again(self, given: Variant, found: Recomputed) -> Variant:
        """See `Writer`."""
        return replace(given, loaded=found.loaded, again=found)

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `Writer`."""
        made = of_graph(found.graph(), notes=given.loaded.notes)
        problem = made.problem.with_capacity(given.loaded.problem.capacity)
        return replace(given, loaded=replace(made, problem=problem), cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `Writer`."""
        peak = planned.plan.peak
        return Written(b"", planned.problem.max_load if peak is None else peak)


def graph_of(variant: Variant) -> Graph:
    """Return the graph of a program.

    Raises
    ------
    MemplanError
        If it has none.
    """
    graph = variant.loaded.graph
    if graph is None:
        raise MemplanError(
            explain_bare(variant.loaded.source, "so that only offsets can be chosen")
        )
    return graph
