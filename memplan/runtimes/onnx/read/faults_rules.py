"""Operators that cannot run at their sizes, though the library infers a shape for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from memplan.runtimes.onnx.read.protos import number, numbers, row_of

__all__ = ["is_contradictory"]

_Shapes = list[tuple[int, ...] | None]


def is_contradictory(
    node: Any, inputs: _Shapes, outputs: _Shapes, find: Callable[[str], Any] = lambda name: None
) -> bool:
    """Whether the shapes that an operator reads contradict each other, or its amounts.

    A shape is `None` for what is left out or is no tensor; `find` returns the numbers of a small
    constant by its name, or `None`.
    """
    if any(size < 0 for shape in outputs if shape is not None for size in shape):
        return True  # as of a window that is larger than what it moves over
    name = row_of(node).fits
    rule = _RULES.get(name)
    missing = [None] * 8  # optional inputs that are left out at the end
    try:
        if name == "pad":
            return _repeats_too_much(node, inputs[0], find)
        return rule is not None and not rule(node, [*inputs, *missing], outputs)
    except (IndexError, TypeError):  # an input is left out, or has too few axes
        return False


def _repeats_too_much(node: Any, shape: Any, find: Callable[[str], Any]) -> bool:
    """Whether a Pad would repeat elements that are not there, as no runtime can.

    It reflects what lies behind the border; for other modes, one element is enough. What it cuts
    off is gone before that.
    """
    mode = next((one.s for one in node.attribute if one.name == "mode"), b"constant")
    if mode not in (b"reflect", b"edge", b"wrap"):
        return False
    names = [*node.input, "", "", "", ""]
    pads = numbers(node, "pads") or find(names[1])
    axes = find(names[3]) if names[3] else range(len(shape))
    if pads is None or axes is None:
        return False
    for at, axis in enumerate(axes):
        sides = int(pads[at]), int(pads[at + len(axes)])
        left = shape[axis] + min(0, sides[0]) + min(0, sides[1])
        if max(sides) > 0 and (left < 1 or (mode == b"reflect" and max(sides) > left - 1)):
            return True
    return False


def _can_broadcast(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Whether a tensor can be repeated to another shape."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)


# The rules return whether an operator can run. They see lists of shapes.


def _convolution(node: Any, read: Any, made: Any) -> bool:
    return bool(read[0][1] == read[row_of(node).filter][1] * number(node, "group", 1))


def _recurrent(node: Any, read: Any, made: Any) -> bool:
    data, kernel, again, _, lengths, *states = read[:7]
    if len(data) != 3:
        return True
    if not (len(kernel) == 3 == len(again) and kernel[2] == data[2]):
        return False
    by_batch = number(node, "layout", 0)
    batches = data[0 if by_batch else 1]
    state = (batches, kernel[0], again[-1]) if by_batch else (kernel[0], batches, again[-1])
    states = states[:2]  # of those that are not LSTMs there is one
    return lengths in (None, (batches,)) and all(one in (None, state) for one in states)


def _by_channel(node: Any, read: Any, made: Any) -> bool:
    return all(one is None or prod(one) == read[0][1] for one in read[1:])


def _by_slope(node: Any, read: Any, made: Any) -> bool:
    data, slope = read[:2]
    # Before opset 7 a slope for each channel was a list, without the axes to broadcast it.
    return _can_broadcast(slope, data) or slope == data[1:2]


def _scatter_elements(node: Any, read: Any, made: Any) -> bool:
    data, where, updates = read[:3]
    return None in (data, where, updates) or (where == updates and len(data) == len(where))


def _scatter(node: Any, read: Any, made: Any) -> bool:
    data, where, updates = read[:3]
    return updates in (None, where[:-1] + data[where[-1] :])


def _split(node: Any, read: Any, made: Any) -> bool:
    axis = number(node, "axis", 0)
    parts = made[: len(node.output)]
    alike = all(len(one) == len(read[0]) for one in parts)
    return not alike or sum(one[axis] for one in parts) == read[0][axis]


# By the names that rows of `operators.TABLE` give them.
_RULES: dict[str, Callable[[Any, Any, Any], bool]] = {
    "by_axis": lambda node, read, made: _can_broadcast(
        read[1], read[0][number(node, "axis", -1) :]
    ),
    "by_channel": _by_channel,
    "by_slope": _by_slope,
    "convolution": _convolution,
    "gemm": lambda node, read, made: _can_broadcast(read[2], made[0]),
    "recurrent": _recurrent,
    "same_count": lambda node, read, made: prod(read[0]) == prod(made[0]),
    "scatter": _scatter,
    "scatter_elements": _scatter_elements,
    "split": _split,
    "spread": lambda node, read, made: read[0][1] == read[1][0],
}
