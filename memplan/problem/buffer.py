"""The rows of a problem as objects."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Buffer", "Gap", "Reserved"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A time `[start, end)` inside a lifetime in which a buffer holds nothing, or a window.

    Attributes
    ----------
    start, end
        Logical time, half-open.
    window
        `(lower, upper)`: during the gap the buffer holds `[offset + lower, offset + upper)` only.
        `None`: it holds nothing.
    """

    start: int
    end: int
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    """Addresses `[lower, upper)` that no buffer of positive size may touch, at any time."""

    lower: int
    upper: int

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of memory with one size and one lifetime; `Problem` checks its values.

    Attributes
    ----------
    id
        A name, distinct in its problem.
    start, end
        The lifetime `[start, end)` in logical time, half-open.
    size
        In bytes, 0 to 2^62. A buffer of size 0 conflicts with nothing.
    alignment
        The offset is a multiple of it.
    pin
        The given offset, or `None` if the solver chooses it.
    hint
        A preferred offset, or `None`; a plan may ignore it.
    gaps
        Disjoint times inside the lifetime in which it holds nothing, or only a window.
    """

    id: str
    start: int
    end: int
    size: int
    alignment: int = 1
    pin: int | None = None
    hint: int | None = None
    gaps: tuple[Gap, ...] = ()
