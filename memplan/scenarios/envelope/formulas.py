"""Computes the buffers of a program at every size, where its reader knows formulas of the sizes.

The reader runs with numbers that stand for many sizes at once (`memplan.problem.many`). Where it
decides something that is not the same at all of them, it is run again for those at which it is
another: so buffers and lifetimes may depend on the size, and nothing is presumed of sizes in
between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.many import Many, ManyError, Run
from memplan.programs.graph import Graph
from memplan.programs.graph.layout import find_storages
from memplan.programs.sources import open_graphs
from memplan.scenarios.envelope.ranges import Range

__all__ = ["compute"]

_AT_ONCE: Final = 1 << 14  # sizes
_MOST_RUNS: Final = 64  # of the reader, for so many sizes

# What a reader that takes only plain numbers may raise.
_NO_FORMULA: Final = (ManyError, LookupError, TypeError, ValueError, ArithmeticError)


def compute(
    model: Any, asked: Range, read: Callable[[tuple[int, ...]], Problem]
) -> list[tuple[Problem, Column, Column]] | None:
    """Return the buffers at all sizes; `None` if the reader has no formulas.

    For each run of the reader there is the problem at the first of its sizes, the sizes as rows of
    the range, ascending, and the bytes of all buffers, shape (buffers, sizes). `read` reads the
    program at one size.
    """
    make = open_graphs(model, asked.names)
    if make is None:
        return None
    found = []
    for begin in range(0, len(asked), _AT_ONCE):
        rows = np.arange(begin, min(begin + _AT_ONCE, len(asked)), dtype=np.int64)
        for _ in range(_MOST_RUNS):
            first = tuple(asked.points[rows[0]].tolist())
            try:
                names, bytes, left = _run(make, asked.names, asked.points[rows])
            except MemplanError:
                read(first)  # which says what is wrong, in plain numbers
                return None
            except _NO_FORMULA:
                return None
            problem = read(first)
            if problem.ids != names or (problem.size != bytes[:, 0]).any():
                return None
            found.append((problem, rows[left], bytes[:, left]))
            rows = rows[~left]
            if not len(rows):
                break
        else:
            return None
    return found


def _run(
    make: Callable[[Mapping[str, int]], Graph], names: Sequence[str], points: Column
) -> tuple[tuple[str, ...], Column, Any]:
    """Read a program at many sizes at once: return its buffers, their bytes, and where these hold.

    The bytes are rounded up, shape (buffers, sizes); the last answer is at which of the sizes they
    hold.
    """
    run = Run(len(points))
    dims: Any = {name: run.number(points[:, column]) for column, name in enumerate(names)}
    graph = make(dims)
    storages = find_storages(graph)
    bytes = np.empty((len(storages), len(points)), np.int64)
    for row, storage in enumerate(storages):
        size: Any = -(-storage.bytes // graph.alignment) * graph.alignment
        bytes[row] = size.values if isinstance(size, Many) else size
    return tuple(storage.name for storage in storages), bytes, run.left
