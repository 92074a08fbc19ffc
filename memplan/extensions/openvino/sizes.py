"""Sizes that a model of OpenVINO leaves open: those of its inputs, and what follows from them.

    <data shape="1..10,3,?,224" element_type="f32"/>        of a Parameter

The file has -1 for such a size in the shapes of all layers. What a layer makes follows here only
where that needs no data of weights: of element-wise layers, windows, products, and of those that
keep the number of elements. Other sizes have to be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final
from xml.etree import ElementTree

from memplan.base.errors import GraphError, MemplanError, listed, quoted, suggest
from memplan.base.notes import Code, Note

__all__ = ["OPEN", "OpenSizes", "Shape"]

OPEN: Final = -1  # a size that the file does not have

Shape = tuple[int, ...]
_Rule = Callable[[Mapping[str, str], Sequence[Shape], Shape], Shape | None]

_RANGE: Final = re.compile(r"(\d*)\.\.(\d*)")


@dataclass
class OpenSizes:
    """Finds sizes that a file leaves open, with those that the user gives."""

    dims: Mapping[str, int]  # sizes that the user gives, by "TENSOR:AXIS"
    asked: list[str] = field(default_factory=list)
    _bounded: dict[str, int] = field(default_factory=dict)
    _axes: dict[str, int] = field(default_factory=dict)  # the sizes of all axes that were read

    def settle(
        self, name: str, layer: ElementTree.Element, inputs: Sequence[Shape], shape: Shape
    ) -> Shape:
        """Return the shape of a result with the sizes that are given, known, or the most there are.

        A size that stays open is asked for, unless one of the inputs has one. One that is given and
        contradicts the file is refused.
        """
        found, kind = list(shape), layer.get("type", "")
        ranges = _read_ranges(layer, len(shape)) if kind == "Parameter" else []
        if OPEN in shape and kind in _RULES and not any(OPEN in one for one in inputs):
            data = layer.find("data")
            made = _follow(kind, {} if data is None else data.attrib, inputs, shape)
            found = [size if size != OPEN else new for size, new in zip(shape, made, strict=True)]
        for axis, size in enumerate(found):
            place = f"{name}:{axis}"
            least, most = ranges[axis] if ranges else (0, None)
            if place in self.dims:
                given = self.dims[place]
                if (
                    given < least
                    or (most is not None and given > most)
                    or size not in (OPEN, given)
                ):
                    has = f"{least}..{'' if most is None else most}" if size == OPEN else size
                    raise MemplanError(
                        f"axis {axis} of {quoted(name)} has the size {has}; it cannot be {given}"
                    )
                found[axis] = given
            elif size == OPEN and most is not None:
                found[axis] = self._bounded[place] = most
            elif size == OPEN and not any(OPEN in one for one in inputs):
                self.asked.append(place)
            self._axes[place] = found[axis]
        return tuple(found)

    def check(self) -> None:
        """Raise an error if sizes are missing, or if the user gives one that the model lacks."""
        for place in self.dims:
            if place not in self._axes:
                near = suggest(place, self._axes)
                raise MemplanError(f"the model has no dimension {quoted(place)}{near}")
        if self.asked:
            places = listed(self.asked, quote=False)
            raise GraphError(
                f"the file leaves sizes open: {places}; give each a value, like "
                f"--dim {self.asked[0]}=8"
            )

    def notes(self) -> tuple[Note, ...]:
        """Return a note on the sizes that are planned at the most that they can be."""
        if not self._bounded:
            return ()
        each = listed([f"{place} = {most}" for place, most in self._bounded.items()], quote=False)
        text = "sizes that the file leaves open are planned at the most that they can be: "
        text += f"{each}; --dim {next(iter(self._bounded))}=N plans another"
        names = dict.fromkeys(place.rpartition(":")[0] for place in self._bounded)
        return (Note(Code.DIM_ASSUMED, text, tuple(names)),)


def _read_ranges(layer: ElementTree.Element, axes: int) -> list[tuple[int, int | None]]:
    """Return the least and the most size of each axis of an input; none if the file has none."""
    data = layer.find("data")
    parts = [] if data is None else data.get("shape", "").strip("[]").split(",")
    found: list[tuple[int, int | None]] = []
    for part in parts if len(parts) == axes else ():
        match = _RANGE.fullmatch(part.strip())
        least, most = match.groups() if match else ("", "")
        found.append((int(least or 0), int(most) if most else None))
    return found


def _follow(kind: str, data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape:
    """Return what a layer makes, as far as that agrees with the sizes in the file."""
    try:
        made = _RULES[kind](data, inputs, shape)
    except (ArithmeticError, LookupError, ValueError):  # the layer is not as its kind is
        return shape
    if made is None or len(made) != len(shape) or min(made, default=0) < 0:
        return shape
    fits = all(old in (OPEN, new) for old, new in zip(shape, made, strict=True))
    return made if fits else shape


def _first(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape:
    return inputs[0]


def _broadcast(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape | None:
    """Return the shape of elements of all inputs, each repeated along axes of one element."""
    if data.get("auto_broadcast", "numpy") != "numpy":
        return inputs[0]
    rank = max(map(len, inputs))
    padded = [(1,) * (rank - len(one)) + one for one in inputs]
    sizes = [{*along} - {1} for along in zip(*padded, strict=True)]
    return (
        None if any(len(one) > 1 for one in sizes) else tuple(max(one, default=1) for one in sizes)
    )


def _keep_elements(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape | None:
    """Return the one open size of a result that has all elements of the input."""
    rest = prod(size for size in shape if size != OPEN)
    if shape.count(OPEN) != 1 or not rest or prod(inputs[0]) % rest:
        return None
    return tuple(prod(inputs[0]) // rest if size == OPEN else size for size in shape)


def _numbers(data: Mapping[str, str], name: str, default: Sequence[int]) -> list[int]:
    given = data.get(name, "")
    return [int(one) for one in given.split(",")] if given else list(default)


def _window(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape | None:
    """Return the shape of what convolutions and pools make; the channels are in the file."""
    axes = len(shape) - 2
    kernel = _numbers(data, "kernel", inputs[1][-axes:] if len(inputs) > 1 else ())
    strides, dilations = (_numbers(data, name, [1] * axes) for name in ("strides", "dilations"))
    before, after = (_numbers(data, name, [0] * axes) for name in ("pads_begin", "pads_end"))
    padding = data.get("auto_pad", "explicit")
    made = []
    for at, size in enumerate(inputs[0][2:]):
        span = dilations[at] * (kernel[at] - 1) + 1
        if padding.startswith("same"):
            made.append(-(-size // strides[at]))
            continue
        pads = 0 if padding == "valid" else before[at] + after[at]
        ceil = data.get("rounding_type", "floor").startswith("ceil")
        if ceil and (size + pads - span) % strides[at]:
            return None  # the last window may be left out
        made.append((size + pads - span) // strides[at] + 1)
    channels = inputs[0][1] if "kernel" in data else shape[1]
    return (inputs[0][0], channels, *made)


def _product(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape | None:
    """Return the shape of a product of matrices."""
    one, other = inputs
    if min(len(one), len(other)) < 2:
        return None
    turned = [data.get(f"transpose_{side}", "false").lower() in ("true", "1") for side in "ab"]
    rows, columns = one[-1 if turned[0] else -2], other[-2 if turned[1] else -1]
    around = _broadcast({}, (one[:-2], other[:-2]), ())
    return None if around is None else (*around, rows, columns)


def _join(data: Mapping[str, str], inputs: Sequence[Shape], shape: Shape) -> Shape:
    axis, found = int(data["axis"]) % len(inputs[0]), list(inputs[0])
    found[axis] = sum(one[axis] for one in inputs)
    return tuple(found)


_ELEMENTS: Final = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceiling Clamp Convert ConvertLike Cos Cosh
    CumSum Elu Erf Exp FakeQuantize Floor GRN Gelu HSigmoid HSwish HardSigmoid LRN Log LogSoftmax
    LogicalNot MVN Mish Negative NormalizeL2 PReLU ReLU ReverseSequence Round Selu Sigmoid Sign Sin
    Sinh SoftMax SoftPlus SoftSign Softmax Sqrt Swish Tan Tanh
"""
_PAIRS: Final = """
    Add BitwiseAnd BitwiseOr BitwiseXor Divide Equal FloorMod Greater GreaterEqual Less LessEqual
    LogicalAnd LogicalOr LogicalXor Maximum Minimum Mod Multiply NotEqual Power Select
    SquaredDifference Subtract
"""
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(_ELEMENTS.split(), _first),
    **dict.fromkeys(_PAIRS.split(), _broadcast),
    **dict.fromkeys(("AvgPool", "Convolution", "GroupConvolution", "MaxPool"), _window),
    **dict.fromkeys(("Reshape", "Squeeze", "Transpose", "Unsqueeze"), _keep_elements),
    "Concat": _join,
    "MatMul": _product,
}
