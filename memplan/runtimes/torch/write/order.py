"""Puts the nodes of a PyTorch program into another order, and finds those that keep theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from memplan.base.errors import GraphError, listed
from memplan.runtimes.sorting import sort_by_rank
from memplan.runtimes.torch.read.scope import Scope, bodies

__all__ = ["find_arcs", "iterate_modules", "put_in_order", "sort_nodes"]

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


def iterate_modules(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield a module and those that its nodes call, each with its path."""
    yield prefix, module
    for node in module.graph.nodes:
        for inner, body in bodies(module, prefix, node):
            yield from iterate_modules(body, inner)


# What must not change places


def find_arcs(module: Any, prefix: str, pure: frozenset[str]) -> list[tuple[Any, Any]]:
    """Return pairs of nodes that keep their order, in addition to those that read each other.

    A `GraphError` has the names of all operators that may have side effects.
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
        for _, inner in iterate_modules(body, ""):
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


def put_in_order(module: Any, order: list[Any]) -> None:
    """Put all nodes of a graph into an order."""
    for node in reversed(order):
        first = next(iter(module.graph.nodes))
        if node is not first:
            first.prepend(node)
    module.graph.lint()
    module.recompile()


def sort_nodes(
    graph: Any, prefix: str, rank: Mapping[Any, int], arcs: Iterable[tuple[Any, Any]]
) -> list[Any]:
    """Return the nodes by the rank of their operators; those without one run as soon as they can.

    Sizes and single results of several hold no memory of their own.
    """
    nodes = list(graph.nodes)
    places = {node: at for at, node in enumerate(nodes)}
    awaited = [{places[other] for other in node.all_input_nodes} for node in nodes]
    for first, second in arcs:
        awaited[places[second]].add(places[first])
    ends = {"placeholder": -2, "output": len(rank)}
    ranks = [ends.get(node.op, rank.get(f"{prefix}{node.name}", -1)) for node in nodes]
    return [nodes[at] for at in sort_by_rank(ranks, awaited)]
