"""The kernels of TFLM: which inputs they may overwrite, and which scratch they ask for.

Both hold for TFLM's reference kernels (tensorflow/lite/micro/kernels/*.cc), which its Python
package has. Kernels for one chip (CMSIS-NN, Xtensa) ask for other scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, NamedTuple

from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.names import element_bytes
from memplan.runtimes.tflm.read.windows import need

__all__ = [
    *("IN_PLACE", "InPlace", "compute_scratch", "find_overwritable", "find_parts"),
    "list_scratch",
]


class InPlace(NamedTuple):
    """Which inputs of an operator its first output may be written over."""

    # Positions among the operator's inputs; the planner takes one of them at most.
    inputs: tuple[int, ...]
    # Whether the kernel only moves bytes: then the size must be equal, and the shape may differ.
    moves: bool
    why: str  # why the kernel computes the same result when input and output share their memory


_EACH = "writes element i once it has read element i of its inputs, and never reads that again"
_ROWS = "writes element i of a row in the last pass that reads it, and rows are apart"
_COPY = "copies, element i to element i"
_NOTHING = "returns at once where output and input are the same memory"
_BASE = "copies its operand only where the output is other memory, then writes the update into it"

_UNARY = """
    ABS CAST CEIL COS ELU EXP FLOOR HARD_SWISH LEAKY_RELU LOG LOGICAL_NOT LOGISTIC NEG QUANTIZE
    RELU RELU6 ROUND RSQRT SIN SQRT SQUARE TANH
"""
_BINARY = """
    ADD DIV FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL SQUARED_DIFFERENCE SUB
