"""Which rows of its input an operator needs to make some rows of its result.

A map holds for one axis of one input: rows or columns. Given the wanted span `[a, b)` of the
result, it says which span to feed, and which span of the result the operator then makes. Runtimes
that derive the padding from the size of the input ("SAME") pad a band at both ends, also where the
whole has more rows; so a band may make rows that are wrong, at its ends. Those that were wanted are
right.

    whole     0 1 2 3 4 5 6 7         wanted [2, 4), a window of three rows with SAME padding
    fed         1 2 3 4               rows [1, 5) of the input
    made        x 2 3 x               rows [1, 5) of the result, of which [2, 4) are right
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

__all__ = [
    "LONGEST_STEP",
    "UNKNOWN_ROWS",
    "Blocks",
    "Each",
    "Even",
    "Feed",
    "Joined",
    "Map",
    "Maps",
    "Once",
    "Padding",
    "Read",
    "Resized",
    "Shifted",
    "Size",
    "Span",
    "Spread",
    "Told",
    "Transposed",
    "WholeError",
    "Window",
    "broadcast",
    "find_size",
    "fits",
    "join",
    "require_size",
    "resize",
    "window",
]

UNKNOWN_ROWS: Final = "it is not known which rows of its inputs it needs"
LONGEST_STEP: Final = 1024  # rows from one window to the next; cuts are looked for in every one
_RANK: Final = 4

Span = tuple[int, int]
"""The rows (or columns) from the first one to before the second one."""

Size = tuple[int, int]
"""The rows and the columns of a picture."""


class Feed(NamedTuple):
    """What an operator is given for a band, and what it makes of it."""

    fed: Span
    made: Span


class Map(Protocol):
    """The rows of one input that an operator needs for rows of its result."""

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return what to feed for rows of the result; `size` and `result` count the rows of both.

        A `ValueError` says that no row of the result needs one of the input.
        """


class Padding(StrEnum):
    """Where the rows around an input come from."""

    SAME = "same"  # the runtime computes them from the size of the input
    NONE = "none"
    FREE = "free"  # the operator says for both ends how many there are


@dataclass(frozen=True, slots=True)
class Each:
    """Row i of the result needs row i of the input."""

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the same rows."""
        return Feed(wanted, wanted)


@dataclass(frozen=True, slots=True)
class Once:
    """Every row of the result needs all of an input, as where one row is broadcast."""

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return all rows."""
        return Feed((0, size), wanted)


