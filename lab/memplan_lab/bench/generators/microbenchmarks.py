"""TelaMalloc's microbenchmarks (Maas et al. 2023, section 7.1): the cost of a step, no search.

The paper gives the shape but not the sizes. Here all sizes are different, so that no solver can
treat buffers as identical.
"""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem

_UNIT = 64  # bytes


def non_overlapping(n: int) -> Problem:
    """Return `n` buffers, one after the other in time; the capacity is the largest size."""
    start = np.arange(n, dtype=np.int64)
    size = _sizes(n)
    return Problem.from_arrays(start, start + 1, size, capacity=int(size.max()))


def full_overlap(n: int) -> Problem:
    """Return `n` buffers that are all alive at once; the capacity is the sum of their sizes."""
    size = _sizes(n)
    return Problem.from_arrays(
        np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64), size, capacity=int(size.sum())
    )


def _sizes(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return 64, 128, .. in a scattered order that needs no chance to draw it."""
    stride = next(s for s in range(max(1, int(0.618 * n)), n + 1) if np.gcd(s, n) == 1)
    return _UNIT * (1 + (np.arange(n, dtype=np.int64) * stride) % n)
