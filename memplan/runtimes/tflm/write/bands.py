"""Writes a program in bands into a TFLite file, with ordinary operators.

A part of an operator is the same operator on fewer rows: SAME padding stays, as the rows that it
makes too many at the ends of a band are cut off. Bands are taken with SLICE and joined with
CONCATENATION; TFLM's kernels of both copy, element i to element i, so a plan may let the part lie
at its place in the whole.
"""

from __future__ import annotations

import copy
from typing import Any, Final

import numpy as np

from memplan.base.errors import FormatError
from memplan.levers.rewrite.bands import Action, Cut, Do
from memplan.programs.graph.pictures import Shifted
from memplan.runtimes.bands import find_rules, label_part
from memplan.runtimes.tflm.names import OPERATORS
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.model import OFFLINE_PLAN
from memplan.runtimes.tflm.write.folding import rewrite

__all__ = ["write_bands"]

_VALID: Final = 1  # of the schema's Padding
_INT32: Final = 2  # of the schema's TensorType
_SLICE, _JOIN, _PAD = map(OPERATORS.index, ("SLICE", "CONCATENATION", "PAD"))
_SIZES: Final = {"RESIZE_BILINEAR": 1, "RESIZE_NEAREST_NEIGHBOR": 1, "TRANSPOSE_CONV": 0}


def write_bands(data: bytes, name: str, found: Cut) -> tuple[bytes, dict[int, int]]:
    """Return a file with the operators of a cut, without a plan, and its tensors' numbers.

    The cut is of the first sub-graph of the given file, whose weights are unpacked. Tensors that no
    operator touches have no number.
    """
    try:
        return rewrite(data, lambda tree, schema: _Writer(tree, schema, found).write())
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise FormatError(name, f"its bands cannot be written: {error}") from None


