"""Writes the bands of a cut into a PyTorch program.

A part of an operator is the same operator on fewer rows. PyTorch's windows have the same padding at
both ends, so a band at the edge of a picture makes some rows too many at its other end, which are
cut off. Bands are copies (`slice_copy`): a view of a few rows would keep the whole picture alive,
and most kernels copy what is not contiguous anyway.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any, Final

from memplan.base.extras import require
from memplan.levers.rewrite.bands import Action, Cut, Do
from memplan.programs.graph import Graph
from memplan.programs.graph.pictures import Even, Joined, Shifted
from memplan.runtimes.bands import find_rules, find_slices
from memplan.runtimes.torch.read.scope import name_arguments

__all__ = ["BoundNode", "keep_whole", "list_calls", "write_bands"]

_META: Final = ("nn_module_stack", "stack_trace", "torch_fn")  # of a node, for people


@dataclass(frozen=True)
class BoundNode:
    """An operator of a graph, and its node."""

    node: Any  # `None` if it has none, as for a cast that autocast adds
    args: dict[str, Any]  # by name, with defaults
    made: Any  # the node of its first result, or `None` if it cannot be replaced
    indices: dict[Any, int]  # by node that it reads: its index in the graph

    def find_refusal(self) -> str:
        """Return why no parts of it can be written; empty if they can."""
        if self.made is None:
            return "it has several results, or its sizes are read"
        read = (*self.indices, self.made)
        if any(type(size) is not int for node in read for size in node.meta["val"].shape):
            return "its sizes are known only at run time"
        return ""


def list_calls(module: Any, graph: Graph) -> list[BoundNode]:
    """Return the nodes of the operators of a graph."""
    return list(_iterate_calls(module, graph))


def _iterate_calls(module: Any, graph: Graph) -> Iterator[BoundNode]:
    nodes = {node.name: node for node in module.graph.nodes}
    known = {operator.origin for operator in graph.operators}
    fx: Any = require("torch.fx", extra="torch")
    overload = require("torch._ops", extra="torch").OpOverload
    for operator in graph.operators:
        node = nodes.get(operator.origin)
        if node is None or getattr(node.target, "_schema", None) is None:
            yield BoundNode(None, {}, None, {})
            continue
        args = name_arguments(node, defaults=True)
        tensors: list[Any] = []
        fx.node.map_arg(args, tensors.append)
        apart = list(dict.fromkeys(tensors))
        indices = dict(zip(apart, operator.inputs, strict=False))
        made = _find_made(node, known)
        if len(apart) != len(operator.inputs) or not isinstance(node.target, overload):
            made = None  # an operator of ExecuTorch's dialect, say
        if not all(hasattr(one.meta.get("val"), "shape") for one in apart):
            made = None  # it reads a list of tensors, say
        yield BoundNode(node, args, made, indices)


def _find_made(node: Any, known: Container[Any]) -> Any:
    """Return the node of the only result that other operators read, or `None`."""
    made, value = node, node.meta.get("val")
    if isinstance(value, (list, tuple)):
        items = [user for user in node.users if user.args[1:] == (0,)]
        if len(items) != 1 or len(node.users) != 1:
            return None
        made = items[0]
    readers = [user for user in made.users if user.op != "output"]
    is_read = all(user.name in known for user in readers)
    return made if is_read and hasattr(made.meta.get("val"), "is_contiguous") else None


def keep_whole(graph: Graph, calls: Sequence[BoundNode]) -> Graph:
    """Return a graph in which those operators are done as a whole of which no parts can be written.

    What is read beside a picture has a node, too, or the writer could not name it.
    """
    operators = []
    for operator, call in zip(graph.operators, calls, strict=True):
        why = "" if operator.why_whole else call.find_refusal()
        operators.append(replace(operator, reads=(), why_whole=why) if why else operator)
    return replace(graph, operators=tuple(operators))


# What is written


def write_bands(held: Any, found: Cut) -> None:
    """Change a program, by its `graph_module` and `graph_signature`, into one in bands."""
    _Writer(held, found, list_calls(held.graph_module, found.uncut.graph)).write()


class _Writer:
    def __init__(self, held: Any, found: Cut, calls: Sequence[BoundNode]) -> None:
        self._aten = require("torch", extra="torch").ops.aten
        self._map_arg = require("torch.fx", extra="torch").node.map_arg
        self._held = held
        self._graph = held.graph_module.graph
        self._cut = found
        self._calls = calls
        # By tensor of the cut.
        self._nodes = {at: node for call in calls for node, at in call.indices.items()}

    def write(self) -> None:
        """Change the program."""
        waiting: list[Action] = []
        for action in self._cut.actions:
            anchor = self._calls[action.step].node if action.do is Do.WHOLE else None
            if anchor is not None:
                self._insert(waiting, anchor)
                waiting = []
            elif action.do is not Do.WHOLE:
                waiting.append(action)
        self._insert(waiting, self._graph.output_node())
        gone = [at for region in self._cut.regions for at in range(region.first, region.last)]
        for at in reversed(gone):
            call = self._calls[at]
            for node in dict.fromkeys((call.made, call.node)):
                self._graph.erase_node(node)
        self._graph.lint()
        self._held.graph_module.recompile()

    def _insert(self, actions: Sequence[Action], anchor: Any) -> None:
        """Put nodes before another one; they replace those of the pictures that they join."""
        operators = self._cut.uncut.operators
        made = {each.makes: call.made for each, call in zip(operators, self._calls, strict=True)}
        with self._graph.inserting_before(anchor):
            for action in actions:
                node = self._nodes[action.output] = self._node(action)
                if action.do is Do.JOIN and action.output in made:
                    old = made[action.output]
                    old.replace_all_uses_with(node)
                    self._held.graph_signature.replace_all_uses(old.name, node.name)

    def _node(self, action: Action) -> Any:
        if action.do is Do.SLICE:
            return self._slice(action)
        if action.do is Do.JOIN:
            pieces = [self._nodes[tensor] for tensor in action.inputs]
            return self._call(self._aten.cat.default, (pieces, 2 + action.axis))
        return self._part(action)

    def _slice(self, action: Action) -> Any:
        """Return a copy of some rows, or columns, or both."""
        node, slices = self._nodes[action.inputs[0]], find_slices(self._cut, action)
        for axis, begin, end in slices:
            kind = self._aten.slice_copy if axis == slices[-1][0] else self._aten.slice
            node = self._call(kind.Tensor, (node, 2 + axis, begin, end))
        return node

    def _part(self, action: Action) -> Any:
        """Return an operator on fewer rows."""
        call, operator = self._calls[action.step], self._cut.uncut.operators[action.step]
        pictures, pieces = {read.tensor for read in operator.reads}, iter(action.inputs)

        def replace_picture(node: Any) -> Any:
            if call.indices[node] not in pictures:
                return node
            piece = next(pieces)
            return self._nodes[piece] if piece >= 0 else None

        args = dict(self._map_arg(call.args, replace_picture))
        self._adapt(args, action)
        target = call.node.target
        if target is self._aten.conv2d.padding:
            target = self._aten.conv2d.default
        named = {one.name: args[one.name] for one in target._schema.arguments}
        extra = {one.name for one in target._schema.arguments if one.kwarg_only}
        given = tuple(value for name, value in named.items() if name not in extra)
        node = self._call(target, given, {name: named[name] for name in extra})
        node.meta |= {key: call.node.meta[key] for key in _META if key in call.node.meta}
        return node if call.made is call.node else self._call(getitem, (node, 0))

    def _adapt(self, args: dict[str, Any], action: Action) -> None:
        """Give a part the padding and the size that it has."""
        parts = list(find_rules(self._cut, action))
        if any(isinstance(rule, Joined) for rule, _, _ in parts):
            args["tensors"] = [node for node in args["tensors"] if node is not None]
        if args.get("output_size"):
            args["output_size"] = [end - begin for _, _, (begin, end) in parts]
        even = [rule.pad(fed, span) for rule, fed, span in parts if isinstance(rule, Even)]
        sides = [rule.pads(fed, span) for rule, fed, span in parts if isinstance(rule, Shifted)]
        if even:
            args["padding"] = even
        if sides:
            args["pad"] = [*sides[1], *sides[0], *args["pad"][4:]]

    def _call(self, target: Any, args: tuple[Any, ...], kwargs: Any = None) -> Any:
        """Add a node, with the tensor that it makes."""
        node = self._graph.call_function(target, args, kwargs)
        values = [self._map_arg(one, lambda each: each.meta["val"]) for one in (args, kwargs or {})]
        modes = (each.meta["val"] for each in node.all_input_nodes)
        mode = next((one.fake_mode for one in modes if hasattr(one, "fake_mode")), nullcontext())
        with mode:
            node.meta["val"] = target(*values[0], **values[1])
        return node
