"""Cut a rectangle of time x address into pieces without waste.

guillotine: two pieces        pinwheel: five pieces that no straight cut separates

  address                       +-----+-----------+
    +-----------+               |     |    top    |
    |   upper   |               |left +-----+-----+
    +-----------+               |     | mid |     |
    |   lower   |               +-----+-----+right|
    +-----------+ time          |  bottom   |     |
                                +-----------+-----+
"""

from __future__ import annotations

import bisect
from itertools import accumulate

import numpy as np

from memplan_lab.bench.generators.packing import Piece


def cut(
    rng: np.random.Generator,
    whole: Piece,
    count: int,
    *,
    pinwheels: float = 0.0,  # the share of cuts that are pinwheels, where one is possible
    flatness: float = 1.0,
) -> list[Piece]:
    """Cut `whole` into exactly `count` pieces.

    The next piece to cut is drawn in proportion to its area, so that sizes stay comparable.
    """
    if not 1 <= count <= whole.area:
        raise ValueError(f"a rectangle of {whole.area} cells cannot be cut into {count} pieces")
    pieces = [whole]
    while len(pieces) < count:
        at = _draw_by_area(rng, pieces)
        spirals = rng.random() < pinwheels and count - len(pieces) >= 4
        parts = _pinwheel(rng, pieces[at]) if spirals else []
        parts = parts or _guillotine(rng, pieces[at], flatness)
        pieces[at : at + 1] = parts
    return pieces


def _draw_by_area(rng: np.random.Generator, pieces: list[Piece]) -> int:
    ends = list(accumulate(piece.area for piece in pieces))
    while True:
        at = bisect.bisect_right(ends, int(rng.integers(ends[-1])))
        if pieces[at].area > 1:
            return at


def _guillotine(rng: np.random.Generator, piece: Piece, flatness: float) -> list[Piece]:
    width, height = piece.end - piece.start, piece.upper - piece.lower
    across = rng.random() * (width + flatness * height) < flatness * height
    if height == 1 or (width > 1 and not across):
        middle = _draw_between(rng, piece.start, piece.end)
        return [piece._replace(end=middle), piece._replace(start=middle)]
    middle = _draw_between(rng, piece.lower, piece.upper)
    return [piece._replace(upper=middle), piece._replace(lower=middle)]


def _pinwheel(rng: np.random.Generator, piece: Piece) -> list[Piece]:
    start, end, lower, upper = piece
    if end - start < 3 or upper - lower < 3:
        return []
    b = _draw_between(rng, start + 1, end)
    a = _draw_between(rng, start, b)
    d = _draw_between(rng, lower + 1, upper)
    c = _draw_between(rng, lower, d)
    if rng.random() < 0.5:
        return [
            Piece(start, b, lower, c),
            Piece(b, end, lower, d),
            Piece(a, end, d, upper),
            Piece(start, a, c, upper),
            Piece(a, b, c, d),
        ]
    return [  # the same spiral, turning the other way
        Piece(a, end, lower, c),
        Piece(start, a, lower, d),
        Piece(start, b, d, upper),
        Piece(b, end, c, upper),
        Piece(a, b, c, d),
    ]


def _draw_between(rng: np.random.Generator, low: int, high: int) -> int:
    """Draw a point strictly between, in the middle 60 % where there is room: no slivers."""
    margin = max(1, (high - low) // 5)
    return int(rng.integers(low + margin, high - margin, endpoint=True))
