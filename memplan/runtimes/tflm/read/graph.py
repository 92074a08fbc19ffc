"""Builds a graph from a TFLite model, as TensorFlow Lite Micro runs it.

TFLM copies what goes into a sub-graph and what comes out of it. So an operator that enters one is

    IF ──► then: copy in, operators, copy out
       └─► else: copy in, operators, copy out       WHILE: the same with condition and body

and its inputs and outputs are needed from its beginning to its end. A branch could do with shorter
lifetimes, but TFLM uses these when it places kernel scratch around a plan (`kernels.scratch`).
Lifetimes and loads are equal to those of `memplan.runtimes.tflm.measure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from memplan.base.errors import FormatError, quoted
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View, lives
from memplan.runtimes.tflm.names import element_bytes, format_place, is_custom, is_on_heap
from memplan.runtimes.tflm.read.kernels import find_overwritable, find_parts, list_scratch
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.pictures import ROW_AXIS, describe_rows

__all__ = [
    "ALIGNMENT",
    "UNKNOWN_CONTROL",
    "find_folded",
    "find_handles",
    "find_scratch_inputs",
    "find_workspaces",
    "graph_of",
    "round_up",
]

ALIGNMENT: Final = 16  # TFLM's MicroArenaBufferAlignment(); sizes are rounded up to it too
_DEEPEST: Final = 64  # levels of sub-graphs in sub-graphs
_MOST_TIMES: Final = 16  # average visits, as sub-graphs may be entered again
# TFLM does not have these operators with sub-graphs.
UNKNOWN_CONTROL: Final = frozenset(
    {"CALL", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE"}
)


def round_up(size: int) -> int:
    """Return what TFLM reserves for a number of bytes."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def find_folded(model: Model) -> dict[int, set[int]]:
    """Return by sub-graph the operators that only unpack constants of the file.

    Weights stored as float16 or sparse have a DEQUANTIZE or DENSIFY behind them. TFLM refuses
    both, so the model runs on it only with the unpacked weights in the file; elsewhere the runtime
    unpacks them once, outside of its arena.
    """
    found: dict[int, set[int]] = {}
    for number, subgraph in enumerate(model.subgraphs):
        known = {index for index, tensor in enumerate(subgraph.tensors) if tensor.data}
        found[number] = set()
        for index, operator in enumerate(subgraph.operators):
            if operator.type not in ("DEQUANTIZE", "DENSIFY") or len(operator.inputs) != 1:
                continue
            operand = operator.inputs[0]
            packed = operator.type == "DENSIFY" or subgraph.tensors[operand].dtype == "float16"
            if operand in known and packed:
                known.update(operator.outputs)
                found[number].add(index)
    return found


def find_handles(model: Model) -> set[int]:
    """Return the tensors (of all sub-graphs) outside of the plan: TFLM places variable handles.

    A VAR_HANDLE keeps the number of its variable outside of the arena.
    """
    return {
        first + index
        for first, subgraph in zip(model.first, model.subgraphs, strict=False)
        for operator in subgraph.operators
        if operator.type == "VAR_HANDLE"
        for index in operator.outputs
    }


def find_workspaces(graph: Graph) -> dict[int, int]:
    """Return by the first result of an operator the tensor that holds all its scratch.

    Where a sub-graph is entered several times, those of its copies are there too.
    """
    return {
        operator.makes: tensor
        for operator in graph.walk()
        for tensor in operator.outputs[1:]
        if graph.tensors[tensor].kind is Kind.WORKSPACE
    }


def find_scratch_inputs(model: Model) -> set[int]:
    """Return the tensors (of all sub-graphs) that custom operators read and nothing makes.

    Compilers for accelerators (Vela for Ethos-U) give their operator scratch in this way. TFLM
    allocates it from the start of the run to the last operator that reads it.
    """
    found: set[int] = set()
    for first, subgraph in zip(model.first, model.subgraphs, strict=False):
        made = {*subgraph.inputs, *(i for each in subgraph.operators for i in each.outputs)}
        for operator in subgraph.operators:
            if is_custom(operator.type):
                found.update(first + i for i in operator.inputs if i >= 0 and i not in made)
    tensors = tuple(model.tensors())
    return {i for i in found if tensors[i].bytes and not (tensors[i].data or tensors[i].variable)}


