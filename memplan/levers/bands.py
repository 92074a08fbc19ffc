"""Bands: large pictures are computed a few rows at a time, which repeats some work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any, Final

from memplan.answer import Step
from memplan.base.errors import PlanError
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.rewrite import find_floor
from memplan.levers.rewrite.bands import Frontier, Point, Region, Uncut, cut, find_frontier
from memplan.levers.writers import Variant, Writer, graph_of
from memplan.programs.sources import Loaded, of_graph

__all__ = ["Bands"]

_MOST: Final = 6  # points of the frontier that are planned


class Bands(Lever):
    """See the module, and `memplan.levers.rewrite.bands`."""

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
            step = self.make_step(frontier, point)
            variant = writer.put(program.variant, step.change)
            made = replace(program, variant=variant, steps=(*program.steps, step))
            yield replace(made, extra=program.extra + step.extra)

    def make_step(self, frontier: Frontier, point: Point) -> Step:
        """Return what a point of the frontier does to the program."""
        words, data = _describe(len(point.regions)), {"regions": _list_fields(point.regions)}
        extra, change = frontier.extra(point), frontier.cut(point)
        return Step(self.name, point.arena, extra, words, change=change, data=data)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what no operator goes below, in bands or not."""
        return find_floor(graph_of(program))[0]

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`; bands of a runtime that adds to them are its own."""
        graph = graph_of(Variant(program))
        regions = _read_regions(step.data.get("regions"), len(graph.operators), len(graph.tensors))
        try:
            made = cut(Uncut(graph), regions)
        except ValueError as error:
            raise PlanError(f"the bands are not of this program: {error}") from None
        return of_graph(made.graph(), notes=program.notes)


def _list_fields(regions: Iterable[Region]) -> list[dict[str, Any]]:
    return [asdict(each) | {"kept": sorted(each.kept)} for each in regions]


def _read_regions(given: object, operators: int, tensors: int) -> list[Region]:
    """Return regions from JSON, of which none reaches beyond the program."""
    found = []
    end = 0
    for each in given if isinstance(given, (list, tuple)) else ():
        try:
            first, last, (rows, columns), kept, pads = (
                each[name] for name in ("first", "last", "bands", "kept", "pads")
            )
            region = Region(first, last, (rows, columns), frozenset(kept), bool(pads))
        except (KeyError, TypeError, ValueError):
            raise PlanError("a region in bands has not the fields of one") from None
        numbers = (first, last, rows, columns, *region.kept)
        is_whole = all(type(number) is int for number in numbers)
        if not is_whole or not end <= first < last <= operators or min(rows, columns) < 1:
            raise PlanError("a region in bands is not of the operators of this program")
        if any(not 0 <= tensor < tensors for tensor in region.kept):
            raise PlanError("a region in bands keeps a tensor that is not of this program")
        found.append(region)
        end = last
    return found


def _describe(regions: int) -> str:
    return f"{regions} region{'s' * (regions != 1)} in bands"
