"""Lets a PyTorch program compute its first large tensors one band of rows at a time.

    found = memplan.targets.fx_bands.stripe(torch.export.export(model, inputs), max_extra=0.1)
    print(found.given_peak, found.peak, found.extra)

A part of an operator is the same operator on fewer rows. PyTorch's windows have the same padding at
both ends, so a band at the edge of a picture makes some rows too many at its other end, which are
cut off. Bands are copies (`slice_copy`): a view of a few rows would keep the whole picture alive,
and most kernels copy what is not contiguous anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod
from operator import getitem
from typing import Any, Final

from memplan.extras import require
from memplan.graph import Graph, Operator
from memplan.graph.pictures import (
    Blocks,
    Each,
    Even,
    Maps,
    Read,
    Shifted,
    Size,
    WholeError,
    broadcast,
    join,
    require_size,
    resize,
)
from memplan.rewrite.bands import Action, Cut, Do, Uncut, find_frontier
from memplan.targets._bands import Striped
from memplan.targets.fx import Unsigned, load_graph, make_key

__all__ = ["stripe"]

_RANK: Final = 4
_ROW_AXIS: Final = 2  # NCHW
_META: Final = ("nn_module_stack", "stack_trace", "torch_fn")  # of a node, for people


def stripe(program: Any, *, max_extra: float = 0.10, budget: int | None = None) -> Striped:
    """Let a program compute its large pictures in bands, where this needs less memory.

    The program itself is changed. Its results may differ in the last bits, as PyTorch's kernels
    choose how they add up by the size of a picture.

    Parameters
    ----------
    program
        As of `memplan.targets.fx.reorder`, before `to_edge` if it is for ExecuTorch. Operators that
        write into their inputs, as `ReLU(inplace=True)` does, are done as a whole:
        `run_decompositions()` makes others of them.
    max_extra
        The most work that may be added, as a share of the multiplications of the program.
    budget
        Bytes that are enough: the least work within them is chosen. Without it, the least memory.

    Returns
    -------
    Striped
        The load counts what the operators make; weights and inputs belong to the caller.

    Raises
    ------
    GraphError
        If nodes do not say what they make, and as `memplan.sources.torch_export.graph_of`.
    MemplanError
        If no bands are within the budget, or torch is not installed.
    """
    require("torch", extra="torch")
    held = program if hasattr(program, "graph_signature") else Unsigned(program)
    loaded = load_graph(held)
    assert loaded.graph is not None
    calls = list(_iterate_calls(held.graph_module, loaded.graph))
    frontier = find_frontier(Uncut(_describe_rows(loaded.graph, calls)))
    point = frontier.choose(max_extra=max_extra, budget=budget)
    found = frontier.cut(point)
    load = given = loaded.problem.max_load
    if point.regions:
        write_bands(held, found, calls)
        load = load_graph(held).problem.max_load
    return Striped(given, load, frontier.extra(point), found, frontier)


@dataclass(frozen=True)
class Call:
    """An operator of a graph, and its node.

    Attributes
    ----------
    node
        `None` if it has none, as for a cast that autocast adds.
    name
        As "conv2d".
    args
        By name, with defaults.
    tensors
        The nodes among them, in order, also several times.
    made
        The node of its first result, or `None` if it cannot be replaced.
    indices
        By node: its index in the graph.
    """

    node: Any
    name: str
    args: dict[str, Any]
    tensors: tuple[Any, ...]
    made: Any
    indices: dict[Any, int]

    def size(self, at: int) -> Size:
        """Return the rows and columns of a tensor that it reads."""
        shape = self.shape(self.tensors[at])
        if not self.tensors[at].meta["val"].is_contiguous():
            raise WholeError("an input is not stored row by row")
        return require_size(shape, _ROW_AXIS, "an input")

    def shape(self, node: Any) -> tuple[int, ...]:
        """Return the shape of what a node makes."""
        shape = tuple(node.meta["val"].shape)
        if not all(isinstance(size, int) for size in shape):
            raise WholeError("its sizes are known only at run time")
        return shape

    @property
    def result(self) -> Size:
        """The rows and columns of the result."""
        if not self.made.meta["val"].is_contiguous():
            raise WholeError("its result is not stored row by row")
        return require_size(self.shape(self.made), _ROW_AXIS, "its result")

    def pair(self, name: str, other: str = "") -> tuple[int, int]:
        """Return an argument for rows and for columns; `other` is the one if it is left out."""
        given = self.args[name]
        given = self.args[other] if other and not given else given
        pair = list(given) if isinstance(given, (list, tuple)) else [given]
        return int(pair[0]), int(pair[-1])


def _iterate_calls(module: Any, graph: Graph) -> Iterator[Call]:
    """Yield the nodes of the operators of a graph."""
    nodes = {node.name: node for node in module.graph.nodes}
    known = {make_key(operator) for operator in graph.operators}
    fx: Any = require("torch.fx", extra="torch")
    overload = require("torch._ops", extra="torch").OpOverload
    for operator in graph.operators:
        node = nodes.get(make_key(operator))
        schema = getattr(getattr(node, "target", None), "_schema", None)
        if node is None or schema is None:
            yield Call(None, "", {}, (), None, {})
            continue
        names = [one.name for one in schema.arguments]
        args = {one.name: one.default_value for one in schema.arguments}
        args |= dict(zip(names, node.args, strict=False)) | node.kwargs
        tensors: list[Any] = []
        fx.node.map_arg(args, tensors.append)
        apart = list(dict.fromkeys(tensors))
        indices = dict(zip(apart, operator.inputs, strict=False))
        made = _find_made(node, known)
        if len(apart) != len(operator.inputs) or not isinstance(node.target, overload):
            made = None  # an operator of ExecuTorch's dialect, say
        yield Call(node, schema.name.partition("::")[2], args, tuple(tensors), made, indices)


def _find_made(node: Any, known: set[str]) -> Any:
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


def _describe_rows(graph: Graph, calls: Sequence[Call]) -> Graph:
    """Return a graph whose operators say which rows they need."""
    shared = {view.tensor for view in graph.views}
    operators: list[Operator] = []
    for operator, call in zip(graph.operators, calls, strict=True):
        macs = _macs(call)
        try:
            if operator.blocks or call.made is None:
                raise WholeError("it has sub-graphs, or several results, or its sizes are read")
            if call.node.target._schema.is_mutable or shared.intersection(operator.outputs):
                raise WholeError("it writes into a tensor, or makes a view of one")
            maps = _find_maps(call)
            reads = tuple(
                Read(call.indices[call.tensors[place]], *maps[place]) for place in sorted(maps)
            )
            pictures = {read.tensor for read in reads}
            if sum(call.indices[node] in pictures for node in call.tensors) > len(reads):
                raise WholeError("it reads a picture as a weight")
            operators.append(replace(operator, reads=reads, why_whole="", macs=macs))
        except WholeError as why:
            operators.append(replace(operator, why_whole=str(why), macs=macs))
    return replace(graph, operators=tuple(operators))


# What is known of operators


def _find_maps(call: Call) -> Maps:
    rule = _RULES.get(call.name)
    if rule is None and _is_pointwise(call.node.target):
        rule = _each
    if rule is None:
        raise WholeError(f"memplan does not know which rows of its inputs {call.name} needs")
    call.result  # noqa: B018 (raises)
    return rule(call)


def _is_pointwise(target: Any) -> bool:
    return any(str(tag) == "Tag.pointwise" for tag in getattr(target, "tags", ()))


def _each(call: Call) -> Maps:
    """Return the maps of an operator on elements, of which some inputs may be broadcast."""
    maps = broadcast(
        [call.shape(node) for node in call.tensors],
        call.result,
        [node.op in ("get_attr", "placeholder") for node in call.tensors],
        _ROW_AXIS,
    )
    for at in maps:
        call.size(at)
    return maps


def _first(call: Call) -> Maps:
    """Return the maps of an operator on the channels of each point."""
    call.size(0)
    return {0: (Each(), Each())}


def _normalize(call: Call) -> Maps:
    if call.args.get("training"):
        raise WholeError("it normalizes by all rows")
    return _first(call)


def _softmax(call: Call) -> Maps:
    if call.args["dim"] % _RANK != 1:
        raise WholeError("it normalizes by all rows or columns")
    return _first(call)


def _convolve(call: Call) -> Maps:
    if call.args.get("transposed"):
        raise WholeError("it is a transposed convolution")
    shape = call.shape(call.args["weight"])
    return _window(call, (shape[2], shape[3]), "")


def _pool(call: Call) -> Maps:
    if call.args["ceil_mode"]:
        raise WholeError("its last windows may reach beyond the padding (ceil_mode)")
    return _window(call, call.pair("kernel_size"), "kernel_size")


def _window(call: Call, kernel: tuple[int, int], stride: str) -> Maps:
    call.size(0)
    steps = call.pair("stride", stride)
    dilations = call.pair("dilation") if "dilation" in call.args else (1, 1)
    reaches = [(kernel[axis] - 1) * dilations[axis] + 1 for axis in (0, 1)]
    if isinstance(call.args["padding"], str):
        same = call.args["padding"] == "same"
        if same and any(reach % 2 == 0 for reach in reaches):
            raise WholeError("its padding is not the same at both ends")
        padding = [reach // 2 if same else 0 for reach in reaches]
    else:
        padding = list(call.pair("padding"))
    rows, columns = (Even(reaches[axis], steps[axis], padding[axis]) for axis in (0, 1))
    return {0: (rows, columns)}


def _resize(call: Call) -> Maps:
    size, result = call.size(0), call.result
    if call.args.get("align_corners"):
        raise WholeError("its corners are aligned, so its scale depends on all rows")
    scales = call.args.get("scale_factors") or [
        call.args.get("scales_h"),
        call.args.get("scales_w"),
    ]
    for axis in (0, 1):
        if scales[axis] not in (None, result[axis] / size[axis]):
            raise WholeError("its scale is not that of its sizes")
    linear = int(call.name == "upsample_bilinear2d")
    return {0: resize(size, result, linear, linear)}


def _pad(call: Call) -> Maps:
    call.size(0)
    pads = call.args["pad"]
    if call.args.get("mode", "constant") != "constant":
        raise WholeError("it repeats rows")
    if min(pads) < 0 or any(pads[6:]):
        raise WholeError("it cuts off rows, or pads the batch")
    return {0: (Shifted(pads[2] if len(pads) > 2 else 0), Shifted(pads[0]))}


def _join(call: Call) -> Maps:
    axis = call.args["dim"] % _RANK
    for at in range(len(call.tensors)):
        call.size(at)
    return join([call.shape(node)[axis] for node in call.tensors], axis, _ROW_AXIS)


def _to_depth(call: Call) -> Maps:
    call.size(0)
    return {0: (Blocks(down=call.args["downscale_factor"]),) * 2}


def _to_space(call: Call) -> Maps:
    call.size(0)
    return {0: (Blocks(up=call.args["upscale_factor"]),) * 2}


def _macs(call: Call) -> int:
    """Return the multiplications with addition of an operator with weights."""
    value = call.node.meta.get("val") if call.node is not None else None
    if value is None or not hasattr(value, "numel"):
        return 0
    if call.name in ("conv2d", "convolution", "conv1d"):
        held = value if not call.args.get("transposed") else call.args["input"].meta["val"]
        return int(held.numel()) * int(prod(call.args["weight"].meta["val"].shape[1:]))
    at = {"linear": 0, "mm": 0, "bmm": 0, "matmul": 0, "addmm": 1}.get(call.name)
    return 0 if at is None else int(value.numel()) * int(call.tensors[at].meta["val"].shape[-1])


_ELEMENTS: Final = ("elu", "hardsigmoid", "hardswish", "leaky_relu", "mish")
_NORMS: Final = ("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training")
_POOLS: Final = ("avg_pool2d", "max_pool2d", "max_pool2d_with_indices")
_RULES: Final[dict[str, Callable[[Call], Maps]]] = {
    **dict.fromkeys(_ELEMENTS, _each),
    **dict.fromkeys(_NORMS, _normalize),
    **dict.fromkeys(("conv2d", "convolution"), _convolve),
    **dict.fromkeys(("constant_pad_nd", "pad"), _pad),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
    **dict.fromkeys(("upsample_bilinear2d", "upsample_nearest2d"), _resize),
    **dict.fromkeys(_POOLS, _pool),
    "cat": _join,
    "pixel_shuffle": _to_space,
    "pixel_unshuffle": _to_depth,
}


# What is written


def write_bands(held: Any, found: Cut, calls: Sequence[Call]) -> None:
    """Change a program into one in bands.

    Parameters
    ----------
    held
        It has a `graph_module` and a `graph_signature`.
    found
        A cut of its graph.
    calls
        The operators of that graph.
    """
    _Writer(held, found, calls).write()


class _Writer:
    def __init__(self, held: Any, found: Cut, calls: Sequence[Call]) -> None:
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
        _, given = self._cut.part(action.inputs[0])
        _, taken = self._cut.part(action.output)
        axes = [axis for axis in (0, 1) if given[axis] != taken[axis]]
        node = self._nodes[action.inputs[0]]
        for axis in axes:
            kind = self._aten.slice_copy if axis == axes[-1] else self._aten.slice
            begin, end = (at - given[axis][0] for at in taken[axis])
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
        self._adapt(args, call, operator, action)
        target = call.node.target
        if target is self._aten.conv2d.padding:
            target = self._aten.conv2d.default
        named = {one.name: args[one.name] for one in target._schema.arguments}
        extra = {one.name for one in target._schema.arguments if one.kwarg_only}
        given = tuple(value for name, value in named.items() if name not in extra)
        node = self._call(target, given, {name: named[name] for name in extra})
        node.meta |= {key: call.node.meta[key] for key in _META if key in call.node.meta}
        return node if call.made is call.node else self._call(getitem, (node, 0))

    def _adapt(self, args: dict[str, Any], call: Call, operator: Operator, action: Action) -> None:
        """Give a part the padding and the size that it has."""
        _, made = self._cut.part(action.output)
        rules = (operator.reads[0].rows, operator.reads[0].columns)
        if call.name == "cat":
            args["tensors"] = [node for node in args["tensors"] if node is not None]
        if args.get("output_size"):
            args["output_size"] = [end - begin for begin, end in made]
        parts = list(zip(rules, action.feeds[0], made, strict=True))
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
