"""Where a recorded run had its memory, without the addresses that no allocation used.

An allocator takes memory from several mappings, terabytes apart. Pages that no allocation ever
touched are cut out; all the others keep their order, and everything keeps its size:

    address  7f..a000 |#####|                    drawn  5 |#####|
             7f..9000 |##   |                           4 |##   |
                      :     :  never used               3 |     | <- a cut
             5c..4000 |  ###|                             |  ###|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import Column

__all__ = ["Compressed", "compress"]

_PAGE = 12  # log2; what operating systems hand out, and take back


@dataclass(frozen=True, eq=False)
class Compressed:
    """Addresses without the pages that no allocation used."""

    offset: Column  # of every allocation, in bytes from the lowest page that was used, shape (n,)
    cuts: Column  # offsets at which addresses are left out, ascending
    touched: int  # bytes of all pages that were used at some time: the end of the highest offset
    # Bytes from the lowest page that was used to the end of the highest, nothing left out.
    span: int


def compress(address: npt.NDArray[np.uint64], size: Column) -> Compressed:
    """Cut out the pages that no allocation used; columns have shape (n,), bytes, sizes positive."""
    if not len(address):
        nothing = np.zeros(0, dtype=np.int64)
        return Compressed(nothing, nothing, 0, 0)
    # The sums are in pages, because an address may have 64 bits, and a sum of two one more.
    first = (address >> np.uint64(_PAGE)).astype(np.int64)
    inside = (address & np.uint64((1 << _PAGE) - 1)).astype(np.int64)
    last = first + (inside + size - 1 >> _PAGE) + 1
    order = np.argsort(first, kind="stable")
    reached = np.maximum.accumulate(last[order])
    begins = np.append(True, first[order][1:] > reached[:-1])
    lower = first[order][begins]
    upper = reached[np.append(begins[1:], True)]
    base = np.cumsum(upper - lower) - (upper - lower)
    stretch = np.searchsorted(lower, first, side="right") - 1
    offset = (base[stretch] + first - lower[stretch] << _PAGE) + inside
    return Compressed(
        offset,
        base[1:] << _PAGE,
        int((upper - lower).sum()) << _PAGE,
        int(upper[-1] - lower[0]) << _PAGE,
    )
