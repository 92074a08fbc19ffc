"""Convolutions and poolings as libraries of kernels see them: sizes, steps and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo

__all__ = ["Window", "need", "read_window", "round_up"]


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution: heights, widths and channels of its input, its filter and its result."""

    batch: int  # how many pictures it reads
    # (height, width, channels) of the input, of the filter and of the output.
    source: tuple[int, int, int]
    filter: tuple[int, int, int]
    made: tuple[int, int, int]
    step: tuple[int, int]  # (height, width); the padding is that before the first row and column
    dilation: tuple[int, int]
    pad: tuple[int, int]


def need(tensors: Sequence[TensorInfo | None], position: int) -> TensorInfo:
    """Return an input, or raise `IndexError` if the operator has none there."""
    tensor = tensors[position]
    if tensor is None:
        raise IndexError
    return tensor


def read_window(
    operator: OperatorInfo, inputs: Sequence[TensorInfo | None], output: TensorInfo
) -> Window:
    """Return what a CONV_2D or DEPTHWISE_CONV_2D computes.

    An `IndexError` says that it lacks options, an input, or an axis.
    """
    at = operator.options
    if "dilation_x" not in at:
        raise IndexError
    batch, *source = _exactly(need(inputs, 0).shape, 4)
    _, *filter = _exactly(need(inputs, 1).shape, 4)
    _, *made = _exactly(output.shape, 4)
    step = at["step_y"], at["step_x"]
    dilation = at["dilation_y"] or 1, at["dilation_x"] or 1  # 1 is not stored
    pad = tuple(
        max(0, (made[k] - 1) * step[k] + (filter[k] - 1) * dilation[k] + 1 - source[k]) // 2
        for k in range(2)
    )
    return Window(
        batch,
        (source[0], source[1], source[2]),
        (filter[0], filter[1], filter[2]),
        (made[0], made[1], made[2]),
        step,
        dilation,
        (pad[0], pad[1]),
    )


def _exactly(values: Sequence[int], count: int) -> tuple[int, ...]:
    if len(values) != count:
        raise IndexError
    return tuple(values)


def round_up(number: int, unit: int) -> int:
    """Return the least multiple of a unit that is not less than a number."""
    return -(-number // unit) * unit
