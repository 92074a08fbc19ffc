"""Tests of the re-implemented policy of PyTorch's CUDA caching allocator."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.problem import Buffer, Problem
from memplan.runtimes.torch.measure.caching_allocator import Block, CachingAllocator, replay

pytestmark = pytest.mark.slow

KIB, MIB = 1 << 10, 1 << 20


def test_segments() -> None:
    """Tests that small, middling and large requests take segments of the documented sizes."""
    for size, segment in (
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ):
        allocator = CachingAllocator()
        allocator.allocate(size)
        assert allocator.reserved == segment


def test_rounding_and_splitting() -> None:
    """Tests that blocks are split where the rest is worth keeping, by the rule of their pool."""
    allocator = CachingAllocator()
    one, two = allocator.allocate(1), allocator.allocate(513)
    assert (one.size, two.size) == (512, 1024)
    assert (two.segment, two.offset) == (one.segment, 512)
    large = allocator.allocate(19 * MIB)
    assert large.size == 20 * MIB  # of which less than 1 MiB more is no block of its own
    assert allocator.allocated == 512 + 1024 + 20 * MIB
    assert allocator.reserved == 22 * MIB


def test_best_fit() -> None:
    """Tests that the smallest block that is large enough is taken, the first of equals."""
    allocator = CachingAllocator()
    sizes = [8, 1, 4, 1, 4, 1, 6, 1]
    blocks = [allocator.allocate(size * KIB) for size in sizes]
    for index in (0, 2, 4, 6):
        allocator.release(blocks[index])
    assert allocator.allocate(3 * KIB).offset == blocks[2].offset
    assert allocator.allocate(4 * KIB).offset == blocks[4].offset
    assert allocator.allocate(5 * KIB).offset == blocks[6].offset


def test_neighbours_join() -> None:
    """Tests that free blocks side by side become one, whichever is freed first."""
    for order in ((0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)):
        allocator = CachingAllocator()
        blocks = [allocator.allocate(MIB // 2) for _ in range(4)]
        for index in order:
            allocator.release(blocks[index])
        assert allocator.allocate(MIB).offset == 0
        assert allocator.reserved == 2 * MIB


def test_pools_are_apart() -> None:
    """Tests that a small request is never served from a large segment."""
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(5 * MIB))
    allocator.allocate(KIB)
    assert allocator.reserved == 22 * MIB


def test_replay() -> None:
    """Tests that buffers are freed before others of the same moment are allocated."""
    problem = Problem(
        [
            Buffer("a", start=0, end=2, size=15 * MIB),
            Buffer("b", start=2, end=4, size=15 * MIB),
            Buffer("c", start=3, end=4, size=100),
            Buffer("nothing", start=0, end=4, size=0),
        ]
    )
    peak = replay(problem)
    assert peak.allocated == 15 * MIB + 512 + (16 - 15) * MIB
    assert peak.reserved == 16 * MIB + 2 * MIB


requests = st.lists(
    st.tuples(st.integers(1, 30 * MIB) | st.integers(1, 4 * KIB), st.integers(0, 7)), max_size=60
)


@given(requests)
def test_blocks_are_disjoint(asked: list[tuple[int, int]]) -> None:
    """Tests that blocks in use never overlap, and that the sums are right at every moment."""
    allocator = CachingAllocator()
    held: list[Block] = []
    most = 0
    for size, keep in asked:
        held.append(allocator.allocate(size))
        most = max(most, sum(block.size for block in held))
        while len(held) > keep:
            allocator.release(held.pop(len(held) // 2))
        places = sorted((block.segment, block.offset, block.size) for block in held)
        for (segment, offset, length), (other, after, _) in pairwise(places):
            assert segment != other or offset + length <= after
        assert all(block.size >= 512 and block.size % 512 == 0 for block in held)
        assert allocator.allocated == sum(block.size for block in held)
    assert allocator.most == most <= allocator.reserved
    for block in held:
        allocator.release(block)
    before = allocator.reserved
    for size in sorted((size for size, _ in asked), reverse=True)[:1]:
        allocator.allocate(size)
    assert allocator.reserved == before
