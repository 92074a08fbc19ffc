"""Hypothesis strategies: small problems with any mix of constraints, and ids of every kind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import relating
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from memplan.base.errors import ProblemError
from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.problem.plan import Plan, Status

FEATURES = frozenset(
    {"capacity", "alignment", "pins", "reserved", "gaps", "windows", "hints", "zero"}
)


def ids() -> SearchStrategy[str]:
    """Ids that formats stumble over: separators, quotes, spaces, comments, other scripts."""
    awkward = st.text(
        st.sampled_from(list(" \t,\"'#-@:\r\n\\{[aäß漢١\ufeff\u2028\x1c")), min_size=1
    )
    return st.one_of(st.text(st.sampled_from("abcxyz01"), min_size=1), awkward, any_text())


def any_text() -> SearchStrategy[str]:
    """Non-empty text of all characters that UTF-8 has, but NUL."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    return st.text(characters, min_size=1)


@st.composite
def gap_lists(draw: DrawFn, start: int, end: int, size: int, windows: bool) -> tuple[Gap, ...]:
    """Disjoint gaps inside a lifetime, some with windows, some that touch each other."""
    times = st.integers(start, end)
    cuts = sorted(draw(st.lists(times, max_size=4, unique=True)))
    gaps = []
    for lower, upper in pairwise(cuts):
        if draw(st.booleans()):
            window = None
            if windows and draw(st.booleans()):
                ends = sorted(draw(st.tuples(st.integers(0, size), st.integers(0, size))))
                window = (ends[0], ends[1])
            gaps.append(Gap(lower, upper, window))
    return tuple(gaps)


@st.composite
def buffers(
    draw: DrawFn, id: str, features: frozenset[str], max_size: int, max_time: int, scale: int = 1
) -> Buffer:
    """One buffer with a hint of each feature."""
    start = draw(st.integers(0, max_time - 1))
    end = draw(st.integers(start + 1, max_time))
    size = draw(st.integers(0 if "zero" in features else 1, max_size)) * scale
    gaps: tuple[Gap, ...] = ()
    if features & {"gaps", "windows"} and draw(st.booleans()):
        gaps = draw(gap_lists(start, end, size, "windows" in features))
    return Buffer(
        id,
        start,
        end,
        size,
        alignment=draw(st.sampled_from((1, 1, 2, 3, 4, 7, 8))) if "alignment" in features else 1,
        hint=draw(st.none() | st.integers(0, 2 * max_size)) if "hints" in features else None,
        gaps=gaps,
    )


@st.composite
def reserved_ranges(draw: DrawFn, top: int = 16) -> list[Reserved]:
    """Up to two disjoint ranges below `top`."""
    cuts = sorted(draw(st.lists(st.integers(0, top), max_size=4, unique=True)))
    return [Reserved(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]


@st.composite
def problems(
    draw: DrawFn,
    *,
    min_buffers: int = 0,
    max_buffers: int = 6,
    max_size: int = 6,
    max_time: int = 8,
    features: frozenset[str] = FEATURES,
    names: SearchStrategy[str] | None = None,
) -> Problem:
    """Well-formed problems, small enough for `oracle.minimum_peak`.

    Parameters
    ----------
    draw
        From Hypothesis.
    min_buffers, max_buffers, max_size, max_time
        Limits.
    features
        Which of `FEATURES` may occur; a problem need not have all of them.
    names
        Where ids come from; `b0`, `b1`, ... if None.
    """
    wanted = frozenset(draw(st.sets(st.sampled_from(sorted(features)))) if features else ())
    count = draw(st.integers(min_buffers, max_buffers))
    labels = [f"b{row}" for row in range(count)]
    if names is not None:
        labels = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    rows = [draw(buffers(label, wanted, max_size, max_time)) for label in labels]
    if draw(st.integers(0, 7)) == 7:  # all alike but for their names
        rows = [replace(rows[0], id=label) for label in labels]
    problem = Problem(rows, reserved=draw(reserved_ranges()) if "reserved" in wanted else ())
    if "pins" in wanted:
        for buffer in problem.buffers:
            if draw(st.booleans()):
                pin = draw(st.integers(0, 2 * max_size)) * buffer.alignment
                try:
                    problem = problem.with_pins({buffer.id: pin})
                except ProblemError:  # it meets another pin or a reserved range
                    continue
    if "capacity" in wanted:
        fixed = (problem.pin + problem.size)[problem.pin >= 0]
        top = int(fixed.max()) if len(fixed) else 0  # some capacities are below a pin
        capacity = draw(st.integers(max(1, top - 3), max(1, top) + 3 * max_size))
        problem = problem.with_capacity(capacity)
    return problem


@st.composite
def related(draw: DrawFn, asked: SearchStrategy[Problem]) -> Problem:
    """Problems with explicit conflicts and groups, and what alignments and pins they allow."""
    problem = draw(asked)
    rows = range(len(problem))
    pairs = [(i, j) for i in rows for j in rows[:i]]
    conflicts = draw(st.lists(st.sampled_from(pairs), max_size=6)) if pairs else []
    listed = draw(st.permutations(rows))
    first, second = sorted(draw(st.tuples(*2 * [st.integers(0, len(problem))])))
    groups = [listed[:first], listed[first:second]]  # of none, of one, of all
    return relating.relate(problem, conflicts, [group for group in groups if group])


@st.composite
def offsets(draw: DrawFn, problem: Problem, top: int = 24) -> list[int]:
    """Offsets for a problem, sometimes legal: mostly aligned, pinned ones mostly at their pins."""
    chosen = []
    for buffer in problem.buffers:
        free = st.integers(0, top)
        aligned = free.map(lambda offset, unit=buffer.alignment: offset // unit * unit)
        likely = aligned if buffer.pin is None else st.just(buffer.pin)
        chosen.append(draw(st.one_of(likely, likely, likely, free)))
    return chosen


@st.composite
def plans(draw: DrawFn, problem: Problem, *, with_offsets: bool = False) -> Plan:
    """Plans of a problem, not always legal, of every status and with stats."""
    status = draw(st.sampled_from(Status))
    placed = draw(offsets(problem)) if with_offsets or status.has_plan else None
    values = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    # A bound above all peaks: only earlier versions wrote an optimal plan above its bound.
    least = 1 << 62 if status is Status.OPTIMAL else 0
    return Plan.of(
        problem,
        placed,
        status=status,
        lower_bound=draw(st.integers(least, 1 << 62)),
        solver=draw(st.sampled_from(("", "exact", "my solver", '50% = "x"\n'))),
        stats=draw(st.dictionaries(st.text(), values, max_size=3)),
        conflict=draw(st.lists(st.sampled_from(problem.ids), unique=True)) if problem.ids else (),
    )
