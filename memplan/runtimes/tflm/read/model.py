"""Reads a TFLite model: its sub-graphs, tensors, operators, and planned offsets.

A slot is the number of a field of a table in tensorflow/lite/schema/schema.fbs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from memplan.base.errors import FormatError, quoted
from memplan.base.files import read_bytes
from memplan.runtimes.tflm.names import ELEMENT_TYPES, OPERATORS, element_bytes
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.flatbuffer import Table, root

__all__ = [
    "IDENTIFIER",
    "Model",
    "OperatorInfo",
    "Scratch",
    "SubGraph",
    "TensorInfo",
    "load",
    "parse",
]

IDENTIFIER: Final = b"TFL3"
OFFLINE_PLAN: Final = "OfflineMemoryAllocation"
_MOST_AXES: Final = 64
_MOST_BYTES: Final = 1 << 62

_RESHAPE: Final = (17, 0)  # option type, and the slot of the new shape
_HANDLE: Final = (111, 1)  # option type, and the slot of the name of a variable
_MOST_VALUES: Final = 64  # elements of a constant that may say a shape, axes or amounts


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor of the file."""

    name: str  # as in the file; it may be empty, and two tensors may share one
    dtype: str  # see `names.ELEMENT_TYPES`; "type 42" where it is newer than this list
    shape: tuple[int, ...]  # as stored; converters store 1 for a dimension that is open
    open_axes: tuple[int, ...] = ()  # the dimensions that the file leaves open (-1)
    data: int = 0  # bytes of its value in the file, or 0 if it has no value there
    variable: bool = False  # whether it is state that outlives a run
    # The elements of a small constant of whole numbers (a shape, axes); `None` for other tensors.
    values: tuple[int, ...] | None = None
    scales: int = 0  # how many its quantization has; 0 if it has none, or no zero points

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Its size in an arena (0 where the type does not say) or as a constant."""
        return self.data or self.elements * (element_bytes(self.dtype) or 0)


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """An operator of the file: its name in the schema, or of the custom one, and its tensors.

    `subgraphs` are those that it enters, in the order in which they run. `options` are the numbers
    among its options that determine shapes, and `shape` is the result of a RESHAPE; they are empty
    and `None` where the file does not say. `variable` is the name of the variable of a VAR_HANDLE.
    `scratch` has the sizes that its kernel asks for on a board; `None` for the reference kernels.
    """

    type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple[int, ...] = ()
    options: Mapping[str, int] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None
    variable: str = ""
    scratch: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch buffer of a kernel, in a file and in all files that are made of it.

    A file with unpacked weights or in another order has operators at other places, but tensors with
    the same numbers. So an operator is known by what it makes.
    """

    # The first result of the operator, by its number among the tensors of all sub-graphs.
    result: int
    part: int


