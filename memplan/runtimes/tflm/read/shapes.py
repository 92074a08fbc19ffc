"""Computes the shapes of operators' results, to check the shapes in a file.

A file stores a shape for every tensor. TFLM believes it; LiteRT computes it from the inputs, and so
does this module for operators with a certain result (tensorflow/lite/kernels, `Prepare`). For all
others the answer is `None`, which means that the shape is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from memplan.runtimes.tflm.names import format_shape
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo

__all__ = ["infer_shape"]

Shape = tuple[int, ...]
_Tensors = Sequence[TensorInfo | None]
_Rule = Callable[[OperatorInfo, list[TensorInfo]], Shape | None]

_VALID: Final = 1  # of the schema's Padding; 0 is SAME
_SYMMETRIC: Final = 1  # of its MirrorPadMode; 0 is REFLECT


def infer_shape(operator: OperatorInfo, inputs: _Tensors) -> Shape | None:
    """Return the shape of an operator's one result, or `None` where it is not known here.

    A `ValueError` says why the operator cannot take inputs of these shapes.
    """
    rule = _RULES.get(find_row(operator.type).shape)
    given = [tensor for tensor in inputs if tensor is not None]
    if rule is None or not given or len(operator.outputs) != 1:
        return None
    if inputs[0] is None or any(size < 0 for tensor in given for size in tensor.shape):
        return None
    if not operator.options and rule in _WITH_OPTIONS:
        return None
    try:
        return rule(operator, given)
    except (
        IndexError,
        KeyError,
        ZeroDivisionError,
    ):  # it lacks something
        return None


def _values(inputs: list[TensorInfo]) -> tuple[int, ...]:
    """Return the numbers in the second input."""
    values = inputs[1].values
    if values is None:
        raise IndexError
    return values


def _broadcast(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape:
    rank = max(len(tensor.shape) for tensor in inputs)
    found: list[int] = []
    for axis in range(-rank, 0):
        sizes = {tensor.shape[axis] for tensor in inputs if len(tensor.shape) >= -axis} - {1}
        if len(sizes) > 1:
            shapes = " and ".join(format_shape(tensor.shape) for tensor in inputs)
            raise ValueError(f"cannot bring {shapes} to one shape")
        found.append(sizes.pop() if sizes else 1)
    return tuple(found)


def _reshape(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    target = inputs[1].values if len(inputs) > 1 else operator.shape
    if target is None or sum(size == -1 for size in target) > 1:
        return None
    elements, rest = inputs[0].elements, prod(size for size in target if size != -1)
    if -1 in target:
        if rest == 0 or elements % rest:
            raise ValueError(f"cannot make {format_shape(target)} of {elements} elements")
        return tuple(elements // rest if size == -1 else size for size in target)
    if rest != elements:
        raise ValueError(
            f"cannot make {format_shape(target)} of {elements} elements: its shape is fixed"
        )
    return target


def _window(operator: OperatorInfo, size: int, window: int, step: int, dilation: int) -> int:
    reach = (window - 1) * dilation + 1 if operator.options["padding"] == _VALID else 1
    found = (size - reach) // step + 1
    if found < 1:
        raise ValueError(f"has a window of {reach}, larger than its input of {size}")
    return found


def _convolve(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    if len(inputs[0].shape) != 4 or len(inputs[1].shape) != 4:
        return None
    batch, height, width, _ = inputs[0].shape
    at, window = operator.options, inputs[1].shape
    rows = _window(operator, height, window[1], at["step_y"], max(at["dilation_y"], 1))
    columns = _window(operator, width, window[2], at["step_x"], max(at["dilation_x"], 1))
    return batch, rows, columns, window[0 if operator.type == "CONV_2D" else 3]


def _pool(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    if len(inputs[0].shape) != 4:
        return None
    batch, height, width, channels = inputs[0].shape
    at = operator.options
    rows = _window(operator, height, at["height"], at["step_y"], 1)
    return batch, rows, _window(operator, width, at["width"], at["step_x"], 1), channels


def _connect(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    if len(inputs[1].shape) != 2:
        return None
    units, width = inputs[1].shape
    if operator.options["keeps_axes"]:
        return (*inputs[0].shape[:-1], units)
    if inputs[0].elements % width:
        raise ValueError(f"cannot take {inputs[0].elements} elements in rows of {width}")
    return inputs[0].elements // width, units


def _concatenate(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    shape = list(inputs[0].shape)
    axis = operator.options["axis"] % len(shape)
    others = {tensor.shape[:axis] + tensor.shape[axis + 1 :] for tensor in inputs}
    if len(others) > 1:
        shapes = ", ".join(format_shape(tensor.shape) for tensor in inputs[:5])
        raise ValueError(f"cannot join {shapes} along dimension {axis}")
    shape[axis] = sum(tensor.shape[axis] for tensor in inputs)
    return tuple(shape)


def _pack(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    if len({tensor.shape for tensor in inputs}) > 1:
        raise ValueError("packs tensors of different shapes")
    shape = list(inputs[0].shape)
    shape.insert(operator.options["axis"] % (len(shape) + 1), len(inputs))
    return tuple(shape)


def _pad(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    amounts = _values(inputs)
    if len(amounts) != 2 * len(inputs[0].shape):
        return None
    if min(amounts, default=0) < 0:
        raise ValueError(f"cannot add {min(amounts)} elements")
    pairs = zip(inputs[0].shape, amounts[::2], amounts[1::2], strict=True)
    return tuple(size + before + after for size, before, after in pairs)


def _mirror(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    shape, amounts = inputs[0].shape, _values(inputs)
    repeats = operator.options["mode"] == _SYMMETRIC  # the element at the border
    for axis, size in enumerate(shape):
        most, asked = max(0, size if repeats else size - 1), max(amounts[2 * axis : 2 * axis + 2])
        if asked > most:
            raise ValueError(
                f"cannot mirror {asked} of the {size} elements along dimension {axis}; it can at "
                f"most {most}"
            )
    return _pad(operator, inputs)


def _expand(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    shape = list(inputs[0].shape)
    shape.insert(_values(inputs)[0] % (len(shape) + 1), 1)
    return tuple(shape)


def _reduce(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    gone = {axis % len(inputs[0].shape) for axis in _values(inputs)}
    kept = [1 if axis in gone else size for axis, size in enumerate(inputs[0].shape)]
    return tuple(
        size for axis, size in enumerate(kept) if operator.options["keeps_axes"] or axis not in gone
    )


def _resize(operator: OperatorInfo, inputs: list[TensorInfo]) -> Shape | None:
    size, shape = _values(inputs), inputs[0].shape
    return None if len(shape) != 4 else (shape[0], size[0], size[1], shape[3])


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, _Rule]] = {
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "connect": _connect,
    "convolve": _convolve,
    "expand": _expand,
    "mirror": _mirror,
    "pack": _pack,
    "pad": _pad,
    "pool": _pool,
    "rank": lambda operator, inputs: (len(inputs[0].shape),),
    "reduce": _reduce,
    "reshape": _reshape,
    "resize": _resize,
    "same": lambda operator, inputs: inputs[0].shape,
    "transpose": lambda operator, inputs: tuple(inputs[0].shape[at] for at in _values(inputs)),
}
_WITH_OPTIONS: Final = (_concatenate, _connect, _convolve, _mirror, _pack, _pool, _reduce)
