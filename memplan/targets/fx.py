"""Puts the nodes of a PyTorch program into the order with the least load.

    found = memplan.targets.fx.reorder(torch.export.export(model, inputs))
    print(found.given_peak, found.peak, found.bound)

PyTorch runs nodes one after the other and frees a tensor after its last reader, so the order of
the nodes is the order of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, Final

from memplan.errors import GraphError, listed
from memplan.extras import require
from memplan.graph import Graph, Operator, Tensor
from memplan.rewrite import Reordered
from memplan.rewrite import reorder as find_order
from memplan.sources.loaded import Loaded, of_graph
from memplan.sources.torch_export import graph_of
from memplan.sources.torch_export.scope import Scope, bodies

__all__ = ["reorder"]

# Higher-order operators that do nothing but run their sub-graphs.
_CONTROL: Final = frozenset(
    {
        *("cond", "while_loop", "scan", "map_impl", "associative_scan", "wrap"),
        *("wrap_with_autocast", "wrap_with_set_grad_enabled", "hints_wrapper"),
        *("invoke_subgraph", "executorch_call_delegate"),
    }
)
# Modules of Python whose functions compute sizes.
_PLAIN: Final = frozenset({"_operator", "operator", "math", "builtins", "torch"})


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
        As of `memplan.reorder`.
    pure
        Operators, by name, that have no side effect although they are not known to have none.

    Returns
    -------
    Reordered
        As of `memplan.reorder`. The load counts what the operators make; weights and inputs
        belong to the caller.

    Raises
    ------
    GraphError
        If operators may have side effects, named, or nodes do not say what they make; the program
        is then as it was. Also as `memplan.sources.torch_export.graph_of`.
    MemplanError
        If torch is not installed.
    """
    require("torch", extra="torch")
    insisted = frozenset(pure)
    held = program if hasattr(program, "graph_signature") else Unsigned(program)
    modules = list(_iterate_modules(held.graph_module, ""))
    arcs = {prefix: _find_arcs(module, prefix, insisted) for prefix, module in modules}
    asked = load_graph(held, arcs[""])
    assert asked.graph is not None
    known = {each.type for each in asked.graph.walk()}  # the schemas have said what they do
    found = find_order(asked, timeout=timeout, states=states, pure=known)
    rank = {each.origin: at for at, each in enumerate(found.graph.walk())}
    before = [list(module.graph.nodes) for _, module in modules]
    for prefix, module in modules:
        _put(module, _sort(module.graph, prefix, rank, arcs[prefix]))
    load = load_graph(held).problem.max_load
    if load != found.peak:
        for (_, module), nodes in zip(modules, before, strict=True):
            _put(module, nodes)
        raise GraphError(
            f"the order needs {found.peak} bytes in the graph, but {load} as an order of nodes; "
            "the program is as it was"
        )
    return found


class Unsigned:
    """A graph module as an exported program: placeholders are inputs, attributes are weights."""

    def __init__(self, module: Any) -> None:
        signature = require("torch.export.graph_signature", extra="torch")
        if not hasattr(module, "graph"):
            raise GraphError(
                f"a {type(module).__name__} has no nodes; give a torch.export.ExportedProgram or "
                "a torch.fx.GraphModule"
            )
        inputs, outputs = [], []
        for node in module.graph.nodes:
            argument = signature.TensorArgument(name=node.name)
            if node.op == "placeholder":
                kind = signature.InputKind.USER_INPUT
                inputs.append(signature.InputSpec(kind, argument, None))
            elif node.op == "get_attr" and "val" in node.meta:
                kind = signature.InputKind.PARAMETER
                inputs.append(signature.InputSpec(kind, argument, node.target))
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


def load_graph(program: Any, arcs: Iterable[tuple[Any, Any]] = ()) -> Loaded:
    """Return the graph of a program as it runs: new state is copied over the old at the end.

    For every arc, the second operator reads a tensor of no bytes that the first one makes.
    """
    graph: Graph = graph_of(program)
    copies = [each for each in graph.operators if _stands_for_a_copy(each)]
    kept = graph.outputs + tuple(each.inputs[0] for each in copies)
    operators = [each for each in graph.operators if not _stands_for_a_copy(each)]
    places = {each.origin: at for at, each in enumerate(operators)}
    tensors = list(graph.tensors)
    for first, second in arcs:
        if first.name in places and second.name in places:
            maker, reader = operators[places[first.name]], operators[places[second.name]]
            token = len(tensors)
            tensors.append(Tensor(f"{second.name} after {first.name}", 0))
            operators[places[first.name]] = replace(maker, outputs=(*maker.outputs, token))
            operators[places[second.name]] = replace(reader, inputs=(*reader.inputs, token))
    return of_graph(
        replace(
            graph,
            tensors=tuple(tensors),
            operators=tuple(operators),
            outputs=tuple(dict.fromkeys(kept)),
        )
    )


def _stands_for_a_copy(operator: Operator) -> bool:
    """Whether an operator has no node, but stands for new state that is copied over the old."""
    return operator.origin is None and operator.type == "aten.copy_"


