"""The kernels of TFLM: which inputs they may overwrite, and which scratch they ask for.

Both hold for TFLM's reference kernels (tensorflow/lite/micro/kernels/*.cc), which its Python
package has. Kernels for one chip (CMSIS-NN, Xtensa) ask for other scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from memplan.runtimes.tflm.names import element_bytes
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.windows import need

__all__ = [
    "compute_scratch",
    "find_overwritable",
    "find_parts",
    "list_scratch",
]


def find_overwritable(
    type_: str, inputs: Sequence[TensorInfo | None], output: TensorInfo
) -> tuple[int, ...]:
    """Return the positions of the inputs that an operator may write its output over.

    Elements must have one size, or a write would reach into elements that are still to be read.
    Shapes must be equal except for leading ones, as a broadcast input is read more than once.
    """
    rule = find_row(type_).in_place
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
    parts = find_row(operator.type).parts
    if parts == "of_result" and operator.options and output.shape:
        axis = operator.options["axis"] % len(output.shape)
        if any(size != 1 for size in output.shape[:axis]):
            return []
        offset, found = 0, []
        for at, tensor in enumerate(inputs):
            if tensor is None or tensor.dtype != output.dtype:
                return []
            found.append((at, -1, offset))
            offset += tensor.elements * width
        return found
    if parts == "of_input" and len(inputs) > 1:
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
    request = _RULES.get(find_row(type_).scratch)
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


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, _Request]] = {
    "accumulators": _accumulators,
    "paddings": lambda inputs, output: (4 * len(need(inputs, 0).shape),) * 2,
    # Pointers of a 64-bit machine; most chips need half of it.
    "pointers": lambda inputs, output: (8 * len(inputs),),
    "rank_and_axes": _rank_and_axes,
    "states": lambda inputs, output: (need(inputs, 19).bytes,) * 4,
    "sums": _sums,
    "svdf": _svdf,
    "unpacked_filter": _unpacked_filter,
}
