"""Measures what regions in bands need, beside what else is live, without a plan."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from memplan.levers.rewrite.bands.cuts import Cut, Do, Region
from memplan.levers.rewrite.bands.cutting import Divided
from memplan.levers.rewrite.bands.uncut import Box, Uncut
from memplan.programs.graph import Layout

__all__ = ["Timeline"]


class Timeline:
    """What is live at each operator of a program."""

    def __init__(self, uncut: Uncut, layout: Layout) -> None:
        self._uncut, self._graph = uncut, layout.graph
        self._size = layout.problem.size
        self._storage: list[int] = [-1] * len(self._graph.tensors)  # by tensor: its row
        for row, index in enumerate(layout.rows):
            for tensor in layout.storages[index].tensors:
                self._storage[tensor] = row
        pictures = ({*reads} for reads in uncut.reads)
        self._others = [  # by operator: what it reads beside pictures
            tuple(tensor for tensor in operator.inputs if tensor not in each)
            for operator, each in zip(uncut.operators, pictures, strict=True)
        ]
        begins = self._find_steps(layout)
        steps = layout.problem
        self._first = np.searchsorted(begins, steps.start, side="right") - 1
        self._last = np.searchsorted(begins, steps.end - 1, side="right") - 1
        graph = layout.graph
        for tensor in {*graph.inputs}:
            self._first[self._rows_of(tensor)] = -1
        for tensor in {*graph.outputs}:
            self._last[self._rows_of(tensor)] = len(graph.operators)
        self._firsts, self._lasts = self._first.tolist(), self._last.tolist()
        self._sizes = self._size.tolist()
        change = np.zeros(layout.lives.steps + 1, dtype=np.int64)
        np.add.at(change, np.maximum(steps.start, 0), steps.size)  # step -1 is the caller's
        np.add.at(change, steps.end, -steps.size)
        live = np.cumsum(change)[:-1]
        self._before = int(steps.size[steps.start < 0].sum())  # what the caller sets
        # By operator: the most bytes that are live while it runs.
        self.loads: NDArray[np.int64] = (
            np.maximum(np.maximum.reduceat(live, begins), self._before)
            if len(begins)
            else np.zeros(0, dtype=np.int64)
        )

    def _rows_of(self, tensor: int) -> list[int]:
        row = self._storage[tensor]
        return [row] if row >= 0 else []

    def _find_steps(self, layout: Layout) -> NDArray[np.int64]:
        """Return by outermost operator the step in which it begins."""
        begins, at = [], 0
        for operator in layout.graph.operators:
            begins.append(layout.lives.spans[at][0])
            at += sum(1 for _ in operator.walk())
        return np.array(begins, dtype=np.int64)

    def find_bounds(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return what crosses the ends of regions inside of `[begin, end)`, in bytes.

        That is what is made before a region and used in it or later, and what it makes for later.
        Not all of it need be there at one time, see `bound`.
        Rows are first operators and columns last ones, both counted from `begin`.
        """
        count = end - begin
        first = np.clip(self._first + 1 - begin, 0, count + 1)
        last = np.clip(self._last + 1 - begin, 0, count + 1)
        both = np.zeros((count + 2, count + 2), dtype=np.int64)
        np.add.at(both, (first, last), self._size)
        # made[i, j]: bytes made before operator i and used by operator j or later.
        np.cumsum(both, axis=0, out=both)
        backward = both[:, ::-1]
        np.cumsum(backward, axis=1, out=backward)
        made = both[: count + 1, 1:]
        crossing = np.diag(made).copy()
        np.subtract(crossing[:, None], made, out=made)
        made += crossing[None, :]
        return made

    def bound(self, found: Divided) -> int:
        """Return what is live at least at one time while a region runs in bands, in bytes.

        While an operator makes a part, that part is there, and what it is fed. Beside them there is
        what the region reads, up to the last task that does, and its results from the first band
        on. What is read through a copy, as zeros are put around it or some columns are left out,
        may be gone once that is made. What is kept for other bands comes to that, so this is no
        more than `measure` returns. It is 0 where parts do not lie at their place in a result, as
        others than whole rows.
        """
        region, uncut = found.region, self._uncut
        if not uncut.rows_are_apart or region.bands[1] > 1:
            return 0
        tasks = [task for band in found.tasks for task in band]
        ends: dict[int, int] = {}  # by storage that is read: the task at which it may be gone
        begins: dict[int, int] = {}  # by storage that is made: the end of the first band that does
        number = end = 0
        for band in found.tasks:
            end += len(band)
            copied: dict[tuple[int, Box], int] = {}  # the first task of a band that takes a copy
            for at, _, part in band:
                begins.setdefault(self._storage[uncut.made[at]], end)
                for tensor, box, is_fed in zip(
                    uncut.reads[at], part.feeds, part.is_fed, strict=True
                ):
                    if not is_fed:
                        continue
                    row, gone = self._storage[tensor], number + (part.fed[0][0] >= 0)
                    if box[1] != uncut.wholes[tensor][1]:
                        gone = copied.setdefault((tensor, box), number)
                    ends[row] = max(gone, ends.get(row, 0))
                for tensor in self._others[at]:
                    ends[self._storage[tensor]] = number + 1
                number += 1
        change = [0] * (end + 1)
        for row, begin in begins.items():
            if row >= 0 and self._firsts[row] >= region.first and self._lasts[row] >= region.last:
                change[begin] += self._sizes[row]
        for row, number in ends.items():
            if row >= 0 and self._firsts[row] < region.first and self._lasts[row] < region.last:
                change[0] += self._sizes[row]
                change[number] -= self._sizes[row]
        # Inside are pictures that are never there as a whole, and copies with zeros around them.
        inside = {*uncut.made[region.first : region.last], -1}.difference(found.crossing)
        most = 0
        for live, (at, _, part) in zip(accumulate(change), tasks, strict=False):
            if uncut.made[at] in inside:
                live += part.bytes
            for tensor, fed in part.fed:
                if tensor in inside:
                    live += fed
            most = max(most, live)
        through = (self._first < region.first) & (self._last >= region.last)
        return most + int(self._size[through].sum())

    def measure(self, region: Region, bands: Cut) -> int:
        """Return the most bytes that are live at one time while a region in bands runs."""
        root, sizes, step = _find_roots(bands), self._sizes, self._graph.alignment
        known, end, rows = len(self._graph.tensors), len(bands.actions), len(sizes)
        # By storage, as a number below 0, or by tensor of the bands: the first and last action.
        begins: dict[int, int] = {}
        ends: dict[int, int] = {}
        change = [0] * (end + 1)
        for at, action in enumerate(bands.actions):
            tensors = (*action.inputs, action.output)
            if action.do is Do.PART:
                tensors += self._others[action.step]
                scratch = -(-action.scratch // step) * step
                change[at] += scratch
                change[at + 1] -= scratch
            for tensor in tensors:
                tensor = root.get(tensor, tensor)
                if 0 <= tensor < known:
                    tensor = self._storage[tensor] - rows
                elif tensor < 0:
                    continue
                begins.setdefault(tensor, at)
                ends[tensor] = at
        begins.pop(-rows - 1, None)  # what is not in the arena
        points = bands.uncut.bytes_of_points
        for tensor, first in begins.items():
            last = ends[tensor]
            if tensor < 0:
                size = sizes[tensor]  # counted from the end
                if self._firsts[tensor] < region.first:
                    first = 0
                if self._lasts[tensor] >= region.last:
                    last = end - 1
            else:
                origin, ((top, bottom), (left, right)) = bands.parts[tensor - known]
                size = points[origin] * (bottom - top) * (right - left)
                size = -(-size // step) * step
            change[first] += size
            change[last + 1] -= size
        # What was made before and no action touches waits for later operators; an input of the
        # model that nothing reads is there at the beginning.
        waits = (self._first < region.first) & (self._last >= region.first)
        waits[[tensor for tensor in begins if tensor < 0]] = False
        through = waits & (self._last >= region.last)
        unread = int(self._size[waits & ~through].sum())
        change[0] += unread
        change[1] -= unread
        return max(self._before, max(accumulate(change)) + int(self._size[through].sum()))


def _find_roots(bands: Cut) -> dict[int, int]:
    """Return by view the tensor in whose memory it lies."""
    found: dict[int, int] = {}
    for view in bands.views:
        tensor = view
        while tensor in bands.views:
            tensor = bands.views[tensor][0]
        found[view] = tensor
    return found
