"""Bands: large pictures are computed a few rows at a time, which repeats some work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from memplan.answer import Step
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.writers import Variant, Writer, graph_of
from memplan.rewrite import find_floor
from memplan.rewrite.bands import find_frontier

__all__ = ["Bands"]

_MOST: Final = 6  # points of the frontier that are planned


class Bands(Lever):
    """See the module, and `memplan.rewrite.bands`."""

    name = "bands"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`: points of the frontier within the work, near each goal and the smallest."""
        if program.variant.again is not None:
            return
        writer.check_bands()
        frontier = find_frontier(writer.uncut(program.variant))
        points = [
            point for point in frontier.points[1:] if frontier.extra(point) <= aim.max_extra + 1e-12
        ]
        by_work = sorted(points, key=lambda point: (point.work, point.arena))
        chosen = [next((p for p in by_work if p.arena <= goal), None) for goal in aim.goals]
        smallest = sorted(points, key=lambda point: (point.arena, point.work))[:1]
        for point in list(dict.fromkeys(filter(None, [*chosen, *smallest])))[:_MOST]:
            extra, cut = frontier.extra(point), frontier.cut(point)
            step = Step(self.name, point.arena, extra, _describe(len(point.regions)), change=cut)
            variant = writer.put(program.variant, cut)
            made = replace(program, variant=variant, steps=(*program.steps, step), plan=None)
            yield replace(made, extra=program.extra + extra)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what no operator goes below, in bands or not."""
        return find_floor(graph_of(program))[0]


def _describe(regions: int) -> str:
    return f"{regions} region{'s' * (regions != 1)} in bands"
