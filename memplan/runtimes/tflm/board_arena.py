"""Computes the arena that TFLM needs on a board: `kTensorArenaSize` for another machine.

TFLM's arena has a *head*, which tensors and the scratch of kernels share, and a *persistent* part
from its end downwards, which lives as long as the interpreter: structs, options of operators, what
kernels keep, states. This repeats each of its allocations with the structs of the board.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memplan.programs.sources.options import Board
from memplan.runtimes.tflm import board_structs as structs
from memplan.runtimes.tflm.measure import compute_head, list_requests
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.boards import list_kernels, put_on_board
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, load
from memplan.runtimes.tflm.read.windows import round_up

__all__ = ["BoardArena", "compute_arena", "find_working"]

_UNIT: Final = 16  # what kernels keep is aligned to it, and so is the end of the arena
_MOST_REQUESTS: Final = 12  # of scratch, for which TFLM keeps room while it prepares an operator
_ARRAYS: Final = (16, 4, 4, 12, 4)  # bytes for a buffer in each array of TFLM's planner
_PLANNED: Final = sum(_ARRAYS)
_TABLE: Final = 2 * 513  # bytes of each of the two tables of a SOFTMAX of int16


@dataclass(frozen=True, slots=True)
class BoardArena:
    """The arena of a model on a board, in bytes."""

    board: Board  # with its kernels
    head: int  # what tensors and scratch share, placed by TFLM around the offsets in the file
    scratch: int  # the most scratch of one operator; it is a part of the head
    persistent: int  # what lives as long as the interpreter, with the states
    states: int  # the bytes of variables, which are a part of `persistent`
    # What the arena must hold while TFLM prepares the model; a plan does not make it less.
    preparing: int
    # The types of operators whose scratch or structs are not known, and not counted.
    unknown: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """What `arena_used_bytes()` returns on the board."""
        return self.head + self.persistent

    @property
    def size(self) -> int:
        """The `kTensorArenaSize` that is enough: a multiple of 16."""
        return round_up(max(self.used, self.preparing), _UNIT)


def compute_arena(model: Path | Model, board: Board) -> BoardArena:
    """Return the arena that a `.tflite` model needs on a board, with or without a plan in it."""
    model = load(model) if isinstance(model, Path) else model
    placed, unknown = put_on_board(model, board)
    kept = _Kept(_drop_folded(placed), board)
    persistent, early = kept.measure()
    requests = list(list_requests(placed))
    scratch = (sum(round_up(s, _UNIT) for s in o.scratch or ()) for o in _walk(placed))
    return BoardArena(
        board,
        compute_head(placed),
        max(scratch, default=0),
        persistent,
        kept.states,
        early + _measure_lists(placed, board) + len(requests) * _PLANNED,
        tuple(sorted({*unknown, *kept.unknown})),
    )


def find_working(model: Path | Model, board: Board, size: int) -> list[tuple[int, int]]:
    """Return where TFLM writes in an arena while its own planner places buffers.

    Its planner has five arrays, which it spreads over all of the arena that is free: they can lie
    in a hole between two memories, where none of the offsets does. For each, the first byte and the
    one behind the last are counted from the beginning of the arena, which is at a multiple of 16.
    """
    model = load(model) if isinstance(model, Path) else model
    placed, _ = put_on_board(model, board)
    _, early = _Kept(_drop_folded(placed), board).measure()
    begin, buffers = _measure_lists(placed, board), len(list(list_requests(placed)))
    room = max(0, (size - early) // _UNIT * _UNIT - begin) // _PLANNED
    found, at = [(0, begin)], begin
    for width in _ARRAYS:
        found.append((at, at + width * buffers))
        at += width * room
    return [*found, (size - early, size)]


def _measure_lists(model: Model, board: Board) -> int:
    """Return the bytes of requests for scratch and of lifetimes, which are at the beginning."""
    asked = sum(len(each.scratch or ()) for each in _walk(model))
    requests = (asked + _MOST_REQUESTS) * (board.pointer + 8)
    infos = (asked + model.first[-1]) * structs.measure_struct(board, structs.ALLOCATION)[0]
    return round_up(requests + len(model.subgraphs) * board.pointer + infos, _UNIT)


class _Kept:
    """The persistent part of the arena: allocations from its end downwards."""

    def __init__(self, model: Model, board: Board) -> None:
        self._model = model
        self._board, self._kernels = board, list_kernels()[board.kernels]
        self._end = 0  # below the end of the arena
        self._assigned: set[str] = set()  # variables that have their place
        self.states = 0
        self.unknown: set[str] = set()

    def measure(self) -> tuple[int, int]:
        """Return the bytes of it all, and of what is there when TFLM plans the head."""
        self._keep_interpreter()
        for operator in _walk(self._model):
            self._keep(find_row(operator.type).parameters)
        for operator in _walk(self._model):
            self._keep_kernel(operator)
        for subgraph in self._model.subgraphs:
            self._keep_prepared(subgraph)
        handles = sum(len(o.scratch or ()) for o in _walk(self._model))
        self._take(handles * self._board.pointer, self._board.pointer)
        for number, tensor in enumerate(self._model.tensors()):
            planned = self._model.offsets and self._model.offsets[number] != -1
            if tensor.variable and not planned:
                self._keep_state(tensor.bytes)
        early = self._end
        self._keep_ends()
        return self._end, early

    def _keep_interpreter(self) -> None:
        for fields in structs.ALLOCATOR:
            self._keep(fields)
        handles = sum(
            operator.type == "VAR_HANDLE" for operator in self._model.subgraphs[0].operators
        )
        if handles:
            self._take(self._size("variables"), _UNIT)
            self._take(handles * self._size("variable"), _UNIT)
        self._keep(structs.TENSOR["builder"])
        self._take(len(self._model.subgraphs) * self._size("subgraph"), self._board.pointer)
        for subgraph in self._model.subgraphs:
            self._take(len(subgraph.tensors) * self._size("evaluated"), self._board.pointer)
        for subgraph in self._model.subgraphs:
            self._take(len(subgraph.operators) * self._size("node"), self._board.pointer)

    def _keep_kernel(self, operator: OperatorInfo) -> None:
        fields = structs.find_kept(self._board, operator.type)
        if fields is None:
            self.unknown.add(operator.type)
        elif fields:
            self._take(structs.measure_struct(self._board, fields)[0], _UNIT)

    def _keep_prepared(self, subgraph: SubGraph) -> None:
        """Keep what kernels ask for once they know the shapes of their tensors."""
        names: dict[int, str] = {}
        for operator in subgraph.operators:
            tensors, output = subgraph.find_ends(operator)
            if operator.type == "VAR_HANDLE" and operator.outputs:
                names[operator.outputs[0]] = operator.variable
            elif operator.type == "ASSIGN_VARIABLE" and len(tensors) > 1 and tensors[1]:
                name = names.get(operator.inputs[0], "")
                if name not in self._assigned:
                    self._assigned.add(name)
                    self._keep_state(tensors[1].bytes)
            else:
                self._keep_tables(operator, tensors, output)

    def _keep_tables(
        self, operator: OperatorInfo, tensors: list[TensorInfo | None], output: TensorInfo | None
    ) -> None:
        """Keep multipliers, tables and shapes of one kernel."""
        if output is not None and find_row(operator.type).is_reshaped:
            self._take(4 + 4 * len(output.shape), _UNIT)
        if output is not None and output.dtype == "int8":
            fields = find_row(operator.type).keeps_of_int8
            self._take(structs.measure_struct(self._board, fields)[0], _UNIT)
        channels = self._count_channels(operator, tensors)
        if channels:
            self._take(4 * channels, _UNIT)
            self._take(4 * channels, _UNIT)
        source = tensors[0] if tensors else None
        if operator.type == "SOFTMAX" and source is not None and source.dtype == "int16":
            self._take(_TABLE, _UNIT)
            self._take(_TABLE, _UNIT)
        if self._kernels.count_sums is not None and output is not None:
            sums = self._kernels.count_sums(self._board.unit, operator, tensors, output)
            self._take(sums, _UNIT)

    def _count_channels(self, operator: OperatorInfo, tensors: list[TensorInfo | None]) -> int:
        """Return for how many channels a kernel keeps a multiplier and a shift."""
        axis = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": -1, "TRANSPOSE_CONV": 0}.get(operator.type)
        source, weights = (*tensors, None, None)[:2]
        if weights is None or source is None:
            return 0
        if operator.type == "FULLY_CONNECTED":
            return weights.scales if weights.scales > 1 and source.dtype != "float32" else 0
        if axis is None or not weights.shape:
            return 0
        quantized = source.dtype in ("int8", "int16") or operator.type == "TRANSPOSE_CONV"
        return weights.shape[axis] if quantized or self._kernels.scales_floats else 0

    def _keep_state(self, bytes: int) -> None:
        self.states += bytes
        self._take(bytes, _UNIT)

    def _keep_ends(self) -> None:
        """Keep what the interpreter has of the inputs and outputs of the program."""
        program = self._model.subgraphs[0]
        for ends in (program.inputs, program.outputs):
            self._take(len(ends) * self._board.pointer, _UNIT)
            for index in ends:
                self._keep(structs.TENSOR["tensor"])
                if scales := program.tensors[index].scales:
                    self._keep(structs.TENSOR["quantization"])
                    self._take(4 + 4 * scales, 4)

    def _size(self, name: str) -> int:
        return structs.measure_struct(self._board, structs.TENSOR[name])[0]

    def _keep(self, fields: str | None) -> None:
        if fields:
            self._take(*structs.measure_struct(self._board, fields))

    def _take(self, bytes: int, unit: int) -> None:
        if bytes:
            self._end = round_up(self._end + bytes, unit)


def _drop_folded(model: Model) -> Model:
    """Leave out operators that only unpack weights: `memplan plan` does, and TFLM needs that."""
    folded = find_folded(model)
    subgraphs = tuple(
        replace(
            each,
            operators=tuple(o for at, o in enumerate(each.operators) if at not in folded[number]),
        )
        for number, each in enumerate(model.subgraphs)
    )
    return replace(model, subgraphs=subgraphs)


def _walk(model: Model) -> Iterator[OperatorInfo]:
    """Yield the operators of all sub-graphs."""
    for subgraph in model.subgraphs:
        yield from subgraph.operators
