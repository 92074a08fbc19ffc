"""Writes an ONNX model that computes its first large tensors one band of rows at a time.

    found = memplan.targets.onnx_bands.stripe("model.onnx", "bands.onnx", max_extra=0.1)
    print(found.given_peak, found.peak, found.extra)

A part of an operator is the same operator on fewer rows, with the padding that it has there. Bands
are taken with Slice and joined with Concat, so the file has ordinary operators alone. Onnxruntime
has to be told to keep their order, and to free a tensor after its last reader:

    options = onnxruntime.SessionOptions()
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_reuse = False
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC

Otherwise it gives the memory of a band to the next tensor of that size and keeps it until the last
of these, also where none of them is live. An operator that it takes apart, as it does HardSwish,
runs later than its place in the file, and its bands then are all live at one time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

from memplan.errors import FormatError
from memplan.extras import require
from memplan.files import of_file, write_files
from memplan.graph import Graph, Kind, Tensor
from memplan.rewrite.stripes import (
    Action,
    Blocks,
    Cut,
    Do,
    Each,
    Joined,
    Map,
    Padding,
    Program,
    Read,
    Shifted,
    Size,
    Step,
    Window,
    find_frontier,
)
from memplan.sources import Loaded
from memplan.sources.onnx import read, read_bytes
from memplan.sources.onnx._order import subgraphs
from memplan.sources.onnx._rules import IN_PLACE, SHAPE_ONLY
from memplan.sources.onnx._types import opsets_of
from memplan.sources.options import Options
from memplan.targets._bands import (
    FAN_IN,
    Maps,
    Spread,
    Striped,
    WholeError,
    broadcast,
    find_size,
    require_picture,
    resize,
)

__all__ = ["HOW_TO_RUN", "load_program", "stripe", "stripe_bytes"]

HOW_TO_RUN: Final = (
    "set SessionOptions.execution_order = ExecutionOrder.PRIORITY_BASED, and enable_mem_reuse and "
    "enable_mem_pattern to False: else onnxruntime keeps the memory of bands for others of their "
    "size"
)

_DOMAINS: Final = ("", "ai.onnx")
_RANK: Final = 4


def stripe(
    path: Path | str,
    out: Path | str,
    options: Options | None = None,
    *,
    max_extra: float = 0.10,
    budget: int | None = None,
) -> Striped:
    """Write a model that computes its large pictures in bands, where this needs less memory.

    Weights in other files are not touched: `out` belongs into the folder of `path` if there are
    any. Dimensions that `options` gives are written into the file, as bands are for that size.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same.
    options
        See `memplan.load`.
    max_extra
        The most work that may be added, as a share of the multiplications of the model.
    budget
        Bytes that are enough: the least work within them is chosen. Without it, the least memory.

    Raises
    ------
    FormatError
        If the file is no model, or cannot be cut: nothing is written.
    MemplanError
        If no bands are within the budget, and if the library `onnx` is missing.
    """
    found, data = stripe_bytes(Path(path), options, max_extra=max_extra, budget=budget)
    write_files({str(out): data})
    return found


def load_program(path: Path, options: Options | None = None) -> Program:
    """Return what is known of the operators of a model, for `find_frontier`.

    Parameters
    ----------
    path, options
        As of `stripe`.

    Raises
    ------
    FormatError
        If the file is no model.
    MemplanError
        If the library `onnx` is missing.
    """
    asked = replace(options or Options(), in_place=True, runtime_order=False)
    return _load_program(path, asked, _read_bytes(path))[0]


def _read_bytes(path: Path) -> bytes:
    with of_file(path):
        return path.read_bytes()


def _load_program(
    path: Path, asked: Options, data: bytes
) -> tuple[Program, Any, list[int], Loaded]:
    """Return the program of a model, the model, the node of each operator, and its layout."""
    loaded = read(path, asked)
    assert loaded.graph is not None
    model = require("onnx", extra="onnx").ModelProto.FromString(data)
    places = _match(model, loaded.graph, path)
    return program_of(model, loaded.graph, places), model, places, loaded


def stripe_bytes(
    path: Path,
    options: Options | None = None,
    *,
    max_extra: float = 0.10,
    budget: int | None = None,
) -> tuple[Striped, bytes]:
    """Return what `stripe` finds, and the bytes of the file that it writes."""
    asked = replace(options or Options(), in_place=True, runtime_order=False)
    data = _read_bytes(path)
    program, model, places, loaded = _load_program(path, asked, data)
    frontier = find_frontier(program)
    given = loaded.problem.max_load
    # As it is, operators may write over inputs that are not needed any more. In bands they are not
    # counted on to do so: only some kernels of onnxruntime do.
    first, *others = frontier.points
    points = (replace(first, load=given), *(p for p in others if p.arena < given))
    frontier = replace(frontier, points=points)
    point = frontier.choose(max_extra=max_extra, budget=budget)
    found = frontier.cut(point)
    if not point.regions:
        return Striped(given, given, 0.0, found, frontier), data
    _Writer(model, found, places, _fixes(model)).write()
    written: bytes = model.SerializeToString(deterministic=True)
    load = read_bytes(written, path, replace(asked, dims={}, in_place=False)).problem.max_load
    if load > point.load:
        raise FormatError(
            str(path), f"its bands need {point.load} bytes, but {load} as nodes of a file"
        )
    return Striped(given, load, frontier.extra(point), found, frontier), written


def _match(model: Any, graph: Graph, path: Path) -> list[int]:
    """Return by operator of the graph the index of its node in the file."""
    places = []
    nodes = enumerate(model.graph.node)
    for operator in graph.operators:
        made = {graph.tensors[t].name for t in operator.outputs}
        at = next((at for at, node in nodes if made and made <= set(node.output)), None)
        if at is None:
            raise FormatError(
                str(path), "its operators are not those of the file: inline its functions first"
            )
        places.append(at)
    return places


# What is known of operators


@dataclass(frozen=True)
class _Call:
    """An operator of the file.

    Attributes
    ----------
    kind, opset, attributes
        As in the file.
    inputs
        By position; `None` for one that is left out.
    output
        Its first result.
    values
        Returns the numbers in an input, or `None` if they are not in the file.
    """

    kind: str
    opset: int
    attributes: dict[str, Any]
    inputs: list[Tensor | None]
    output: Tensor
    values: Callable[[int], list[Any] | None]

    def size(self, at: int) -> Size:
        """Return the rows and columns of an input."""
        tensor = self.inputs[at] if at < len(self.inputs) else None
        return require_picture(tensor.shape if tensor else None, "an input")

    @property
    def result(self) -> Size:
        """The rows and columns of the result."""
        return require_picture(self.output.shape, "its result")

    def shape(self, at: int) -> tuple[int, ...]:
        """Return the shape of an input; empty if there is none."""
        tensor = self.inputs[at] if at < len(self.inputs) else None
        return (tensor.shape or ()) if tensor else ()

    def weights(self, at: int) -> tuple[int, ...]:
        """Return the shape of the weights of a convolution."""
        tensor = self.inputs[at] if at < len(self.inputs) else None
        if tensor is None or tensor.kind is not Kind.CONSTANT or len(self.shape(at)) != _RANK:
            raise WholeError("its weights are not in the file")
        return self.shape(at)


def program_of(model: Any, graph: Graph, places: Sequence[int]) -> Program:
    """Return a model with what is known of its operators.

    Parameters
    ----------
    model, graph
        A `ModelProto`, and its graph.
    places
        By operator: the index of its node in the file.
    """
    constants = _Constants(model.graph)
    opset = opsets_of(model).get("", 1)
    steps = []
    for at, operator in enumerate(graph.operators):
        node = model.graph.node[places[at]]
        slots = iter(operator.inputs)
        indices = [next(slots) if name else -1 for name in node.input]
        call = _Call(
            operator.type,
            opset,
            _attributes(node),
            [graph.tensors[i] if i >= 0 else None for i in indices],
            graph.tensors[operator.outputs[0]],
            partial(constants.find, tuple(node.input)),
        )
        macs, makes = _macs(call), operator.outputs[0] if len(operator.outputs) == 1 else -1
        try:
            if operator.blocks or makes < 0:
                raise WholeError("it has sub-graphs, or several results")
            maps = _find_maps(call)
            reads = tuple(Read(indices[place], *maps[place]) for place in sorted(maps))
            pictures = {read.tensor for read in reads}
            if sum(index in pictures for index in indices) > len(reads):
                raise WholeError("it reads a picture as a weight")
            steps.append(Step(at, makes, reads, macs))
        except WholeError as why:
            steps.append(Step(at, makes, macs=macs, why_whole=str(why)))
    sizes = tuple(find_size(tensor.shape) for tensor in graph.tensors)
    return Program(graph, tuple(steps), sizes, False, FAN_IN)


def _attributes(node: Any) -> dict[str, Any]:
    read_value = require("onnx.helper", extra="onnx").get_attribute_value
    found = {one.name: read_value(one) for one in node.attribute if one.type not in (5, 10)}
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in found.items()
    }


class _Constants:
    """The small tensors of numbers that are in a file."""

    def __init__(self, graph: Any) -> None:
        self._tensors = {one.name: one for one in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in _DOMAINS:
                for one in node.attribute:
                    self._tensors[node.output[0]] = one

    def find(self, names: Sequence[str], at: int) -> list[Any] | None:
        """Return the numbers of an input."""
        one = self._tensors.get(names[at]) if at < len(names) and names[at] else None
        if one is None:
            return None
        if hasattr(one, "ref_attr_name"):  # an attribute of a Constant
            held = require("onnx.helper", extra="onnx").get_attribute_value(one)
            if one.name != "value":
                return list(held) if isinstance(held, (list, tuple)) else [held]
            one = held
        if one.data_location == 1:
            return None  # in a file of its own
        values = require("onnx.numpy_helper", extra="onnx").to_array(one)
        return list(values.reshape(-1).tolist())


def _find_maps(call: _Call) -> Maps:
    rule = _RULES.get(call.kind)
    if rule is None:
        raise WholeError(f"memplan does not know which rows of its inputs {call.kind} needs")
    call.result  # noqa: B018 (raises)
    return rule(call)


def _each(call: _Call) -> Maps:
    """Return the maps of an operator on elements, of which some inputs may be broadcast."""
    if "axis" in call.attributes or "broadcast" in call.attributes:
        raise WholeError("it broadcasts as old versions of ONNX did")
    shapes = [None if one is None else (one.shape or ()) for one in call.inputs]
    fixed = [one is not None and one.kind is Kind.CONSTANT for one in call.inputs]
    return broadcast(shapes, call.result, fixed)


def _first(call: _Call) -> Maps:
    """Return the maps of an operator on the channels of each point."""
    call.size(0)
    return {0: (Each(), Each())}


def _normalize(call: _Call) -> Maps:
    if call.attributes.get("training_mode"):
        raise WholeError("it normalizes by all rows")
    if call.opset < 7 and not call.attributes.get("is_test"):
        raise WholeError("it normalizes by all rows")
    return _first(call)


def _softmax(call: _Call) -> Maps:
    if call.opset < 13 or call.attributes.get("axis", -1) % _RANK != 1:
        raise WholeError("it normalizes by all rows or columns")
    return _first(call)


def _quantize(call: _Call) -> Maps:
    scale, axis = call.shape(1), call.attributes.get("axis", 1)
    if prod(scale) != 1 and (len(scale) != 1 or axis % _RANK != 1):
        raise WholeError("it has a scale for each row, column or block")
    return _first(call)


def _convolve(call: _Call) -> Maps:
    at = _WEIGHTS[call.kind]
    return _window(call, call.weights(at)[2:])


def _pool(call: _Call) -> Maps:
    return _window(call, call.attributes.get("kernel_shape") or ())


def _window(call: _Call, kernel: Sequence[int]) -> Maps:
    if call.attributes.get("ceil_mode"):
        raise WholeError("its last windows may reach beyond the padding (ceil_mode)")
    size = call.size(0)
    if len(kernel) != 2:
        raise WholeError("its windows do not have two dimensions")
    maps: list[Map] = []
    for axis in (0, 1):
        stride, dilation = (
            (call.attributes.get(name) or (1, 1))[axis] for name in ("strides", "dilations")
        )
        window = Window(kernel[axis], stride, dilation, Padding.FREE)
        maps.append(replace(window, before=_pad_before(call, window, axis, size[axis])))
    return {0: (maps[0], maps[1])}


def _pad_before(call: _Call, window: Window, axis: int, size: int) -> int:
    """Return how many rows are before the first one of an input."""
    kind = call.attributes.get("auto_pad", "NOTSET")
    if kind.startswith("SAME"):
        total = max((-(-size // window.stride) - 1) * window.stride + window.reach - size, 0)
        return total // 2 if kind == "SAME_UPPER" else total - total // 2
    return int((call.attributes.get("pads") or (0,) * _RANK)[axis]) if kind == "NOTSET" else 0


def _transpose(call: _Call) -> Maps:
    size, result, weights = call.size(0), call.result, call.weights(1)
    if call.attributes.get("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in call.attributes:
        raise WholeError("its padding follows from its result")
    maps = []
    for axis in (0, 1):
        stride, dilation = (
            (call.attributes.get(name) or (1, 1))[axis] for name in ("strides", "dilations")
        )
        pads = call.attributes.get("pads") or (0,) * _RANK
        extra = (call.attributes.get("output_padding") or (0, 0))[axis]
        reach = (weights[2 + axis] - 1) * dilation + 1
        made = (size[axis] - 1) * stride + reach + extra - pads[axis] - pads[2 + axis]
        if reach < stride or result[axis] != made:
            raise WholeError("some rows of its result have none of its input")
        maps.append(Spread(reach, stride, pads[axis]))
    return {0: (maps[0], maps[1])}


def _resize(call: _Call) -> Maps:
    size, result, old = call.size(0), call.result, call.opset < 11
    linear = call.attributes.get("mode", "nearest") == "linear"
    if call.attributes.get("mode", "nearest") not in ("nearest", "linear"):
        raise WholeError("it is cubic")
    where = call.attributes.get("coordinate_transformation_mode", "half_pixel")
    where = "asymmetric" if old else where
    if where not in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        raise WholeError(f"its positions depend on all rows ({where})")
    if call.attributes.get("antialias") or "keep_aspect_ratio_policy" in call.attributes:
        raise WholeError("it is filtered, or keeps the ratio of rows and columns")
    if where.startswith("pytorch") and any(a > b == 1 for a, b in zip(size, result, strict=True)):
        raise WholeError("its result is a single row or column, which is a rule of its own")
    if call.shape(0)[:2] != (call.output.shape or ())[:2]:
        raise WholeError("it resizes channels")
    if not _gives_sizes(call.opset, call.kind, [one is not None for one in call.inputs]):
        at = 2 if call.kind == "Resize" and not old else 1
        scales = call.attributes.get("scales") or call.values(at)
        ratios = [other / one for one, other in zip(size, result, strict=True)]
        if scales is None or list(scales)[-2:] != ratios or "axes" in call.attributes:
            raise WholeError("its scale is not exact, or known only at run time")
    if linear:
        before, after = int(where != "asymmetric"), 1
    else:
        rounding = call.attributes.get("nearest_mode", "round_prefer_floor")
        rounding = "floor" if old else rounding
        exact = rounding == "floor" if where == "asymmetric" else rounding.startswith("round")
        before, after = (0, 0) if exact else (1, 1)
    return {0: resize(size, result, before, after)}


def _gives_sizes(opset: int, kind: str, inputs: Sequence[bool]) -> bool:
    """Return whether a resize has an input that says how many rows its result has."""
    return kind == "Resize" and opset >= 11 and len(inputs) > 3 and inputs[3]


def _pads_of(call: _Call) -> list[int]:
    """Return how much a Pad adds: before each of the four axes, and after each."""
    given = call.attributes.get("pads", call.attributes.get("paddings"))
    given = call.values(1) if given is None and call.opset >= 11 else given
    axes = call.values(3) if call.shape(3) else list(range(_RANK))
    if given is None or axes is None or len(given) != 2 * len(axes):
        raise WholeError("what it adds is known only at run time")
    pads = [0] * (2 * _RANK)
    for at, axis in enumerate(axes):
        pads[axis % _RANK], pads[axis % _RANK + _RANK] = given[at], given[at + len(axes)]
    return [int(one) for one in pads]


def _pad(call: _Call) -> Maps:
    call.size(0)
    if call.attributes.get("mode", "constant") != "constant":
        raise WholeError("it repeats rows")
    pads = _pads_of(call)
    if min(pads) < 0 or pads[0] or pads[_RANK]:
        raise WholeError("it cuts off rows, or pads the batch")
    return {0: (Shifted(pads[2]), Shifted(pads[3]))}


def _join(call: _Call) -> Maps:
    axis = call.attributes.get("axis", 1) % _RANK
    if axis == 0:
        raise WholeError("it joins a batch")
    maps: Maps = {}
    offset = 0
    for at in range(len(call.inputs)):
        call.size(at)
        rows, columns = (Joined(offset) if axis == along else Each() for along in (2, 3))
        maps[at] = (rows, columns)
        offset += call.shape(at)[axis]
    return maps


def _slice(call: _Call) -> Maps:
    axes = call.attributes.get("axes") or call.values(3)
    if axes is None or {axis % _RANK for axis in axes} != {1}:
        raise WholeError("it takes some of the rows or columns")
    return _first(call)


def _to_depth(call: _Call) -> Maps:
    call.size(0)
    return {0: (Blocks(down=call.attributes["blocksize"]),) * 2}


def _to_space(call: _Call) -> Maps:
    call.size(0)
    return {0: (Blocks(up=call.attributes["blocksize"]),) * 2}


def _macs(call: _Call) -> int:
    """Return the multiplications with addition of an operator with weights."""
    made = prod(call.output.shape or ())
    if call.kind in _WEIGHTS:
        return made * prod(call.shape(_WEIGHTS[call.kind])[1:])
    if call.kind == "ConvTranspose":
        return prod(call.shape(0)) * prod(call.shape(1)[1:])
    if call.kind in ("MatMul", "Gemm") and call.shape(0):
        turned = call.attributes.get("transA")
        return made * call.shape(0)[-2 if turned else -1]
    return 0


_WEIGHTS: Final = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_NOT_EACH: Final = frozenset({"CastLike", "LogSoftmax", "Softmax", "Trilu"})
_Rule = Callable[[_Call], Maps]
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(sorted(IN_PLACE.keys() - _NOT_EACH), _each),
    **dict.fromkeys(_WEIGHTS, _convolve),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _quantize),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "BatchNormalization": _normalize,
    "Concat": _join,
    "ConvTranspose": _transpose,
    "DepthToSpace": _to_space,
    "LRN": _first,
    "Pad": _pad,
    "Slice": _slice,
    "SpaceToDepth": _to_depth,
}


# What is written


def _fixes(model: Any) -> bool:
    """Return whether an input of a model leaves a dimension open."""
    weights = {one.name for one in model.graph.initializer}
    return any(
        not dim.HasField("dim_value")
        for one in model.graph.input
        if one.name not in weights
        for dim in one.type.tensor_type.shape.dim
    )


class _Writer:
    """Writes the operators of a cut into a model."""

    def __init__(self, model: Any, found: Cut, places: Sequence[int], fixes: bool) -> None:
        self._onnx = require("onnx", extra="onnx")
        self._model = model
        self._graph = model.graph
        self._cut = found
        self._places = places
        self._fixes = fixes
        self._opset = opsets_of(model).get("", 1)
        self._old = list(model.graph.node)
        self._taken = set(_iterate_names(model.graph))
        self._names: dict[int, str] = {}  # by tensor of the cut that the file did not have
        self._constants: dict[tuple[int, ...], str] = {}
        steps, operators = found.program.steps, found.program.graph.tensors
        cut_steps = (s for region in found.regions for s in steps[region.first : region.last])
        self._parted = {operators[step.makes].name: step.makes for step in cut_steps}

    def write(self) -> None:
        """Change the model."""
        nodes: list[tuple[Any, bool]] = []  # with whether it is done before the run
        folded = sorted(set(range(len(self._old))) - set(self._places), reverse=True)
        for action in self._cut.actions:
            limit = self._places[action.step] if action.step >= 0 else -1
            while folded and folded[-1] < limit:
                nodes += self._folded(self._old[folded.pop()])
            nodes.append((self._node(action), False))
        while folded:
            nodes += self._folded(self._old[folded.pop()])
        kept = self._drop_unused(nodes)
        del self._graph.node[:]
        self._graph.node.extend(kept)
        self._drop_values()
        if self._fixes:
            self._fix_sizes()

    # Operators

    def _folded(self, node: Any) -> list[tuple[Any, bool]]:
        """Return a node that is done before the run; the shape of a picture becomes a constant."""
        if node.op_type not in SHAPE_ONLY or node.input[0] not in self._parted:
            return [(node, True)]
        tensor = self._cut.program.graph.tensors[self._parted[node.input[0]]]
        assert tensor.shape is not None
        options = _attributes(node)
        shape = tensor.shape[options.get("start", 0) : options.get("end", _RANK)]
        values = list(shape) if node.op_type == "Shape" else prod(tensor.shape)
        numpy_helper = require("onnx.numpy_helper", extra="onnx")
        array = require("numpy", extra="onnx").array(values, "int64")
        self._graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
        return []

    def _node(self, action: Action) -> Any:
        if action.do is Do.WHOLE:
            return self._old[self._places[action.step]]
        if action.do is Do.SLICE:
            return self._slice(action)
        if action.do is Do.JOIN:
            return self._make("Concat", action.inputs, action.output, axis=2 + action.axis)
        assert action.do is Do.PART, "no window asks for zeros around it"
        return self._part(self._old[self._places[action.step]], action)

    def _make(self, kind: str, inputs: Sequence[int], output: int, **attributes: Any) -> Any:
        name = self._name(output)
        names = [self._name(tensor) for tensor in inputs]
        return self._onnx.helper.make_node(kind, names, [name], name=name, **attributes)

    def _slice(self, action: Action) -> Any:
        """Return an operator that takes some rows, or columns, or both."""
        _, given = self._cut.part(action.inputs[0])
        _, taken = self._cut.part(action.output)
        axes = [axis for axis in (0, 1) if given[axis] != taken[axis]]
        starts = [taken[axis][0] - given[axis][0] for axis in axes]
        ends = [taken[axis][1] - given[axis][0] for axis in axes]
        places = [2 + axis for axis in axes]
        if self._opset < 10:
            return self._make(
                "Slice", action.inputs, action.output, starts=starts, ends=ends, axes=places
            )
        node = self._make("Slice", action.inputs, action.output)
        node.input.extend(map(self._constant, (starts, ends, places)))
        return node

    def _part(self, old: Any, action: Action) -> Any:
        """Return an operator on fewer rows."""
        program = self._cut.program
        step, operator = program.steps[action.step], program.graph.operators[action.step]
        node = self._onnx.NodeProto()
        node.CopyFrom(old)
        pictures, pieces, slots = (
            {read.tensor for read in step.reads},
            iter(action.inputs),
            iter(operator.inputs),
        )
        del node.input[:]
        for name in old.input:
            tensor = next(slots) if name else -1
            piece = next(pieces) if tensor in pictures else None
            if piece is None:
                node.input.append(name)
            elif piece >= 0:
                node.input.append(self._name(piece))
        del node.output[:]
        node.output.append(self._name(action.output))
        node.name = node.output[0]
        self._adapt(node, step, action)
        return node

    def _adapt(self, node: Any, step: Step, action: Action) -> None:
        """Give a part the padding and the size that it has."""
        shape, attributes = self._shape(action.output), _attributes(node)
        if node.op_type == "Pad":
            self._adapt_pad(node, step, action)
            return
        if attributes.get("coordinate_transformation_mode") == "pytorch_half_pixel":
            self._set(node, "coordinate_transformation_mode", "half_pixel")  # also for one row
        if _gives_sizes(self._opset, node.op_type, [bool(name) for name in node.input]):
            axes = attributes.get("axes") or range(_RANK)
            node.input[3] = self._constant([shape[axis] for axis in axes])
            return
        rules = (step.reads[0].rows, step.reads[0].columns)
        _, made = self._cut.part(action.output)
        sides = [
            rule.pads(fed, span)
            for rule, fed, span in zip(rules, action.feeds[0], made, strict=True)
            if isinstance(rule, (Window, Spread))
        ]
        if len(sides) == 2:
            self._set(node, "auto_pad")
            self._set(node, "pads", [max(side[end], 0) for end in (0, 1) for side in sides])
            if node.op_type == "ConvTranspose":
                self._set(node, "output_padding", [max(-side[1], 0) for side in sides])

    def _adapt_pad(self, node: Any, step: Step, action: Action) -> None:
        _, made = self._cut.part(action.output)
        old = self._old[self._places[action.step]]
        operator = self._cut.program.graph.operators[action.step]
        tensors = self._cut.program.graph.tensors
        constants = _Constants(self._graph)
        slots = iter(operator.inputs)
        call = _Call(
            old.op_type,
            self._opset,
            _attributes(old),
            [tensors[next(slots)] if name else None for name in old.input],
            tensors[step.makes],
            partial(constants.find, tuple(old.input)),
        )
        pads = _pads_of(call)
        for axis, rule in enumerate((step.reads[0].rows, step.reads[0].columns)):
            assert isinstance(rule, Shifted)
            pads[2 + axis], pads[2 + axis + _RANK] = rule.pads(action.feeds[0][axis], made[axis])
        if self._opset < 11:
            self._set(node, "paddings" if self._opset < 2 else "pads", pads)
            return
        node.input[1] = self._constant(pads)
        del node.input[3:]  # the axes: all of them

    def _set(self, node: Any, name: str, value: Any = None) -> None:
        """Give an operator an attribute, or take it away."""
        for at, one in enumerate(node.attribute):
            if one.name == name:
                del node.attribute[at]
                break
        if value is not None:
            node.attribute.append(self._onnx.helper.make_attribute(name, value))

    def _shape(self, tensor: int) -> tuple[int, ...]:
        picture, ((top, bottom), (left, right)) = self._cut.part(tensor)
        shape = self._cut.program.graph.tensors[picture].shape
        assert shape is not None
        return 1, shape[1], bottom - top, right - left

    # Names

    def _name(self, tensor: int) -> str:
        """Return the name of a tensor of the cut."""
        tensors = self._cut.program.graph.tensors
        if tensor < len(tensors):
            return tensors[tensor].name
        if tensor not in self._names:
            picture, ((top, bottom), (left, right)) = self._cut.part(tensor)
            name = f"{tensors[picture].name} [{top}:{bottom}, {left}:{right}]"
            self._names[tensor] = self._take(f"{name} ({tensor})")
        return self._names[tensor]

    def _take(self, name: str) -> str:
        """Return the name, or one that no tensor has."""
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        return name

    def _constant(self, values: Sequence[int]) -> str:
        """Return a constant of whole numbers; equal ones are in the file once."""
        key = tuple(values)
        if key not in self._constants:
            name = self._take("amounts " + " ".join(map(str, key)))
            helper, kind = self._onnx.helper, self._onnx.TensorProto.INT64
            self._graph.initializer.append(helper.make_tensor(name, kind, [len(key)], list(key)))
            self._constants[key] = name
        return self._constants[key]

    # What is left

    def _drop_unused(self, nodes: Sequence[tuple[Any, bool]]) -> list[Any]:
        """Return the nodes without those that were only for what is gone; drop such weights."""
        used = {one.name for one in self._graph.output}
        kept = []
        for node, is_folded in reversed(nodes):
            if is_folded and used.isdisjoint(filter(None, node.output)):
                continue
            used.update(node.input)
            for _, inner in subgraphs(node):
                used.update(_iterate_names(inner))
            kept.append(node)
        used.update(one.name for one in self._graph.input)
        for held in (self._graph.initializer, self._graph.sparse_initializer):
            for at in range(len(held) - 1, -1, -1):
                one = held[at]
                if (one.name if hasattr(one, "name") else one.values.name) not in used:
                    del held[at]
        return kept[::-1]

    def _drop_values(self) -> None:
        """Drop what the file says of tensors that are gone."""
        left = {name for node in self._graph.node for name in (*node.input, *node.output)}
        for at in range(len(self._graph.value_info) - 1, -1, -1):
            if self._fixes or self._graph.value_info[at].name not in left:
                del self._graph.value_info[at]
        notes = self._graph.quantization_annotation
        for at in range(len(notes) - 1, -1, -1):
            if notes[at].tensor_name not in left:
                del notes[at]

    def _fix_sizes(self) -> None:
        """Write the sizes that the bands are for into the inputs and results."""
        shapes = {one.name: one.shape for one in self._cut.program.graph.tensors}
        for one in (*self._graph.input, *self._graph.output):
            shape = shapes.get(one.name)
            if shape is None or not one.type.HasField("tensor_type"):
                continue
            del one.type.tensor_type.shape.dim[:]
            for size in shape:
                one.type.tensor_type.shape.dim.add().dim_value = size


def _iterate_names(graph: Any) -> Iterator[str]:
    """Yield all names of tensors in a graph, and in those inside of it."""
    for one in (*graph.input, *graph.output, *graph.initializer):
        yield one.name
    for node in graph.node:
        yield from node.input
        yield from node.output
        for _, inner in subgraphs(node):
            yield from _iterate_names(inner)