def _iterate_modules(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    yield prefix, module
    for node in module.graph.nodes:
        for inner, body in bodies(module, prefix, node):
            yield from _iterate_modules(body, inner)


# What must not change places


def _find_arcs(module: Any, prefix: str, pure: frozenset[str]) -> list[tuple[Any, Any]]:
    """Return pairs of nodes that keep their order, in addition to those that read each other.

    Raises `GraphError` with the names of all operators that may have side effects.
    """
    chains: dict[str, list[Any]] = defaultdict(list)
    writers: set[Any] = set()
    unknown: dict[str, None] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if not pure.isdisjoint((node.name, _name_target(node))):
            continue
        schema = getattr(node.target, "_schema", None)
        if schema is not None:
            if schema.is_mutable:
                writers.add(node)
            chain = _find_chain(node.target, schema)
            if chain == "unknown":
                unknown[_name_target(node)] = None
            elif chain:
                chains[chain].append(node)
        elif any(True for _ in bodies(module, prefix, node)) and _is_control(node):
            if any(map(_has_effects, _nodes_inside(module, node))):
                chains["effects"].append(node)
        elif not (_is_control(node) or _is_plain(node)):
            unknown[_name_target(node)] = None
    if unknown:
        raise GraphError(
            f"these operators may have side effects: {listed(list(unknown))}; name those that "
            "have none as pure"
        )
    pairs = [pair for chain in chains.values() for pair in pairwise(chain)]
    return pairs + _keep_writers(module, prefix, writers) if writers else pairs


def _find_chain(target: Any, schema: Any) -> str:
    """Return the chain that an operator keeps its place in: "random", "effects" or none."""
    # ExecuTorch wraps the operators of torch, without their tags.
    tags: Any = getattr(target, "tags", ()) or getattr(getattr(target, "_op", None), "tags", ())
    if any("nondeterministic_seeded" in str(tag) for tag in tags):
        return "random"
    if "c10d" in schema.name:
        return "effects"
    if not schema.returns and not schema.is_mutable:
        return "effects" if schema.name.startswith("aten::") else "unknown"
    return ""


def _has_effects(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and (schema.is_mutable or bool(_find_chain(node.target, schema)))


def _nodes_inside(module: Any, node: Any) -> Iterator[Any]:
    for _, body in bodies(module, "", node):
        for _, inner in _iterate_modules(body, ""):
            yield from inner.graph.nodes


def _is_control(node: Any) -> bool:
    name = getattr(node.target, "__name__", "")
    return node.op == "call_function" and name in _CONTROL


def _is_plain(node: Any) -> bool:
    return (
        node.op == "call_function" and getattr(node.target, "__module__", "") in _PLAIN
    ) and not node.is_impure()


def _name_target(node: Any) -> str:
    target = node.target
    if isinstance(target, str) or getattr(target, "_schema", None) is not None:
        return str(target)
    return str(getattr(target, "__name__", target))


def _keep_writers(module: Any, prefix: str, writers: set[Any]) -> list[tuple[Any, Any]]:
    """Return the pairs of nodes that use one storage, if one of the two writes into it."""
    scope = Scope(module, prefix)
    last: dict[int, Any] = {}  # by storage: its last writer
    since: dict[int, list[Any]] = defaultdict(list)
    pairs = []
    for node in scope.nodes:
        names = scope.tensors([node, *node.all_input_nodes])
        for storage in {scope.storages[name] for name in names}:
            if storage in last:
                pairs.append((last[storage], node))
            if node in writers:
                pairs += [(other, node) for other in since.pop(storage, ())]
                last[storage] = node
            else:
                since[storage].append(node)
    return pairs


# The new order


def _sort(
    graph: Any, prefix: str, rank: Mapping[Any, int], arcs: Iterable[tuple[Any, Any]]
) -> list[Any]:
    """Return the nodes by the rank of their operators; those without one run as soon as they can.

    Sizes and single results of several hold no memory of their own.
    """
    nodes = list(graph.nodes)
    place = {node: at for at, node in enumerate(nodes)}
    awaited = {node: set(node.all_input_nodes) for node in nodes}
    for first, second in arcs:
        awaited[second].add(first)
    followers = defaultdict(list)
    for node in nodes:
        for other in awaited[node]:
            followers[other].append(node)

    def key(node: Any) -> tuple[int, int]:
        if node.op == "placeholder":
            return -2, place[node]
        if node.op == "output":
            return len(rank), place[node]
        return rank.get(f"{prefix}{node.name}", -1), place[node]

    missing = {node: len(awaited[node]) for node in nodes}
    ready = [(key(node), node) for node in nodes if not missing[node]]
    heapify(ready)
    order = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for other in followers[node]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (key(other), other))
    return order


def _put(module: Any, order: list[Any]) -> None:
    """Put all nodes of a graph into an order."""
    for node in reversed(order):
        first = next(iter(module.graph.nodes))
        if node is not first:
            first.prepend(node)
    module.graph.lint()
    module.recompile()
