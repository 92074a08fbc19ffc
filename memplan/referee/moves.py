"""The referee of buffers that move between memories: every access finds its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from memplan.base.errors import PlanError, quoted
from memplan.problem import Buffer, Problem

__all__ = ["MemoryClaim", "StretchClaim", "count_moved", "with_pieces"]


class MemoryClaim(Protocol):
    """What the referee has to know of a memory; see `memplan.Memory`."""

    @property
    def name(self) -> str:
        """For errors."""

    @property
    def capacity(self) -> int | None:
        """In bytes; `None` for no limit."""

    @property
    def read(self) -> float | Fraction:
        """What reading a byte costs."""

    @property
    def write(self) -> float | Fraction:
        """What writing a byte costs."""

    @property
    def alignment(self) -> int:
        """What every offset is a multiple of."""


class StretchClaim(Protocol):
    """What the referee has to know of a stretch; see `memplan.machine.memories.Stretch`."""

    @property
    def buffer(self) -> str:
        """The id of the buffer."""

    @property
    def copy(self) -> str:
        """The id of its piece in the plan of the memory."""

    @property
    def memory(self) -> str:
        """The name of the memory."""

    @property
    def start(self) -> int:
        """When the piece begins."""

    @property
    def end(self) -> int:
        """When it ends."""

    @property
    def fetched(self) -> bool:
        """Whether the bytes are copied from the home before."""

    @property
    def stored(self) -> bool:
        """Whether they are copied back after it."""


def with_pieces(whole: Problem, part: Problem, stretches: Iterable[StretchClaim]) -> Problem:
    """Return the buffers of a memory with the pieces that are there for some time."""
    pieces = []
    listed = set(whole.conflicts.pairs().ravel().tolist())
    for each in stretches:
        row = whole.index(each.buffer)
        own = whole.buffer(row)
        if own.gaps or whole.group[row] >= 0 or row in listed:
            raise PlanError(
                f"buffer {quoted(each.buffer)} cannot move: it has gaps, a group or a conflict"
            )
        pieces.append(Buffer(each.copy, each.start, each.end, own.size, own.alignment, own.pin))
    ids = part.ids
    return Problem(
        [*part.buffers, *pieces],
        reserved=part.reserved,
        conflicts=[(ids[one], ids[other]) for one, other in part.conflicts.pairs().tolist()],
        groups=[[ids[row] for row in rows] for rows in part.groups],
    )


def count_moved(
    problem: Problem,
    memories: Sequence[MemoryClaim],
    where: Mapping[str, MemoryClaim],
    allowed: Mapping[str, Iterable[str]],
    stretches: Sequence[StretchClaim],
    steps: Mapping[str, Sequence[tuple[int, int, int]]],
) -> dict[str, Fraction]:
    """Return what accesses and copies of each buffer that moves cost.

    A `PlanError` says which access does not find its bytes, or which stretch is wrong.
    """
    by_name = {memory.name: memory for memory in memories}
    found = {}
    for id in dict.fromkeys(each.buffer for each in stretches):
        own = sorted((each for each in stretches if each.buffer == id), key=lambda each: each.start)
        buffer, label = problem.buffer(id), f"buffer {quoted(id)}"
        if id not in steps:
            raise PlanError(f"{label} moves, but its accesses have no times")
        last = buffer.start
        for each in own:
            if each.memory == where[id].name:
                raise PlanError(f"{label} moves to {quoted(each.memory)}, which is its home")
            if id in allowed and each.memory not in set(allowed[id]):
                raise PlanError(f"{label} may not lie in {quoted(each.memory)}")
            if not last <= each.start < each.end <= buffer.end:
                raise PlanError(f"{label} moves at {each.start}, which is not after {last}")
            last = each.end
        bytes = _Bytes(buffer, where[id], sorted(steps[id]))
        for each in own:
            bytes.enter(each, by_name[each.memory])
        found[id] = bytes.finish()
    return found


class _Bytes:
    """Where the newest bytes of a buffer are, from access to access."""

    def __init__(
        self, buffer: Buffer, home: MemoryClaim, accesses: Sequence[tuple[int, int, int]]
    ) -> None:
        self._buffer, self._home = buffer, home
        self._left = list(accesses)
        self.cost, self._last = Fraction(0), buffer.end
        self._is_new = bool(accesses) and accesses[0][0] == buffer.start and accesses[0][2] > 0
        self._at_home = not self._is_new  # else what it holds comes from before

    def enter(self, stretch: StretchClaim, fast: MemoryClaim) -> None:
        """Run all accesses before a stretch at home, and those in it there."""
        home, size = self._home, self._buffer.size
        self._access_at_home(stretch.start)
        is_there = stretch.fetched
        if stretch.fetched:
            if not self._at_home:
                self._refuse(stretch.start, "is copied from its home, which has not its bytes")
            self.cost += size * (Fraction(home.read) + Fraction(fast.write))
        while self._left and self._left[0][0] < stretch.end:
            is_there = self._access(self._left.pop(0), fast, is_there)
        if stretch.stored:
            if not is_there:
                self._refuse(stretch.end, "is copied to its home without its bytes")
            self.cost += size * (Fraction(fast.read) + Fraction(home.write))
            self._at_home = True

    def finish(self) -> Fraction:
        """Run all other accesses, and return what all have cost."""
        self._access_at_home(self._buffer.end)
        if not self._at_home and self._last + 1 < self._buffer.end:
            self._refuse(self._buffer.end, "is needed at home at its end, without its bytes")
        return self.cost

    def _access_at_home(self, until: int) -> None:
        while self._left and self._left[0][0] < until:
            self._at_home = self._access(self._left.pop(0), self._home, self._at_home)

    def _access(self, access: tuple[int, int, int], memory: MemoryClaim, is_there: bool) -> bool:
        """Return whether the memory has the newest bytes after an access to it.

        A part that is written where the other bytes are not is lost, unless all are written later.
        """
        time, read, written = access
        self._last = time
        if read and not is_there and not self._is_new:
            self._refuse(time, f"is accessed in {quoted(memory.name)}, which has not its bytes")
        is_there = is_there or self._is_new or written >= self._buffer.size
        self._is_new = False
        self.cost += read * Fraction(memory.read) + written * Fraction(memory.write)
        if written:
            self._at_home = False  # unless this is the home, as the caller notes
        return is_there

    def _refuse(self, time: int, what: str) -> None:
        raise PlanError(f"buffer {quoted(self._buffer.id)} {what} at {time}")
