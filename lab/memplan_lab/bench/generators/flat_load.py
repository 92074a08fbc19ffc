"""Instances with the same load at all times, so that no section is harder than another.

Their optimum is usually a few percent above the load, so they are for proofs rather than for fits.
"""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem

LOAD = 360
SMALLEST, LARGEST = 20, 110


def flat_load(n: int, seed: int, load: int = LOAD) -> Problem:
    """Return `n` buffers of 20 to 110 bytes with the same load at every time.

    At each step some live buffers end, and others of the same total size begin.

    Parameters
    ----------
    n
        The number of buffers, at least `load` / 20; 35 to 64 is hard already.
    seed
        The same seed gives the same problem, on any machine.
    load
        In bytes; 360 is five or six buffers at a time.

    Returns
    -------
    Problem
        Without a capacity, because the optimum is not known by construction.

    Raises
    ------
    ValueError
        If `n` is so small that one moment could use up all buffers.
    """
    if n < load // SMALLEST:
        raise ValueError(f"n is {n}; a flat load of {load} needs at least {load // SMALLEST}")
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    sizes = _split(rng, load, n)
    start = [0] * len(sizes)
    end = [0] * len(sizes)
    live = list(range(len(sizes)))
    time = 0
    while len(sizes) < n:
        time += 1
        ended, freed = _draw_enders(rng, live, sizes, n - len(sizes))
        for buffer in ended:
            end[buffer] = time
            live.remove(buffer)
        for size in _split(rng, freed, n - len(sizes)):
            live.append(len(sizes))
            sizes.append(size)
            start.append(time)
            end.append(time)
    for buffer in live:
        end[buffer] = time + 1
    order = rng.permutation(n)
    columns = (np.array(column, dtype=np.int64)[order] for column in (start, end, sizes))
    return Problem.from_arrays(*columns)


def _draw_enders(
    rng: np.random.Generator, live: list[int], sizes: list[int], most: int
) -> tuple[list[int], int]:
    """Draw two or three live buffers whose bytes at most `most` new ones can fill.

    Towards the end of the budget only the smallest, or a single one, will do.
    """
    for count in (int(rng.integers(2, 4)), 2):
        drawn = [live[i] for i in rng.permutation(len(live))[:count]]
        if sum(sizes[b] for b in drawn) <= most * LARGEST:
            return drawn, sum(sizes[b] for b in drawn)
    smallest = min(live, key=lambda b: sizes[b])
    return [smallest], sizes[smallest]


def _split(rng: np.random.Generator, total: int, most: int) -> list[int]:
    """Split `total` into at most `most` parts of SMALLEST..LARGEST each."""
    fewest = -(-total // LARGEST)
    # About 56 bytes a part keeps the mean in the middle, so that the load stays divisible.
    likely = total / 56 + 2 * rng.random() - 1
    count = min(max(fewest, round(likely)), total // SMALLEST, most)
    return split_into_parts(rng, total, count)


def split_into_parts(rng: np.random.Generator, total: int, count: int) -> list[int]:
    """Split `total` into `count` parts of SMALLEST..LARGEST each."""
    drawn: list[int] = []
    for left in range(count - 1, -1, -1):
        low = max(SMALLEST, total - left * LARGEST)
        high = min(LARGEST, total - left * SMALLEST)
        drawn.append(int(rng.integers(low, high, endpoint=True)))
        total -= drawn[-1]
    return drawn
