"""Instances in which most buffers are live together most of the time, and the load never changes.

Nearly every pair conflicts, and no section has room to spare: hard for solvers that work on pairs.
"""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan_lab.bench.generators.flat_load import LARGEST, SMALLEST, split_into_parts


def dense(n: int, seed: int) -> Problem:
    """Return `n` buffers of 20 to 110 bytes, about two thirds of them live at any time.

    There are four to seven sections. Between two of them some of the live buffers end, and as
    many others of the same total size begin. Buffers that end together must lie side by side, or
    those that begin do not fit in their place: the optimum is at the load or a little above it.

    Parameters
    ----------
    n
        The number of buffers, at least 12.
    seed
        The same seed gives the same problem, on any machine.

    Returns
    -------
    Problem
        Without a capacity, because the optimum is not known by construction.

    Raises
    ------
    ValueError
        If `n` is so small that nothing could end.
    """
    if n < 12:
        raise ValueError(f"n is {n}; dense instances need at least 12 buffers")
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    changes = int(rng.integers(3, 6, endpoint=True))
    at_once = max(1, n // (3 * changes))
    live = list(range(n - changes * at_once))
    sizes = [int(rng.integers(SMALLEST, LARGEST, endpoint=True)) for _ in live]
    start = [0] * n
    end = [changes + 1] * n
    for time in range(1, changes + 1):
        ended = [live[i] for i in rng.permutation(len(live))[:at_once]]
        for buffer in ended:
            end[buffer] = time
            live.remove(buffer)
        for size in split_into_parts(rng, sum(sizes[b] for b in ended), at_once):
            live.append(len(sizes))
            start[len(sizes)] = time
            sizes.append(size)
    order = rng.permutation(n)
    columns = (np.array(column, dtype=np.int64)[order] for column in (start, end, sizes))
    return Problem.from_arrays(*columns)
