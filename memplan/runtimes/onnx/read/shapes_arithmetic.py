"""What small operators compute: arithmetic on shapes, in the words of ONNX, done by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memplan.base.extras import require
from memplan.runtimes.onnx.operators import find_row
from memplan.runtimes.onnx.read.protos import is_standard

__all__ = [
    "FAR",
    "Array",
    "Constants",
    "array_of",
    "evaluate",
    "evaluate_shape_query",
    "make_tensor",
]

Array = NDArray[Any]
FAR = (2**31 - 1, 2**63 - 1)  # the ends of a slice that stand for the end of an axis
_LARGEST = 1024  # elements; a larger constant does not describe a shape
_Rule = Callable[[list[Any], dict[str, Any]], Any]  # an array, a number of NumPy, or `None`


def array_of(tensor: Any) -> Array | None:
    """Return the data of a small tensor of numbers that is in the file itself."""
    elsewhere = tensor.data_location == 1
    if elsewhere or any(size < 0 for size in tensor.dims) or prod(tensor.dims) > _LARGEST:
        return None
    try:
        array: Array = require("onnx.numpy_helper", extra="onnx").to_array(tensor)
    except Exception:  # data and shape disagree: the inference reports that better
        return None
    return array if array.dtype.kind in "biuf" else None


def make_tensor(value: Array, name: str = "") -> Any:
    """Return the message of a constant."""
    return require("onnx.numpy_helper", extra="onnx").from_array(value, name)


class Constants:
    """The small constants of a graph, and of those around it, read where they are asked for."""

    def __init__(self, graph: Any, outside: Constants | None = None) -> None:
        self._graph = graph
        self._outside = outside

    @cached_property
    def _held(self) -> dict[str, Any]:
        made = (one for one in self._graph.node if one.op_type == "Constant" and is_standard(one))
        held = {name: one for one in made for name in one.output}
        return held | {one.name: one for one in self._graph.initializer}

    def find(self, name: str) -> Array | None:
        """Return the numbers of a constant; `None` if there is no such one, or it is not small."""
        one = self._held.get(name) if name else None
        if one is None:
            return self._outside.find(name) if self._outside is not None else None
        return evaluate(one, []) if hasattr(one, "op_type") else array_of(one)

    def add(self, name: str, values: list[Any], element: int) -> None:
        """Give the graph a constant, unless it has it."""
        if name not in self._held:
            make = require("onnx.helper", extra="onnx").make_tensor
            self._graph.initializer.append(make(name, element, [len(values)], values))
            self._held[name] = self._graph.initializer[-1]


def evaluate_shape_query(node: Any, shape: tuple[int, ...]) -> Array | None:
    """Return what Shape or Size give for a shape."""
    if node.op_type == "Size":
        return np.array(prod(shape), np.int64) if abs(prod(shape)) < 2**62 else None
    options = _options(node)
    return np.array(shape[options.get("start", 0) : options.get("end", len(shape))], np.int64)


def evaluate(node: Any, args: list[Array | None]) -> Array | None:
    """Return the result of a node, or `None` if it is unknown or not small.

    `args` are its inputs, with `None` for one that is left out or unknown.
    """
    rule = _RULES.get(find_row(node.op_type).value)
    if rule is None or any(args[at] is None for at, name in enumerate(node.input) if name):
        return None
    try:
        with np.errstate(all="ignore"):
            result = rule(args, _options(node))
    except Exception:  # arguments do not fit: the inference reports that better
        return None
    found = None if result is None else np.asarray(result)
    if found is None or found.size > _LARGEST or found.dtype.kind not in "biuf":
        return None
    return found


# By type of an attribute (AttributeProto.AttributeType): what reads its value.
_READERS: dict[int, Callable[[Any], Any]] = {
    1: lambda one: one.f,
    2: lambda one: one.i,
    4: lambda one: array_of(one.t),
    6: lambda one: tuple(one.floats),
    7: lambda one: tuple(one.ints),
}


def _options(node: Any) -> dict[str, Any]:
    """Return the attributes of a node that are numbers or tensors."""
    read = ((one.name, _READERS.get(one.type), one) for one in node.attribute)
    return {name: reader(one) for name, reader, one in read if reader is not None}


def _constant(args: list[Any], options: dict[str, Any]) -> Array | None:
    """Return the value of a Constant, which has one of several attributes."""
    ((name, value),) = options.items()
    if name == "value":
        return None if value is None else np.asarray(value)
    return np.array(value, np.int64 if name.startswith("value_int") else np.float32)


def _axes(args: list[Any], options: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the axes: an attribute until opset 12, the second input from then on."""
    if len(args) > 1 and args[1] is not None:
        return tuple(int(axis) for axis in args[1].ravel())
    return options.get("axes")


