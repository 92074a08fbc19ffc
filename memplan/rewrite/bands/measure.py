"""Measures what regions in bands need, beside what else is live, without a plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memplan.graph import Layout
from memplan.rewrite.bands.cuts import Cut, Do, Region
from memplan.rewrite.bands.uncut import Uncut, find_scratch

__all__ = ["Timeline"]


class Timeline:
    """What is live at each operator of a program.

    Attributes
    ----------
    loads
        By operator: the most bytes that are live while it runs.
    """

    def __init__(self, uncut: Uncut, layout: Layout) -> None:
        self._uncut = uncut
        self._graph = layout.graph
        self._size = layout.problem.size
        self._storage: list[int] = [-1] * len(self._graph.tensors)  # by tensor: its row
        for row, index in enumerate(layout.rows):
            for tensor in layout.storages[index].tensors:
                self._storage[tensor] = row
        begins = self._find_steps(layout)
        steps = layout.problem
        self._first = np.searchsorted(begins, steps.start, side="right") - 1
        self._last = np.searchsorted(begins, steps.end - 1, side="right") - 1
        graph = layout.graph
        for tensor in {*graph.inputs}:
            self._first[self._rows_of(tensor)] = -1
        for tensor in {*graph.outputs}:
            self._last[self._rows_of(tensor)] = len(graph.operators)
        change = np.zeros(layout.lives.steps + 1, dtype=np.int64)
        np.add.at(change, np.maximum(steps.start, 0), steps.size)  # step -1 is the caller's
        np.add.at(change, steps.end, -steps.size)
        live = np.cumsum(change)[:-1]
        self._before = int(steps.size[steps.start < 0].sum())  # what the caller sets
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

    def measure(self, region: Region, bands: Cut) -> int:
        """Return the most bytes that are live at one time while a region in bands runs."""
        known, end = len(self._graph.tensors), len(bands.actions)
        root = _find_roots(bands)
        touched: dict[int, list[int]] = {}  # by storage, or by tensor of the bands: first and last
        change = np.zeros(end + 1, dtype=np.int64)
        for at, action in enumerate(bands.actions):
            tensors = (*action.inputs, action.output)
            if action.do is Do.PART:
                operator = self._graph.operators[action.step]
                pictures = {read.tensor for read in operator.reads}
                tensors += tuple(t for t in operator.inputs if t not in pictures)
                scratch = find_scratch(self._uncut, operator, bands.part(action.output)[1])
                scratch = self._round_up(scratch)
                change[at] += scratch
                change[at + 1] -= scratch
            for tensor in tensors:
                if tensor < 0:
                    continue
                tensor = root.get(tensor, tensor)
                if tensor < known:
                    tensor = self._storage[tensor] - len(self._size)  # a negative number
                    if tensor < -len(self._size):
                        continue
                if tensor in touched:
                    touched[tensor][1] = at
                else:
                    touched[tensor] = [at, at]
        for tensor, (first, last) in touched.items():
            if tensor < 0:
                row = tensor + len(self._size)
                size = int(self._size[row])
                first = 0 if self._first[row] < region.first else first
                last = end - 1 if self._last[row] >= region.last else last
            else:
                size = self._round_up(bands.bytes_of(tensor))
            change[first] += size
            change[last + 1] -= size
        # What was made before and no action touches waits for later operators; an input of the
        # model that nothing reads is there at the beginning.
        waits = (self._first < region.first) & (self._last >= region.first)
        waits[[tensor + len(self._size) for tensor in touched if tensor < 0]] = False
        through = waits & (self._last >= region.last)
        unread = int(self._size[waits & ~through].sum())
        change[0] += unread
        change[1] -= unread
        return max(self._before, int(np.cumsum(change).max()) + int(self._size[through].sum()))

    def _round_up(self, size: int) -> int:
        return -(-size // self._graph.alignment) * self._graph.alignment


def _find_roots(bands: Cut) -> dict[int, int]:
    """Return by view the tensor in whose memory it lies."""
    found: dict[int, int] = {}
    for view in bands.views:
        tensor = view
        while tensor in bands.views:
            tensor = bands.views[tensor][0]
        found[view] = tensor
    return found
