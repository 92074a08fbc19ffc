"""Brute force: the true minimum peak of a small problem, by bitmaps and not by intervals.

Nothing of memplan is used but the columns of `Problem`. Memory is a Python integer per unit of
time whose bit `a` says that address `a` is held, so that every constraint reads off as it is
written in `docs/concepts.md`. Every aligned offset is tried: no theorem is needed to believe
the answer. For up to seven buffers with sizes and times below about 10.
"""

from __future__ import annotations

from functools import cache

from memplan.problem import Problem


def minimum_peak(problem: Problem) -> int | None:
    """Return the smallest possible peak, or None if nothing fits the capacity."""
    for peak in range(trivial_bound(problem), limit(problem) + 1):
        if fit(problem, peak) is not None:
            return peak
    return None


def fit(problem: Problem, capacity: int) -> list[int] | None:
    """Return offsets with `offset + size <= capacity`, or None if there are none."""
    held = [claims(problem, row) for row in range(len(problem))]
    pieces = pieces_of(problem)
    choices = [
        [
            offset
            for offset in range(capacity + 1)
            if all(may_lie(problem, row, offset + lead, capacity) for row, lead in piece)
        ]
        for piece in pieces
    ]

    # Two ways to the same memory leave the same question to the pieces that follow.
    @cache
    def place(at: int, memory: tuple[int, ...]) -> tuple[int, ...] | None:
        if at == len(pieces):
            return ()
        for offset in choices[at]:
            after = list(memory)
            if all(add(after, held[row], offset + lead) for row, lead in pieces[at]):
                rest = place(at + 1, tuple(after))
                if rest is not None:
                    return (offset, *rest)
        return None

    times = 1 + max((time for each in held for time, _ in each), default=0)
    origins = place(0, (0,) * times)
    if origins is None:
        return None
    offsets = [0] * len(problem)
    for origin, piece in zip(origins, pieces, strict=True):
        for row, lead in piece:
            offsets[row] = origin + lead
    return offsets


def add(memory: list[int], held: list[tuple[int, int]], offset: int) -> bool:
    """Hold memory at an offset; False, and it is spoilt, if another buffer holds some of it."""
    for time, bits in held:
        if bits << offset & memory[time]:
            return False
        memory[time] |= bits << offset
    return True


def may_lie(problem: Problem, row: int, offset: int, capacity: int) -> bool:
    """Return whether a buffer alone may have an offset."""
    size, pin = int(problem.size[row]), int(problem.pin[row])
    return (
        offset % int(problem.alignment[row]) == 0
        and (pin < 0 or offset == pin)
        and offset + size <= capacity
        and not ones(size) << offset & reserved_bits(problem)
    )


def pieces_of(problem: Problem) -> list[list[tuple[int, int]]]:
    """Return what is placed at once: a group, or a buffer in none, as (row, lead)."""
    pieces: dict[int, list[tuple[int, int]]] = {}
    for row, (group, lead) in enumerate(zip(problem.group, problem.lead, strict=True)):
        number = int(group) if group >= 0 else -1 - row
        pieces.setdefault(number, []).append((row, int(lead)))
    return list(pieces.values())


def is_legal(problem: Problem, offsets: list[int], capacity: int | None) -> bool:
    """Return whether offsets break nothing, by the same bitmaps."""
    memory: dict[int, int] = {}
    for piece in pieces_of(problem):
        if len({offsets[row] - lead for row, lead in piece}) > 1:
            return False
    for row, offset in enumerate(offsets):
        size = int(problem.size[row])
        if offset < 0 or offset % problem.alignment[row]:
            return False
        if problem.pin[row] >= 0 and offset != problem.pin[row]:
            return False
        if capacity is not None and offset + size > capacity:
            return False
        if ones(size) << offset & reserved_bits(problem):
            return False
        for time, bits in claims(problem, row):
            if memory.get(time, 0) & bits << offset:
                return False
            memory[time] = memory.get(time, 0) | bits << offset
    return True


def load(problem: Problem) -> int:
    """Return the most bytes held at one time."""
    loads: dict[int, int] = {}
    for row in range(len(problem)):
        for time, bits in held_by_time(problem, row):
            loads[time] = loads.get(time, 0) + bits.bit_count()
    return max(loads.values(), default=0)


def held_by_time(problem: Problem, row: int) -> list[tuple[int, int]]:
    """Return (time, bits) for every unit of time, counted from the first; offset 0."""
    origin = first_time(problem)
    bits = {
        time: ones(int(problem.size[row]))
        for time in range(int(problem.start[row]), int(problem.end[row]))
    }
    for gap in range(len(problem.gap_buffer)):
        if problem.gap_buffer[gap] == row:
            window = range(0)
            if problem.gap_lower[gap] >= 0:
                window = range(int(problem.gap_lower[gap]), int(problem.gap_upper[gap]))
            for time in range(int(problem.gap_start[gap]), int(problem.gap_end[gap])):
                bits[time] = sum(1 << address for address in window)
    return [(time - origin, held) for time, held in bits.items()]


def claims(problem: Problem, row: int) -> list[tuple[int, int]]:
    """Return `held_by_time`, and after the end a time for each of its explicit conflicts.

    At that time the two buffers of the pair meet, and no others.
    """
    last = int(problem.end.max()) - first_time(problem)
    pairs = enumerate(problem.conflicts.pairs().tolist())
    whole = ones(int(problem.size[row]))
    return held_by_time(problem, row) + [(last + n, whole) for n, pair in pairs if row in pair]


def trivial_bound(problem: Problem) -> int:
    """Return a peak that no plan is below, without thought."""
    pins = [int(p + z) for p, z in zip(problem.pin, problem.size, strict=True) if p >= 0]
    return max([load(problem), *map(int, problem.size + problem.lead), *pins, 0])


def limit(problem: Problem) -> int:
    """Return a peak that some plan keeps if there is one: all stacked above all that is fixed."""
    if problem.capacity is not None:
        return problem.capacity
    fixed = [block.upper for block in problem.reserved]
    return (
        max(fixed, default=0)
        + trivial_bound(problem)
        + int((problem.size + problem.alignment + problem.lead).sum())
    )


def reserved_bits(problem: Problem) -> int:
    """Return the reserved addresses."""
    bits = 0
    for block in problem.reserved:
        bits |= ones(block.upper - block.lower) << block.lower
    return bits


def first_time(problem: Problem) -> int:
    """Return the time at which the first buffer starts."""
    return int(problem.start.min()) if len(problem) else 0


def ones(count: int) -> int:
    """Return `count` bits that are set, from bit 0."""
    return (1 << count) - 1
