"""The scratch that TFLM's CMSIS-NN kernels ask for on Arm's Cortex-M.

The sizes are those of CMSIS-NN's `arm_..._get_buffer_size`, as they are compiled by GCC for plain C
(""), the DSP extension ("dsp") and Helium ("mve"), and of TFLM's kernels/cmsis_nn/*.cc, which say
when they are asked. TFLM is compiled for speed, as by default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memplan.runtimes.tflm.board_structs import extend_kept
from memplan.runtimes.tflm.read.boards import Kernels, Request, Tensors
from memplan.runtimes.tflm.read.kernels import compute_scratch
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.windows import Window, need, read_window, round_up

__all__ = ["KERNELS"]

_TURNED: Final = 16  # channels up to which a transposed convolution does not turn its filter
_BLOCK: Final = 124  # channels of a depthwise convolution that Helium takes at a time


def _convolve(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...] | None:
    source = need(inputs, 0)
    if source.dtype == "int16":
        bias = inputs[2] if len(inputs) > 2 else None
        if bias is not None and bias.dtype != "int64":
            return ()
        row = _count_row(read_window(operator, inputs, output))
        return (8 * round_up(row, 8) if unit == "mve" else 4 * row,)
    if source.dtype != "int8":
        return ()
    return _drop_zero(_size_of(unit, read_window(operator, inputs, output)))


def _size_of(unit: str, window: Window) -> int:
    same = window.source[2] == window.filter[2]
    if window.pad == (0, 0) and window.filter[:2] == (1, 1) and window.dilation == (1, 1) and same:
        return 0
    if unit != "mve":
        return 4 * round_up(_count_row(window), 4)
    flat = window.source[0] == window.filter[0] == 1 and window.dilation[1] == 1
    if flat and same and window.step[1] * window.source[2] % 4 == 0:
        return _size_of_line(window)
    return 4 * round_up(_count_row(window), 16)


def _size_of_line(window: Window) -> int:
    """Return what a convolution of one row needs on Helium: its padded ends."""
    channels, width = window.source[2], window.filter[1]
    made, step, pad = window.made[1], window.step[1], window.pad[1]
    odd = ((made - 1) * step + width - window.source[1]) % 2
    right = max(1, -(-(pad + odd) // step)) if pad + odd else 0
    left = max(1, -(-pad // step)) if pad else 0
    if right + max(made - right - left, 0) + left != made:
        return 4 * round_up(_count_row(window), 16)
    before = pad * channels
    behind = right * channels if odd else before
    return max(width * channels + before, (width - 1) * channels + behind)


def _count_row(window: Window) -> int:
    """Return the elements of the input that one element of the output is computed from."""
    return window.filter[0] * window.filter[1] * window.source[2]


def _convolve_depthwise(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...] | None:
    source, weights = need(inputs, 0), need(inputs, 1)
    if source.dtype != "int8":
        return ()
    window, packed = read_window(operator, inputs, output), weights.dtype == "int4"
    area, channels = window.filter[0] * window.filter[1], window.source[2]
    if (
        unit == "mve" and channels == 1 and not packed and window.made[2] > 1
    ):  # computed as a convolution
        as_convolution = replace(window, filter=(*window.filter[:2], 1))
        return (_size_of(unit, as_convolution) + area * window.filter[2],)
    if channels != window.made[2] or window.batch != 1 or window.dilation != (1, 1):
        return ()
    if unit == "mve":
        return (4 * _BLOCK * area,)
    if window.filter[:2] == (3, 3) and max(window.pad) <= 1 and not packed:
        return ()
    return _drop_zero(2 * channels * area if unit == "dsp" or packed else 0)


def _connect(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...]:
    """Return the scratch of a FULLY_CONNECTED: a channel's scale where it runs as a convolution."""
    source, weights = need(inputs, 0), need(inputs, 1)
    if source.dtype != "int8" or weights.dtype == "int4" or not _is_wide(weights, output):
        return ()
    return () if weights.scales > 1 else (8 * output.shape[-1],)


def _is_wide(weights: TensorInfo, output: TensorInfo) -> bool:
    """Whether a FULLY_CONNECTED runs as a convolution with a filter of one element."""
    return len(output.shape) > 2 and weights.shape[-1] % 4 == 0


def _pool(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...]:
    quantized = need(inputs, 0).dtype in ("int8", "int16")
    return (4 * output.shape[3],) if quantized and unit == "dsp" else ()


def _convolve_back(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...] | None:
    weights, source = need(inputs, 1), need(inputs, 2)
    if source.dtype != "int8" or "step_x" not in operator.options:
        return compute_scratch(operator.type, inputs, output) if source.dtype != "int8" else None
    step_x, step_y = operator.options["step_x"], operator.options["step_y"]
    _, rows, columns, channels = weights.shape
    if max(step_x, step_y) <= 2 and channels > _TURNED:  # by a convolution with a turned filter
        row = rows * columns * channels
        size = 4 * round_up(row, 16 if unit == "mve" else 4)
        return size, row * weights.shape[0]
    line = ((source.shape[2] - 1) * step_x + max(columns, step_y)) * output.shape[3]
    return 4 * line * max(rows, step_y), 0


def _multiply(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...]:
    """Return the scratch of a BATCH_MATMUL: sums of columns."""
    sums = unit == "mve" and need(inputs, 0).dtype == "int8" == need(inputs, 1).dtype
    return (4 * output.shape[-1],) if sums else ()


def _remember(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...]:
    """Return the scratch of an LSTM, whose quantized kernels have one buffer less."""
    quantized = need(inputs, 0).dtype in ("int8", "int16")
    return (need(inputs, 19).bytes,) * (3 if quantized else 4)


def _drop_zero(size: int) -> tuple[int, ...]:
    return (size,) if size > 0 else ()


# An operator that is not here has the reference kernel; SVDF asks for what that asks for.
_SCRATCH: Final[dict[str, Request]] = {
    "AVERAGE_POOL_2D": _pool,
    "CONV_2D": _convolve,
    "DEPTHWISE_CONV_2D": _convolve_depthwise,
    "FULLY_CONNECTED": _connect,
    "BATCH_MATMUL": _multiply,
    "TRANSPOSE_CONV": _convolve_back,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _remember,
}


def _count_sums(unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo) -> int:
    """Return the bytes of sums over weights that a kernel keeps for good on Helium."""
    if unit != "mve" or operator.type not in ("FULLY_CONNECTED", "SVDF") or len(inputs) < 2:
        return 0
    source, weights = inputs[:2]
    if source is None or weights is None or source.dtype != "int8" or not weights.shape:
        return 0
    if operator.type == "SVDF":
        return 4 * weights.shape[0]
    if weights.dtype == "int4" or not weights.data or not output.shape:
        return 0
    return 0 if _is_wide(weights, output) else 4 * output.shape[-1]


KERNELS: Final = Kernels(
    scratch=_SCRATCH,
    keeps={
        **extend_kept("AVERAGE_POOL_2D MAX_POOL_2D CONV_2D DEPTHWISE_CONV_2D", "i"),
        **extend_kept("FULLY_CONNECTED", "iipiii"),
        **extend_kept("SOFTMAX", "ii"),
        "SVDF": "i" * 9 + "p",
        "TRANSPOSE_CONV": "(b(hhhh)hhhh" + "i" * 7 + "ff)iiipp",
    },
    count_sums=_count_sums,
    scales_floats=False,
)