class _Writer:
    def __init__(self, tree: Any, schema: Any, found: Cut) -> None:
        self._tree = tree
        self._schema = schema
        self._cut = found
        self._subgraph = tree.subgraphs[0]
        self._known = len(found.uncut.graph.tensors)
        self._given = len(self._subgraph.tensors)
        self._tensors: dict[int, int] = {}  # by tensor of the cut
        self._constants: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, int] = {}

    def write(self) -> dict[int, int]:
        subgraph = self._subgraph
        old = list(subgraph.operators)
        subgraph.operators = [self._operator(old, action) for action in self._cut.actions]
        return self._renumber()

    def _operator(self, old: list[Any], action: Action) -> Any:
        graph = self._cut.uncut.graph
        if action.do is Do.SLICE:
            shape = self._shape(action.output)
            begin = (0, *action.begin, 0)
            inputs = [self._number(action.inputs[0]), self._constant(begin), self._constant(shape)]
            return self._new(_SLICE, self._schema.SliceOptionsT(), "SliceOptions", inputs, action)
        if action.do is Do.JOIN:
            options = self._schema.ConcatenationOptionsT()
            options.axis = 1 + action.axis
            inputs = list(map(self._number, action.inputs))
            return self._new(_JOIN, options, "ConcatenationOptions", inputs, action)
        if action.do is Do.PAD:
            inputs = [self._number(action.inputs[0]), self._constant(self._zeros(action))]
            return self._new(_PAD, self._schema.PadOptionsT(), "PadOptions", inputs, action)
        operator = old[graph.operators[action.step].place[1]]
        return operator if action.do is Do.WHOLE else self._part(operator, action)

    def _part(self, operator: Any, action: Action) -> Any:
        """Return an operator on fewer rows."""
        step = self._cut.uncut.operators[action.step]
        made = copy.copy(operator)
        pictures = {read.tensor for read in step.reads}
        pieces = iter(action.inputs)
        inputs = [next(pieces) if int(i) in pictures else int(i) for i in operator.inputs]
        if find_row(step.type).rows == "join":
            inputs = [tensor for tensor in inputs if tensor >= 0]
        made.inputs = [self._number(tensor) for tensor in inputs]
        made.outputs = [self._number(action.output)]
        if step.type in _SIZES:
            shape = self._shape(action.output)
            size = shape if step.type == "TRANSPOSE_CONV" else shape[1:3]
            made.inputs[_SIZES[step.type]] = self._constant(size)
        if action.padded:
            made.builtinOptions = copy.copy(operator.builtinOptions)
            made.builtinOptions.padding = _VALID
        if step.type in ("PAD", "PADV2"):
            made.inputs[1] = self._constant(self._pads(action, int(operator.inputs[1])))
        return made

    def _pads(self, action: Action, amounts: int) -> tuple[int, ...]:
        """Return the amounts of a PAD for a part of its result."""
        buffer = self._tree.buffers[self._subgraph.tensors[amounts].buffer]
        wide = self._subgraph.tensors[amounts].type != _INT32
        values = np.asarray(buffer.data, np.uint8).view("<i8" if wide else "<i4").tolist()
        for axis, (rule, fed, made) in enumerate(find_rules(self._cut, action)):
            assert isinstance(rule, Shifted)
            values[2 + 2 * axis : 4 + 2 * axis] = rule.pads(fed, made)
        return tuple(values)

    def _zeros(self, action: Action) -> tuple[int, ...]:
        """Return the amounts of a PAD that puts zeros around a band."""
        (_, given), (_, made) = self._cut.part(action.inputs[0]), self._cut.part(action.output)
        sides: list[int] = []
        for (first, last), (begin, end) in zip(given, made, strict=True):
            sides += (first - begin, end - last)
        return 0, 0, *sides, 0, 0

    def _shape(self, tensor: int) -> tuple[int, ...]:
        picture, ((top, bottom), (left, right)) = self._cut.part(tensor)
        *_, channels = self._subgraph.tensors[picture].shape
        return 1, bottom - top, right - left, int(channels)

    def _number(self, tensor: int) -> int:
        """Return the number of a tensor of the cut among those of the file, for now."""
        if tensor < self._known:
            return tensor
        if tensor not in self._tensors:
            picture, _ = self._cut.part(tensor)
            made = copy.copy(self._subgraph.tensors[picture])
            made.name = (made.name or b"") + label_part(self._cut, tensor).encode()
            made.shape = list(self._shape(tensor))
            made.shapeSignature = None
            made.buffer = 0
            self._tensors[tensor] = len(self._subgraph.tensors)
            self._subgraph.tensors.append(made)
        return self._tensors[tensor]

    def _constant(self, values: tuple[int, ...]) -> int:
        """Return a constant of whole numbers; equal ones are in the file once."""
        if values not in self._constants:
            buffer, tensor = self._schema.BufferT(), self._schema.TensorT()
            buffer.data = np.array(values, "<i4").view(np.uint8)
            square = 2 * len(values) // 2 if len(values) != 8 else 0
            tensor.shape = [square] if square else [4, 2]
            tensor.type, tensor.buffer = _INT32, len(self._tree.buffers)
            tensor.name = "amounts " + " ".join(map(str, values))
            self._tree.buffers.append(buffer)
            self._constants[values] = len(self._subgraph.tensors)
            self._subgraph.tensors.append(tensor)
        return self._constants[values]

    def _new(self, code: int, options: Any, kind: str, inputs: list[int], action: Action) -> Any:
        made = self._schema.OperatorT()
        made.opcodeIndex = self._code(code)
        made.builtinOptions = options
        made.builtinOptionsType = getattr(self._schema.BuiltinOptions, kind)
        made.inputs, made.outputs = inputs, [self._number(action.output)]
        return made

    def _code(self, number: int) -> int:
        """Return the index of a type of operators among those of the file."""
        if number not in self._codes:
            made = self._schema.OperatorCodeT()
            made.builtinCode = made.deprecatedBuiltinCode = number
            made.version = 2  # the first one for int8
            self._codes[number] = len(self._tree.operatorCodes)
            self._tree.operatorCodes.append(made)
        return self._codes[number]

    def _renumber(self) -> dict[int, int]:
        """Drop the tensors that nothing touches; return the number of each that is left."""
        subgraph = self._subgraph
        touched = {int(i) for o in subgraph.operators for i in (*o.inputs, *o.outputs)}
        touched |= {int(i) for i in (*subgraph.inputs, *subgraph.outputs)}
        left = [at for at in range(len(subgraph.tensors)) if at in touched]
        number = {old: new for new, old in enumerate(left)} | {-1: -1}
        subgraph.tensors = [subgraph.tensors[at] for at in left]
        changed: set[int] = set()
        for operator in subgraph.operators:
            if id(operator) not in changed:
                operator.inputs = [number[int(i)] for i in operator.inputs]
                operator.outputs = [number[int(i)] for i in operator.outputs]
                changed.add(id(operator))
        subgraph.inputs = [number[int(i)] for i in subgraph.inputs]
        subgraph.outputs = [number[int(i)] for i in subgraph.outputs]
        for signature in self._tree.signatureDefs or ():
            if signature.subgraphIndex == 0:
                for entry in (*(signature.inputs or ()), *(signature.outputs or ())):
                    entry.tensorIndex = number[int(entry.tensorIndex)]
        plan = OFFLINE_PLAN.encode()
        kept = [entry for entry in self._tree.metadata or () if entry.name != plan]
        self._tree.metadata = kept or None
        places = {tensor: tensor for tensor in range(self._given)} | self._tensors
        return {tensor: number[at] for tensor, at in places.items() if at in number}
