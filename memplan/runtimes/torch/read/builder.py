"""Builds a graph from an exported program: which tensors share a storage or may overwrite it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from memplan.base.errors import GraphError, quoted
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.runtimes.torch.operators import find_row
from memplan.runtimes.torch.read import aten
from memplan.runtimes.torch.read.pictures import describe_rows
from memplan.runtimes.torch.read.program import Body, Exported, Node
from memplan.runtimes.torch.read.values import Value

__all__ = ["graph_with_indices", "shorten_type"]

_ALIGNMENT = {"cpu": 64, "cuda": 512}  # of PyTorch's allocators


def graph_with_indices(program: Exported, *, rows: bool = True) -> tuple[Graph, dict[str, int]]:
    """Return the graph of an exported program, and the index of each tensor by its name there.

    With `rows`, the rows of its inputs that each operator needs are found. A program that names a
    tensor that it does not have, or makes one twice, is refused.
    """
    count = sum(not given.same for given in program.inputs)
    builder = _Builder(_find_read(program), count, rows=rows)
    first = {given.value.name: given.same for given in program.inputs if given.same}
    replaced = {first.get(argument, argument) for _, argument in program.updates}
    for given in program.inputs:
        if given.same:
            builder.add_name(given.value, given.same)
            continue
        state = given.kind is Kind.CONSTANT and given.value.name in replaced
        builder.add(given.value, Kind.VARIABLE if state else given.kind, label=given.label)
    operators = builder.operators(program.nodes)
    operators += builder.make_copies(program.updates, operators)
    builder.mark_written(program.nodes)
    return builder.graph(program, operators), builder.indices


class _Builder:
    """Collects tensors, and for each its storage and the place where it begins there.

    `read` are names of the tensors that operators read or the program returns; `given` says how
    many tensors are inputs of the program, which are added first. For `rows`, see
    `graph_with_indices`.
    """

    def __init__(self, read: Container[str], given: int, *, rows: bool) -> None:
        self._read = read
        self._given = given
        self._rows = rows
        self._tensors: list[Tensor] = []
        self._values: list[Value] = []
        self._root: list[int] = []
        self._at: list[int] = []
        self._views: list[View] = []
        self._aliases: list[tuple[int, int]] = []
        self.indices: dict[str, int] = {}  # by name of a tensor in the program
        self._labels: set[str] = set()

    def add(self, value: Value, kind: Kind = Kind.INTERMEDIATE, *, label: str = "") -> int:
        """Add a tensor with a storage of its own."""
        index = self._append(value, kind, label or value.name, max(value.reach, value.storage))
        self._root.append(index)
        self._at.append(value.start)
        return index

    def add_name(self, value: Value, tensor: str) -> None:
        """Give a tensor that was added another name, as modules share a weight."""
        if value.name in self.indices:
            raise GraphError(f"two operators make tensor {quoted(value.name)}")
        self.indices[value.name] = self._find(tensor)

    def add_view(self, value: Value, base: int, *, same: bool = False) -> int:
        """Add a tensor in the storage of another; `same`: it is that tensor in another scope."""
        index = self._append(value, Kind.INTERMEDIATE, value.name, value.span)
        at = self._at[base] + (0 if same else value.start - self._values[base].start)
        self._root.append(self._root[base])
        self._at.append(at)
        self._views.append(View(index, self._root[base], at))
        return index

    def _append(self, value: Value, kind: Kind, label: str, size: int) -> int:
        if value.name in self.indices:
            raise GraphError(f"two operators make tensor {quoted(value.name)}")
        while label in self._labels:  # a weight may have the name of an operator
            label += "'"
        self._labels.add(label)
        self.indices[value.name] = len(self._tensors)
        self._values.append(value)
        self._tensors.append(Tensor(label, size, kind, value.dtype, value.sizes))
        return self.indices[value.name]

    def _find(self, name: str) -> int:
        index = self.indices.get(name)
        if index is None:
            raise GraphError(f"no operator makes tensor {quoted(name)} before it is read")
        return index

    def operators(self, nodes: Iterable[Node]) -> list[Operator]:
        """Add the tensors of a sequence of nodes, and return its operators."""
        found = []
        for node in nodes:
            if node.bodies:
                found.append(self._with_bodies(node))
            elif (node.inputs or node.outputs) and not find_row(node.target).is_metadata:
                found.append(self._operator(node))
        return found

    def _operator(self, node: Node) -> Operator:
        inputs = self._inputs(node)
        outputs = tuple(
            self.add(self._extend_result(node, value, inputs))
            if shared is None
            else self.add_view(value, self._find(shared))
            for value, shared in zip(node.outputs, node.shares, strict=True)
        )
        pairs = self._in_place(node, inputs, outputs[0]) if len(outputs) == 1 else ()
        return Operator(
            node.name,
            shorten_type(node.target),
            inputs,
            outputs,
            in_place=pairs,
            module=node.module,
            line=node.line,
            origin=node.origin,
            **self._describe_rows(node),
        )

    def _describe_rows(self, node: Node) -> dict[str, Any]:
        """Return which rows an operator needs for a part of its result."""
        if not self._rows:
            return {"why_whole": "its rows were not looked for"}
        indices = [self._find(name) for name in node.inputs]
        values = [self._values[index] for index in indices]
        is_alone = all(value.name not in self._read for value in node.outputs[1:])
        return describe_rows(node, values, indices, self._given, is_alone=is_alone)

    def _extend_result(self, node: Node, value: Value, inputs: Sequence[int]) -> Value:
        """Return a result; it has the size of the whole storage if the operator copies that."""
        if not inputs or not aten.copies_storage(node.target, self._values[inputs[0]], value):
            return value
        return replace(value, storage=self._tensors[self._root[inputs[0]]].bytes)

    def _inputs(self, node: Node) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._find(name) for name in node.inputs))

    def _in_place(
        self, node: Node, inputs: Sequence[int], output: int
    ) -> tuple[tuple[int, int], ...]:
        """Return the inputs over which an operator may write its result.

        The input has to fill a storage that the program owns. If the operator reads that storage
        through other inputs too, they must have the same layout, or the operator could read
        elements that it has overwritten.
        """
        if self._root[output] != output:
            return ()
        values = tuple(self._values[index] for index in inputs)
        pairs = []
        for name in aten.in_place_inputs(node.target, values, self._values[output]):
            index = self.indices[name]
            root, value = self._root[index], self._values[index]
            others = [i for i in inputs if i != index and self._root[i] == root]
            alike = all(self._values[i].layout == value.layout for i in others)
            fills = self._at[index] == 0 and self._tensors[root].bytes == value.span
            own = self._tensors[root].kind in (Kind.INTERMEDIATE, Kind.VARIABLE)
            if own and fills and alike and not (others and aten.is_update(node.target)):
                pairs.append((index, output))
        return tuple(pairs)

    def _with_bodies(self, node: Node) -> Operator:
        """Add a higher-order operator.

        Bodies that run once read their operands in place. A loop keeps its state in the parameters
        of its first body, and every round copies its results there.
        """
        kind = shorten_type(node.target).removesuffix("_impl")
        inputs = self._inputs(node)
        blocks: list[Block] = []
        first: list[int | None] = []
        for body in node.bodies:
            carried = len(node.bodies[-1].outputs) if kind == "while_loop" else 0
            parameters, own = self._parameters(node, body, first, carried)
            first = first or parameters
            operators = tuple(self.operators(body.nodes))
            results = tuple(self._find(name) for name in body.outputs if name is not None)
            blocks.append(Block(body.name, operators, own, results))
        outputs = self._results(node, kind, blocks, first)
        if kind in ("scan", "map"):  # every round writes a part of the results
            blocks[0] = replace(blocks[0], inputs=blocks[0].inputs + outputs)
        loop = kind in ("scan", "map", "while_loop")
        return Operator(
            node.name,
            shorten_type(node.target),
            inputs,
            outputs,
            blocks=tuple(blocks),
            loop=loop,
            module=node.module,
            line=node.line,
            origin=node.origin,
            why_whole="it has sub-graphs",
        )

    def _parameters(
        self, node: Node, body: Body, first: Sequence[int | None], carried: int
    ) -> tuple[list[int | None], tuple[int, ...]]:
        """Add the parameters of a body; return them, and those with memory of their own."""
        found: list[int | None] = []
        own = []
        bound = len(node.operands) == len(body.inputs)
        for position, value in enumerate(body.inputs):
            operand = node.operands[position] if bound else None
            before = first[position] if bound and first and position < carried else None
            if value is None:
                found.append(None)
            elif before is not None:
                found.append(self.add_view(value, before, same=True))
            elif operand is None or position < carried:
                found.append(self.add(value))
                own.append(self.indices[value.name])
            else:
                found.append(self.add_view(value, self._find(operand), same=True))
        return found, tuple(own)

    def _results(
        self, node: Node, kind: str, blocks: Sequence[Block], first: Sequence[int | None]
    ) -> tuple[int, ...]:
        """Add the results of a higher-order operator, in memory of its bodies where possible."""
        once = len(blocks) == 1 and kind not in ("scan", "map")
        if once and len(blocks[0].outputs) == len(node.outputs):
            pairs = zip(node.outputs, blocks[0].outputs, strict=True)
            return tuple(self.add_view(value, base, same=True) for value, base in pairs)
        results = tuple(self.add(value) for value in node.outputs)
        if kind == "while_loop":
            carried = first[: len(node.bodies[-1].outputs)]
            states = [index for index in carried if index is not None]
            if len(states) == len(results):
                self._aliases += zip(states, results, strict=True)
        elif kind == "cond" and all(self._makes_results(block, len(results)) for block in blocks):
            for block in blocks:
                self._aliases += zip(block.outputs, results, strict=True)
        return results

    def _makes_results(self, block: Block, results: int) -> bool:
        """Whether a branch makes a storage of its own for each of its results."""
        made = {index for operator in block.operators for index in operator.outputs}
        roots = {index for index in block.outputs if self._root[index] == index}
        return len(roots & made) == len(block.outputs) == results

    def mark_written(self, nodes: Iterable[Node]) -> None:
        """Turn weights that operators write into variables, also if they write through a view."""
        for node in nodes:
            for name in node.writes:
                root = self._root[self._find(name)]
                if self._tensors[root].kind is Kind.CONSTANT:
                    self._tensors[root] = replace(self._tensors[root], kind=Kind.VARIABLE)
            for body in node.bodies:
                self.mark_written(body.nodes)

    def make_copies(
        self, updates: Iterable[tuple[str, str]], operators: Sequence[Operator]
    ) -> list[Operator]:
        """Return operators that copy new state over the old, where it cannot be made in place."""
        found = []
        for result, argument in updates:
            new, old = self._find(result), self._find(argument)
            if self._root[new] == self._root[old]:
                continue
            if self._may_replace(old, new, operators):
                self._aliases.append((old, new))
            else:
                label = f"update of {self._tensors[old].name}"
                found.append(Operator(label, "aten.copy_", (new, old)))
        return found

    def _may_replace(self, old: int, new: int, operators: Sequence[Operator]) -> bool:
        """Whether new state can be made over the old in place: no operator reads the old later."""
        maker = next((i for i, op in enumerate(operators) if new in op.outputs), None)
        if maker is None or self._tensors[old].kind is not Kind.VARIABLE:
            return False
        if all(self._root[source] != old for source, _ in operators[maker].in_place):
            return False
        later = (
            index for operator in operators[maker + 1 :] for index in _iterate_inputs(operator)
        )
        return all(self._root[index] != old for index in later)

    def graph(self, program: Exported, operators: Sequence[Operator]) -> Graph:
        """Return the graph of all that was collected."""
        outputs = tuple(dict.fromkeys(self._find(name) for name in program.outputs))
        for index in outputs:
            if self._tensors[index].kind is Kind.INTERMEDIATE:
                self._tensors[index] = replace(self._tensors[index], kind=Kind.OUTPUT)
        inputs = (given for given in program.inputs if given.kind is Kind.INPUT)
        return Graph(
            program.name,
            tuple(self._tensors),
            tuple(operators),
            inputs=tuple(self._find(given.value.name) for given in inputs),
            outputs=outputs,
            views=tuple(self._views),
            aliases=tuple(self._aliases),
            alignment=_ALIGNMENT.get(program.device, 64),
            planned=frozenset({Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE}),
            source="torch",
        )


def _find_read(program: Exported) -> frozenset[str]:
    """Return the names of the tensors that operators read, or a graph returns."""
    found = {*program.outputs, *(result for result, _ in program.updates)}
    for node in program.walk():
        found.update(node.inputs)
        found.update(name for body in node.bodies for name in body.outputs if name is not None)
    return frozenset(found)


def _iterate_inputs(operator: Operator) -> Iterator[int]:
    yield from operator.inputs
    for block in operator.blocks:
        for inner in block.operators:
            yield from _iterate_inputs(inner)


def shorten_type(target: str) -> str:
    """Return the short name of an operator, for people: "aten.add", "cond"."""
    parts = target.split(".")
    return parts[-1] if parts[0] == "higher_order" else ".".join(parts[:2])