def _reshape(args: list[Any], options: dict[str, Any]) -> Any:
    data, shape = args[0], [int(size) for size in args[1]]
    if not options.get("allowzero", 0):
        shape = [size or data.shape[axis] for axis, size in enumerate(shape)]
    return data.reshape(shape)


def _slice(args: list[Any], options: dict[str, Any]) -> Any:
    data = args[0]
    if len(args) > 1:
        given: list[Any] = [None if one is None else one.ravel() for one in args[1:]]
        given += [None] * (4 - len(given))
    else:
        given = [options["starts"], options["ends"], options.get("axes"), None]
    starts, ends, axes, steps = given
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    cut = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # A large negative end stands for "before the first element", also with a negative step; so
        # do the largest numbers in onnxruntime.
        far = end < -data.shape[axis] or end in FAR
        stop = None if step < 0 and far else int(end)
        cut[int(axis)] = slice(int(start), stop, int(step))
    return data[tuple(cut)]


def _constant_of_shape(args: list[Any], options: dict[str, Any]) -> Any:
    value = options.get("value", np.zeros(1, np.float32))
    shape = _read_small_shape(args[0])
    return None if shape is None or value is None else np.full(shape, value.ravel()[0])


def _expand(args: list[Any], options: dict[str, Any]) -> Any:
    shape = _read_small_shape(args[1])
    if shape is None:
        return None
    return np.broadcast_to(args[0], np.broadcast_shapes(args[0].shape, shape))


def _range(args: list[Any], options: dict[str, Any]) -> Any:
    start, limit, delta = (one.reshape(()) for one in args)
    count = ceil(((limit - start) / delta).item())  # in the type of the numbers, as kernels do
    if not 0 <= count <= _LARGEST:
        return None
    return start + np.arange(count, dtype=start.dtype) * delta


def _read_small_shape(shape: Iterable[Any]) -> tuple[int, ...] | None:
    sizes = tuple(int(size) for size in shape)
    return sizes if 0 <= prod(sizes) <= _LARGEST else None


def _cast(args: list[Any], options: dict[str, Any]) -> Any:
    helper = require("onnx.helper", extra="onnx")
    return args[0].astype(helper.tensor_dtype_to_np_dtype(options["to"]))


def _div(args: list[Any], options: dict[str, Any]) -> Any:
    one, other = args
    if one.dtype.kind == "f":
        return one / other
    found = np.floor_divide(one, other)  # ONNX rounds towards zero, NumPy down
    return found + ((found < 0) & (found * other != one)).astype(found.dtype)


def _make_reduction(function: Callable[..., Any]) -> _Rule:
    def rule(args: list[Any], options: dict[str, Any]) -> Any:
        axes = _axes(args, options)
        kept = bool(options.get("keepdims", 1))
        return function(args[0], axis=axes, keepdims=kept, dtype=args[0].dtype)

    return rule


def _make_elementwise(function: Callable[..., Any]) -> _Rule:
    return lambda args, options: function(*args)


# Functions of NumPy that compute each element of a result.
_OF_NUMPY = """
    abs add asarray ceil equal floor greater greater_equal less less_equal logical_and logical_not
    logical_or multiply negative subtract where
"""
# By the names that rows of `operators.TABLE` give them.
_RULES: dict[str, _Rule] = {
    **{name: _make_elementwise(getattr(np, name)) for name in _OF_NUMPY.split()},
    "cast": _cast,
    "compress": lambda args, options: np.compress(args[1], args[0], options.get("axis")),
    "concatenate": lambda args, options: np.concatenate(args, axis=options["axis"]),
    "constant": _constant,
    "constant_of_shape": _constant_of_shape,
    "divide": _div,
    "expand": _expand,
    "gather": lambda args, options: args[0].take(args[1], options.get("axis", 0)),
    "largest": lambda args, options: np.maximum.reduce(args),
    "least": lambda args, options: np.minimum.reduce(args),
    "nonzero": lambda args, options: np.array(np.nonzero(np.atleast_1d(args[0])), np.int64),
    "product": _make_reduction(np.prod),
    "range": _range,
    "remainder": lambda args, options: (np.fmod if options.get("fmod", 0) else np.mod)(*args),
    "reshape": _reshape,
    "slice": _slice,
    "squeeze": lambda args, options: np.squeeze(args[0], _axes(args, options)),
    "total": _make_reduction(np.sum),
    "transpose": lambda args, options: np.transpose(args[0], options.get("perm")),
    "unsqueeze": lambda args, options: np.expand_dims(args[0], _axes(args, options) or ()),
}
