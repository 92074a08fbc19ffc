"""Writes headers in C for programs in another order or in bands, as a `Writer`."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.levers.pipeline import Plain, Variant, Written, graph_of
from memplan.levers.rewrite import Recomputed, Reordered, require_stored
from memplan.levers.rewrite.bands import Uncut, tell_rows
from memplan.runtimes.c.header import write_header
from memplan.solvers.planning import Planned

__all__ = ["CHeader"]


@dataclass(frozen=True)
class CHeader(Plain):
    """Programs whose kernels are the user's own, which are told what to make of which rows."""

    moves: bool = False
    prefix: str | None = None

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        require_stored(given.loaded, found.order, found.loaded, self.name)
        return super().put_in_order(given, found)

    def put_again(self, given: Variant, found: Recomputed) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        require_stored(given.loaded, found.runs, found.loaded, self.name)
        return super().put_again(given, found)

    def uncut(self, given: Variant) -> Uncut:
        """See `memplan.levers.pipeline.Writer`."""
        return Uncut(tell_rows(graph_of(given)))

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.levers.pipeline.Writer`."""
        order = None if given.order is None else given.order.order
        if given.again is not None:
            order = given.again.operators
        text = write_header(
            planned.loaded, planned.plan, name=self.prefix, order=order, bands=given.cut
        )
        return Written(text.encode(), planned.plan.peak or 0)
