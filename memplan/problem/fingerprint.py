"""The fingerprint of a problem: a SHA-256 that is the same in every version of memplan.

It covers everything that decides whether offsets are safe, and nothing else: capacity, hints and
the order of the rows are left out. These bytes are hashed; every number is a little-endian signed
64-bit integer, and the buffers are sorted by id (by code point):

    "memplan problem 1" and a line feed
    n, g, r                             counts of buffers, gaps and reserved ranges
    n numbers, then text                lengths of the ids in UTF-8, and the ids, concatenated
    start, end, size, alignment, pin    n numbers each; pin is -1 where there is none
    buffer, start, end, lower, upper    g numbers each: the gaps, sorted by (buffer, start);
                                        lower = upper = -1 where there is no window
    lower, upper                        r numbers each: the reserved ranges, sorted

and, only if the problem has any, so that older fingerprints stay valid:

    "conflicts" and a line feed         then their number, and two buffers each: the smaller first,
                                        sorted
    "groups" and a line feed            then group and lead, n numbers each: groups are numbered by
                                        their first member in the order of ids, -1 for no group
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from memplan.problem import Problem

PREFIX = "sha256:"
_MAGIC = b"memplan problem 1\n"


def fingerprint(problem: Problem) -> str:
    """Return `sha256:` and 64 hexadecimal digits."""
    import hashlib  # it loads OpenSSL, which few commands need

    digest = hashlib.sha256(_MAGIC)

    def add(*columns: npt.ArrayLike) -> None:
        for column in columns:
            digest.update(np.ascontiguousarray(column, dtype="<i8").data)

    add([len(problem), len(problem.gap_buffer), len(problem.reserved)])
    ids = problem.ids
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    names = [ids[row].encode() for row in order.tolist()]
    add(list(map(len, names)))
    digest.update(b"".join(names))
    for column in (problem.start, problem.end, problem.size, problem.alignment, problem.pin):
        add(column[order])

    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    owner = rank[problem.gap_buffer]
    gaps = np.lexsort((problem.gap_start, owner))
    add(owner[gaps], problem.gap_start[gaps], problem.gap_end[gaps])
    add(problem.gap_lower[gaps], problem.gap_upper[gaps])
    add([block.lower for block in problem.reserved], [block.upper for block in problem.reserved])
    if problem.has_conflicts:
        pairs = np.sort(rank[problem.conflicts.pairs()], axis=1)
        digest.update(b"conflicts\n")
        add([len(pairs)], pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])
    if problem.has_groups:
        digest.update(b"groups\n")
        add(_renumber(problem.group[order]), problem.lead[order])
    return PREFIX + digest.hexdigest()


def _renumber(group: npt.NDArray[np.int64]) -> list[int]:
    """Return group numbers in the order of first members; -1 stays -1."""
    numbers = {-1: -1}
    return [numbers.setdefault(number, len(numbers) - 1) for number in group.tolist()]
