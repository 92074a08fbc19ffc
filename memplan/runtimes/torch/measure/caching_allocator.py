"""PyTorch's CUDA caching allocator, by its documented policy, on one stream.

Requests are rounded to 512 bytes and served from cached segments by best fit; if no block fits, the
allocator gets a new segment from the device. Segments are never given back.

    request          pool    segment                      what is left of a block is split off
    up to 1 MiB      small   2 MiB                        from 512 bytes
    below 10 MiB     large   20 MiB                       above 1 MiB
    10 MiB and more  large   the request, up to 2 MiB     above 1 MiB
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from memplan.problem import Problem

__all__ = ["Block", "CachingAllocator", "Peak", "replay"]

_MIB = 1 << 20
_ROUND = 512
_SMALL = _MIB
_LARGE = 10 * _MIB


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment; its neighbours there are `before` and `after`."""

    segment: int
    offset: int
    size: int
    small: bool
    before: Block | None = None
    after: Block | None = None
    free: bool = False

    @property
    def key(self) -> tuple[int, int, int]:
        """The order of best fit: by size, then by address."""
        return self.size, self.segment, self.offset


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes at the peak: requested (rounded), and reserved from the device."""

    allocated: int
    reserved: int


@dataclass(slots=True)
class CachingAllocator:
    """The state of the allocator."""

    allocated: int = 0  # bytes handed out now
    most: int = 0  # bytes handed out at the peak
    reserved: int = 0  # bytes of all segments; this never decreases
    _segments: int = 0
    _free: dict[bool, list[tuple[tuple[int, int, int], Block]]] = field(
        default_factory=lambda: {True: [], False: []}
    )

    def allocate(self, size: int) -> Block:
        """Serve a request of `size` > 0 bytes."""
        size = -(-size // _ROUND) * _ROUND
        small = size <= _SMALL
        cached = self._free[small]
        place = bisect_left(cached, (size, -1, -1), key=lambda entry: entry[0])
        block = cached.pop(place)[1] if place < len(cached) else self._request_segment(size, small)
        block.free = False
        left = block.size - size
        if left >= _ROUND if small else left > _SMALL:
            rest = Block(block.segment, block.offset + size, left, small, block, block.after)
            if block.after is not None:
                block.after.before = rest
            block.after, block.size = rest, size
            self._keep_free(rest)
        self.allocated += block.size
        self.most = max(self.most, self.allocated)
        return block

    def release(self, block: Block) -> None:
        """Take a block back, and join it with its free neighbours."""
        self.allocated -= block.size
        for other in (block.before, block.after):
            if other is None or not other.free:
                continue
            cached = self._free[block.small]
            del cached[bisect_left(cached, other.key, key=lambda entry: entry[0])]
            first, second = (other, block) if other is block.before else (block, other)
            first.size += second.size
            first.after = second.after
            if second.after is not None:
                second.after.before = first
            block = first
        self._keep_free(block)

    def _keep_free(self, block: Block) -> None:
        block.free = True
        insort(self._free[block.small], (block.key, block), key=lambda entry: entry[0])

    def _request_segment(self, size: int, small: bool) -> Block:
        if small:
            size = 2 * _MIB
        elif size < _LARGE:
            size = 20 * _MIB
        else:
            size = -(-size // (2 * _MIB)) * 2 * _MIB
        self.reserved += size
        self._segments += 1
        return Block(self._segments, 0, size, small)


def replay(problem: Problem) -> Peak:
    """Allocate every buffer when its lifetime begins, free it when it ends.

    At one time, buffers are freed before others are allocated, and they are allocated in the order
    of the problem. A program that frees tensors after their last reader does the same.
    """
    allocator = CachingAllocator()
    held: dict[int, Block] = {}
    rows = range(len(problem))
    begin, end, sizes = problem.start.tolist(), problem.end.tolist(), problem.size.tolist()
    events = [(end[row], 0, row) for row in rows] + [(begin[row], 1, row) for row in rows]
    for _, starts, row in sorted(events):
        if starts and sizes[row]:
            held[row] = allocator.allocate(sizes[row])
        elif row in held:
            allocator.release(held.pop(row))
    return Peak(allocator.most, allocator.reserved)