def graph_of(model: Model) -> Graph:
    """Return the graph that TFLM runs, with one tensor for each of the file, in its order.

    Kernel scratch follows them, and copies for sub-graphs that are entered more than once; each
    copy is an alias of its original. Refused are sizes that are not known before the run,
    sub-graphs that enter each other in a circle, and operators that are not in order.
    """
    graph = _Builder(model).graph()
    views = tuple(_find_planned_views(model, graph)) if model.offsets else ()
    return replace(graph, views=views) if views else graph


def _find_planned_views(model: Model, graph: Graph) -> Iterator[View]:
    """Yield the tensors that lie in others, as the offsets in the file imply.

    These are what a compiler for an accelerator places inside of the scratch of its operator, parts
    that a kernel copies onto themselves, and results written over inputs.
    """
    times = lives(graph)
    base: dict[int, int] = {}  # by view: what it lies in
    for part, whole, offset in _iterate_in_scratch(graph):
        base[part] = whole
        yield View(part, whole, offset)
    for part, whole, offset in _iterate_parts(model, graph):
        one, other = graph.tensors[part].pin, graph.tensors[whole].pin
        same = one is not None and other is not None and one == other + offset
        inside = offset + graph.tensors[part].bytes <= graph.tensors[whole].bytes
        if same and inside and part not in base and part != _find_root(base, whole):
            base[part] = whole
            yield View(part, whole, offset)
    ends: dict[int, int] = {}  # by tensor that others lie in: when the last one dies
    for part in base:
        root = _find_root(base, part)
        ends[root] = max(ends.get(root, times.end[root]), times.end[part])
    for operator in graph.walk():
        for operand, result in operator.in_place:
            pin = graph.tensors[operand].pin
            same = pin is not None and pin == graph.tensors[result].pin
            root = _find_root(base, operand)
            dies_here = ends.get(root, times.end[operand]) == times.start[result] + 1
            fits = graph.tensors[result].bytes <= graph.tensors[operand].bytes
            if same and dies_here and fits and result not in base:
                base[result] = operand
                ends[root] = times.end[result]
                yield View(result, operand)