@dataclass(frozen=True, slots=True)
class Window:
    """A window that moves over the input: convolution and pooling."""

    kernel: int  # in rows, as stride and dilation
    stride: int = 1
    dilation: int = 1
    padding: Padding = Padding.FREE  # where the rows around the input come from
    before: int = 0  # the rows before the first one of the whole input, if the padding is `FREE`
    # Whether the rows around the input count as zeros, so that a copy with zeros around it gives
    # the same result.
    zeros: bool = False

    @property
    def reach(self) -> int:
        """The rows from the first to the last one of a window."""
        return (self.kernel - 1) * self.dilation + 1

    def count(self, size: int) -> int:
        """Return how many rows the runtime makes of so many, if the padding is `SAME`."""
        return -(-size // self.stride)

    def pad(self, size: int) -> int:
        """Return how many rows the runtime puts before an input of this many rows."""
        if self.padding is Padding.SAME:
            return max((self.count(size) - 1) * self.stride + self.reach - size, 0) // 2
        return self.before

    def free(self, size: int) -> Window:
        """Return this window with the padding that it has around an input of this many rows."""
        return replace(self, padding=Padding.FREE, before=self.pad(size))

    def pads(self, fed: Span, made: Span) -> Span:
        """Return how many rows to put before and after a band, if the padding is `FREE`."""
        first = made[0] * self.stride - self.before
        last = (made[1] - 1) * self.stride - self.before + self.reach
        return fed[0] - first, last - fed[1]

    def find_inside(self, size: int, result: int) -> Span:
        """Return the rows of the result whose windows reach a row of the input; may be empty."""
        first = (self.before - self.reach) // self.stride + 1
        last = (size - 1 + self.before) // self.stride + 1
        return max(0, first), min(result, last)

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows under the windows; at least one, so that there is an input."""
        if self.padding is Padding.SAME:
            return self._feed_same(wanted, size)
        wanted = _widen(wanted, self.find_inside(size, result))
        first = wanted[0] * self.stride - self.before
        last = (wanted[1] - 1) * self.stride - self.before + self.reach
        return Feed((max(0, first), min(size, last)), wanted)

    def _feed_same(self, wanted: Span, size: int) -> Feed:
        """Return the fewest rows for which the padding of the runtime keeps windows in place."""
        shift = self.pad(size)
        first = max(0, wanted[0] * self.stride - shift)
        last = min(size, (wanted[1] - 1) * self.stride - shift + self.reach)
        for count in range(max(1, last - first), last - first + 2 * self.stride):
            # Row j of the band starts at j * stride - pad in the band, and row i of the whole at
            # i * stride - shift: they agree if their difference is a number of strides.
            behind = self.pad(count) - shift
            begin = behind + (first - behind) // self.stride * self.stride
            if begin < 0 or not last <= begin + count <= size:
                continue
            top = (begin - behind) // self.stride
            made = (top, top - -count // self.stride)
            if top <= wanted[0] and wanted[1] <= made[1]:
                return Feed((begin, begin + count), made)
        raise AssertionError("a band from a multiple of the stride on is always in place")


@dataclass(frozen=True, slots=True)
class Transposed:
    """A transposed convolution: row i of the input adds to `kernel` rows from `i * stride` on.

    `before` is the number of these rows that the result lacks at its beginning. The result has
    `stride` rows for each of the input, and `extra` more, or fewer if that is negative. A band has
    as many: the same operator makes it.
    """

    kernel: int
    stride: int
    before: int = 0
    extra: int = 0

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows that add to the wanted ones."""
        reach = max(self.kernel, self.stride)  # so that every row of the result has one to feed
        first = -(-(wanted[0] + self.before - reach + 1) // self.stride)
        last = (wanted[1] - 1 + self.before) // self.stride + 1
        begin = max(0, min(first, wanted[0] // self.stride, size - 1))
        end = min(size, max(last, -(-(wanted[1] - self.extra) // self.stride), begin + 1))
        return Feed((begin, end), (begin * self.stride, end * self.stride + self.extra))


@dataclass(frozen=True, slots=True)
class Spread:
    """A transposed convolution whose padding is free at both ends.

    Row i of the input adds to the `reach` rows from `i * stride - before` on. The reach is not less
    than the stride, so that every row of the result has one of the input.
    """

    reach: int
    stride: int
    before: int

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows that add to the wanted ones."""
        first = -(-(wanted[0] + self.before - self.reach + 1) // self.stride)
        last = (wanted[1] - 1 + self.before) // self.stride + 1
        begin = max(0, min(first, size - 1))
        return Feed((begin, min(size, max(last, begin + 1))), wanted)

    def pads(self, fed: Span, made: Span) -> Span:
        """Return how many rows to cut off at both ends; fewer than none are added."""
        first = fed[0] * self.stride - self.before
        last = (fed[1] - 1) * self.stride - self.before + self.reach
        return made[0] - first, last - made[1]


@dataclass(frozen=True, slots=True)
class Even:
    """A window over an input with the same padding at both ends, which a band may have too.

    A band at one end of the picture has the padding of that end at its other end as well, and makes
    rows there that are wrong.
    """

    reach: int
    stride: int
    padding: int

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows under the windows."""
        first = wanted[0] * self.stride - self.padding
        last = (wanted[1] - 1) * self.stride - self.padding + self.reach
        begin, end = max(0, first), min(size, last)
        before, after = begin - first, last - end
        if begin < end and before < after:
            begin -= (before - after) % self.stride  # so that windows stay in place
        padding = max(before, after)
        made = (begin - padding + self.padding) // self.stride
        if begin < 0 or begin >= end or (begin - padding + self.padding) % self.stride:
            return Feed((0, size), (0, result))
        count = replace(self, padding=padding).count(end - begin)
        return Feed((begin, end), (made, made + count))

    def count(self, size: int) -> int:
        """Return how many windows there are in so many rows."""
        return (size + 2 * self.padding - self.reach) // self.stride + 1

    def pad(self, fed: Span, made: Span) -> int:
        """Return the padding of a band."""
        return fed[0] - made[0] * self.stride + self.padding

    def free(self, size: int) -> Window:
        """Return this window with a padding of its own at both ends."""
        return Window(self.reach, self.stride, 1, Padding.FREE, self.padding)


@dataclass(frozen=True, slots=True)
class Resized:
    """A resize by a whole factor, up or down, whose positions are exact in binary numbers.

    Row i of the result needs the rows from `i // up * down - before` to `... + after`.
    """

    up: int = 1
    down: int = 1
    before: int = 0
    after: int = 0

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows between which the wanted ones are interpolated."""
        if self.down > 1:
            return Feed((wanted[0] * self.down, wanted[1] * self.down), wanted)
        begin = max(0, wanted[0] // self.up - self.before)
        end = min(size, (wanted[1] - 1) // self.up + 1 + self.after)
        return Feed((begin, end), (begin * self.up, end * self.up))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of rows become channels (`down`), or channels become blocks of rows (`up`)."""

    up: int = 1
    down: int = 1

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return whole blocks."""
        begin, end = wanted[0] // self.up, -(-wanted[1] // self.up)
        return Feed((begin * self.down, end * self.down), (begin * self.up, end * self.up))


@dataclass(frozen=True, slots=True)
class Shifted:
    """Row i of the result is row `i - before` of the input, or padding if there is none."""

    before: int

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows that are not padding; at least one, so that there is an input."""
        wanted = _widen(wanted, (max(0, self.before), min(result, self.before + size)))
        return Feed((max(0, wanted[0] - self.before), min(size, wanted[1] - self.before)), wanted)

    def pads(self, fed: Span, made: Span) -> Span:
        """Return how many rows of padding a band has before and after it."""
        return fed[0] - made[0] + self.before, made[1] - self.before - fed[1]


@dataclass(frozen=True, slots=True)
class Joined:
    """The input is the rows of the result from `offset` on: one of several that are joined.

    The span to feed may be empty.
    """

    offset: int

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the part of the input in the wanted rows."""
        begin = min(max(0, wanted[0] - self.offset), size)
        return Feed((begin, max(begin, min(size, wanted[1] - self.offset))), wanted)


@dataclass(frozen=True, slots=True)
class Told:
    """The map of an operator that is told which rows to make, and so makes no others.

    A row that was not wanted may need rows that the operator is not fed.
    """

    rule: Map

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows that the wanted ones need."""
        return Feed(self.rule.feed(wanted, size, result).fed, wanted)


def _widen(wanted: Span, inside: Span) -> Span:
    """Return the wanted rows, with those up to the nearest one that needs a row of the input."""
    if inside[0] >= inside[1]:
        raise ValueError("no row of its result needs one of its input")
    return min(wanted[0], inside[1] - 1), max(wanted[1], inside[0] + 1)


def fits(rule: Map, size: int, result: int) -> bool:
    """Return whether an input of this many rows may have this map for a result of so many."""
    if isinstance(rule, Told):
        return fits(rule.rule, size, result)
    if isinstance(rule, Even) and rule.count(size) != result:
        return False
    if isinstance(rule, Window) and rule.padding is Padding.SAME and rule.count(size) != result:
        return False
    for wanted in ((0, result), (0, 1), (result - 1, result)):
        try:
            (begin, end), made = rule.feed(wanted, size, result)
        except ValueError:
            return False
        if not (0 <= begin <= end <= size and made[0] <= wanted[0] and wanted[1] <= made[1]):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Read:
    """A picture that an operator reads, and which part of it a part of the result needs."""

    tensor: int
    rows: Map
    columns: Map


# What sources say of their operators. They know which axis is which, and give sizes of pictures
# and attributes; the rules are here.


class WholeError(Exception):
    """An operator can only be done as a whole; the sentence says why."""


Maps = dict[int, tuple[Map, Map]]
"""By position among the inputs of an operator: the maps of rows and of columns."""


def find_size(shape: Sequence[int] | None, axis: int) -> Size | None:
    """Return the rows and columns of a shape, or `None` if it is not that of one picture.

    The axis is that of rows in a shape of four axes; columns follow it.
    """
    if shape is None or len(shape) != _RANK or shape[0] != 1 or min(shape) < 1:
        return None
    return shape[axis], shape[axis + 1]


def require_size(shape: Sequence[int] | None, axis: int, what: str) -> Size:
    """Return the rows and columns of a shape; a `WholeError` names `what` if it is no picture."""
    size = find_size(shape, axis)
    if size is None:
        if shape is not None and len(shape) == _RANK and shape[0] > 1:
            raise WholeError(f"{what} has a batch of {shape[0]}")
        raise WholeError(f"{what} has no rows and columns")
    return size


def broadcast(
    shapes: Sequence[Sequence[int] | None], result: Size, fixed: Sequence[bool], axis: int
) -> Maps:
    """Return the maps of an operator on elements, of which some inputs may be broadcast.

    The shape of an input that is left out is `None`, and `fixed` says which inputs are constants. A
    `WholeError` says that an input has rows of its own and is not a picture, or that none is one.
    """
    maps: Maps = {}
    for at, shape in enumerate(shapes):
        if shape is None:
            continue
        spots = ((1,) * _RANK + tuple(shape))[-_RANK:][axis : axis + 2]
        if spots == (1, 1) and (fixed[at] or len(shape) != _RANK):
            continue  # the same values for all rows and columns
        if len(shape) < _RANK:
            raise WholeError("an input is broadcast from fewer dimensions")
        size = require_size(shape, axis, "an input")
        rows, columns = (
            Each() if one == other else Once() for one, other in zip(size, result, strict=True)
        )
        maps[at] = (rows, columns)
    if not maps:
        raise WholeError("all its inputs are constants")
    return maps


def join(sizes: Sequence[int], axis: int, rows: int) -> Maps:
    """Return the maps of pictures that are joined along an axis, of such sizes along it.

    A `WholeError` says that they are a batch.
    """
    if axis == 0:
        raise WholeError("it joins a batch")
    maps: Maps = {}
    offset = 0
    for at, size in enumerate(sizes):
        down: Map = Joined(offset) if axis == rows else Each()
        across: Map = Joined(offset) if axis == rows + 1 else Each()
        maps[at] = (down, across)
        offset += size
    return maps


def window(
    kernel: int,
    stride: int,
    dilation: int,
    padding: Padding,
    *,
    before: int = 0,
    zeros: bool = False,
) -> Window:
    """Return the map of a convolution or of pooling along one axis.

    A `WholeError` says that there is no such window, or that windows are too far apart.
    """
    if min(kernel, stride) < 1:
        raise WholeError("its options make no sense")
    if stride > LONGEST_STEP:
        raise WholeError(f"its windows are {stride} rows or columns apart")
    return Window(kernel, stride, max(dilation, 1), padding, before, zeros)


def resize(
    size: Size, result: Size, before: int, after: int, *, divides: bool = False
) -> tuple[Map, Map]:
    """Return the maps of a resize whose positions are exact in binary numbers.

    Row i of the result is interpolated between rows from `i // scale - before` to `... + after`. A
    runtime that computes positions with the size of the input divided by that of the result
    (`divides`) is exact for every whole factor by which rows become fewer. A `WholeError` says that
    a position could be rounded to another row.
    """
    maps: list[Map] = []
    for one, other in zip(size, result, strict=True):
        up, down = other // one, one // other
        if one == other:
            maps.append(Each())
        elif other == one * up and up.bit_count() == 1:
            maps.append(Resized(up=up, before=before, after=after))
        elif one == other * down and (divides or down.bit_count() == 1):
            maps.append(Resized(down=down))
        else:
            raise WholeError(f"its scale of {one} to {other} is not exact in binary numbers")
    return maps[0], maps[1]
