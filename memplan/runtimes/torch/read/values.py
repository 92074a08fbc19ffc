"""Descriptions of tensors as torch has them, and the bytes that follow from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

__all__ = ["DTYPES", "Meta", "Value", "dense_strides", "view_strides"]

# By code in torch's serialized programs: NumPy's name of the type, and the bytes of an element.
DTYPES: dict[int, tuple[str, int]] = {
    1: ("uint8", 1),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("complex32", 4),
    10: ("complex64", 8),
    11: ("complex128", 16),
    12: ("bool", 1),
    13: ("bfloat16", 2),
    28: ("uint16", 2),
    29: ("float8_e4m3fn", 1),
    30: ("float8_e5m2", 1),
    31: ("float8_e4m3fnuz", 1),
    32: ("float8_e5m2fnuz", 1),
    33: ("float8_e8m0fnu", 1),
    34: ("uint32", 4),
    35: ("uint64", 8),
}


@dataclass(frozen=True, slots=True)
class Meta:
    """A tensor before its symbolic sizes have values."""

    dtype: str  # the type of an element, and its bytes
    itemsize: int
    # In elements: whole numbers, or expressions as SymPy's `srepr` writes them. The offset is that
    # of the first element in the storage.
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    offset: int | str = 0
    storage: int = 0  # bytes of the whole storage where they are known and fixed, otherwise 0
    trained: bool = False  # whether it needs a gradient
    device: str = "cpu"  # where it is: "cpu", "cuda"


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of known size, with a name and the attributes of `Meta`.

    storage   |------xxxxxxxxxxxxxxx----|
              0      start          reach
    """

    name: str
    dtype: str
    itemsize: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    storage: int = 0

    @property
    def start(self) -> int:
        """The first byte in the storage."""
        return self.offset * self.itemsize

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last, with the gaps of the strides."""
        if 0 in self.sizes:
            return 0
        steps = sum((size - 1) * step for size, step in zip(self.sizes, self.strides, strict=True))
        return (steps + 1) * self.itemsize

    @property
    def reach(self) -> int:
        """The end of the last element in the storage."""
        return self.start + self.span

    @property
    def layout(self) -> tuple[object, ...]:
        """Equal for two tensors if their elements are at the same places of their storages."""
        steps = tuple(
            step for size, step in zip(self.sizes, self.strides, strict=True) if size != 1
        )
        return self.itemsize, self.sizes, steps, self.offset

    @property
    def is_dense(self) -> bool:
        """Whether it is contiguous, with the last dimension innermost."""
        steps = zip(self.sizes, self.strides, dense_strides(self.sizes), strict=True)
        return all(size == 1 or mine == step for size, mine, step in steps) or 0 in self.sizes

    def is_same(self, other: Value) -> bool:
        """Whether the other tensor has the same description, except for its storage."""
        mine = (self.dtype, self.sizes, self.strides, self.offset)
        return mine == (other.dtype, other.sizes, other.strides, other.offset)


def view_strides(
    sizes: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Return strides that give a tensor a new shape without a copy, or `None` if there are none.

    Dimensions that lie one after the other in memory form a run; each new dimension must come
    from one run. This is the rule that PyTorch documents for `Tensor.view`.
    """
    if prod(sizes) != prod(new):
        return None
    if 0 in sizes:
        return tuple(strides) if tuple(sizes) == tuple(new) else dense_strides(new)
    runs: list[tuple[int, int]] = []  # elements, and the step between them
    for size, step in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    found = [0] * len(new)
    left, step = runs.pop() if runs else (1, 1)
    for index in reversed(range(len(new))):
        if left == 1 and runs and new[index] != 1:
            left, step = runs.pop()
        if left % new[index]:
            return None
        found[index] = step
        left //= new[index]
        step *= new[index]
    return tuple(found)


def dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, with the last dimension innermost."""
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step *= max(size, 1)
    return tuple(reversed(steps))
