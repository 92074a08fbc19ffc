"""Shapes of the operators that onnxruntime adds to ONNX, which its optimiser and quantiser write.

What an operator does is in `docs/ContribOperators.md` of onnxruntime; what its kernels for the CPU
make is what these rules say. An operator that is like one of ONNX has the shape that the library
infers for that one. A rule that does not cover a case leaves the result open: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from memplan.base.extras import require
from memplan.runtimes.onnx.operators import NCHWC, Like, find_row
from memplan.runtimes.onnx.read.faults_rules import is_contradictory
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, infer_node
from memplan.runtimes.onnx.read.protos import known_shape, number, numbers, type_of
from memplan.runtimes.onnx.read.shapes_arithmetic import Array

__all__ = ["DOMAINS", "Known", "MisfitError", "RuntimeCall", "Value", "has_rule", "infer"]

DOMAINS = frozenset({"com.microsoft", NCHWC})

_FLOAT, _UINT8, _INT32 = 1, 2, 6
_INTEGERS = frozenset({2, 3, 4, 5, 6, 7, 12, 13})
_LARGEST = 1 << 62
_OPSET = 13  # of the operators whose rules are borrowed
_OF_ONNX = 17  # LayerNormalization is an operator of ONNX from this version on
_BLOCK = 16  # the most channels that the layout NCHWc has in a block, and a multiple of all others


class MisfitError(ValueError):
    """The shapes that an operator reads contradict each other; the text says how."""


class Value(NamedTuple):
    """An element type, by its number in ONNX, and a shape, with `None` for an open size."""

    element: int
    shape: tuple[int | None, ...]


class Known(NamedTuple):
    """What an operator reads: all sizes are known."""

    element: int
    shape: tuple[int, ...]


@dataclass
class RuntimeCall:
    """An operator with what it reads."""

    node: Any
    inputs: list[Known | None]  # `None` for one that is left out
    # Values of the inputs, `None` for those that are not known before the run.
    data: list[Array | None]
    # For each nchwc convolution that reads the result: the shape of its filter.
    filters: Callable[[], list[tuple[int, ...]]] = list

    def get(self, at: int) -> Known | None:
        """Return an input, or `None` if it is left out."""
        return self.inputs[at] if at < len(self.inputs) else None

    def need(self, at: int, rank: int | None = None) -> Known:
        """Return an input that must be there, with this many axes, or raise `LookupError`."""
        found = self.get(at)
        if found is None or (rank is not None and len(found.shape) != rank):
            raise LookupError
        return found

    def number(self, name: str, default: int | None = None) -> int:
        """Return an attribute; without a default it must be there."""
        if default is None and all(one.name != name for one in self.node.attribute):
            raise LookupError
        return number(self.node, name, default or 0)


_Results = list[Value | None]
_Rule = Callable[[RuntimeCall], _Results]


def has_rule(node: Any, opsets: Mapping[str, int]) -> bool:
    """Whether there is a rule for an operator, in a model with these versions of the domains."""
    if node.op_type == "LayerNormalization" and opsets.get("", 1) >= _OF_ONNX:
        return False
    row = find_row(type_of(node))
    return bool(row.shape or row.like)


def infer(call: RuntimeCall) -> _Results:
    """Return what the outputs are, in order, as far as the rules say.

    A `MisfitError` says that the operator cannot run at the sizes of its inputs.
    """
    row = find_row(type_of(call.node))
    try:
        found = _borrow_all(call, row.like) if row.like else _RULES[row.shape](call)
    except MisfitError:
        raise
    except (ArithmeticError, LookupError, ValueError):  # a rule does not cover the case
        return []
    return [one if one is None or _is_possible(one) else None for one in found]


def _is_possible(value: Value) -> bool:
    return value.element != 0 and all(size is None or 0 <= size < _LARGEST for size in value.shape)


def _require(fits: bool, why: str) -> None:
    if not fits:
        raise MisfitError(why)


def _borrow(
    call: RuntimeCall, kind: str, shapes: Sequence[tuple[int, ...] | None], *, fit: bool = True
) -> tuple[int, ...]:
    """Return the shape that an operator of ONNX with the same attributes makes.

    With `fit` it is also checked what the library leaves unchecked.
    """
    attributes = tuple(one.SerializeToString() for one in call.node.attribute)
    return _ask_library(kind, tuple(shapes), attributes, fit)


@lru_cache(maxsize=4096)
def _ask_library(
    kind: str, shapes: tuple[tuple[int, ...] | None, ...], attributes: tuple[bytes, ...], fit: bool
) -> tuple[int, ...]:
    onnx, defs = require("onnx", extra="onnx"), require("onnx.defs", extra="onnx")
    helper = onnx.helper
    schema = defs.get_schema(kind, _OPSET, "")
    names = ["" if shape is None else f"i{at}" for at, shape in enumerate(shapes)]
    node = helper.make_node(kind, names, ["o"])
    given = (onnx.AttributeProto.FromString(one) for one in attributes)
    node.attribute.extend(one for one in given if one.name in schema.attributes)
    types = {
        name: helper.make_tensor_type_proto(_FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
        if name
    }
    try:
        found = infer_node(node, {"": _OPSET}, types, {})
    except CrashError:
        raise LookupError from None
    except LibraryError as error:
        _, marker, text = str(error).rpartition("[ShapeInferenceError]")
        if marker:
            raise MisfitError(text.strip()) from None
        raise LookupError from None
    shape = known_shape(found["o"]) if "o" in found else None
    if shape is None:
        raise LookupError
    _require(not fit or not is_contradictory(node, list(shapes), [shape]), f"as {kind}")
    return shape


# Results like an input.


def _with_bias(call: RuntimeCall) -> _Results:
    data, bias = call.need(0), call.get(1)
    if bias is not None:
        _require(bias.shape == data.shape[-1:], "the bias and the rows have different lengths")
    return [Value(*data)]


def _quantize(call: RuntimeCall) -> _Results:
    zero = call.get(2)
    return [Value(_UINT8 if zero is None else zero.element, call.need(0).shape)]


def _of_scale(call: RuntimeCall) -> _Results:
    """Return a result with the type of the scale; what else is made is left open."""
    return [Value(call.need(1).element, call.need(0).shape)]


def _skip_normalize(call: RuntimeCall) -> _Results:
    data, skip, scale = call.need(0), call.need(1), call.need(2)
    _require(scale.shape == data.shape[-1:], "the scale and the rows have different lengths")
    fits = [data.shape, data.shape[1:], (1, *data.shape[1:])]
    _require(skip.shape in fits, "the tensors that are added have different shapes")
    return [Value(*data), None, None, Value(*data)]


def _embed(call: RuntimeCall) -> _Results:
    words = call.need(2, 2)
    hidden = words.shape[1]
    batch, length = call.need(0, 2).shape
    one = Value(words.element, (batch, length, hidden))
    return [one, Value(_INT32, (batch,)), one]


# Products.


def _turned(shape: tuple[int, ...], turn: int) -> tuple[int, ...]:
    if turn and len(shape) < 2:
        raise LookupError
    return (*shape[:-2], shape[-1], shape[-2]) if turn else shape


def _blocks_product(call: RuntimeCall) -> _Results:
    data = call.need(0)
    _require(data.shape[-1] == call.number("K"), "K is not the size of the rows")
    return [Value(data.element, (*data.shape[:-1], call.number("N")))]


def _gather_blocks(call: RuntimeCall) -> _Results:
    data, where, scales = call.need(0), call.need(1), call.need(2)
    if where.element not in _INTEGERS:
        raise LookupError
    shape, axis = list(data.shape), call.number("gather_axis", 0)
    if data.element == _UINT8:
        shape[-1] *= 8 // call.number("bits", 4)
    if not 0 <= axis < len(shape):
        raise LookupError
    return [Value(scales.element, (*shape[:axis], *where.shape, *shape[axis + 1 :]))]


def _gather_points(call: RuntimeCall) -> _Results:
    data, where, batch = call.need(0), call.need(1), call.number("batch_dims", 0)
    if not 0 <= batch < min(len(data.shape), len(where.shape)):
        raise LookupError
    depth = where.shape[-1] + batch
    _require(batch < depth <= len(data.shape), "a place has more numbers than the data have axes")
    return [Value(data.element, (*where.shape[:-1], *data.shape[depth:]))]


# By window, and by element.


def _borrow_all(call: RuntimeCall, like: Like) -> _Results:
    """Return the result that an operator like one of ONNX makes."""
    shapes: list[tuple[int, ...] | None] = [call.need(at).shape for at in like.inputs]
    bias = None if like.bias is None else call.get(like.bias)
    if bias is not None:
        shapes.append(bias.shape)
    if like.turns:
        if call.number("transBatchA", 0) or call.number("transBatchB", 0):
            raise LookupError
        for at, name in enumerate(("transA", "transB")):
            shapes[at] = _turned(call.need(like.inputs[at]).shape, call.number(name, 0))
    data = call.need(like.inputs[0]).shape
    last = like.channels_last or call.number("channels_last", 0)
    if last and len(data) > 1:
        shapes[0] = (data[0], data[-1], *data[1:-1])
    shape = _borrow(call, like.kind, shapes, fit=like.is_checked)
    if last:
        shape = (shape[0], *shape[2:], shape[1])
    typed = call.get(like.element)
    return [Value(_FLOAT if typed is None else typed.element, shape)]


def _concatenate(call: RuntimeCall) -> _Results:
    parts = [call.need(at) for at in range(2, len(call.inputs), 3)]
    return [Value(parts[0].element, _borrow(call, "Concat", [one.shape for one in parts]))]


def _reorder_input(call: RuntimeCall) -> _Results:
    data = call.need(0)
    shape = data.shape
    if call.number("channels_last", 0):
        shape = (shape[0], shape[-1], *shape[1:-1])
    channels = shape[1]
    if channels % _BLOCK:
        # How many channels are in a block depends on the machine that wrote the file: it shows in
        # the filters, whose channels are filled up too.
        sizes = {one[1] if one[1] > 1 else one[0] for one in call.filters() if len(one) > 1}
        full = sizes.pop() if len(sizes) == 1 else 0
        if not channels <= full < channels + _BLOCK:
            raise LookupError
        channels = full
    return [Value(data.element, (shape[0], channels, *shape[2:]))]


def _reorder_output(call: RuntimeCall) -> _Results:
    data, channels = call.need(0), call.number("channels")
    batch, _, *spatial = data.shape
    if call.number("channels_last", 0):
        return [Value(data.element, (batch, *spatial, channels))]
    return [Value(data.element, (batch, channels, *spatial))]


def _upsample(call: RuntimeCall) -> _Results:
    data, scales = call.need(0), numbers(call.node, "scales")
    if len(scales) != len(data.shape):
        raise LookupError
    return [Value(data.element, tuple(a * b for a, b in zip(data.shape, scales, strict=True)))]


# Attention.


def _attention(past: int, element: int) -> _Rule:
    """Return the rule of Attention, with its projection inside."""

    def rule(call: RuntimeCall) -> _Results:
        batch, length, width = call.need(0, 3).shape
        weights, heads = call.need(1, 2).shape, call.number("num_heads")
        before, sizes = call.get(past), numbers(call.node, "qkv_hidden_sizes")
        _require(weights[0] == width, "the weights and the rows have different lengths")
        hidden = sizes[2] if sizes else weights[1] // 3
        _require(hidden % heads == 0, "the rows cannot be divided among the heads")
        one = call.need(element).element
        made: _Results = [Value(one, (batch, length, hidden)), None]
        if not call.number("past_present_share_buffer", 0) and not sizes:
            total = length + (call.need(past, 5).shape[3] if before is not None else 0)
            made[1] = Value(one, (2, batch, heads, total, hidden // heads))
        return made

    return rule


def _multi_head(call: RuntimeCall) -> _Results:
    query, key, value = call.need(0, 3), call.need(1), call.need(2)
    batch, length, _ = query.shape
    heads = call.number("num_heads")
    before, before_value = call.get(6), call.get(7)
    if call.get(8) is not None or len(key.shape) != len(value.shape):
        raise LookupError  # the cache is a buffer of its greatest length
    if len(value.shape) == 3:
        _require(key.shape[2] == query.shape[2], "query and key have rows of different lengths")
        _require(key.shape[:2] == value.shape[:2], "key and value have different lengths")
        total, hidden, wide = key.shape[1], value.shape[2], key.shape[2] // heads
    elif len(value.shape) == 4:
        total, hidden, wide = key.shape[2], heads * value.shape[3], key.shape[3]
    else:
        raise LookupError
    if before is not None and before_value is not None:
        total += call.need(6, 4).shape[2]
    made = Value(query.element, (batch, length, hidden))
    keys = Value(query.element, (batch, heads, total, wide))
    return [made, keys, Value(query.element, (batch, heads, total, hidden // heads))]


def _group_query(call: RuntimeCall) -> _Results:
    query, key = call.need(0, 3), call.get(1)
    batch, length, width = query.shape
    heads, groups = call.number("num_heads"), call.number("kv_num_heads")
    parts = heads if key is not None else heads + 2 * groups
    _require(width % parts == 0, "the rows cannot be divided among the heads")
    wide = width // parts
    made = Value(query.element, (batch, length, heads * wide))
    if call.number("kv_cache_bit_width", 0) or call.number("sliding_window_cache", 0):
        return [made]
    past, given = call.get(3), call.data[6] if len(call.data) > 6 else None
    total: int | None = None
    if given is not None and given.size == 1:
        total = max(int(given.item()), 0 if past is None else call.need(3, 4).shape[2])
    element = query.element if past is None else past.element
    cache = Value(element, (batch, groups, total, wide))
    return [made, cache, cache]


def _quantized_lstm(call: RuntimeCall) -> _Results:
    length, batch, _ = call.need(0, 3).shape
    directions, hidden = call.need(2, 3).shape[0], call.number("hidden_size")
    state = Value(_FLOAT, (directions, batch, hidden))
    return [Value(_FLOAT, (length, directions, batch, hidden)), state, state]


# By the names that rows of `operators.TABLE` give them.
_RULES: Mapping[str, _Rule] = {
    "attention": _attention(4, 0),
    "blocks_product": _blocks_product,
    "concatenate": _concatenate,
    "embed": _embed,
    "gather_blocks": _gather_blocks,
    "gather_points": _gather_points,
    "group_query": _group_query,
    "multi_head": _multi_head,
    "of_scale": _of_scale,
    "quantize": _quantize,
    "quantized_attention": _attention(8, 3),
    "quantized_lstm": _quantized_lstm,
    "reorder_input": _reorder_input,
    "reorder_output": _reorder_output,
    "same": lambda call: [Value(*call.need(0))],
    "skip_normalize": _skip_normalize,
    "upsample": _upsample,
    "with_bias": _with_bias,
}
