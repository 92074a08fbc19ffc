"""Unpacks the float16 or sparse weights of models, as TFLM needs them.

TFLM has no DENSIFY, and its DEQUANTIZE refuses float16. Both only unpack constants, so the file
can hold the result: float16 to float32 is exact, and so is a zero that was not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.base.extras import check, require
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import IDENTIFIER, Model

__all__ = ["require_library", "rewrite", "unpack"]

_EXTRA: Final = "tflm"
_SCHEMA: Final = "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"
_FLOAT32, _FLOAT16, _INT8 = 0, 1, 9  # of the schema's TensorType
_STORED: Final = {_FLOAT32: "<f4", _FLOAT16: "<f2", _INT8: "i1"}
_SPARSE: Final = 1  # of the schema's DimensionType

_Array = NDArray[Any]
_Result = TypeVar("_Result")


def require_library(model: Model) -> None:
    """Refuse weights that would have to be unpacked without tflite-micro, which has the schema."""
    if any(find_folded(model).values()):
        check("tflm")


def unpack(data: bytes, model: Model) -> bytes:
    """Return a file without the operators that only unpack weights; tensors keep their numbers.

    The packed weights are removed unless another operator reads them: their tensors then refer to
    the unpacked values. If there are any, tflite-micro is needed, which has the schema's code.
    """
    todo = find_folded(model)
    if not any(todo.values()):
        return data

    def fold(tree: Any, schema: Any) -> None:
        for number, subgraph in enumerate(tree.subgraphs):
            _Folder(tree, schema, subgraph, model.name).fold(sorted(todo[number]))

    try:
        return rewrite(data, fold)[0]
    except MemplanError:
        raise
    except Exception as error:  # generated code, which checks no offset
        raise FormatError(model.name, f"its weights cannot be unpacked: {error}") from None


def rewrite(data: bytes, change: Callable[[Any, Any], _Result]) -> tuple[bytes, _Result]:
    """Return a file whose tables were changed, and what `change(tables, schema)` returns.

    The code of the schema is that of tflite-micro, which has to be installed.
    """
    flatbuffers, schema = require("flatbuffers", extra=_EXTRA), require(_SCHEMA, extra=_EXTRA)
    tree = schema.ModelT.InitFromPackedBuf(data, 0)
    _fill_absent(tree)
    found = change(tree, schema)
    _drop_unused(tree)
    builder = flatbuffers.Builder(len(data))
    builder.Finish(tree.Pack(builder), IDENTIFIER)
    return bytes(builder.Output()), found


def _fill_absent(tree: Any) -> None:
    """Make lists of what is absent in the file: nothing read or made, and the shape of a scalar."""
    for subgraph in tree.subgraphs:
        for each in (subgraph, *subgraph.operators):
            each.inputs = [] if each.inputs is None else each.inputs
            each.outputs = [] if each.outputs is None else each.outputs
        for tensor in subgraph.tensors:
            tensor.shape = [] if tensor.shape is None else tensor.shape


class _Folder:
    """Folds the operators of one sub-graph."""

    def __init__(self, tree: Any, schema: Any, subgraph: Any, name: str) -> None:
        self._tree = tree
        self._schema = schema
        self._subgraph = subgraph
        self._name = name
        self._values: dict[int, _Array] = {}

    def fold(self, indices: list[int]) -> None:
        operators = self._subgraph.operators
        gone = [operators[index] for index in indices]
        for operator in gone:
            operand, result = int(operator.inputs[0]), int(operator.outputs[0])
            self._values[result] = self._value(operand).astype(
                _STORED[self._subgraph.tensors[result].type]
            )
        left = set(indices)
        self._subgraph.operators = [o for i, o in enumerate(operators) if i not in left]
        read = self._read()
        for index in self._values.keys() & read:
            self._store(index)
        for operator in reversed(gone):
            operand, result = int(operator.inputs[0]), int(operator.outputs[0])
            if operand not in read:
                self._become(operand, result)

    def _read(self) -> set[int]:
        """Return the tensors that the remaining operators read, and the outputs."""
        found = {int(i) for o in self._subgraph.operators for i in o.inputs}
        return found | {int(i) for i in self._subgraph.outputs}

    def _value(self, index: int) -> _Array:
        if index in self._values:
            return self._values[index]
        tensor = self._subgraph.tensors[index]
        name = quoted((tensor.name or b"").decode(errors="replace"))
        if tensor.type not in _STORED:
            raise FormatError(
                self._name, f"tensor {name} is packed, with elements of an unsupported type"
            )
        raw = np.asarray(self._tree.buffers[tensor.buffer].data, np.uint8)
        stored = raw.view(_STORED[tensor.type])
        shape = tuple(int(size) for size in tensor.shape)
        if tensor.sparsity is not None:
            stored = _densify(stored, shape, tensor.sparsity)
        if stored.size != np.prod(shape, dtype=np.int64):
            raise FormatError(
                self._name, f"tensor {name} has {stored.size} elements but the shape {shape}"
            )
        return stored

    def _store(self, index: int) -> None:
        buffer = self._schema.BufferT()
        buffer.data = np.ascontiguousarray(self._values[index]).reshape(-1).view(np.uint8)
        self._subgraph.tensors[index].buffer = len(self._tree.buffers)
        self._tree.buffers.append(buffer)

    def _become(self, index: int, other: int) -> None:
        tensor, twin = self._subgraph.tensors[index], self._subgraph.tensors[other]
        tensor.type, tensor.buffer, tensor.sparsity = twin.type, twin.buffer, None


def _densify(values: _Array, shape: tuple[int, ...], sparsity: Any) -> _Array:
    """Return a sparse tensor as a dense one (schema.fbs, `SparsityParameters`).

    This walks through the levels from the outermost one. A dense level has every index below each
    place so far; a compressed level has those that it lists. Levels beyond the tensor's axes are
    places in a block.
    """
    most = int(np.prod(shape, dtype=np.int64))
    places = np.zeros(1, np.int64)  # by value so far: the number of its place in its level
    indices: list[_Array] = []  # by level: the index there
    for level in sparsity.dimMetadata:
        if level.format == _SPARSE:
            ends = np.asarray(level.arraySegments.values, np.int64)
            counts = ends[places + 1] - ends[places]
            here = np.asarray(level.arrayIndices.values, np.int64)
            places, width = np.arange(len(here)), 1
        else:
            width = int(level.denseSize)
            if len(places) * width > most:
                raise ValueError("there are more sparse weights than elements in their shape")
            counts = np.full(len(places), width)
            here = np.tile(np.arange(width), len(places))
            places = np.repeat(places, width) * width + here
        indices = [np.repeat(index, counts) for index in indices]
        indices.append(here)
    at = [np.zeros(len(values), np.int64) for _ in shape]
    levels = sorted(
        zip(sparsity.traversalOrder, indices, sparsity.dimMetadata, strict=True),
        key=lambda level: int(level[0]),
    )
    blocked = [] if sparsity.blockMap is None else list(sparsity.blockMap)
    for order, index, level in levels:  # axes come first, then places in blocks
        if order < len(shape):
            at[order] = index
        else:
            axis = blocked[order - len(shape)]
            at[axis] = at[axis] * int(level.denseSize) + index
    dense = np.zeros(shape, values.dtype)
    dense[tuple(at)] = values
    return dense


def _drop_unused(tree: Any) -> None:
    """Empty the buffers to which no table refers any more; the other buffers keep their numbers."""
    used = {tensor.buffer for subgraph in tree.subgraphs for tensor in subgraph.tensors}
    used |= {entry.buffer for entry in tree.metadata or ()}
    used |= {int(number) for number in (() if tree.metadataBuffer is None else tree.metadataBuffer)}
    for number, buffer in enumerate(tree.buffers):
        if number not in used:
            buffer.data = None
