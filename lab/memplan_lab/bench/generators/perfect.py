"""Packings without a byte of waste: every section is full, so a search has no slack."""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan_lab.bench.generators.cutting import cut
from memplan_lab.bench.generators.packing import Packing, Piece

_SIDE = 1 << 14  # cells: fine enough for 1 000 pieces to have sizes of their own
_UNIT = 64  # bytes a cell: a capacity of 1 MiB


def perfect_packing(n: int, seed: int, pinwheels: float = 0.3) -> Problem:
    """Return `n` buffers that fill a rectangle of time x address without waste.

    Parameters
    ----------
    n
        The number of buffers.
    seed
        The same seed gives the same problem, on any machine.
    pinwheels
        The share of cuts that are five-piece spirals. At 0 the packing is guillotine: it can be
        taken apart by straight cuts, which is easier.

    Returns
    -------
    Problem
        Its capacity is the optimum: the load of every section.
    """
    return perfect_packing_solved(n, seed, pinwheels).problem()


def perfect_packing_solved(n: int, seed: int, pinwheels: float = 0.3) -> Packing:
    """Return the same problem together with the placement that it was cut from."""
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    pieces = cut(rng, Piece(0, _SIDE, 0, _SIDE), n, pinwheels=pinwheels)
    return Packing.of(pieces, _SIDE, _UNIT, rng)
