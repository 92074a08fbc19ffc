"""Hypothesis strategies: small traces, with scopes of any shape and names of any text."""

from __future__ import annotations

import strategies
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from memplan.problem.trace import Scope, Trace

_NAMES = st.sampled_from([".", ".a", ".a.b", "aten::add", "aten::add:1", "/", "thread"])


def scopes(names: SearchStrategy[str]) -> SearchStrategy[Scope]:
    """Paths of modules and operators; many are the same, many look like others."""
    steps = st.tuples(names, st.integers(0, 2))
    return st.lists(steps, max_size=4).map(tuple)


@st.composite
def traces(draw: DrawFn) -> Trace:
    """Draw a trace of up to eight allocations, with and without addresses."""
    paths = draw(st.lists(scopes(_NAMES | strategies.any_text()), max_size=8))
    n = len(paths)

    def column(values: SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=n, max_size=n))

    starts = sorted(column(st.integers(0, 20)))
    return Trace.from_arrays(
        starts,
        [start + length for start, length in zip(starts, column(st.integers(1, 9)), strict=True)],
        column(st.integers(0, 300) | st.integers(0, 1 << 58)),
        paths,
        outlives=draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        thread=column(st.integers(0, 2)),
        address=draw(st.none() | st.just(column(st.integers(0, (1 << 64) - 1)))),
        alignment=draw(st.sampled_from([1, 64, 512])),
        about=draw(st.dictionaries(strategies.any_text(), st.text('ab\n"'), max_size=2)),
    )


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces say the same, column by column."""
    columns = ("start", "end", "size", "outlives", "ordinal", "thread")
    # Of no allocation the address is neither known nor unknown.
    addresses = [None if t.address is None else t.address.tolist() or None for t in (one, other)]
    return (
        all(getattr(one, name).tolist() == getattr(other, name).tolist() for name in columns)
        and addresses[0] == addresses[1]
        and one.scopes == other.scopes
        and (one.alignment, dict(one.about)) == (other.alignment, dict(other.about))
    )
