"""Tests of `memplan_lab.bench.generators`: shape, known optima, and the same output everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest

from memplan.problem import Buffer, Gap, Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan_lab.bench import generators as g
from memplan_lab.bench.generators.cutting import cut
from memplan_lab.bench.generators.packing import Packing, Piece

pytestmark = pytest.mark.slow

SEEDED: dict[str, Callable[[int, int], Problem]] = {
    "synthetic": g.synthetic,
    "perfect_packing": g.perfect_packing,
    "flat_load": g.flat_load,
    "dense": g.dense,
    "nn_like": g.nn_like,
    "training_like": g.training_like,
}


def digest(problem: Problem) -> str:
    """Return a short hash of the rows, in their order."""
    columns = np.stack([problem.start, problem.end, problem.size]).astype("<i8")
    return hashlib.sha256(columns.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("n", [50, 64])
def test_seed_decides_all(name: str, n: int) -> None:
    """Tests that a seed gives n buffers, the same each time, and another seed gives others."""
    make = SEEDED[name]
    assert len(make(n, 1)) == n
    assert make(n, 1) == make(n, 1)
    assert make(n, 1) != make(n, 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("synthetic", "8708eaa846cb739b"),
        ("perfect_packing", "5df3a6a46cc5e7ef"),
        ("flat_load", "5572029ea9d5897b"),
        ("dense", "fefbbdf1bab8859d"),
        ("nn_like", "6cde08d2df6ea121"),
        ("training_like", "ca619ffad061bf78"),
    ],
)
def test_same_problem_on_any_machine(name: str, expected: str) -> None:
    """Tests that the rows of one instance are those that were recorded once."""
    assert digest(SEEDED[name](60, 7)) == expected


@pytest.mark.parametrize("n", [2, 3, 20, 42, 60])
@pytest.mark.parametrize("make", [g.synthetic_solved, g.perfect_packing_solved])
def test_capacity_is_the_optimum(make: Callable[[int, int], Packing], n: int) -> None:
    """Tests that the placement that an instance was cut from is valid and meets the load bound."""
    for seed in range(5):
        packing = make(n, seed)
        problem = packing.problem()
        assert len(problem) == n
        assert problem.max_load == problem.capacity == 1 << 20
        verify(problem, Plan.of(problem, packing.offset, lower_bound=problem.max_load))


def test_synthetic_is_dense_and_not_perfect() -> None:
    """Tests that many pairs overlap in time, and that some memory stays unused."""
    for seed in range(10):
        p = g.synthetic(40, seed)
        overlap = (p.start[:, None] < p.end) & (p.start < p.end[:, None])
        assert (overlap.sum() - 40) / (40 * 39) > 0.3
        load = Loads(p).load
        assert load.max() == p.capacity
        assert load.min() < 0.99 * load.max()


@pytest.mark.parametrize("pinwheels", [0.0, 0.3, 1.0])
def test_perfect_packing_has_no_waste(pinwheels: float) -> None:
    """Tests that every section is full, whatever the share of pinwheels."""
    problem = g.perfect_packing(101, 3, pinwheels)
    assert set(Loads(problem).load.tolist()) == {problem.capacity}


def test_pinwheels_are_not_guillotine() -> None:
    """Tests that one pinwheel has five pieces that no straight cut separates."""
    rng = np.random.Generator(np.random.PCG64(0))
    for _ in range(20):
        pieces = cut(rng, Piece(0, 9, 0, 9), 5, pinwheels=1.0)
        assert sum(piece.area for piece in pieces) == 81
        for time in range(1, 9):
            assert any(piece.start < time < piece.end for piece in pieces)
        for address in range(1, 9):
            assert any(piece.lower < address < piece.upper for piece in pieces)


def test_cut_down_to_single_cells() -> None:
    """Tests that a rectangle can be cut into its cells, and no further."""
    rng = np.random.Generator(np.random.PCG64(0))
    pieces = cut(rng, Piece(0, 4, 0, 3), 12, pinwheels=0.5)
    assert sorted(pieces) == [Piece(x, x + 1, y, y + 1) for x in range(4) for y in range(3)]
    with pytest.raises(ValueError, match="12 cells cannot be cut into 13 pieces"):
        cut(rng, Piece(0, 4, 0, 3), 13)


@pytest.mark.parametrize("n", [18, 35, 50, 64])
def test_flat_load_is_flat(n: int) -> None:
    """Tests that the load is 360 at every time, with sizes between 20 and 110."""
    for seed in range(10):
        problem = g.flat_load(n, seed)
        assert len(problem) == n
        assert set(Loads(problem).load.tolist()) == {360}
        assert problem.size.min() >= 20
        assert problem.size.max() <= 110
        assert problem.capacity is None


@pytest.mark.parametrize("n", [12, 24, 60])
def test_dense_is_dense(n: int) -> None:
    """Tests that the load is the same at every time, and that most buffers are live together."""
    for seed in range(10):
        problem = g.dense(n, seed)
        loads = Loads(problem).load.tolist()
        assert len(problem) == n
        assert len(set(loads)) == 1
        assert 4 <= len(loads) <= 7
        assert all(2 * len(Loads(problem).held(s)) >= n for s in range(len(loads)))


def test_dense_needs_some_buffers() -> None:
    """Tests that too small an n is refused with the least that will do."""
    with pytest.raises(ValueError, match="at least 12"):
        g.dense(11, 0)


def test_flat_load_needs_some_buffers() -> None:
    """Tests that too small an n is refused with the least that will do."""
    with pytest.raises(ValueError, match="at least 18"):
        g.flat_load(17, 0)


@pytest.mark.parametrize("n", [1, 2, 100, 1_000])
def test_microbenchmarks(n: int) -> None:
    """Tests that one family never overlaps, the other always, with enough memory and no more."""
    apart = g.non_overlapping(n)
    assert len(apart) == n
    assert (apart.end[:-1] <= apart.start[1:]).all()
    assert apart.max_load == apart.capacity == apart.size.max()
    together = g.full_overlap(n)
    assert len(Loads(together)) == 1
    assert together.max_load == together.capacity == together.size.sum()
    assert len(set(together.size.tolist())) == n


@pytest.mark.parametrize("make", [g.nn_like, g.training_like])
def test_network_sizes(make: Callable[[int, int], Problem]) -> None:
    """Tests that sizes are multiples of 64 bytes that vary widely and repeat."""
    problem = make(10_000, 0)
    assert (problem.size % 64 == 0).all()
    assert problem.size.max() > 100 * problem.size.min()
    assert len(np.unique(problem.size)) < 6_000


def test_nn_like_lifetimes() -> None:
    """Tests that most buffers live a few steps, and some half of the run."""
    problem = g.nn_like(10_000, 0)
    length = problem.end - problem.start
    steps = problem.end.max()
    assert np.median(length) <= 3
    assert 0.05 < (length >= 8).mean() < 0.2
    assert length.max() > steps / 8


def test_training_like_peaks_in_the_middle() -> None:
    """Tests that the load grows to the turn of the passes, and forward and backward mirror."""
    problem = g.training_like(10_000, 0)
    loads = Loads(problem)
    assert loads.peak_section is not None
    peak = loads.start[loads.peak_section] / loads.end[-1]
    assert 0.4 < peak < 0.6
    assert loads.load[len(loads) // 20] < 0.3 * loads.peak
    kept = (problem.start + problem.end == problem.end.max()).mean()
    assert 0.2 < kept < 0.3


def test_large_instances() -> None:
    """Tests that a hundred thousand buffers are made whole: all within the run, none empty."""
    for make in (g.nn_like, g.training_like):
        problem = make(100_000, 0)
        assert len(problem) == 100_000
        assert problem.start.min() == 0
        assert (problem.end > problem.start).all()


def test_size_noise() -> None:
    """Tests that noise changes sizes by a few percent, and nothing else."""
    problem = Problem(
        [
            Buffer("a", start=0, end=9, size=1_000_000, alignment=8, gaps=(Gap(3, 4),)),
            Buffer("b", start=0, end=9, size=1),
            Buffer("c", start=0, end=9, size=0, hint=8),
        ],
        capacity=1 << 20,
        reserved=[(8, 16)],
        conflicts=[("a", "b")],
        groups=[["a", "b"]],
    )
    noisy = g.with_size_noise(problem, 1)
    assert noisy == g.with_size_noise(problem, 1)
    assert noisy.capacity is None
    assert 950_000 <= noisy.size[0] <= 1_050_000
    assert noisy.size[0] != problem.size[0]
    assert noisy.size[1:].tolist() == [1, 0]
    assert [b.gaps for b in noisy.buffers] == [b.gaps for b in problem.buffers]
    assert noisy.reserved == problem.reserved
    assert noisy.conflicts == problem.conflicts
    assert noisy.groups == problem.groups
    assert noisy.alignment.tolist() == [8, 1, 1]
    assert noisy.hint.tolist() == [-1, -1, 8]


def test_size_noise_refuses_what_it_would_break() -> None:
    """Tests that pins, windows and a share of 1 are refused."""
    pinned = Problem([Buffer("a", start=0, end=9, size=4, pin=4)])
    window = Problem([Buffer("a", start=0, end=9, size=4, gaps=(Gap(3, 4, (0, 4)),))])
    for problem in (pinned, window):
        with pytest.raises(ValueError, match="without them"):
            g.with_size_noise(problem, 0)
    with pytest.raises(ValueError, match="less than 1"):
        g.with_size_noise(Problem([]), 0, relative=1.0)