@dataclass(frozen=True, slots=True)
class SubGraph:
    """A sub-graph of the file; indices are into its own tensors, and -1 is no tensor."""

    name: str
    tensors: tuple[TensorInfo, ...]
    operators: tuple[OperatorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def find_ends(
        self, operator: OperatorInfo
    ) -> tuple[list[TensorInfo | None], TensorInfo | None]:
        """Return the inputs of an operator, and its first output, if it has one."""
        inputs = [self.tensors[i] if i >= 0 else None for i in operator.inputs]
        first = operator.outputs[0] if operator.outputs else -1
        return inputs, self.tensors[first] if first >= 0 else None


@dataclass(frozen=True, slots=True)
class Model:
    """A file."""

    name: str
    subgraphs: tuple[SubGraph, ...]  # the first is the program
    # By tensor of all sub-graphs: its offset in the file's `OfflineMemoryAllocation` in bytes, or
    # -1 if TFLM places it. Empty if the file has no offsets.
    offsets: tuple[int, ...] = ()

    @property
    def first(self) -> tuple[int, ...]:
        """By sub-graph: the index of its first tensor among those of all sub-graphs."""
        counts = [0]
        for subgraph in self.subgraphs:
            counts.append(counts[-1] + len(subgraph.tensors))
        return tuple(counts)

    def tensors(self) -> Iterator[TensorInfo]:
        """Yield the tensors of all sub-graphs, in the order of `offsets`."""
        for subgraph in self.subgraphs:
            yield from subgraph.tensors


def load(path: Path) -> Model:
    """Return the model in a file."""
    return parse(read_bytes(path), str(path))


def parse(data: bytes, name: str) -> Model:
    """Return the model in the bytes of a file, which must be whole and not contradict itself."""
    return _Reader(root(data, name, IDENTIFIER), name).model()


class _Reader:
    def __init__(self, table: Table, name: str) -> None:
        self._root = table
        self._name = name
        self._buffers = list(table.tables(4))
        self._data = [self._data_bytes(buffer) for buffer in self._buffers]
        self._types = [self._operator_type(code) for code in table.tables(1)]
        self._subgraph_count = table.length(2)

    def model(self) -> Model:
        subgraphs = tuple(
            self._subgraph(number, table) for number, table in enumerate(self._root.tables(2))
        )
        if not subgraphs:
            raise self._fail("it has no sub-graph")
        return Model(self._name, subgraphs, self._offsets(sum(len(s.tensors) for s in subgraphs)))

    def _fail(self, sentence: str) -> FormatError:
        return FormatError(self._name, f"the model contradicts itself: {sentence}")

    def _data_bytes(self, buffer: Table) -> int:
        """Return the size of a value, also of one that lies behind the FlatBuffer (over 2 GB)."""
        inside = len(buffer.raw(0))
        return inside or (buffer.number(2, "Q") if buffer.number(1, "Q") > 1 else 0)

    def _operator_type(self, code: Table) -> str:
        number = max(code.number(0, "b"), code.number(3, "i"))  # newer files use the int
        if not 0 <= number < len(OPERATORS):
            return f"operator {number}"
        return code.text(1) or "CUSTOM" if OPERATORS[number] == "CUSTOM" else OPERATORS[number]

    def _subgraph(self, number: int, table: Table) -> SubGraph:
        tensors = tuple(self._tensor(tensor) for tensor in table.tables(0))
        where = f"sub-graph {number}"
        return SubGraph(
            table.text(4),
            tensors,
            tuple(
                self._operator(f"operator {index} of {where}", operator, len(tensors))
                for index, operator in enumerate(table.tables(3))
            ),
            self._indices(where, table.numbers(1), len(tensors)),
            self._indices(where, table.numbers(2), len(tensors)),
        )

    def _tensor(self, table: Table) -> TensorInfo:
        name = table.text(3)
        number, buffer = table.number(1, "b"), table.number(2, "I")
        if buffer >= len(self._buffers):
            raise self._fail(f"tensor {quoted(name)} refers to a buffer that does not exist")
        known = 0 <= number < len(ELEMENT_TYPES)
        if table.length(0) > _MOST_AXES:
            raise self._fail(f"tensor {quoted(name)} has {table.length(0)} dimensions")
        shape = table.numbers(0) or ()
        signature = table.numbers(7) or shape
        if len(signature) != len(shape):
            signature = shape
        tensor = TensorInfo(
            name,
            ELEMENT_TYPES[number][0] if known else f"type {number}",
            shape,
            tuple(axis for axis, size in enumerate(signature) if size < 0),
            self._data[buffer],
            bool(table.number(5, "B")),
            self._values(buffer, ELEMENT_TYPES[number][0] if known else ""),
            _count_scales(table.table(4)),
        )
        if abs(tensor.elements) > _MOST_BYTES or tensor.bytes > _MOST_BYTES:
            raise self._fail(f"tensor {quoted(name)} has more than 2^62 bytes")
        return tensor

    def _values(self, buffer: int, dtype: str) -> tuple[int, ...] | None:
        width = {"int32": 4, "int64": 8}.get(dtype, 0)
        raw = self._buffers[buffer].raw(0)
        if not width or not 0 < len(raw) <= width * _MOST_VALUES or len(raw) % width:
            return None
        return tuple(raw.view(f"<i{width}").tolist())

    def _operator(self, where: str, table: Table, tensors: int) -> OperatorInfo:
        code = table.number(0, "I")
        if code >= len(self._types):
            raise self._fail(f"{where} has a type that does not exist")
        return OperatorInfo(
            self._types[code],
            self._indices(where, table.numbers(1), tensors),
            self._indices(where, table.numbers(2), tensors),
            self._read_entered(where, self._types[code], table),
            *self._options(self._types[code], table),
            _read_variable(self._types[code], table),
        )

    def _options(self, kind: str, table: Table) -> tuple[Mapping[str, int], tuple[int, ...] | None]:
        options, number = table.table(4), table.number(3, "B")
        if options is None:
            return {}, None
        if kind == "RESHAPE" and number == _RESHAPE[0]:
            return {}, options.numbers(_RESHAPE[1])
        known = find_row(kind).options
        if known is None or number != known.number:
            return {}, None
        fields = known.fields.items()
        return {name: options.number(slot, kind) for name, (slot, kind) in fields}, None

    def _indices(
        self, where: str, indices: tuple[int, ...] | None, tensors: int
    ) -> tuple[int, ...]:
        for index in indices or ():
            if not -1 <= index < tensors:
                raise self._fail(f"{where} refers to tensor {index}, but there are {tensors}")
        return indices or ()

    def _read_entered(self, where: str, kind: str, table: Table) -> tuple[int, ...]:
        enters = find_row(kind).enters
        if enters is None:
            return ()
        number, slots = enters
        options = table.table(4)
        if table.number(3, "B") != number or options is None:
            raise self._fail(f"{where} ({kind}) does not name its sub-graphs")
        entered = tuple(options.number(slot, "i") for slot in slots)
        for subgraph in entered:
            if not 0 <= subgraph < self._subgraph_count:
                raise self._fail(
                    f"{where} ({kind}) enters sub-graph {subgraph}, which does not exist"
                )
        return entered

    def _offsets(self, tensors: int) -> tuple[int, ...]:
        """Return the last offline plan in the metadata, as TFLM obeys the last."""
        found: list[int] = []
        for entry in self._root.tables(6):
            if entry.text(0) == OFFLINE_PLAN:
                found.append(entry.number(1, "I"))
        offsets: tuple[int, ...] = ()
        for number in dict.fromkeys(found):
            known = number < len(self._buffers)
            raw = self._buffers[number].raw(0) if known else np.empty(0, np.uint8)
            words = raw[: len(raw) // 4 * 4].view("<i4")
            if len(words) < 3 or len(words) < 3 + words[2]:
                raise self._fail(f"its {OFFLINE_PLAN} is cut off")
            if words[2] != tensors:
                raise self._fail(f"its {OFFLINE_PLAN} has {words[2]} offsets for {tensors} tensors")
            if number == found[-1]:
                offsets = tuple(words[3 : 3 + tensors].tolist())
        return offsets


def _count_scales(quantization: Table | None) -> int:
    """Return how many scales a tensor has; TFLM leaves out a quantization without zero points."""
    if quantization is None or not quantization.vector(3, 8)[1]:
        return 0
    return quantization.length(2)


def _read_variable(kind: str, operator: Table) -> str:
    """Return the name of the variable that a VAR_HANDLE stands for."""
    options = operator.table(4) if kind == "VAR_HANDLE" else None
    if options is None or operator.number(3, "B") != _HANDLE[0]:
        return ""
    return options.text(_HANDLE[1])
