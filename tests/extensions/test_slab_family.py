"""Tests of traces at every batch size: derived from some recordings, checked at others."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan import MemplanError
from memplan.base.errors import FamilyError
from memplan.extensions.slab.family import Family
from memplan.problem.trace import Scope, Trace

CONV: Scope = ((".", 0), (".conv", 0), ("aten::conv2d", 0))
SCORES: Scope = ((".", 0), (".scores", 0), ("aten::mm", 0))


def trace(*rows: tuple[int, int, int, Scope], outlives: tuple[int, ...] = ()) -> Trace:
    """Return the trace of rows (start, end, size, scope)."""
    starts, ends, sizes, scopes = zip(*rows, strict=True) if rows else ((), (), (), ())
    late = [row in outlives for row in range(len(rows))]
    return Trace.from_arrays(starts, ends, sizes, scopes, outlives=late, about={"model": "Net"})


def convnet(batch: int) -> Trace:
    """Return two overlapping activations, and scratch that does not depend on the batch."""
    return trace(
        (0, 3, 4096 * batch, CONV),
        (1, 2, 2048, CONV),
        (4, 5, 64 + 8 * batch, SCORES),
    )


def same(a: Trace, b: Trace) -> bool:
    """Whether two traces have equal columns."""
    columns = ("start", "end", "size", "outlives", "ordinal", "thread")
    return a.scopes == b.scopes and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in columns
    )


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, int, int, int, Scope]]:
    """Rows (start, end, base, slope, scope) of which no two events fall together."""
    n = draw(st.integers(0, 6))
    events = draw(st.permutations([row for row in range(n) for _ in range(2)]))
    spans = [[at for at, row in enumerate(events) if row == one] for one in range(n)]
    scope = st.sampled_from([CONV, SCORES, ()])
    size = st.integers(0, 1000)
    return [(start, end, draw(size), draw(size), draw(scope)) for start, end in sorted(spans)]


@given(programs(), st.sets(st.integers(1, 100), min_size=3, max_size=5), st.integers(1, 1000))
def test_what_is_affine_is_derived_exactly(
    program: list[tuple[int, int, int, int, Scope]], batches: set[int], asked: int
) -> None:
    """Tests any program of affine sizes, at a batch size that was not recorded."""

    def recorded(batch: int) -> Trace:
        return trace(*((start, end, a + b * batch, scope) for start, end, a, b, scope in program))

    family = Family.derive({batch: recorded(batch) for batch in batches})
    for batch in (0, 1):
        assert family.sizes.values((batch,)) == [a + b * batch for _, _, a, b, _ in program]
    assert same(family.at(asked), recorded(asked))


def attend(batch: int, tokens: int) -> Trace:
    """Return what grows with the tokens, with their square, and with neither."""
    return trace(
        (0, 3, 96 * batch * tokens, CONV),
        (1, 4, 4 * batch * tokens**2, SCORES),
        (2, 5, 1024, CONV),
        (6, 7, batch * tokens * (tokens + 1) // 2, SCORES),
    )


def test_dimensions_with_squares_are_derived_exactly() -> None:
    """Tests two dimensions, and a size whose coefficients are no whole numbers."""
    grid = {"batch": (2, 3), "tokens": (4, 7, 9)}
    points = [*product(*grid.values()), (8, 20)]
    family = Family.derive({point: attend(*point) for point in points}, grid)
    for point in ((1, 1), (5, 6), (64, 4096)):
        assert same(family.at(point), attend(*point))
    assert family.at((5, 6)).about == {"model": "Net", "batch": "5", "tokens": "6"}
    del points[1]
    with pytest.raises(FamilyError, match="no recording at batch=2, tokens=7, from which"):
        Family.derive({point: attend(*point) for point in points}, grid)


def test_a_check_that_contradicts_names_the_size() -> None:
    """Tests cubes, which the recording that checks gives away, and fractions of bytes."""
    grid = {"tokens": (2, 4, 6)}
    with pytest.raises(FamilyError, match=r"degree 2 in tokens .*at tokens: 8 at \(2,\), 64 at"):
        Family.derive({(n,): trace((0, 1, n**3, CONV)) for n in (2, 4, 6, 8)}, grid)
    with pytest.raises(FamilyError, match="does not grow as a polynomial"):
        Family.derive({(n,): trace((0, 1, n * n // 4, CONV)) for n in (2, 4, 6, 8)}, grid)


def test_a_derived_trace_says_so() -> None:
    """Tests that it names its batch size, knows no addresses, and makes a problem."""
    derived = Family.derive({2: convnet(2), 4: convnet(4)}).at(16)
    assert derived.about == {"model": "Net", "batch": "16"}
    assert derived.address is None
    assert not derived.size.flags.writeable
    assert derived.problem().size.tolist() == [65536, 2048, 192]


@pytest.mark.parametrize("sizes", [(64, 256, 1024), (64, 129, 258), (64, 128, 300)])
def test_other_growth_is_refused_by_name(sizes: tuple[int, ...]) -> None:
    """Tests squares, a slope that is no whole number, and a third size that contradicts."""
    batches = (1, 3, 7) if sizes[1] == 129 else (1, 2, 4)
    traces = {
        batch: trace((0, 1, 8 * batch, CONV), (2, 3, size, SCORES))
        for batch, size in zip(batches, sizes, strict=True)
    }
    seen = ", ".join(f"{s} at {b}" for b, s in zip(batches, sizes, strict=True))
    with pytest.raises(FamilyError) as error:
        Family.derive(traces)
    assert str(error.value) == (
        ".scores/aten::mm#0 does not grow as base + slope * batch (bytes at batch size: "
        f"{seen}): pass strict=False to leave such allocations to the ordinary allocator"
    )
    family = Family.derive(traces, strict=False)
    assert [misfit.id for misfit in family.misfits] == [".scores/aten::mm#0"]
    assert dict(family.misfits[0].sizes) == dict(zip(batches, sizes, strict=True))
    assert same(family.at(5), trace((0, 1, 40, CONV)))


def test_one_more_allocation_at_a_batch_size_is_refused() -> None:
    """Tests a kernel that takes scratch from batch 2 on, and the lifetimes without it."""
    traces = {1: trace((0, 1, 8, CONV)), 2: trace((0, 3, 16, CONV), (1, 2, 64, SCORES))}
    with pytest.raises(FamilyError, match=r"#0 is not made at every .*nothing at 1, 64 at 2"):
        Family.derive(traces)
    family = Family.derive(traces, strict=False)
    assert same(family.at(3), trace((0, 1, 24, CONV)))
    assert [str(misfit.sizes) for misfit in family.misfits] == ["{1: None, 2: 64}"]


def test_all_misfits_are_counted() -> None:
    """Tests that the sentence tells the first, and how many follow."""
    traces = {b: trace((0, 1, b**2, CONV), (2, 3, b**3, SCORES)) for b in (1, 2, 4)}
    with pytest.raises(FamilyError, match=r"conv2d#0 .*; 1 more do not fit either: pass strict"):
        Family.derive(traces)


def test_results_may_grow_as_they_like() -> None:
    """Tests that what outlives the run at every batch size does not count: no plan places it."""
    traces = {b: trace((0, 2, 8 * b, CONV), (1, 3, b**2, SCORES), outlives=(1,)) for b in (1, 2, 4)}
    family = Family.derive(traces)
    assert family.misfits == ()
    assert family.at(3).size.tolist() == [24]


def test_results_at_some_batch_sizes_only_are_refused() -> None:
    """Tests an allocation that is handed out at one batch size, and released at another."""
    traces = {
        1: trace((0, 1, 8, CONV), (2, 4, 8, SCORES), outlives=(1,)),
        2: trace((0, 1, 16, CONV), (2, 3, 16, SCORES)),
    }
    with pytest.raises(FamilyError, match=r"mm#0 outlives the run at some batch sizes only"):
        Family.derive(traces)


def test_another_order_is_refused() -> None:
    """Tests lifetimes that follow one another at one batch size, and overlap at the next."""
    other: Scope = ((".", 0), (".other", 0))
    traces = {
        1: trace((0, 1, 8, CONV), (2, 3, 8, SCORES), (4, 5, 8, other)),
        2: trace((0, 2, 16, CONV), (1, 3, 16, SCORES), (4, 5, 16, other)),
    }
    with pytest.raises(FamilyError, match=r"comes or goes in another order at batch size 2"):
        Family.derive(traces)
    family = Family.derive(traces, strict=False)
    assert {misfit.id for misfit in family.misfits} == {
        ".conv/aten::conv2d#0",
        ".scores/aten::mm#0",
    }
    assert same(family.at(3), trace((0, 1, 24, other)))


def test_operators_may_run_in_another_order_than_rows_are_kept() -> None:
    """Tests that allocations are matched by name: rows that come swapped are not mixed up."""
    swapped = trace((0, 1, 200, SCORES), (2, 3, 2000, CONV))
    traces = {1: trace((0, 1, 1000, CONV), (2, 3, 100, SCORES)), 2: swapped}
    family = Family.derive(traces, strict=False)
    assert len(family.trace) == 0
    assert [dict(m.sizes) for m in family.misfits] == [{1: 1000, 2: 2000}, {1: 100, 2: 200}]


@pytest.mark.parametrize("batches", [(), (4,), (0, 1)])
def test_too_few_batch_sizes_are_refused(batches: tuple[int, ...]) -> None:
    """Tests none, one, and a batch of nothing."""
    with pytest.raises(FamilyError, match="make no family"):
        Family.derive({batch: convnet(batch) for batch in batches})


@pytest.mark.parametrize(("batch", "word"), [(0, "at least 1"), (1, "-8 bytes"), (2**60, "bytes")])
def test_batch_sizes_out_of_reach_are_refused(batch: int, word: str) -> None:
    """Tests nothing, a size below zero, and one above 2^62."""
    family = Family.derive({b: trace((0, 1, 8 * (b - 2), CONV)) for b in (2, 4, 8)})
    with pytest.raises(MemplanError, match=word):
        family.at(batch)


def test_a_size_has_a_value_of_each_dimension() -> None:
    """Tests sizes with a value too few and one too many, asked for and recorded."""
    grid = {"batch": (2, 3), "tokens": (4, 7, 9)}
    recorded = {point: attend(*point) for point in [*product(*grid.values()), (8, 20)]}
    for size in (5, (5,), (5, 6, 7)):
        with pytest.raises(FamilyError, match='not have one value of each of "batch", "tokens"'):
            Family.derive(recorded, grid).at(size)
    with pytest.raises(FamilyError, match=r"size \(4, 4, 1\) does not have one value"):
        Family.derive(recorded | {(4, 4, 1): attend(4, 4)}, grid)
    with pytest.raises(FamilyError, match=r'size \(4, 1\) does not .* of "batch"'):
        Family.derive({2: convnet(2), 4: convnet(4)}).at((4, 1))


def test_a_plan_grows_with_the_batch() -> None:
    """Tests that the problem of a larger batch size is nowhere smaller."""
    family = Family.derive({2: convnet(2), 4: convnet(4)})
    for a, b in pairwise([family.at(batch).problem() for batch in (1, 2, 3, 8)]):
        assert (a.size <= b.size).all()
        assert (a.start == b.start).all()
