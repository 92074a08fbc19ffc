"""Which rows and columns of its inputs an operator of ATen needs, from the arguments of a call.

A file has the arguments that a call gives, and so has a program in memory; what neither has are
defaults, which are here. So a program and its file are read by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from memplan.programs.graph.pictures import (
    Even,
    Maps,
    Shifted,
    Size,
    Transposed,
    WholeError,
    fits,
    resize,
)
from memplan.programs.sources._pictures import RANK, PictureCall, describe
from memplan.runtimes.torch.operators import Row, find_row
from memplan.runtimes.torch.read.aten import operator_of
from memplan.runtimes.torch.read.program import Node, Option
from memplan.runtimes.torch.read.values import Value

__all__ = ["describe_rows", "keep_options"]

_Named = tuple[str, Option]

_ROW_AXIS: Final = 2  # NCHW
_NONSENSE: Final = "its options make no sense"
_OTHER_ROWS: Final = "its result has other rows than its options make"
_OF_WINDOWS: Final = {"dilation": 1, "padding": 0, "output_padding": 0}  # with the least value
# What the schemas of ATen say of the arguments that the rules read; others must be given.
_DEFAULTS: Final[dict[str, Option]] = {
    **dict.fromkeys(("align_corners", "ceil_mode", "training", "transposed"), False),
    **dict.fromkeys(("scale_factors", "scales_h", "scales_w"), None),
    **dict.fromkeys(("dim", "output_padding", "padding"), 0),
    "dilation": 1,
    "mode": "constant",
    "stride": (),
}
_REQUIRED: Final = ("downscale_factor", "kernel_size", "pad", "upscale_factor")


@dataclass(frozen=True)
class _Operator(PictureCall):
    """An operator with what it reads; its inputs are in the order of the schema."""

    row: Row  # what is known of it
    options: dict[str, Option]  # by name, with defaults
    inputs: Sequence[Value]
    output: Value  # its first result

    def size(self, at: int) -> Size:
        if at >= len(self.inputs):
            raise WholeError(_NONSENSE)
        if not self.inputs[at].is_dense:
            raise WholeError("an input is not stored row by row")
        return super().size(at)

    @property
    def result(self) -> Size:
        if not self.output.is_dense:
            raise WholeError("its result is not stored row by row")
        return super().result

    def option(self, name: str) -> Any:
        """Return an argument."""
        found = self.options.get(name, ...)
        if found is ... or (isinstance(found, tuple) and ... in found):
            raise WholeError("its options are known only at run time")
        return found

    def numbers(self, name: str) -> list[int]:
        """Return an argument that is a whole number, or several."""
        found = self.option(name)
        numbers = list(found) if isinstance(found, tuple) else [found]
        if any(type(one) is not int for one in numbers):
            raise WholeError(_NONSENSE)
        return numbers

    def pair(self, name: str, least: int) -> tuple[int, int]:
        """Return an argument for rows and for columns."""
        numbers = self.numbers(name)
        if len(numbers) not in (1, 2) or min(numbers) < least:
            raise WholeError(_NONSENSE)
        return numbers[0], numbers[-1]

    def kernel(self) -> Size:
        """Return the rows and columns of the weights."""
        if len(self.shape(1)) != RANK:
            raise WholeError(_NONSENSE)
        return self.shape(1)[2], self.shape(1)[3]

    def axis(self) -> int:
        """Return the axis that it works along."""
        (axis,) = self.pair("dim", -RANK)[:1]
        return axis % RANK


def keep_options(target: str, given: Iterable[_Named]) -> tuple[_Named, ...]:
    """Return those arguments of a call that say which rows of its inputs it needs."""
    if find_row(target).rows in ("", "each"):
        return ()
    return tuple(one for one in given if one[0] in _DEFAULTS or one[0] in _REQUIRED)


def describe_rows(
    node: Node, inputs: Sequence[Value], indices: Sequence[int], given: int, *, is_alone: bool
) -> dict[str, Any]:
    """Return the fields `reads`, `why_whole` and `macs` of an operator of a graph.

    Inputs are the tensors that it reads, one for each place, and indices their numbers in the
    graph; those below `given` are inputs of the program. `is_alone` says that none but its first
    result is read.
    """
    if not node.outputs:
        return {"why_whole": "it makes no tensor"}
    call = _Operator(
        operator_of(node.target),
        [value.sizes for value in inputs],
        [index < given for index in indices],
        node.outputs[0].sizes,
        _ROW_AXIS,
        find_row(node.target),
        _DEFAULTS | dict(node.options),
        inputs,
        node.outputs[0],
    )

    def find_maps() -> Maps:
        if not is_alone:
            raise WholeError("it has several results")
        if node.writes or any(node.shares):
            raise WholeError("it writes into a tensor, or makes a view of one")
        if not call.row.rows:
            name = call.kind or node.target
            raise WholeError(f"memplan does not know which rows of its inputs {name} needs")
        result, maps = call.result, _RULES[call.row.rows](call)
        for at, both in maps.items():
            if not all(map(fits, both, call.size(at), result)):
                raise WholeError(_OTHER_ROWS)
        return maps

    return {**describe(find_maps, indices), "macs": _count_macs(call)}


def _normalize(call: _Operator) -> Maps:
    if call.option("training"):
        raise WholeError("it normalizes by all rows")
    return call.first()


def _softmax(call: _Operator) -> Maps:
    if call.axis() != 1:
        raise WholeError("it normalizes by all rows or columns")
    return call.first()


def _convolve(call: _Operator) -> Maps:
    if call.option("transposed"):
        return _transpose(call)
    steps = call.pair("stride", 1) if call.option("stride") else (1, 1)
    return _window(call, call.kernel(), steps)


def _transpose(call: _Operator) -> Maps:
    steps = call.pair("stride", 1) if call.option("stride") else (1, 1)
    sides = zip(
        *(call.size(0), call.result, call.kernel(), steps),
        *(call.pair(name, least) for name, least in _OF_WINDOWS.items()),
        strict=True,
    )
    maps = []
    for size, made, kernel, step, dilation, padding, more in sides:
        reach = (kernel - 1) * dilation + 1
        extra = reach - step - 2 * padding + more
        if made != size * step + extra:
            raise WholeError(_OTHER_ROWS)
        maps.append(Transposed(reach, step, padding, extra))
    return {0: (maps[0], maps[1])}


def _pool(call: _Operator) -> Maps:
    if call.option("ceil_mode"):
        raise WholeError("its last windows may reach beyond the padding (ceil_mode)")
    kernel = call.pair("kernel_size", 1)
    return _window(call, kernel, call.pair("stride", 1) if call.option("stride") else kernel)


def _window(call: _Operator, kernel: Size, steps: Size) -> Maps:
    dilations = call.pair("dilation", 1)
    reaches = [(kernel[axis] - 1) * dilations[axis] + 1 for axis in (0, 1)]
    if isinstance(call.option("padding"), str):
        same = call.option("padding") == "same"
        if same and any(reach % 2 == 0 for reach in reaches):
            raise WholeError("its padding is not the same at both ends")
        padding = [reach // 2 if same else 0 for reach in reaches]
    else:
        padding = list(call.pair("padding", 0))
    rows, columns = (Even(reaches[axis], steps[axis], padding[axis]) for axis in (0, 1))
    return {0: (rows, columns)}


def _resize(call: _Operator) -> Maps:
    size, result = call.size(0), call.result
    if call.option("align_corners"):
        raise WholeError("its corners are aligned, so its scale depends on all rows")
    scales = call.option("scale_factors") or (call.option("scales_h"), call.option("scales_w"))
    if not isinstance(scales, tuple) or len(scales) != 2:
        raise WholeError(_NONSENSE)
    for axis in (0, 1):
        if scales[axis] not in (None, result[axis] / size[axis]):
            raise WholeError("its scale is not that of its sizes")
    linear = int(call.kind == "upsample_bilinear2d")
    return {0: resize(size, result, linear, linear)}


def _pad(call: _Operator) -> Maps:
    pads = call.numbers("pad")
    if call.option("mode") != "constant":
        raise WholeError("it repeats rows")
    if len(pads) not in (2, 4, 6, 8) or min(pads) < 0 or any(pads[6:]):
        raise WholeError("it cuts off rows, or pads the batch")
    return {0: (Shifted(pads[2] if len(pads) > 2 else 0), Shifted(pads[0]))}


def _count_macs(call: _Operator) -> int:
    """Return the multiplications with addition of an operator with weights."""
    if len(call.inputs) < 2:
        return 0
    if call.row.work == "product":
        return prod(call.made) * prod(call.shape(call.row.long)[-1:])
    if call.row.work != "convolution":
        return 0
    is_transposed = call.options["transposed"] is True or "transpose" in call.kind
    held = call.shape(0) if is_transposed else call.made
    return prod(held) * prod(call.shape(1)[1:])


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, Callable[[_Operator], Maps]]] = {
    "convolve": _convolve,
    "each": _Operator.each,
    "join": lambda call: call.join(call.axis()),
    "normalize": _normalize,
    "pad": _pad,
    "pool": _pool,
    "resize": _resize,
    "softmax": _softmax,
    "to_depth": lambda call: call.blocks(down=call.pair("downscale_factor", 1)[0]),
    "to_space": lambda call: call.blocks(up=call.pair("upscale_factor", 1)[0]),
    "transpose": _transpose,
}