"""

# This is the one table of in-place choices. TFLM's own planner never makes one, as it always places
# input and output apart; a plan in the file's metadata can make them.
IN_PLACE: Final[dict[str, InPlace]] = {
    **{name: InPlace((0,), False, _EACH) for name in _UNARY.split()},
    **{name: InPlace((0, 1), False, _EACH) for name in _BINARY.split()},
    "PRELU": InPlace((0,), False, _EACH),  # its second input is smaller: a slope for each channel
    "SELECT_V2": InPlace((1, 2), False, _EACH),  # its first has elements of another size
    "ADD_N": InPlace((0, 1, 2, 3), False, _EACH),
    "SOFTMAX": InPlace((0,), False, _ROWS),
    "RESHAPE": InPlace((0,), True, _NOTHING),
    "SQUEEZE": InPlace((0,), True, _COPY),
    "EXPAND_DIMS": InPlace((0,), True, _COPY),
    "DYNAMIC_UPDATE_SLICE": InPlace((0,), False, _BASE),
}


def find_overwritable(
    type_: str, inputs: Sequence[TensorInfo | None], output: TensorInfo
) -> tuple[int, ...]:
    """Return the positions of the inputs that an operator may write its output over.

    Elements must have one size, or a write would reach into elements that are still to be read.
    Shapes must be equal except for leading ones, as a broadcast input is read more than once.
    """
    rule = IN_PLACE.get(type_)
    if rule is None:
        return ()
    found = []
    for position in rule.inputs:
        tensor = inputs[position] if position < len(inputs) else None
        if tensor is None or element_bytes(tensor.dtype) != element_bytes(output.dtype):
            continue
        fits = (
            tensor.elements == output.elements
            if rule.moves
            else _trim(tensor.shape) == _trim(output.shape)
        )
        if fits:
            found.append(position)
    return tuple(found)


def find_parts(
    operator: OperatorInfo, inputs: Sequence[TensorInfo | None], output: TensorInfo
) -> list[tuple[int, int, int]]:
    """Return the tensors that may lie inside another one, as their kernel copies the bytes.

    These are the inputs of a CONCATENATION inside its result, and the result of a SLICE inside its
    input, where the part is one piece of the whole. Each is the part, the whole, and the byte of
    the whole at which the part begins; tensors are positions of an input, or -1 for the result.
    """
    width = element_bytes(output.dtype)
    if not width or not inputs or any(t is None or t.dtype != output.dtype for t in inputs[:1]):
        return []
    if operator.type == "CONCATENATION" and operator.options and output.shape:
        axis = operator.options[0] % len(output.shape)
        if any(size != 1 for size in output.shape[:axis]):
            return []
        offset, found = 0, []
        for at, tensor in enumerate(inputs):
            if tensor is None or tensor.dtype != output.dtype:
                return []
            found.append((at, -1, offset))
            offset += tensor.elements * width
        return found
    if operator.type == "SLICE" and len(inputs) > 1:
        source, begin = inputs[0], inputs[1]
        if source is None or begin is None or begin.values is None:
            return []
        if not len(begin.values) == len(source.shape) == len(output.shape):
            return []
        cut = [at for at, size in enumerate(output.shape) if size != source.shape[at]]
        if any(size != 1 for size in output.shape[: max(cut, default=0)]):
            return []
        first = sum(at * prod(source.shape[axis + 1 :]) for axis, at in enumerate(begin.values))
        return [(-1, 0, first * width)]
    return []


def _trim(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its leading ones, which broadcasting adds."""
    first = next((axis for axis, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


_Tensors = Sequence[TensorInfo | None]
_Request = Callable[[_Tensors, TensorInfo], tuple[int, ...]]


def list_scratch(
    operator: OperatorInfo, inputs: _Tensors, output: TensorInfo | None
) -> tuple[int, ...]:
    """Return the sizes in bytes of the scratch buffers of an operator, on its board if it has one.

    A size of 0 takes no place, but TFLM asks its planner for it like for any other.
    """
    if operator.scratch is None:
        return compute_scratch(operator.type, inputs, output)
    return operator.scratch


def compute_scratch(type_: str, inputs: _Tensors, output: TensorInfo | None) -> tuple[int, ...]:
    """Return the sizes in bytes of the scratch buffers that a reference kernel asks for.

    TFLM plans them with the tensors, each for the time of its operator, and no metadata can give
    them an offset.
    """
    request = _SCRATCH.get(type_)
    if request is None or output is None:
        return ()
    try:
        return request(inputs, output)
    except IndexError:  # an input is left out, or has too few axes
        return ()


def _rank_and_axes(inputs: _Tensors, output: TensorInfo) -> tuple[int, ...]:
    """Return the scratch of a reduction, which needs two arrays of `int` for its axes."""
    return 4 * len(need(inputs, 0).shape), 4 * need(inputs, 1).elements


def _sums(inputs: _Tensors, output: TensorInfo) -> tuple[int, ...]:
    quantized = need(inputs, 0).dtype in ("int8", "int16")
    sums = (4 * output.elements,) if quantized else ()
    return (*sums, *_rank_and_axes(inputs, output))


def _unpacked_filter(inputs: _Tensors, output: TensorInfo) -> tuple[int, ...]:
    weights = need(inputs, 1)
    return (weights.elements,) if weights.dtype == "int4" else ()


def _accumulators(inputs: _Tensors, output: TensorInfo) -> tuple[int, ...]:
    kind, bias = need(inputs, 2).dtype, inputs[3] if len(inputs) > 3 else None
    if kind != "int16":
        return (4 * output.elements,) if kind == "int8" else ()
    widened = (8 * bias.elements,) if bias is not None and bias.dtype == "int16" else ()
    return (8 * output.elements, *widened)


def _svdf(inputs: _Tensors, output: TensorInfo) -> tuple[int, ...]:
    source, features = need(inputs, 0), need(inputs, 1)
    filters = 4 * source.shape[0] * features.shape[0]
    return (filters, 4 * output.elements) if source.dtype == "int8" else (filters,)


_SCRATCH: Final[dict[str, _Request]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _unpacked_filter),
    **dict.fromkeys(("MEAN", "SUM"), _sums),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN"), _rank_and_axes),
    # Pointers of a 64-bit machine; most chips need half of it.
    "ADD_N": lambda inputs, output: (8 * len(inputs),),
    "MIRROR_PAD": lambda inputs, output: (4 * len(need(inputs, 0).shape),) * 2,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _accumulators,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda inputs, output: (need(inputs, 19).bytes,) * 4,
}
