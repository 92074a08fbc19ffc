"""Chooses what to cut into bands: the least memory for each amount of repeated work.

What crosses the ends of a region in bands is there as a whole, and as a rule all of it at one time:
only what is read through copies may be gone before results begin. So a region must contain every
operator with a load above the limit, and begin and end where little crosses. Regions that follow
each other do not share memory, so the best set of those that were measured is found operator by
operator, exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memplan.base.errors import MemplanError, quoted
from memplan.levers.rewrite.bands.cuts import Cut, Region
from memplan.levers.rewrite.bands.cutting import cut, cut_region, divide
from memplan.levers.rewrite.bands.measure import Timeline
from memplan.levers.rewrite.bands.uncut import Uncut
from memplan.programs.graph import lay_out
from memplan.solvers.stopping import is_stopped

__all__ = ["MAX_EXTRA", "WORK", "Frontier", "Point", "find_frontier"]

MAX_EXTRA: Final = 0.10  # of the multiplications: the work that bands may add by default
WORK: Final = 60_000  # operators of bands that are made to measure regions: about a second
_ROWS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_PATCHES: Final = ((1, 2), (1, 4), (2, 2), (3, 3), (4, 4), (6, 6))
_LEVELS: Final = 12  # limits on the load for which regions are looked for
_NEAR: Final = 3  # regions around an operator that are tried for each limit
_ROUNDS: Final = 6  # of changes to the regions that are best so far
_CHOICES: Final = 4_000_000  # operators that are looked at to choose the best sets of regions
_HEAVY: Final = 1 << 40
_USELESS: Final = sys.maxsize  # the load of bands that are no better than what is cut
_LONGEST: Final = 2048  # operators of a region at most


@dataclass(frozen=True)
class Point:
    """A program in bands that no other one beats in both memory and work.

    Attributes
    ----------
    regions
        What is cut; empty for the program as it is.
    load
        The most bytes that are live at one time.
    overhead
        Bytes that the runtime keeps for the operators that are added.
    work
        Multiplications with addition, and elements that are copied for bands.
    """

    regions: tuple[Region, ...]
    load: int
    overhead: int
    work: int

    @property
    def arena(self) -> int:
        """What grows or shrinks of the arena: the load, and what is kept for added operators."""
        return self.load + self.overhead


@dataclass(frozen=True)
class Frontier:
    """The programs in bands of which none beats another, from the least work to the least memory.

    Attributes
    ----------
    uncut
        The program as it is.
    points
        The first one is the program as it is.
    loads
        By operator of the program as it is: the most bytes that are live while it runs.
    is_complete
        Whether all regions were measured in which more is live than crosses their ends, in bands of
        rows up to two numbers of bands that need no less, with all rows kept or none.
    """

    uncut: Uncut
    points: tuple[Point, ...]
    loads: tuple[int, ...]
    is_complete: bool

    def extra(self, point: Point) -> float:
        """Return the work that a point adds, as a share of the multiplications of the program."""
        macs = self.uncut.macs
        return point.work / macs - 1 if macs else 0.0

    def cut(self, point: Point) -> Cut:
        """Return the program in bands of a point."""
        return cut(self.uncut, point.regions)

    def explain(self, point: Point) -> str:
        """Return in a few words what holds up the load of a point."""
        uncut = self.uncut
        high = self.find_highest(point)
        if not high:
            return "the bands themselves, with what crosses them, hold it up"
        operator = uncut.operators[high[0]]
        name = f" {quoted(operator.name)}" if operator.name else ""
        why = (
            f" ({operator.why_whole})" if operator.why_whole else ", where bands would need no less"
        )
        return f"{operator.type}{name} holds it up{why}"

    def find_highest(self, point: Point) -> tuple[int, ...]:
        """Return the operators outside of bands that have the load of a point, by index."""
        inside = {at for region in point.regions for at in range(region.first, region.last)}
        return tuple(
            at for at, load in enumerate(self.loads) if at not in inside and load >= point.load
        )


@dataclass(frozen=True, slots=True)
class _Option:
    """A region in bands, measured."""

    region: Region
    load: int
    overhead: int
    extra: int  # multiplications, and elements that are copied


def find_frontier(uncut: Uncut, *, work: int = WORK) -> Frontier:
    """Find the programs in bands of which none beats another in memory and in work.

    Parameters
    ----------
    uncut
        In the order in which its operators run.
    work
        A limit on the operators of bands that are made to measure regions.

    Raises
    ------
    MemplanError
        If operators run on several streams, or tensors have to lie side by side.
    """
    graph = uncut.graph
    if graph.groups or len({operator.stream for operator in graph.operators}) > 1:
        raise MemplanError(
            "bands are for programs on one stream without groups of tensors, and this one has them"
        )
    search = _Search(uncut, work)
    is_complete = search.measure()
    points = search.points()
    return Frontier(uncut, tuple(points), tuple(search.loads.tolist()), is_complete)


class _Search:
    def __init__(self, uncut: Uncut, work: int) -> None:
        self._uncut = uncut
        self._left = work
        self._found: dict[Region, _Option | None] = {}
        self._bounds_first = False  # whether bands that cannot be of use are left uncut
        self._timeline = Timeline(uncut, lay_out(uncut.graph, pins=False))
        self.loads = self._timeline.loads
        self._high = int(self.loads.max(initial=0))
        whole = np.array([bool(operator.why_whole) for operator in uncut.operators], dtype=np.bool_)
        self._whole = np.concatenate([[0], np.cumsum(whole)])
        self._macs = list(accumulate((operator.macs for operator in uncut.operators), initial=0))
        # Operators that follow each other and can be cut: the first one, and what crosses the ends
        # of regions between them. No more than `_LONGEST` follow each other, as every pair counts.
        self._runs = [
            (at, self._timeline.find_bounds(at, min(end, at + _LONGEST)))
            for begin, end in _runs(~whole)
            for at in range(begin, end, _LONGEST)
        ]

    # What is measured

    def measure(self) -> bool:
        """Measure regions; return whether these are all."""
        every = list(self._iterate_useful()) if len(self._uncut.operators) <= 64 else []
        cost = sum((last - first) * 4 * sum(_ROWS) for first, last in every)
        if every and cost <= self._left:
            self._bounds_first = True
            self._measure_useful(every)
            self._refine()
            return not is_stopped()
        levels = self._levels()
        total = self._left
        for at, limit in enumerate(levels):  # the higher limits have the shorter regions
            for first, last in self._find_regions(limit):
                if self._left > total * (len(levels) - at - 1) // (2 * len(levels)) + total // 2:
                    self._measure_bands(first, last, limit)
        self._refine()
        return False

    def _measure_useful(self, regions: Sequence[tuple[int, int]]) -> None:
        """Measure the regions that a program with a smaller load could have.

        An operator needs bands only if its load is above what others need in their best bands. So
        the operators with the highest loads come first, and what they reach ends the search.
        """
        left, reached = set(regions), 0
        for at in np.argsort(-self.loads, kind="stable").tolist():
            load = int(self.loads[at])
            if load <= reached:
                return
            around = [each for each in regions if each[0] <= at < each[1]]
            for first, last in around:
                if (first, last) in left:
                    self._measure_bands(first, last)
            left.difference_update(around)
            options = (
                o for o in self._found.values() if o and o.region.first <= at < o.region.last
            )
            reached = max(reached, min((each.load for each in options), default=load))

    def _iterate_useful(self) -> Iterator[tuple[int, int]]:
        """Yield the regions whose bands can need less than they do."""
        for begin, bounds in self._runs:
            for first in range(len(bounds) - 1):
                for last in range(first + 1, len(bounds)):
                    loads = self.loads[begin + first : begin + last]
                    if bounds[first, last] < loads.max():
                        yield begin + first, begin + last

    def _levels(self) -> list[int]:
        """Return limits on the load, from just below that of the program to the least possible."""
        low = self._find_least()
        if low >= self._high:
            return []
        ratio = (max(low, 1) / self._high) ** (1 / (_LEVELS - 1))
        limits = {max(low, int(self._high * ratio**at) - (at == 0)) for at in range(_LEVELS)}
        return sorted(limits, reverse=True)

    def _find_least(self) -> int:
        """Return a load that no set of regions is below: each operator's, or what crosses."""
        best = self.loads.copy()
        for begin, bounds in self._runs:
            least = self.loads[begin : begin + len(bounds) - 1].copy()
            for first in range(len(least)):
                # The least of regions that begin here, by the operators that they contain.
                row = np.minimum.accumulate(bounds[first, :first:-1])[::-1]
                np.minimum(least[first:], row, out=least[first:])
            best[begin : begin + len(least)] = least
        return int(best.max(initial=0))

    def _find_regions(self, limit: int) -> list[tuple[int, int]]:
        """Return short regions around the operators above a limit, at whose ends little crosses."""
        found = []
        for begin, end in _runs(self.loads > limit):
            for start, bounds in self._runs:
                if start <= begin and end < start + len(bounds):
                    near = self._find_near(begin - start, end - start, bounds <= limit, start)
                    found += [(first, last) for _, first, last in sorted(near)[:_NEAR]]
        return found

    def _find_near(
        self, begin: int, end: int, low: NDArray[np.bool_], start: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield regions around some operators of a run, with their work."""
        for first in range(begin, -1, -1):
            ends = np.flatnonzero(low[first, end:])
            if len(ends):
                last = start + end + int(ends[0])
                yield self._macs[last] - self._macs[start + first], start + first, last

    def _measure_bands(self, first: int, last: int, limit: int = 0) -> None:
        """Measure a region in more and more bands of rows, until its load is below a limit."""
        made = frozenset(self._uncut.made[first:last])
        for kept, pads in product((made, frozenset[int]()), (True, False)):
            if limit and bool(kept) != pads:
                continue  # the others are tried for the regions that are best
            best, worse = sys.maxsize, 0
            for rows in _ROWS:
                option = self._option(Region(first, last, (rows, 1), kept, pads))
                if option is None or option.load <= limit:
                    break
                if option.load == _USELESS:
                    continue
                worse = 0 if option.load < best else worse + 1
                best = min(best, option.load)
                if worse > 1:
                    break

    def _refine(self) -> None:
        """Change the regions that are best so far: their ends, their bands, what they keep."""
        seen: set[Region] = set()
        for _ in range(_ROUNDS):
            new = [
                region for point in self.points() for region in point.regions if region not in seen
            ]
            if not new or self._left <= 0:
                return
            seen.update(new)
            for region in new:
                for changed in self._change(region):
                    self._option(changed)

    def _change(self, region: Region) -> Iterator[Region]:
        made = self._uncut.made[region.first : region.last]
        rows, columns = region.bands
        for change in (-2, -1, 1, 2):
            yield replace(region, bands=(max(1, rows + change), columns))
        for first, last in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            first, last = region.first + first, region.last + last
            if 0 <= first < last <= len(self._uncut.operators):
                inside = set(self._uncut.made[first:last])
                kept = region.kept & inside
                if region.kept and region.kept.issuperset(made):
                    kept = frozenset(inside)
                yield replace(region, first=first, last=last, kept=kept)
        widths = sorted({self._row_bytes(tensor) for tensor in made})
        for share in (1, 2, 3):
            most = widths[len(widths) * share // 4]
            kept = frozenset(tensor for tensor in made if self._row_bytes(tensor) <= most)
            if columns == 1:
                yield replace(region, kept=kept)
        yield replace(region, pads=not region.pads)
        for bands in _PATCHES:
            yield replace(region, bands=bands, kept=frozenset())

    def _row_bytes(self, tensor: int) -> int:
        return self._uncut.graph.tensors[tensor].bytes // self._uncut.size(tensor)[0]

    def _option(self, region: Region) -> _Option | None:
        """Return a region, measured; `None` if it cannot be cut so, or the work is done."""
        if region not in self._found:
            if is_stopped():
                self._left = 0
            if self._left <= 0 or self._whole[region.last] > self._whole[region.first]:
                return None
            self._found[region] = self._measure(region)
        return self._found[region]

    def _measure(self, region: Region) -> _Option | None:
        uncut = self._uncut
        if uncut.graph.views and self._has_views(region):
            return None
        kept, inside = uncut.overheads, slice(region.first, region.last)
        before = sum(kept[inside])
        try:
            found = divide(uncut, region)
            if self._bounds_first:
                tasks = [task.at for band in found.tasks for task in band]
                least = self._timeline.bound(found) + sum([kept[at] for at in tasks]) - before
                if least >= self.loads[inside].max():
                    return _Option(region, _USELESS, 0, 0)
            bands = cut_region(uncut, found)
        except ValueError:
            return None
        self._left -= len(bands.actions)
        load = self._timeline.measure(region, bands)
        overhead = sum([kept[action.step] for action in bands.actions]) - before
        extra = bands.macs + bands.copied - (self._macs[region.last] - self._macs[region.first])
        return _Option(region, load, overhead, extra)

    def _has_views(self, region: Region) -> bool:
        """Return whether a result of the region shares memory with another tensor."""
        made = set(self._uncut.made[region.first : region.last])
        return any(view.tensor in made for view in self._uncut.graph.views)

    # What is chosen

    def points(self) -> list[Point]:
        """Return the sets of regions of which none beats another."""
        options = _drop_beaten([o for o in self._found.values() if o and o.load < self._high])
        base = Point((), self._high, 0, self._uncut.macs)
        if not options:
            return [base]
        low = min(option.load for option in options)
        limits = sorted(
            {option.load for option in options}
            | {int(load) for load in self.loads if low <= load < self._high}
        )
        most = _CHOICES // (len(self.loads) + len(options)) + 1
        if len(limits) > most:
            limits = [limits[at * len(limits) // most] for at in range(most)]
        points = [base]
        for limit in limits:
            fit = [option for option in options if option.load <= limit]
            for weights in ((_HEAVY, 1), (1, _HEAVY)):
                chosen = self._choose(limit, fit, weights)
                points += [] if chosen is None else [chosen]
        points.sort(key=lambda point: (point.work, point.arena))
        best = [base]
        for point in points:
            if point.arena < best[-1].arena:
                if point.work == best[-1].work and best[-1].regions:
                    best.pop()
                best.append(point)
        return best

    def _choose(
        self, limit: int, options: Sequence[_Option], weights: tuple[int, int]
    ) -> Point | None:
        """Return the cheapest set of regions by work and overhead, with a load within a limit."""
        count = len(self._uncut.operators)
        ending: list[list[tuple[int, int, _Option]]] = [[] for _ in range(count + 1)]
        for option in options:
            cost = option.extra * weights[0] + option.overhead * weights[1]
            ending[option.region.last].append((option.region.first, cost, option))
        costs: list[int | None] = [0]
        taken: list[_Option | None] = [None]
        for at, low in enumerate((self.loads <= limit).tolist(), 1):
            cheapest, last = costs[at - 1] if low else None, None
            for first, cost, option in ending[at]:
                before = costs[first]
                if before is not None and (cheapest is None or before + cost < cheapest):
                    cheapest, last = before + cost, option
            costs.append(cheapest)
            taken.append(last)
        if costs[count] is None:
            return None
        chosen, load, at = [], 0, count
        while at > 0:
            last = taken[at]
            if last is None:
                load = max(load, int(self.loads[at - 1]))
                at -= 1
            else:
                chosen.append(last)
                load = max(load, last.load)
                at = last.region.first
        return Point(
            tuple(option.region for option in reversed(chosen)),
            load,
            sum(option.overhead for option in chosen),
            self._uncut.macs + sum(option.extra for option in chosen),
        )


def _drop_beaten(options: Sequence[_Option]) -> list[_Option]:
    """Return the options that no other one of the same operators beats in all respects."""
    left: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    for number, option in enumerate(options):
        load, extra, overhead = option.load, option.extra, option.overhead
        same = left.setdefault((option.region.first, option.region.last), [])
        for a, b, c, _ in same:
            if a <= load and b <= extra and c <= overhead:
                break
        else:
            same[:] = [o for o in same if load > o[0] or extra > o[1] or overhead > o[2]]
            same.append((load, extra, overhead, number))
    return [options[number] for number in sorted(o[-1] for same in left.values() for o in same)]


def _runs(high: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of operators that are above a limit."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], high.astype(np.int8), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
