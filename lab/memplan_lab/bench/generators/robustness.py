"""Families of problems that are hard for different reasons, each with a known optimum.

Nearly all are cut out of an arena that is full at one moment (see `arena`). The load there, or
another simple sum, is the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from memplan.problem import Problem
from memplan_lab.bench.generators.arena import Arena, Range, fill_arena
from memplan_lab.bench.generators.flat_load import flat_load
from memplan_lab.bench.generators.networks import nn_like
from memplan_lab.bench.generators.noise import with_size_noise
from memplan_lab.bench.generators.packing import Columns

_UNIT = 64  # bytes: most sizes are multiples of a cache line
_PAGE = 4096
Gap = tuple[int, int, int, int, int]  # the buffer, start, end, and its window or -1, -1

_EXTRA = 5  # percent of additional buffers, because some make way for those that fill holes


@dataclass(frozen=True, slots=True)
class Known:
    """A problem with its bound, and perhaps an optimal plan."""

    problem: Problem  # without a capacity
    bound: int  # bytes: no plan has a smaller peak
    offset: Columns | None  # A plan whose peak is `bound`, or None if only the bound is known


def robustness(family: str, n: int, seed: int, moments: int = 1) -> Known:
    """Return a problem of a family of `FAMILIES` with `n` buffers."""
    if n < _FEWEST:
        raise ValueError(f"n is {n}; the families of robustness need at least {_FEWEST} buffers")
    number = list(FAMILIES).index(family)
    return FAMILIES[family](np.random.Generator(np.random.PCG64([seed, n, number])), n, moments)


_FEWEST = 300


def _known(arena: Arena, bound: int | None = None, **constraints: object) -> Known:
    """Return the problem of an arena, with further columns and lists of `Problem.from_arrays`."""
    problem = Problem.from_arrays(arena.start, arena.end, arena.size, **constraints)  # type: ignore[arg-type]
    return Known(problem, arena.peak if bound is None else bound, arena.offset)


def _draw_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1 << 30))


def _with_extra(n: int) -> int:
    return n + n * _EXTRA // 100 + 50


# Shapes: lifetimes and sizes -------------------------------------------------------------------


def _arena_of_sizes(
    rng: np.random.Generator, n: int, moments: int, draw: Callable[[int], Columns]
) -> Arena:
    """Return an arena with the lifetimes of an inference run and other sizes, in cache lines."""
    base = nn_like(_with_extra(n), _draw_seed(rng))
    return fill_arena(rng, n, base.start, base.end, _UNIT * draw(len(base)), moments=moments)


def _equal_sizes(rng: np.random.Generator, n: int, moments: int) -> Known:
    return _known(_arena_of_sizes(rng, n, moments, lambda count: np.full(count, 1 << 10)))


def _two_sizes(rng: np.random.Generator, n: int, moments: int) -> Known:
    small, large = (int(rng.integers(low, low + 16)) for low in (32, 64))
    return _known(
        _arena_of_sizes(rng, n, moments, lambda m: np.where(rng.integers(2, size=m), small, large))
    )


def _powers_of_two(rng: np.random.Generator, n: int, moments: int) -> Known:
    return _known(_arena_of_sizes(rng, n, moments, lambda m: 1 << rng.integers(0, 15, size=m)))


def _bimodal(rng: np.random.Generator, n: int, moments: int) -> Known:
    def draw(count: int) -> Columns:
        small, large = rng.integers(1, 16, size=count), rng.integers(1 << 12, 1 << 14, size=count)
        return np.where(rng.integers(10, size=count) < 8, small, large)

    return _known(_arena_of_sizes(rng, n, moments, draw))


def _noise20(rng: np.random.Generator, n: int, moments: int) -> Known:
    seed = _draw_seed(rng)
    base = with_size_noise(nn_like(_with_extra(n), seed), seed, relative=0.2)
    return _known(fill_arena(rng, n, base.start, base.end, base.size, moments=moments))


def _sawtooth(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return a load that grows by one buffer a step and falls at once; one in ten lives longer."""
    count, width = _with_extra(n), int(rng.integers(24, 64))
    start = np.arange(count)
    end = (start // width + 1) * width
    survives = rng.integers(10, size=count) == 0
    end = end + np.where(survives, width * rng.integers(1, 4, size=count), 0)
    size = _UNIT * rng.integers(1, 1 << 10, size=count)
    return _known(fill_arena(rng, n, start, end, size, moments=moments))


def _traces(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return what a caching allocator sees: lifetimes of all orders of magnitude."""
    count = _with_extra(n)
    start = np.arange(count)
    octave = rng.integers(0, 9, size=count)
    end = start + (1 << octave) + rng.integers(0, 1 << octave)
    kind = rng.integers(10, size=count)
    small = 8 * rng.integers(1, 128, size=count)  # of 512 bytes
    large = np.where(kind < 9, 1 << 12, 1 << 15) * rng.integers(1, 8, size=count)
    size = _UNIT * np.where(kind < 6, small, large)
    return _known(fill_arena(rng, n, start, end, size, moments=moments))


def _combs(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return long backs with short teeth at equal distances, which differ from comb to comb."""
    rows: list[tuple[int, int, int]] = []
    time, count = 0, _with_extra(n)
    while len(rows) < count:
        teeth, period = int(rng.integers(8, 40)), int(rng.integers(2, 12))
        back, tooth = (int(x) for x in rng.integers(1, 1 << 8, size=2))
        length = int(rng.integers(1, period, endpoint=True))
        rows.append((time, time + teeth * period, _UNIT * back))
        for begin in range(time, time + teeth * period, period):
            rows.append((begin, begin + length, _UNIT * tooth))
        time += int(rng.integers(1, 12))
    return _known(fill_arena(rng, n, *np.array(rows, dtype=np.int64).T.copy(), moments=moments))


def _caches(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return the caches of a language model's layers; each token makes a copy, one row longer.

    The caches of some layers are rings: they are also copied, but do not grow. In the plan, each
    kind has one slot more than layers, and a copy goes to the free slot.
    """
    count, layers = _with_extra(n), int(rng.integers(8, 24))
    tokens = -(-count // (3 * layers))
    first, ring, row = int(rng.integers(8, 64)), int(rng.integers(8, 64)), 4 * _UNIT
    is_ring = rng.integers(4, size=layers) == 0
    rings = int(is_ring.sum())
    wide = row * (first + tokens)
    free = {False: 0, True: (layers - rings + 1) * wide}  # the address of the free slot
    slots = [0] * layers
    for kind, bytes in ((False, wide), (True, row * ring)):
        for at, layer in enumerate(np.flatnonzero(is_ring == kind).tolist(), 1):
            slots[layer] = free[kind] + at * bytes
    lanes = free[True] + (rings + 1) * row * ring
    work = _UNIT * rng.integers(1, 64, size=(tokens * layers, 2))
    rows: list[tuple[int, int, int, int]] = []
    for step in range(tokens * layers):
        token, layer = divmod(step, layers)
        kind, time = bool(is_ring[layer]), 3 * step
        slots[layer], free[kind] = free[kind], slots[layer]
        held = row * (ring if kind else first + token)
        rows.append((time, time + 3 * layers + 1, held, slots[layer]))
        rows.append((time, time + 2, int(work[step, 0]), lanes))
        rows.append((time + 1, time + 3, int(work[step, 1]), lanes + _UNIT * 64))
    start, end, size, offset = np.array(rows, dtype=np.int64).T.copy()
    return _known(fill_arena(rng, n, start, end, size, offset=offset, moments=moments))


def _flat(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return the same load at all times, with 20 to 80 buffers live: only the load is known."""
    load = 65 * int(rng.integers(20, 80, endpoint=True))
    return Known(flat_load(n, _draw_seed(rng), load), load, None)


# Constraints -----------------------------------------------------------------------------------


def _network_arena(rng: np.random.Generator, n: int, moments: int) -> Arena:
    base = nn_like(_with_extra(n), _draw_seed(rng))
    return fill_arena(rng, n, base.start, base.end, base.size, moments=moments)


def _aligned(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return buffers whose offsets are multiples of a page, but whose sizes are not.

    A buffer on top of the arena loses the most, so that the optimum is known.
    """
    base = nn_like(_with_extra(n), _draw_seed(rng))
    pages = -(-base.size // _PAGE)
    arena = fill_arena(rng, n, base.start, base.end, pages * _PAGE, moments=moments)
    lost = rng.integers(0, _PAGE, size=n)
    lost[arena.offset + arena.size == arena.peak] = _PAGE - 1
    problem = Problem.from_arrays(
        arena.start, arena.end, arena.size - lost, alignment=np.full(n, _PAGE)
    )
    return Known(problem, arena.peak - (_PAGE - 1), arena.offset)


def _alignments(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return alignments of 4096, 64 and 1, mixed; sizes are any number of bytes."""
    base = nn_like(_with_extra(n), _draw_seed(rng))
    unit = np.array([1, _UNIT, _PAGE])[rng.integers(3, size=len(base))]
    size = base.size - rng.integers(0, _UNIT, size=len(base))
    arena = fill_arena(rng, n, base.start, base.end, size, alignment=unit, moments=moments)
    return _known(arena, alignment=arena.alignment)


def _reserved(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return three reserved ranges of 1 to 4 percent of the load each; all are below the peak."""
    base = nn_like(_with_extra(n), _draw_seed(rng))
    percent = base.max_load // 100
    ranges: list[Range] = []
    for lowest in (10, 40, 70):
        lower = percent * int(rng.integers(lowest, lowest + 20))
        ranges.append((lower, lower + percent * int(rng.integers(1, 5))))
    arena = fill_arena(rng, n, base.start, base.end, base.size, reserved=ranges, moments=moments)
    return _known(arena, reserved=ranges)


def _pinned(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return one buffer in five pinned at its place in the plan."""
    arena = _network_arena(rng, n, moments)
    return _known(arena, pin=np.where(rng.integers(5, size=n) == 0, arena.offset, -1))


def _gaps(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return long-lived buffers with gaps, and others that live in their memory then."""
    plan = _network_arena(rng, n - n // 10, moments)
    gaps: list[Gap] = []
    tenants: list[tuple[int, ...]] = []
    for host in np.argsort(plan.start - plan.end, kind="stable").tolist():
        left = n // 10 - len(tenants)
        if not left:
            break
        gap, room = _draw_gap(rng, plan, host)
        gaps.append(gap)
        _, begin, until, _, _ = gap
        parts = min(3, left, until - begin)
        edges = [begin + (until - begin) * part // parts for part in range(parts + 1)]
        for first, last in pairwise(edges):
            tenants.append((first, last, room[1] - room[0], 1, room[0]))
    table = np.concatenate([plan.table(), np.array(tenants, dtype=np.int64)])
    order = rng.permutation(n)
    whole = Arena.of(table[order], plan.full)
    return _known(whole, gaps=_renumber(gaps, order))


def _draw_gap(rng: np.random.Generator, plan: Arena, host: int) -> tuple[Gap, Range]:
    """Return a gap in the middle of a lifetime, and the range of addresses that it leaves.

    Half of the gaps have a window, which keeps the lower or the upper part of the buffer.
    """
    start, end, size, _, offset = plan.table()[host].tolist()
    quarter = (end - start) // 4
    begin = start + int(rng.integers(quarter + 1))
    until = end - int(rng.integers(quarter + 1))
    part = size // 2 // _UNIT * _UNIT
    window, room = (-1, -1), (offset, offset + size)
    if part and rng.integers(2):
        lower = bool(rng.integers(2))
        window, room = (0, part), (offset + part, offset + size)
        if not lower:
            window, room = (size - part, size), (offset, offset + size - part)
    return (host, begin, until, *window), room


def _renumber(gaps: Sequence[Gap], order: Columns) -> Sequence[Columns]:
    """Return gaps as columns, whose buffers have the places that `order` gives them."""
    columns = np.array(gaps, dtype=np.int64).T.copy()
    columns[0] = np.argsort(order)[columns[0]]
    return list(columns)


def _gap_cliques(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return a full moment of three steps, in each of which other buffers have a gap.

    No step has the load of the plan; but any two buffers of the moment meet in one of the steps, so
    that all of them lie side by side.
    """
    plan = _network_arena(rng, n, 1)
    live = rng.permutation(np.flatnonzero(plan.is_live))
    begin = plan.full + np.arange(len(live) // 2) % 3
    hosts = live[: len(begin)]
    none = np.full_like(hosts, -1)
    later = Arena(
        plan.start + 2 * (plan.start > plan.full),
        plan.end + 2 * (plan.end > plan.full),
        *(plan.size, plan.alignment, plan.offset),
        full=plan.full,
    )
    return _known(later, gaps=(hosts, begin, begin + 1, none, none))


def _conflicts(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return listed conflicts of buffers with near lifetimes, which are disjoint in the plan."""
    plan = _network_arena(rng, n, moments)
    by_start = np.argsort(plan.start, kind="stable")
    first = rng.integers(n, size=4 * n)
    pairs = np.stack([by_start[first], by_start[(first + rng.integers(1, 50, size=4 * n)) % n]])
    (start, other_start), (end, other_end) = plan.start[pairs], plan.end[pairs]
    lower, upper = plan.offset[pairs], (plan.offset + plan.size)[pairs]
    apart_in_time = (end <= other_start) | (other_end <= start)
    apart = (upper[0] <= lower[1]) | (upper[1] <= lower[0])
    return _known(plan, conflicts=pairs.T[apart_in_time & apart][: n // 5])


def _groups(rng: np.random.Generator, n: int, moments: int) -> Known:
    """Return groups of two to four buffers that touch in the plan and are live together."""
    plan = _network_arena(rng, n, moments)
    above: dict[int, list[int]] = {}
    for row, lower in enumerate(plan.offset.tolist()):
        above.setdefault(lower, []).append(row)
    grouped = [False] * n
    groups: list[list[int]] = []
    for row in rng.permutation(n).tolist():
        if len(groups) == n // 20:
            break
        group = [row]
        longest = int(rng.integers(2, 4, endpoint=True))
        while len(group) < longest and not grouped[row]:
            last = group[-1]
            touching = above.get(int(plan.offset[last] + plan.size[last]), [])
            meets = (r for r in touching if not grouped[r] and _live_together(plan, last, r))
            following = next(meets, None)
            if following is None:
                break
            group.append(following)
        if len(group) > 1:
            groups.append(group)
            for member in group:
                grouped[member] = True
    return _known(plan, groups=groups)


def _live_together(plan: Arena, one: int, other: int) -> bool:
    return bool(plan.start[one] < plan.end[other] and plan.start[other] < plan.end[one])


# Those that are not cut out of an arena with any number of full moments.
UNCUT = frozenset({"flat", "gap-cliques"})
FAMILIES: Mapping[str, Callable[[np.random.Generator, int, int], Known]] = {
    "equal-sizes": _equal_sizes,
    "two-sizes": _two_sizes,
    "powers-of-two": _powers_of_two,
    "bimodal": _bimodal,
    "noise20": _noise20,
    "sawtooth": _sawtooth,
    "traces": _traces,
    "combs": _combs,
    "caches": _caches,
    "flat": _flat,
    "aligned": _aligned,
    "alignments": _alignments,
    "reserved": _reserved,
    "pinned": _pinned,
    "gaps": _gaps,
    "gap-cliques": _gap_cliques,
    "conflicts": _conflicts,
    "groups": _groups,
}
