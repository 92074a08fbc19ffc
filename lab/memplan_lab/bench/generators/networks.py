"""Lifetimes and sizes like those of neural networks, for any number of buffers, in array code.

Only integer draws and exact floating-point operations are used (no `exp`, no `normal`): libraries
round those differently, and a problem must be the same on any machine.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_UNIT = 64  # bytes: sizes are multiples of a cache line
_SPREAD = 2.0  # standard deviation of log2(size)
_MEDIAN = 16.0  # log2 of the median size: 64 KiB


def nn_like(n: int, seed: int) -> Problem:
    """Return `n` activations of an inference run.

    Operators run in order, each with one to three outputs or scratch buffers. Nine in ten live a
    few steps, some skip a block (8 to 64 steps), one in a hundred is used far away: up to half of
    the run. Sizes are log-normal, and seven in ten are drawn again from a few typical ones, as
    layers repeat.

    Parameters
    ----------
    n
        The number of buffers, 1e3 to 1e6.
    seed
        The same seed gives the same problem, on any machine.

    Returns
    -------
    Problem
        Without a capacity; the load is a lower bound that can usually be reached.
    """
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    start = _steps(rng, n)
    steps = int(start[-1]) + 1
    length = _geometric(rng, n)
    kind = rng.integers(100, size=n)
    skip = np.flatnonzero((kind >= 90) & (kind < 99))
    length[skip] = rng.integers(8, 64, size=len(skip), endpoint=True)
    far = np.flatnonzero(kind == 99)
    length[far] = _log_uniform(rng, len(far), 64, max(65, steps // 2))
    end = np.minimum(start + length, steps + 1)
    return _shuffle(rng, start, end, _sizes(rng, n))


def training_like(n: int, seed: int) -> Problem:
    """Return `n` buffers of a training step: a forward pass, then the same backwards.

    Half of the forward outputs are kept until the backward step of their own operator, so the
    load peaks where the two passes meet; the other half, and all gradients, live a few steps. A
    gradient is as large as the output that it belongs to.

    Parameters
    ----------
    n
        The number of buffers, 1e3 to 1e6.
    seed
        The same seed gives the same problem, on any machine.

    Returns
    -------
    Problem
        Without a capacity; the load is a lower bound that can usually be reached.
    """
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    forward = (n + 1) // 2
    start = _steps(rng, forward)
    last = 2 * int(start[-1]) + 1  # the backward step of operator 0
    backward = last - start
    kept = rng.integers(2, size=forward) == 1
    end = np.where(kept, backward + 1, np.minimum(start + _geometric(rng, forward), last + 1))
    size = _sizes(rng, forward)
    owner = rng.permutation(forward)[: n - forward]
    gradient = backward[owner]
    gradient_end = np.minimum(gradient + _geometric(rng, n - forward), last + 1)
    return _shuffle(
        rng,
        np.concatenate([start, gradient]),
        np.concatenate([end, gradient_end]),
        np.concatenate([size, size[owner]]),
    )


def _shuffle(rng: np.random.Generator, start: Ints, end: Ints, size: Ints) -> Problem:
    order = rng.permutation(len(start))
    return Problem.from_arrays(start[order], end[order], size[order])


def _steps(rng: np.random.Generator, n: int) -> Ints:
    """Return the operator that makes each of `n` buffers: one to three each, in order."""
    return np.repeat(np.arange(n), rng.integers(1, 3, size=n, endpoint=True))[:n]


def _geometric(rng: np.random.Generator, n: int) -> Ints:
    """Draw lifetimes of 2, 3, 4 .. steps, each half as likely as the one before.

    At least 2, because a result lives in the step that makes it and in one that reads it.
    """
    word = rng.integers(1 << 20, size=n)
    lowest_bit = word & -word
    place: Ints = np.frexp(np.maximum(lowest_bit, 1).astype(np.float64))[1].astype(np.int64)
    return 1 + place


def _sizes(rng: np.random.Generator, n: int) -> Ints:
    """Draw log-normal sizes in bytes; seven in ten repeat one of a few typical sizes."""
    typical = _log_normal(rng, 8 + math.isqrt(n) // 4)
    own = _log_normal(rng, n)
    repeated = typical[rng.integers(len(typical), size=n)]
    sizes: Ints = np.where(rng.integers(10, size=n) < 7, repeated, own)
    return sizes


def _log_normal(rng: np.random.Generator, n: int) -> Ints:
    # A sum of twelve uniform integers is as good as normal here, and exact.
    bell = rng.integers(-(1 << 20), 1 << 20, size=(n, 12), dtype=np.int32).sum(axis=1) / (1 << 21)
    size = _exp2(_MEDIAN + _SPREAD * bell)
    sizes: Ints = _UNIT * np.maximum(1, np.rint(size / _UNIT).astype(np.int64))
    return sizes


def _log_uniform(rng: np.random.Generator, n: int, low: int, high: int) -> Ints:
    """Draw integers from `low` up to `high` or half of it, all orders of magnitude alike."""
    octaves = (high // low).bit_length() - 1
    return (_exp2(octaves * rng.random(n)) * low).astype(np.int64)


def _exp2(x: Floats) -> Floats:
    """Return 2^x with a straight line within each octave: as good here, and exact everywhere."""
    octave = np.floor(x)
    return np.ldexp(1.0 + (x - octave), octave.astype(np.int32))
