"""Results of operators for which the library infers others than runtimes make.

Onnxruntime has one kernel for all versions of a pooling: it drops a last window that begins behind
the input, which the library does from opset 22 on, and its padding for "SAME" counts no dilation.
Such operators get attributes for which the library infers what the runtime makes. These are only
for the inference.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Any

import numpy as np

from memplan.base.extras import require
from memplan.runtimes.onnx.read.protos import (
    copy,
    has_subgraphs,
    is_standard,
    known_shape,
    number,
    numbers,
    row_of,
    subgraphs,
    types_in,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import FAR, Constants

__all__ = ["amend", "pool_axis"]

_FLOAT, _INT64 = 1, 7  # of TensorProto.DataType


def pool_axis(
    size: int, kernel: int, step: int, dilation: int, pads: Sequence[int] | str, ceil: bool
) -> tuple[int, int]:
    """Return how many rows are before those of a pooling's input, and how many it makes.

    The size is the rows of the input, and pads are those that are added at both ends, or
    `auto_pad`. With `ceil`, a last window may reach beyond the padding.
    """
    if isinstance(pads, str):
        total = 0
        if pads.startswith("SAME"):  # less than none where windows are far apart
            total = (-(-size // step) - 1) * step + kernel - size
        before = int((total + (pads == "SAME_LOWER")) / 2)
    else:
        before, total = pads[0], sum(pads)
    room = size + total - dilation * (kernel - 1) - 1
    if ceil or room < 0:  # without rows for one window, it rounds towards zero
        made = -(-room // step) + 1
        return before, made - (ceil and (made - 1) * step >= size + before)
    return before, room // step + 1


def amend(graph: Any) -> bool:
    """Give operators attributes for which the library infers what runtimes make.

    Returns whether any operator changed. The shapes that were inferred before are then wrong, so
    what depends on such an operator waits for the next call.
    """
    return bool(_amend(graph, ChainMap(), set()))


def _amend(graph: Any, outside: ChainMap[str, Any], stale: set[str]) -> int:
    """Return how many operators changed; add what depends on them to the stale names."""
    types, constants = types_in(graph, outside), Constants(graph)
    count = 0
    for node in graph.node:
        changes = sum(_amend(inner, types, stale) for _, inner in subgraphs(node))
        if node.output and stale.isdisjoint(node.input) and is_standard(node):
            names = (*node.input, *node.output[:1])
            shapes = [known_shape(types.get(name)) for name in names]
            changes += _amend_node(node, shapes[:-1], shapes[-1], constants)
        count += changes
        if changes or not stale.isdisjoint(node.input) or (stale and has_subgraphs(node)):
            stale.update(node.output)
    return count


def _amend_node(
    node: Any,
    shapes: list[tuple[int, ...] | None],
    result: tuple[int, ...] | None,
    constants: Constants,
) -> bool:
    shape, rule = shapes[0] if shapes else None, row_of(node).amends
    if rule == "squeeze" and len(shapes) > 1 and shapes[1] == (0,):
        del node.input[1:]  # no axes are all axes of one element
        return True
    if rule == "squeeze" and any(a.name == "axes" and not a.ints for a in node.attribute):
        _set(node, "axes")
        return True
    if rule == "slice":
        begins = shape is not None and _begin_inside(node, shape)
        return begins or _sort_axes(node) or _reach_first(node, constants)
    if shape is None:
        return False
    if rule == "pool":
        return _set_result(node, shape, result, _find_pooled(node, shape))
    if rule == "spread":
        return _set_result(node, shape, result, _find_spread(node, shapes))
    return rule == "upsample" and _raise_scales(node, shape, constants)


def _find_pooled(node: Any, shape: tuple[int, ...]) -> list[int]:
    """Return the rows that a pooling makes on each axis; empty if the library is right."""
    auto = _auto_pad(node)
    ceil = bool(number(node, "ceil_mode"))
    axes = len(shape) - 2
    kernel = numbers(node, "kernel_shape")
    steps = numbers(node, "strides") or [1] * axes
    dilations = numbers(node, "dilations") or [1] * axes
    pads = numbers(node, "pads") or [0] * (2 * axes)
    if not ceil and (auto == "NOTSET" or set(dilations) == {1}):
        return []
    if not axes == len(kernel) == len(steps) == len(dilations) or len(pads) != 2 * axes:
        return []  # it says so itself
    ends = zip(pads[:axes], pads[axes:], strict=True)
    ways = [one if auto == "NOTSET" else auto for one in ends]
    windows = zip(shape[2:], kernel, steps, dilations, ways, strict=True)
    return [pool_axis(*window, ceil)[1] for window in windows]


def _find_spread(node: Any, shapes: list[tuple[int, ...] | None]) -> list[int]:
    """Return the rows that a transposed convolution makes; empty if the library is right."""
    size, weights = shapes[0], shapes[1] if len(shapes) > 1 else None
    asked = numbers(node, "output_shape")
    if asked or size is None or weights is None or not _auto_pad(node).startswith("SAME"):
        return asked
    axes = len(size) - 2
    kernel = numbers(node, "kernel_shape") or list(weights[2:])
    steps, dilations = (numbers(node, name) or [1] * axes for name in ("strides", "dilations"))
    more = numbers(node, "output_padding") or [0] * axes
    if not axes == len(kernel) == len(steps) == len(dilations) == len(more):
        return []  # it says so itself
    return [
        min(one * step, (one - 1) * step + (rows - 1) * dilation + 1 + extra)
        for one, rows, step, dilation, extra in zip(
            size[2:], kernel, steps, dilations, more, strict=True
        )
    ]


def _auto_pad(node: Any) -> str:
    found = (one.s.decode(errors="replace") for one in node.attribute if one.name == "auto_pad")
    return next(found, "NOTSET")


def _set_result(
    node: Any, shape: tuple[int, ...], result: tuple[int, ...] | None, made: list[int]
) -> bool:
    """Give an operator windows that make so many rows of its input, unless they are inferred.

    A list with another number of axes is left to the library.
    """
    if len(made) != len(shape) - 2 or min(made, default=-1) < 0:
        return False
    if result is not None and result[2:] == tuple(made):
        return False
    pairs = list(zip(shape[2:], made, strict=True))
    if row_of(node).amends == "spread":
        pairs = [(after, size) for size, after in pairs]
    _set(node, "kernel_shape", [max(1, size - after + 1) for size, after in pairs])
    _set(node, "pads", [0] * len(made) + [max(0, after - size) for size, after in pairs])
    for name in ("auto_pad", "ceil_mode", "dilations", "output_padding", "output_shape", "strides"):
        _set(node, name)
    return True


def _sort_axes(node: Any) -> bool:
    """Sort the axes of a slice that are attributes, as until opset 9: others are skipped."""
    starts, ends, axes = (numbers(node, name) for name in ("starts", "ends", "axes"))
    if axes == sorted(axes) or not len(starts) == len(ends) == len(axes):
        return False
    parts = zip(*sorted(zip(axes, starts, ends, strict=True)), strict=True)
    for name, values in zip(("axes", "starts", "ends"), parts, strict=True):
        _set(node, name, list(values))
    return True


def _begin_inside(node: Any, shape: tuple[int, ...]) -> bool:
    """Let a slice whose start is an attribute, and before the tensor, begin with the tensor."""
    starts = numbers(node, "starts")
    axes = numbers(node, "axes") or list(range(len(starts)))
    if len(starts) != len(axes) or not all(-len(shape) <= axis < len(shape) for axis in axes):
        return False
    found = [max(start, -shape[axis]) for start, axis in zip(starts, axes, strict=True)]
    if found == starts:
        return False
    _set(node, "starts", found)
    return True


def _reach_first(node: Any, constants: Constants) -> bool:
    """Let a slice backwards to the largest number end with the first element."""
    if len(node.input) < 5:
        return False
    ends, steps = constants.find(node.input[2]), constants.find(node.input[4])
    if ends is None or steps is None or ends.shape != steps.shape or ends.ndim != 1:
        return False
    pairs = list(zip(ends.tolist(), steps.tolist(), strict=True))
    found = [-(2**63) if end in FAR and step < 0 else end for end, step in pairs]
    if found == ends.tolist():
        return False
    name = f"{node.input[2]} of {node.output[0]}"
    constants.add(name, found, _INT64)
    node.input[2] = name
    return True


def _raise_scales(node: Any, shape: tuple[int, ...], constants: Constants) -> bool:
    """Let the library round the sizes of an Upsample as kernels do, in single precision.

    A picture of 6 rows, scaled by the number nearest to 10/3, has 20 rows and not 19.
    """
    if len(node.input) > 1:
        scales = constants.find(node.input[1])
    else:
        scales = np.array(next((a.floats for a in node.attribute if a.name == "scales"), []))
    if scales is None or scales.shape != (len(shape),) or scales.dtype.kind != "f":
        return False
    rows, scales = np.array(shape, np.float32), scales.astype(np.float32)
    lacking = np.floor(np.array(shape) * scales.astype(np.float64)) < np.floor(rows * scales)
    if not lacking.any():
        return False
    raised = np.where(lacking, np.nextafter(scales, np.float32(np.inf)), scales).tolist()
    if len(node.input) > 1:
        name = f"{node.input[1]} of {node.output[0]}"
        constants.add(name, raised, _FLOAT)
        node.input[1] = name
    else:
        _set(node, "scales", raised)
    return True


def _set(node: Any, name: str, value: Any = None) -> None:
    """Give an operator an attribute, or take it away."""
    kept = [one for one in node.attribute if one.name != name]
    if value is not None:
        kept.append(require("onnx.helper", extra="onnx").make_attribute(name, value))
    copies = [copy(one) for one in kept]
    del node.attribute[:]
    node.attribute.extend(copies)