def _iterate_in_scratch(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Yield the part, the whole, and the offset, of tensors that lie in the scratch of operators.

    Vela lays out all tensors of an accelerator in one scratch, which its operators share.
    """
    pins = [(t.pin, t.pin + t.bytes, i) for i, t in enumerate(graph.tensors) if t.pin is not None]
    wholes = [each for each in pins if each[2] in graph.inputs and _is_scratch(graph, each[2])]
    wholes.sort(key=lambda each: (each[0] - each[1], each[2]))  # the largest first
    inside: set[int] = set()
    for begin, end, whole in wholes:
        if whole in inside:
            continue
        for lower, upper, part in pins:
            if part != whole and part not in inside and begin <= lower <= upper <= end:
                inside.add(part)
                yield part, whole, lower - begin


def _is_scratch(graph: Graph, tensor: int) -> bool:
    return graph.tensors[tensor].kind is Kind.WORKSPACE


def _find_root(base: Mapping[int, int], tensor: int) -> int:
    while tensor in base:
        tensor = base[tensor]
    return tensor


def _iterate_parts(model: Model, graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Yield the part, the whole, and the offset, of operators of the first sub-graph."""
    main = model.subgraphs[0]
    for operator in graph.operators:
        info = main.operators[operator.place[1]]
        if len(info.outputs) != 1 or info.outputs[0] < 0:
            continue
        tensors = [main.tensors[i] if i >= 0 else None for i in info.inputs]
        for part, whole, offset in find_parts(info, tensors, main.tensors[info.outputs[0]]):
            ends = [info.outputs[0] if at < 0 else info.inputs[at] for at in (part, whole)]
            yield ends[0], ends[1], offset


class _Builder:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._first = model.first
        self._folded = find_folded(model)
        self._handles = find_handles(model)
        self._steps = 0
        self._most_steps = _MOST_TIMES * sum(
            1 + len(s.operators) + len(s.tensors) for s in model.subgraphs
        )
        self._entered: set[int] = set()
        self._scratch_inputs = find_scratch_inputs(model)
        self._given: list[int] = []  # tensors that nothing makes, though an operator reads them
        self._workspaces: dict[tuple[int, int], int] = {}
        self._aliases: list[tuple[int, int]] = []
        self._names: dict[str, int] = {}
        self._tensors: list[Tensor] = []
        self._infos: list[TensorInfo] = []
        self._unpacked: set[int] = set()  # tensors of the graph

    def graph(self) -> Graph:
        for number in range(len(self._model.subgraphs)):
            self._add_tensors(number)
        program = self._model.subgraphs[0]
        operators = self._operators(0, 0, ())
        pinned = any(t.pin is not None and t.kind is Kind.VARIABLE for t in self._tensors)
        kinds = {Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE}
        return Graph(
            self._model.name,
            tuple(self._tensors),
            tuple(operators),
            (*_drop_missing(program.inputs, 0), *self._given),
            _drop_missing(program.outputs, 0),
            aliases=tuple(self._aliases),
            alignment=ALIGNMENT,
            planned=frozenset(kinds | ({Kind.VARIABLE} if pinned else set())),
            source="tflite",
            row_axis=ROW_AXIS,
        )

    def _add_tensors(self, number: int) -> None:
        subgraph, base = self._model.subgraphs[number], self._first[number]
        unpacked = {
            output for index in self._folded[number] for output in subgraph.operators[index].outputs
        }
        offsets = self._model.offsets[base : base + len(subgraph.tensors)]
        for index, info in enumerate(subgraph.tensors):
            if index in unpacked:
                self._unpacked.add(len(self._tensors))
            kind = self._kind(number, index, index in unpacked)
            if kind is Kind.WORKSPACE:
                self._given.append(len(self._tensors))
            pin = offsets[index] if offsets and offsets[index] != -1 else None
            self._infos.append(info)
            self._tensors.append(
                Tensor(
                    self._make_distinct(info.name or f"tensor {index} of sub-graph {number}"),
                    self._size(info),
                    kind,
                    info.dtype,
                    info.shape,
                    None if kind is Kind.CONSTANT else pin,
                )
            )

    def _kind(self, number: int, index: int, unpacked: bool) -> Kind:
        info = self._model.subgraphs[number].tensors[index]
        if info.data or unpacked or not info.elements or is_on_heap(info.dtype):  # no place needed
            return Kind.CONSTANT
        if info.variable or self._first[number] + index in self._handles:
            return Kind.VARIABLE
        if self._first[number] + index in self._scratch_inputs:
            return Kind.WORKSPACE
        if number == 0 and index in self._model.subgraphs[0].inputs:
            return Kind.INPUT
        if number == 0 and index in self._model.subgraphs[0].outputs:
            return Kind.OUTPUT
        return Kind.INTERMEDIATE

    def _size(self, info: TensorInfo) -> int:
        if info.data or info.elements == 0 or is_on_heap(info.dtype):
            return info.bytes
        name = quoted(info.name)
        open_axes = [axis for axis, size in enumerate(info.shape) if size < 0]
        if open_axes:
            raise FormatError(
                self._model.name,
                f"tensor {name} has no size along dimension {open_axes[0]}: give it with "
                "--dim batch=N, or convert the model with fixed shapes",
            )
        if element_bytes(info.dtype) is None:
            raise FormatError(
                self._model.name,
                f"tensor {name} has elements of type {info.dtype}, whose size is known only at run "
                "time: it cannot be planned",
            )
        return info.bytes

    def _make_distinct(self, name: str) -> str:
        """Return a name that no tensor has yet."""
        found = name
        while found in self._names:
            self._names[name] += 1
            found = f"{name} ({self._names[name]})"
        self._names[found] = 1
        return found

    def _operators(self, number: int, base: int, path: tuple[int, ...]) -> list[Operator]:
        """Return the operators of a sub-graph, with its tensors from `base` on."""
        if number in path:
            raise self._fail(f"sub-graph {number} enters itself")
        if len(path) == _DEEPEST:
            raise self._fail(f"sub-graphs are nested more than {_DEEPEST} deep")
        self._count(len(self._model.subgraphs[number].operators))
        return [
            self._operator(number, index, info, base, path)
            for index, info in enumerate(self._model.subgraphs[number].operators)
            if index not in self._folded[number]
        ]

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > self._most_steps:
            raise self._fail(f"its sub-graphs are entered more than {_MOST_TIMES} times on average")

    def _fail(self, sentence: str) -> FormatError:
        return FormatError(self._model.name, f"the model cannot run: {sentence}")

    def _operator(
        self, number: int, index: int, info: OperatorInfo, base: int, path: tuple[int, ...]
    ) -> Operator:
        name = format_place(number, index)
        if info.type in UNKNOWN_CONTROL:
            raise self._fail(f"TFLM does not support {info.type} (operator {name})")
        inputs = [base + i if i >= 0 else None for i in info.inputs]
        outputs = _drop_missing(info.outputs, base)
        infos = [None if i is None else self._infos[i] for i in inputs]
        output = self._infos[outputs[0]] if outputs else None
        operator = Operator(
            name,
            info.type,
            tuple(i for i in inputs if i is not None),
            outputs + self._scratch((number, index), name, list_scratch(info, infos, output)),
            in_place=tuple(self._in_place(info.type, inputs, infos, outputs)),
            origin=(number, index),
            **self._describe(info, inputs, infos, output),
        )
        return self._with_blocks(operator, info, (*path, number)) if info.subgraphs else operator

    def _describe(
        self,
        info: OperatorInfo,
        inputs: Sequence[int | None],
        infos: Sequence[TensorInfo | None],
        output: TensorInfo | None,
    ) -> dict[str, Any]:
        """Return which rows an operator needs for a part of its result.

        Weights that the file has packed are there for it.
        """
        known = [
            replace(each, data=each.bytes) if each is not None and at in self._unpacked else each
            for at, each in zip(inputs, infos, strict=True)
        ]
        return describe_rows(info, known, inputs, output)

    def _scratch(self, key: tuple[int, int], name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return one tensor for an operator's scratch, or none.

        One tensor holds all parts, so that they fit in any order in which TFLM places them. If
        the sub-graph is entered more than once, the tensor keeps its place from the first time to
        the last.
        """
        size = sum(round_up(size) for size in sizes)
        if not size:
            return ()
        new = len(self._tensors)
        self._tensors.append(
            Tensor(self._make_distinct(f"{name} (workspace)"), size, Kind.WORKSPACE)
        )
        self._infos.append(TensorInfo("", "uint8", (size,)))
        first = self._workspaces.setdefault(key, new)
        if first != new:
            self._aliases.append((first, new))
        return (new,)

    def _in_place(
        self,
        type_: str,
        inputs: Sequence[int | None],
        infos: Sequence[TensorInfo | None],
        outputs: tuple[int, ...],
    ) -> Iterator[tuple[int, int]]:
        if not outputs:
            return
        for position in find_overwritable(type_, infos, self._infos[outputs[0]]):
            operand = inputs[position]
            # If the file gives one of the two an offset, the file decides whether they share it.
            if operand is not None and self._tensors[operand].pin == self._tensors[outputs[0]].pin:
                yield operand, outputs[0]

    def _with_blocks(
        self, operator: Operator, info: OperatorInfo, path: tuple[int, ...]
    ) -> Operator:
        loop = info.type == "WHILE"
        given = [operator.inputs if loop else operator.inputs[1:]]  # the first chooses the branch
        # The outputs of a loop hold its state: TFLM copies the inputs there before the first round,
        # and copies from there into condition and body in every round.
        given.append(operator.outputs if loop else given[0])
        blocks = [
            self._block(operator, number, copied, path)
            for number, copied in zip(info.subgraphs, given, strict=False)
        ]
        blocks[0] = replace(blocks[0], inputs=operator.outputs)
        return replace(operator, blocks=tuple(blocks), loop=loop)

    def _block(
        self, operator: Operator, number: int, given: tuple[int, ...], path: tuple[int, ...]
    ) -> Block:
        subgraph, base = self._model.subgraphs[number], self._find_base(number)
        results = _drop_missing(subgraph.outputs, base)
        copy = replace(operator, in_place=())
        copy_in = replace(copy, inputs=given, outputs=_drop_missing(subgraph.inputs, base))
        copy_out = replace(copy, inputs=(*operator.inputs, *results), outputs=())
        steps = (copy_in, *self._operators(number, base, path), copy_out)
        return Block(subgraph.name or f"sub-graph {number}", steps)

    def _find_base(self, number: int) -> int:
        """Return the first tensor of a sub-graph, or of a copy where it was entered before."""
        if number not in self._entered:
            self._entered.add(number)
            return self._first[number]
        base, count = len(self._tensors), len(self._model.subgraphs[number].tensors)
        self._count(count)
        for index in range(self._first[number], self._first[number] + count):
            if index in self._scratch_inputs:
                self._given.append(len(self._tensors))
            self._aliases.append((index, len(self._tensors)))
            self._infos.append(self._infos[index])
            tensor = self._tensors[index]
            self._tensors.append(replace(tensor, name=self._make_distinct(tensor.name), pin=None))
        return base


def _drop_missing(indices: Iterable[int], base: int) -> tuple[int, ...]:
    """Return indices in the graph, each once, without those that are no tensor."""
    return tuple(dict.fromkeys(base + index for index in indices if index >= 0))
