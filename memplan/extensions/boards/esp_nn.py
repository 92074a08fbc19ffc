"""The scratch that Espressif's kernels for TFLM ask for: esp-nn's `esp_nn_get_..._scratch_size`.

The generic kernels, of most chips, need none for convolutions. Those of the ESP32-S3 and ESP32-P4
copy filters and inputs into the layout of their vector instructions. esp-nn's plain C ("") needs
none at all.
"""

from __future__ import annotations

from typing import Final

from memplan.runtimes.tflm.board_structs import extend_kept
from memplan.runtimes.tflm.read.boards import Kernels, Request, Tensors
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.windows import Window, need, read_window, round_up

__all__ = ["KERNELS"]

_FULL: Final = 40 << 10  # bytes of an input above which a 3 x 3 filter takes strips of it
_WIDE: Final = 48 << 10  # the same for other filters, with their widened elements
_CACHED: Final = 32 << 10  # bytes of the first cache of the ESP32-P4


def _convolve(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...] | None:
    source, weights = need(inputs, 0), need(inputs, 1)
    unpacked = (weights.elements,) if weights.dtype == "int4" else ()
    if source.dtype != "int8" or unit in ("", "esp32"):
        return unpacked
    window = read_window(operator, inputs, output)
    if operator.type == "DEPTHWISE_CONV_2D":
        return unpacked if unit == "esp32-p4" else (*unpacked, _size_of_depthwise_s3(window))
    return (*unpacked, _size_of_p4(window) if unit == "esp32-p4" else _size_of_s3(window))


def _is_point(window: Window) -> bool:
    """Whether each pixel of the output comes from the pixel of the input at the same place."""
    return window.filter[:2] == window.step == (1, 1) and window.pad == (0, 0)


def _size_of_points(window: Window) -> int:
    (height, width, channels), made = window.source, window.made[2]
    padded = round_up(channels, 8)
    copied = height * width * padded if channels % 8 else 0
    turned = 16 * padded if height * width >= 8 else 0
    return copied + padded * made + turned


def _size_of_p4(window: Window) -> int:
    """Return what a convolution needs on the ESP32-P4."""
    (height, width, channels), made = window.source, window.made[2]
    rows, columns = window.filter[:2]
    area, sums = rows * columns, 4 * made
    if _is_point(window):
        return _size_of_points(window) + 32 if channels >= 16 else sums + 16 * made + 64
    wide, narrow = area * round_up(channels, 16) * made, 16 * area * made
    if window.pad == (0, 0) and columns * channels >= 16:
        return wide + sums + 32
    if area * channels >= 16:
        return area * channels + sums + 32
    if window.pad == (0, 0):
        return narrow + 16 * height * width + sums + 32
    line = width + 2 * window.pad[1]
    full = line * (height + 2 * window.pad[0]) * channels
    if full + sums <= _CACHED:
        return full + wide + sums + 32
    left, strip = _CACHED - sums - narrow - rows * 16 * line, 1
    if left >= 0:
        strip = min(left // (window.step[0] * 16 * line) + 1, window.made[0])
    held = (strip - 1) * window.step[0] + rows + 2 * window.pad[0]
    return held * 16 * line + narrow + sums + 32


def _size_of_s3(window: Window) -> int:
    """Return what a convolution needs on the ESP32-S3."""
    (height, width, channels), made = window.source, window.made[2]
    rows, columns = window.filter[:2]
    if _is_point(window):
        return _size_of_points(window) + 64
    row = columns * channels
    if row < 16 <= rows * row:
        column = round_up(rows * row, 16)
        return 4 * made + 16 + made * column + 16 + column + 64
    copied = 0
    if window.pad != (0, 0):
        copied = (width + 2 * window.pad[1]) * (height + 2 * window.pad[0]) * channels
    filters = rows * columns * round_up(channels, 16) * made + round_up(row, 16) * rows * made
    behind = _count_behind(window)
    edges = (width + behind[1]) * (height + behind[0]) * channels if any(behind) else 0
    return copied + filters + edges + 64 + 4 * made


def _size_of_depthwise_s3(window: Window) -> int:
    """Return what a depthwise convolution needs on the ESP32-S3."""
    channels, area = window.source[2], window.filter[0] * window.filter[1]
    pixels, multiplier = window.source[0] * window.source[1], window.made[2] // channels
    weights = area * channels * multiplier
    if multiplier == 1 and channels % 8 == 0:
        if window.filter[:2] == (3, 3):
            return _size_of_3x3_s3(window)
        widened = 2 * (weights + pixels * channels)
        if widened <= _WIDE:
            return widened + 32
        return 2 * weights + 2 * window.source[1] * window.filter[0] * channels + 32
    if multiplier == 1 and channels > 3:
        padded = round_up(channels, 8)
        begin = round_up(2 * area * padded, 16)
        begin = round_up(begin + 2 * pixels * padded, 16)
        begin = round_up(begin + window.made[0] * window.made[1] * padded, 16)
        return begin + 12 * padded + 16
    return 2 * (weights + pixels * channels) + 32 if multiplier % 4 == 0 else 32


def _size_of_3x3_s3(window: Window) -> int:
    height, width, channels = window.source
    behind = _count_behind(window)
    if channels % 16 == 0:
        both = window.pad[0] * 2, window.pad[1] * 2
        more = both if any(both) else _count_behind(window, clamped=False)
        if not any(more):
            return 9 * channels + 16
        full = (height + more[0]) * (width + more[1]) * channels
        strip = (width + more[1]) * 3 * channels
        return 9 * channels + (full if full <= _FULL else strip) + 16
    if channels < 12:
        return 2 * (9 + height * width) * channels + 32
    padded = round_up(channels, 16)
    copied = (height + 2 * window.pad[0] + behind[0]) * (width + 2 * window.pad[1] + behind[1])
    return 9 * padded + copied * padded + window.made[0] * window.made[1] * padded + 64


def _count_behind(window: Window, *, clamped: bool = True) -> tuple[int, int]:
    """Return the rows and columns that the last steps of a filter reach beyond the input."""
    beyond = [
        window.made[at] * window.step[at] + window.filter[at] - 1 - window.source[at]
        for at in range(2)
    ]
    return (max(0, beyond[0]), max(0, beyond[1])) if clamped else (beyond[0], beyond[1])


def _soften(
    unit: str, operator: OperatorInfo, inputs: Tensors, output: TensorInfo
) -> tuple[int, ...]:
    source = need(inputs, 0)
    if not unit or source.dtype != "int8" or output.dtype != "int8":
        return ()
    return (4 * source.shape[1],)


# An operator that is not here has the reference kernel, or asks for what that asks for.
_SCRATCH: Final[dict[str, Request]] = {
    "CONV_2D": _convolve,
    "DEPTHWISE_CONV_2D": _convolve,
    "SOFTMAX": _soften,
}

KERNELS: Final = Kernels(
    scratch=_SCRATCH, keeps=extend_kept("CONV_2D DEPTHWISE_CONV_2D SOFTMAX", "i")
)
