"""Puts the nodes of a PyTorch program into the order with the least load.

    found = memplan.runtimes.torch.write.reorder(torch.export.export(model, inputs))
    print(found.given_peak, found.peak, found.bound)

PyTorch runs nodes one after the other and frees a tensor after its last reader, so the order of
the nodes is the order of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from memplan.base.errors import GraphError
from memplan.base.extras import require
from memplan.levers.pipeline import Arranged, Plain, Variant, Written, arrange, graph_of
from memplan.levers.rewrite import Reordered
from memplan.levers.rewrite.bands import Uncut
from memplan.programs.graph import Graph, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.runtimes.torch.read import graph_of as graph_in_memory
from memplan.runtimes.torch.write.bands import keep_whole, list_calls, write_bands
from memplan.runtimes.torch.write.order import find_arcs, iterate_modules, put_in_order, sort_nodes

__all__ = ["FxProgram", "load_graph", "reorder"]


def reorder(
    program: Any,
    *,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> Reordered:
    """Put the nodes of a program into the order with the least load, and change nothing else.

    The program itself is changed, so a program of ExecuTorch's `edge.exported_program()` can be
    reordered before `to_executorch`. It computes the same results, bit for bit. Assertions,
    collectives, random operators and operators that write into a tensor keep their order.

    Parameters
    ----------
    program
        A `torch.export.ExportedProgram`, or a `torch.fx.GraphModule` whose nodes have the
        tensors that they make in `meta["val"]`.
    timeout, states
        As of `memplan.levers.rewrite.reorder`.
    pure
        Operators, by name, that have no side effect although they are not known to have none.

    Returns
    -------
    Reordered
        As of `memplan.levers.rewrite.reorder`. The load counts what the operators make; weights and
        inputs belong to the caller.

    Raises
    ------
    GraphError
        If operators may have side effects, named, or nodes do not say what they make; the program
        is then as it was. Also as `memplan.runtimes.torch.read.graph_of`.
    MemplanError
        If torch is not installed.
    """
    writer = FxProgram.of(program, pure)
    found = arrange(writer, order=True, timeout=timeout, nodes=states, pure=writer.types)
    writer.change(found)
    assert found.order is not None, "it was asked for"
    return found.order


@dataclass(frozen=True)
class FxProgram(Plain):
    """A program in memory, which PyTorch runs node by node: the load of its nodes counts."""

    takes_offsets: bool = False
    runs_again: bool = False
    held: Any = None  # it has a `graph_module` and a `graph_signature`
    # Operators, by name, that have no side effect although they are not known to have none.
    pure: frozenset[str] = frozenset()

    @classmethod
    def of(cls, program: Any, pure: Iterable[str] = ()) -> FxProgram:
        """Return the writer of a program: see `reorder`."""
        require("torch", extra="torch")
        held = program if hasattr(program, "graph_signature") else _Unsigned(program)
        return cls(of_graph(load_graph(held)), held=held, pure=frozenset(pure))

    @property
    def types(self) -> set[str]:
        """The types of all operators, whose schemas say what effects they have."""
        graph = self.loaded.graph
        return set() if graph is None else {each.type for each in graph.walk()}

    @cached_property
    def _arcs(self) -> dict[str, list[tuple[Any, Any]]]:
        """By module: the pairs of nodes that keep their order."""
        modules = iterate_modules(self.held.graph_module, "")
        return {prefix: find_arcs(module, prefix, self.pure) for prefix, module in modules}

    def bare(self, given: Variant) -> Loaded:
        """See `memplan.levers.pipeline.Writer`."""
        return of_graph(_with_arcs(graph_of(given), self._arcs[""]))

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        graph = _without_arcs(found.graph, len(graph_of(given).tensors))
        return replace(given, loaded=of_graph(graph), order=found)

    def uncut(self, given: Variant) -> Uncut:
        """See `memplan.levers.pipeline.Writer`."""
        graph = graph_of(given)
        return Uncut(keep_whole(graph, list_calls(self.held.graph_module, graph)))

    def change(self, found: Arranged) -> Arranged:
        """Change the program itself into the one that was chosen; return it as it is then.

        If its nodes need more in that order than was found, a `GraphError` says so, and the program
        is as it was.
        """
        chosen = found.best.variant
        if chosen.order is not None:
            self._put_in_order(chosen.order)
        if chosen.cut is None:
            return found
        write_bands(self.held, chosen.cut)
        written = Written(b"", of_graph(load_graph(self.held)).problem.max_load)
        return replace(found, best=replace(found.best, written=written))

    def _put_in_order(self, found: Reordered) -> None:
        rank = {each.origin: at for at, each in enumerate(found.graph.walk())}
        modules = list(iterate_modules(self.held.graph_module, ""))
        before = [list(module.graph.nodes) for _, module in modules]
        for prefix, module in modules:
            put_in_order(module, sort_nodes(module.graph, prefix, rank, self._arcs[prefix]))
        load = of_graph(load_graph(self.held)).problem.max_load
        if load != found.peak:
            for (_, module), nodes in zip(modules, before, strict=True):
                put_in_order(module, nodes)
            raise GraphError(
                f"the order needs {found.peak} bytes in the graph, but {load} as an order of "
                "nodes; the program is as it was"
            )


def load_graph(program: Any) -> Graph:
    """Return the graph of a program as it runs: new state is copied over the old at the end."""
    graph: Graph = graph_in_memory(program)
    copies = [each for each in graph.operators if _stands_for_a_copy(each)]
    kept = graph.outputs + tuple(each.inputs[0] for each in copies)
    operators = tuple(each for each in graph.operators if not _stands_for_a_copy(each))
    return replace(graph, operators=operators, outputs=tuple(dict.fromkeys(kept)))


def _stands_for_a_copy(operator: Operator) -> bool:
    """Whether an operator has no node, but stands for new state that is copied over the old."""
    return operator.origin is None and operator.type == "aten.copy_"


def _with_arcs(graph: Graph, arcs: Iterable[tuple[Any, Any]]) -> Graph:
    """Return a graph in which for every arc the second operator reads no bytes of the first."""
    tensors, operators = list(graph.tensors), list(graph.operators)
    places = {each.origin: at for at, each in enumerate(operators)}
    for first, second in arcs:
        if first.name in places and second.name in places:
            maker, reader = operators[places[first.name]], operators[places[second.name]]
            token = len(tensors)
            tensors.append(Tensor(f"{second.name} after {first.name}", 0))
            operators[places[first.name]] = replace(maker, outputs=(*maker.outputs, token))
            operators[places[second.name]] = replace(reader, inputs=(*reader.inputs, token))
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def _without_arcs(graph: Graph, count: int) -> Graph:
    """Return a graph without the tensors of arcs, which come after those of the program."""

    def drop(tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(tensor for tensor in tensors if tensor < count)

    operators = tuple(
        replace(each, inputs=drop(each.inputs), outputs=drop(each.outputs))
        for each in graph.operators
    )
    return replace(graph, tensors=graph.tensors[:count], operators=operators)


class _Unsigned:
    """A graph module as an exported program: placeholders are inputs, attributes are weights."""

    def __init__(self, module: Any) -> None:
        signature = require("torch.export.graph_signature", extra="torch")
        if not hasattr(module, "graph"):
            raise GraphError(
                f"a {type(module).__name__} has no nodes; give a torch.export.ExportedProgram or "
                "a torch.fx.GraphModule"
            )
        inputs, outputs = [], []
        self.constants: dict[str, Any] = {}
        self.state_dict: dict[str, Any] = {}
        for node in module.graph.nodes:
            argument = signature.TensorArgument(name=node.name)
            if node.op == "placeholder":
                kind = signature.InputKind.USER_INPUT
                inputs.append(signature.InputSpec(kind, argument, None))
            elif node.op == "get_attr" and "val" in node.meta:
                kind = signature.InputKind.PARAMETER
                inputs.append(signature.InputSpec(kind, argument, node.target))
                self.state_dict[node.target] = attrgetter(node.target)(module)
            elif node.op == "output":
                for result in node.all_input_nodes:
                    argument = signature.TensorArgument(name=result.name)
                    kind = signature.OutputKind.USER_OUTPUT
                    outputs.append(signature.OutputSpec(kind, argument, None))
            elif "val" not in node.meta and node.op != "get_attr":
                raise GraphError(
                    f'node "{node.name}" does not say what it makes: it has no meta["val"]'
                )
        self.graph_module = module
        self.graph_signature = signature.ExportGraphSignature(inputs, outputs)
        self.range_constraints: dict[Any, Any] = {}
