"""MiniMalloc's synthetic suite (Moffitt 2023, section 8.3): few buffers, dense in time, tight.

The authors' own instances are not published. These follow the description in the paper: 20 to 60
buffers, a high degree of temporal overlap, and a capacity that leaves no room at the busiest time.
"""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan_lab.bench.generators.cutting import cut
from memplan_lab.bench.generators.packing import Packing, Piece

_LENGTH = 1024  # time
_HEIGHT = 1024  # address cells
_UNIT = 1024  # bytes a cell: a capacity of 1 MiB
_FLATNESS = 20.0  # long-lived pieces: about half of all pairs overlap in time
_PINWHEELS = 0.3


def synthetic(n: int, seed: int) -> Problem:
    """Return `n` buffers that overlap densely, with the smallest capacity that holds them.

    A rectangle is cut into `n` pieces without waste, and one moment of it is chosen. The pieces
    alive at that moment keep their sizes, so that this section stays full: the load bound equals
    the height, and the cut itself is a plan of that height, so the height is the optimum. Then
    half of the pieces lose a part: a piece alive at the moment is trimmed in time on one side of
    it; any other piece is trimmed in time or made smaller. So the packing is no longer perfect, and
    a plan may leave holes as large as these parts.

    Parameters
    ----------
    n
        The number of buffers; the suite has 20 to 60.
    seed
        The same seed gives the same problem, on any machine.

    Returns
    -------
    Problem
        Rows are shuffled; the capacity is the optimum.
    """
    return synthetic_solved(n, seed).problem()


def synthetic_solved(n: int, seed: int) -> Packing:
    """Return the same problem together with the placement that it was cut from."""
    rng = np.random.Generator(np.random.PCG64([seed, n]))
    whole = Piece(0, _LENGTH, 0, _HEIGHT)
    pieces = cut(rng, whole, n, pinwheels=_PINWHEELS, flatness=_FLATNESS)
    full = int(rng.integers(_LENGTH // 4, 3 * _LENGTH // 4))
    return Packing.of([_loosen(rng, piece, full) for piece in pieces], _HEIGHT, _UNIT, rng)


def _loosen(rng: np.random.Generator, piece: Piece, full: int) -> Piece:
    if rng.random() < 0.5:
        return piece
    if piece.start <= full < piece.end:
        if rng.random() < 0.5:
            return piece._replace(start=piece.start + _part(rng, full - piece.start))
        return piece._replace(end=piece.end - _part(rng, piece.end - full - 1))
    if rng.random() < 0.5:
        return piece._replace(upper=piece.upper - _part(rng, piece.upper - piece.lower - 1))
    if rng.random() < 0.5:
        return piece._replace(start=piece.start + _part(rng, piece.end - piece.start - 1))
    return piece._replace(end=piece.end - _part(rng, piece.end - piece.start - 1))


def _part(rng: np.random.Generator, length: int) -> int:
    """Draw how much to take away: up to a third, never all."""
    return int(rng.integers(length // 3 + 1))
