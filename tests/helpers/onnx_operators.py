"""Random operators of ONNX with all their attributes, to compare sizes with those of a runtime.

A draw is one operator on inputs of known sizes. What decides the sizes of its results is in the
file: attributes, and constants. Many draws make no sense, and a runtime refuses these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx_models import model, value

__all__ = ["KINDS", "OPSETS", "Drawn", "draw", "join"]

OPSETS = (7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)


@dataclass
class Drawn:
    """An operator with what it reads.

    Attributes
    ----------
    opset
        The version of ONNX.
    inputs, constants
        By position: the shape and the element type, or the values; other positions are left out.
    """

    kind: str
    opset: int
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: dict[int, tuple[list[int], str]] = field(default_factory=dict)
    constants: dict[int, Any] = field(default_factory=dict)
    outputs: int = 1

    def __repr__(self) -> str:
        held = {at: np.asarray(one).tolist() for at, one in self.constants.items()}
        small = {at: one if np.size(one) < 20 else np.shape(one) for at, one in held.items()}
        return f"{self.kind}-{self.opset} {self.attributes} reads {self.inputs} and {small}"


class Drawer:
    """Draws parts of operators."""

    def __init__(self, random: Random, opset: int) -> None:
        self.random = random
        self.opset = opset

    def one(self, *of: Any) -> Any:
        """Return one of these."""
        return self.random.choice(of)

    def maybe(self, share: float = 0.5) -> bool:
        """Return whether something is done."""
        return self.random.random() < share

    def ints(self, count: int, low: int, high: int) -> list[int]:
        """Return so many numbers."""
        return [self.random.randint(low, high) for _ in range(count)]

    def shape(self, low: int = 1, high: int = 4, most: int = 6) -> list[int]:
        """Return a shape of so many axes."""
        return self.ints(self.random.randint(low, high), 1, most)

    def axis(self, rank: int) -> int:
        """Return an axis, counted from the end or not."""
        return self.random.randrange(-rank if self.opset >= 11 else 0, rank) if rank else 0

    def axes(self, rank: int) -> list[int]:
        """Return some axes, each once."""
        found = self.random.sample(range(rank), self.random.randint(1, rank))
        return [one - rank if self.opset >= 11 and self.maybe(0.3) else one for one in found]

    def some(self, **options: Any) -> dict[str, Any]:
        """Return some of these attributes."""
        return {name: one for name, one in options.items() if self.maybe()}

    def windows(self, axes: int, *, kernel: bool = True, dilates: bool = True) -> dict[str, Any]:
        """Return attributes of windows."""
        size = self.ints(axes, 1, 4)
        found: dict[str, Any] = {"kernel_shape": size} if kernel else {}
        found |= self.some(strides=self.ints(axes, 1, 4))
        if dilates:
            found |= self.some(dilations=self.ints(axes, 1, 3))
        if self.maybe(0.3):
            found["auto_pad"] = self.one("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if found.get("auto_pad", "NOTSET") == "NOTSET" and self.maybe(0.7):
            found["pads"] = self.ints(2 * axes, 0, 4)
        return found


def floats(*shape: int) -> Any:
    """Return a constant of numbers."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def whole(values: Sequence[int] | int) -> Any:
    """Return a constant of whole numbers."""
    return np.array(values, np.int64)


def with_axes(draw: Drawer, rank: int, since: int, **more: Any) -> tuple[dict[str, Any], list[int]]:
    """Return axes as an attribute, for an operator that has them as an input since an opset."""
    axes = draw.axes(rank)
    return ({"axes": axes} if draw.opset < since else {}) | more, axes


Rule = Callable[[Drawer, str], Drawn]


def convolve(draw: Drawer, kind: str) -> Drawn:
    """Draw a convolution, also a transposed one or one of whole numbers."""
    axes = draw.one(1, 2, 2, 2, 3)
    group, each, made = draw.one(1, 1, 2), draw.random.randint(1, 3), draw.random.randint(1, 3)
    kernel = draw.ints(axes, 1, 4)
    options = draw.windows(axes, kernel=False) | draw.some(kernel_shape=kernel)
    options |= {"group": group} if group > 1 or draw.maybe() else {}
    data = [draw.random.randint(1, 2), group * each, *draw.ints(axes, 1, 9)]
    if kind == "ConvTranspose":
        weights = [group * each, made, *kernel]
        options |= draw.some(output_padding=draw.ints(axes, 0, 2))
        if draw.maybe(0.2):
            options["output_shape"] = draw.ints(axes, 1, 20)
    else:
        weights = [group * made, each, *kernel]
    if kind == "ConvInteger":
        values = np.ones(weights, np.uint8)
        return Drawn(kind, draw.opset, options, {0: (data, "uint8")}, {1: values})
    if kind == "QLinearConv":
        scale, zero = np.float32(0.1), np.uint8(3)
        held = {1: scale, 2: zero, 3: np.ones(weights, np.uint8), 4: scale, 5: zero}
        return Drawn(kind, draw.opset, options, {0: (data, "uint8")}, {**held, 6: scale, 7: zero})
    return Drawn(kind, draw.opset, options, {0: (data, "float32")}, {1: floats(*weights)})


def pool(draw: Drawer, kind: str) -> Drawn:
    """Draw a pooling."""
    axes = draw.one(1, 2, 2, 2, 3)
    dilates = kind == "MaxPool" or draw.opset >= 18
    options = draw.windows(axes, dilates=dilates and draw.opset >= 10)
    if draw.opset >= (18 if kind == "LpPool" else 10) and draw.maybe():
        options["ceil_mode"] = draw.one(1, 1, 1, 0)
    if kind == "AveragePool":
        options |= draw.some(count_include_pad=draw.one(0, 1))
    data = [draw.random.randint(1, 2), draw.random.randint(1, 3), *draw.ints(axes, 1, 12)]
    outputs = 2 if kind == "MaxPool" and draw.maybe(0.2) else 1
    return Drawn(kind, draw.opset, options, {0: (data, "float32")}, outputs=outputs)


def unpool(draw: Drawer, kind: str) -> Drawn:
    """Draw the inverse of a pooling."""
    options = draw.windows(2, dilates=False)
    options.pop("auto_pad", None)
    data = [1, 2, *draw.ints(2, 1, 5)]
    where = np.zeros(data, np.int64)
    return Drawn(kind, max(draw.opset, 9), options, {0: (data, "float32")}, {1: where})


def by_point(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator whose result is like its input, or has one point."""
    data = [draw.random.randint(1, 2), draw.random.randint(1, 4), *draw.shape(1, 3)]
    options: dict[str, Any] = {"size": draw.random.randint(1, 3)} if kind == "LRN" else {}
    if kind in ("Softmax", "LogSoftmax", "Hardmax", "Flatten"):
        options |= draw.some(axis=draw.axis(len(data)))
    if kind == "InstanceNormalization":
        held = {1: floats(data[1]), 2: floats(data[1])}
        return Drawn(kind, draw.opset, options, {0: (data, "float32")}, held)
    if kind == "BatchNormalization":
        held = {at: np.abs(floats(data[1])) for at in range(1, 5)}
        return Drawn(kind, draw.opset, options, {0: (data, "float32")}, held)
    if kind == "LayerNormalization":
        axis = draw.axis(len(data))
        held = {1: floats(*data[axis:])}
        return Drawn(kind, max(draw.opset, 17), {"axis": axis}, {0: (data, "float32")}, held,
                     draw.one(1, 2, 3))  # fmt: skip
    if kind == "GroupNormalization":
        groups = draw.one(*(n for n in (1, 2, 3, 4) if data[1] % n == 0))
        held = {1: floats(data[1]), 2: floats(data[1])}
        return Drawn(kind, 21, {"num_groups": groups}, {0: (data, "float32")}, held)
    return Drawn(kind, draw.opset, options, {0: (data, "float32")})


def pad(draw: Drawer, kind: str) -> Drawn:
    """Draw a padding, which may also cut."""
    data = draw.shape()
    low = -1 if draw.maybe(0.3) else 0
    options = draw.some(mode=draw.one("constant", "reflect", "edge", "wrap"))
    if draw.opset < 11:
        return Drawn(kind, draw.opset, options | {"pads": draw.ints(2 * len(data), low, 3)},
                     {0: (data, "float32")})  # fmt: skip
    if draw.opset >= 18 and draw.maybe():
        axes = draw.axes(len(data))
        held = {1: whole(draw.ints(2 * len(axes), low, 3)), 3: whole(axes)}
    else:
        held = {1: whole(draw.ints(2 * len(data), low, 3))}
    return Drawn(kind, draw.opset, options, {0: (data, "float32")}, held)


def cut(draw: Drawer, kind: str) -> Drawn:
    """Draw a slice, with ends behind both ends of the axes."""
    data = draw.shape()
    axes = draw.axes(len(data)) if draw.maybe(0.8) else list(range(len(data)))
    starts, ends = (draw.ints(len(axes), -8, 8) for _ in "se")
    if draw.maybe(0.3):
        ends = [draw.one(2**63 - 1, -(2**63), 2**31 - 1, end) for end in ends]
    if draw.opset < 10:
        return Drawn(kind, draw.opset, {"starts": starts, "ends": ends, "axes": axes},
                     {0: (data, "float32")})  # fmt: skip
    held = {1: whole(starts), 2: whole(ends), 3: whole(axes)}
    if draw.maybe():
        held[4] = whole([draw.one(1, 2, 3, -1, -2) for _ in axes])
    return Drawn(kind, draw.opset, {}, {0: (data, "float32")}, held)


def resize(draw: Drawer, kind: str) -> Drawn:
    """Draw a resize."""
    data = [1, draw.random.randint(1, 3), *draw.ints(2, 1, 9)]
    scales = [1.0, 1.0, *(draw.one(0.5, 0.6, 1.0, 1.5, 2.0, 0.3, 2.7, 1 / 3) for _ in "hw")]
    options: dict[str, Any] = {"mode": draw.one("nearest", "linear")}
    scale = np.array(scales, np.float32)
    if kind == "Upsample" or draw.opset < 11:
        opset = min(draw.opset, 9) if kind == "Upsample" else 10
        if opset < 9:
            return Drawn("Upsample", opset, options | {"scales": scales}, {0: (data, "float32")})
        return Drawn(kind, opset, options, {0: (data, "float32")}, {1: scale})
    options |= draw.some(
        coordinate_transformation_mode=draw.one(
            "half_pixel",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "half_pixel_symmetric",
        ),
        nearest_mode=draw.one("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    )
    held = {2: scale}
    if draw.maybe():
        held = {3: whole([1, data[1], *draw.ints(2, 1, 12)])}
    if draw.opset >= 18 and draw.maybe():
        # Onnxruntime takes no policy with axes that are counted from the end.
        options |= {"axes": draw.one([2, 3], [3, 2], [3], [-1, -2])}
        order = [axis % 4 for axis in options["axes"]]
        held = {at: one[order] for at, one in held.items()}
        if 3 in held and min(options["axes"]) > 0:
            policy = draw.one("stretch", "not_larger", "not_smaller")
            options |= draw.some(keep_aspect_ratio_policy=policy)
    if draw.opset < 13:
        held |= {1: np.zeros(0, np.float32)}
        held.setdefault(2, np.zeros(0, np.float32))
    return Drawn(kind, draw.opset, options, {0: (data, "float32")}, held)


def reduce(draw: Drawer, kind: str) -> Drawn:
    """Draw a reduction."""
    data = draw.shape()
    since = 13 if kind == "ReduceSum" else 18
    options, axes = with_axes(draw, len(data), since, **draw.some(keepdims=draw.one(0, 1)))
    if draw.maybe(0.2):
        options.pop("axes", None)
        if draw.opset >= since:
            options |= draw.some(noop_with_empty_axes=draw.one(0, 1))
        return Drawn(kind, draw.opset, options, {0: (data, "float32")})
    held = {1: whole(axes)} if draw.opset >= since else {}
    return Drawn(kind, draw.opset, options, {0: (data, "float32")}, held)


def search(draw: Drawer, kind: str) -> Drawn:
    """Draw a search for the largest elements."""
    data = draw.shape()
    if kind == "TopK":
        axis = draw.axis(len(data))
        count = draw.random.randint(0, data[axis])
        if draw.opset < 10:
            return Drawn(kind, draw.opset, {"axis": axis, "k": count}, {0: (data, "float32")},
                         outputs=2)  # fmt: skip
        return Drawn(kind, draw.opset, {"axis": axis}, {0: (data, "float32")},
                     {1: whole([count])}, 2)  # fmt: skip
    options = draw.some(axis=draw.axis(len(data)), keepdims=draw.one(0, 1))
    return Drawn(kind, draw.opset, options, {0: (data, "float32")})


def move(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator that gives the same elements another shape."""
    data = draw.shape()
    one = {0: (data, "float32")}
    if kind == "Transpose":
        order = draw.random.sample(range(len(data)), len(data))
        return Drawn(kind, draw.opset, draw.some(perm=order), one)
    if kind == "Reshape":
        total = int(np.prod(data))
        shape = draw.one(
            [total], [1, -1], [-1], [0, -1], [-1, 1, data[-1]], [total, 1], data, [2, -1]
        )
        options = draw.some(allowzero=draw.one(0, 1)) if draw.opset >= 14 else {}
        return Drawn(kind, draw.opset, options, one, {1: whole(shape)})
    if kind == "Squeeze":
        data = [draw.one(1, 1, 3) for _ in data]
        axes = [at for at, size in enumerate(data) if size == 1 and draw.maybe(0.7)]
        if draw.maybe(0.2):
            return Drawn(kind, draw.opset, {}, {0: (data, "float32")})
        if draw.opset < 13:
            return Drawn(kind, draw.opset, {"axes": axes}, {0: (data, "float32")})
        return Drawn(kind, draw.opset, {}, {0: (data, "float32")}, {1: whole(axes)})
    if kind == "Unsqueeze":
        more = draw.random.randint(1, 2)
        axes = draw.random.sample(range(len(data) + more), more)
        if draw.opset < 13:
            return Drawn(kind, draw.opset, {"axes": axes}, one)
        return Drawn(kind, draw.opset, {}, one, {1: whole(axes)})
    if kind == "Expand":
        shape = [draw.one(1, size, size, 2) for size in draw.one(data, [2, *data])]
        return Drawn(kind, max(draw.opset, 8), {}, one, {1: whole(shape)})
    if kind == "Tile":
        return Drawn(kind, draw.opset, {}, one, {1: whole(draw.ints(len(data), 0, 3))})
    block = draw.one(1, 2, 3)
    data = [1, block * block * draw.one(1, 2), block * draw.one(1, 2), block * draw.one(1, 3)]
    options = {"blocksize": block}
    if kind == "DepthToSpace" and draw.opset >= 11:
        options |= draw.some(mode=draw.one("DCR", "CRD"))
    return Drawn(kind, draw.opset, options, {0: (data, "float32")})


def join(draws: Sequence[Drawn]) -> Any:
    """Return a model with these operators, which have the same opset, beside each other."""
    nodes, inputs, outputs, weights = [], [], [], []
    types = onnx.helper.np_dtype_to_tensor_dtype
    for number, one in enumerate(draws):
        names = []
        for at in range(max([*one.inputs, *one.constants], default=-1) + 1):
            name = f"i{number}_{at}"
            if at in one.inputs:
                shape, kind = one.inputs[at]
                inputs.append(value(name, shape, types(np.dtype(kind))))
            elif at in one.constants:
                weights.append(onnx.numpy_helper.from_array(np.asarray(one.constants[at]), name))
            names.append(name if at in one.inputs or at in one.constants else "")
        made = [f"o{number}_{at}" for at in range(one.outputs)]
        # The library cannot tell of which type an empty list is; of axes there may be none.
        given = {name: each for name, each in one.attributes.items() if each != []}
        nodes.append(onnx.helper.make_node(one.kind, names, made, **given))
        for name in one.attributes.keys() - given.keys():
            nodes[-1].attribute.add(name=name, type=onnx.AttributeProto.INTS)
        outputs += [onnx.ValueInfoProto(name=name) for name in made]
    return model(nodes, inputs, outputs, weights, opset=draws[0].opset)


def gather(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator that takes elements by their places."""
    data = draw.shape()
    one = {0: (data, "float32")}
    axis = draw.axis(len(data))
    if kind == "Gather":
        where = np.zeros(draw.shape(0, 2, 3), np.int64)
        return Drawn(kind, draw.opset, draw.some(axis=axis) or {"axis": 0}, one, {1: where})
    if kind == "GatherElements":
        shape = [draw.random.randint(1, size) for size in data]
        return Drawn(kind, max(draw.opset, 11), {"axis": axis}, one, {1: np.zeros(shape, np.int64)})
    if kind == "GatherND":
        batch = draw.random.randint(0, len(data) - 1) if draw.opset >= 12 else 0
        last = draw.random.randint(1, len(data) - batch)
        where = np.zeros([*data[:batch], *draw.shape(0, 2, 3), last], np.int64)
        options = {"batch_dims": batch} if batch else {}
        return Drawn(kind, max(draw.opset, 11), options, one, {1: where})
    if kind == "OneHot":
        held = {1: whole([draw.random.randint(1, 5)]), 2: np.array([0, 1], np.float32)}
        options = draw.some(axis=draw.random.randint(-len(data) - 1, len(data)))
        return Drawn(kind, max(draw.opset, 9), options, {0: (data, "int64")}, held)
    parts = draw.random.randint(1, 3)
    if kind == "Concat":
        shapes = [list(data) for _ in range(parts)]
        for shape in shapes:
            shape[axis] = draw.random.randint(1, 4)
        inputs = {at: (shape, "float32") for at, shape in enumerate(shapes)}
        return Drawn(kind, draw.opset, {"axis": axis}, inputs)
    options = {"axis": axis}
    sizes = draw.ints(parts, 0, 3)
    if draw.maybe():
        data[axis] = sum(sizes)
        if draw.opset < 13:
            return Drawn(kind, draw.opset, options | {"split": sizes}, one, outputs=parts)
        return Drawn(kind, draw.opset, options, one, {1: whole(sizes)}, parts)
    if draw.opset >= 18:
        options["num_outputs"] = parts
    return Drawn(kind, draw.opset, options, one, outputs=parts)


def multiply(draw: Drawer, kind: str) -> Drawn:
    """Draw a product of matrices."""
    rows, inner, columns = draw.ints(3, 1, 4)
    if kind == "Gemm":
        turns = [draw.one(0, 1) for _ in "ab"]
        one, other = ([inner, rows] if turns[0] else [rows, inner]), (
            [columns, inner] if turns[1] else [inner, columns]
        )  # fmt: skip
        inputs = {0: (one, "float32"), 1: (other, "float32")}
        bias = draw.one([columns], [1], [rows, 1], [rows, columns], [])
        if draw.maybe() or draw.opset < 11:
            inputs[2] = (bias, "float32")
        return Drawn(kind, draw.opset, {"transA": turns[0], "transB": turns[1]}, inputs)
    if kind == "Einsum":
        text = draw.one(
            "ij,jk->ik", "ij,jk", "...ij,...jk->...ik", "ij,jk->ki", "ij,jk->", "ij,jk->k"
        )
        inputs = {0: ([rows, inner], "float32"), 1: ([inner, columns], "float32")}
        return Drawn(kind, max(draw.opset, 12), {"equation": text}, inputs)
    batch = draw.shape(0, 2, 2)
    shapes = [[*batch, rows, inner], [*(draw.one(1, size) for size in batch), inner, columns]]
    if draw.maybe(0.2):
        shapes[0] = [inner]
    if draw.maybe(0.2):
        shapes[1] = [inner]
    element = "uint8" if kind == "MatMulInteger" else "float32"
    return Drawn(kind, max(draw.opset, 10 if element == "uint8" else 7), {},
                 {at: (shape, element) for at, shape in enumerate(shapes)})  # fmt: skip


def by_element(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator on elements, with shapes that are repeated to each other."""
    data = draw.shape(0, 4, 4)
    shapes = [[draw.one(1, size, size) for size in data[draw.random.randint(0, len(data)) :]]
              for _ in range(3 if kind == "Where" else 2)]  # fmt: skip
    if kind == "Where":
        inputs = {0: (shapes[0], "bool"), 1: (shapes[1], "float32"), 2: (shapes[2], "float32")}
        return Drawn(kind, max(draw.opset, 9), {}, inputs)
    return Drawn(kind, draw.opset, {}, {at: (one, "float32") for at, one in enumerate(shapes)})


def recur(draw: Drawer, kind: str) -> Drawn:
    """Draw a recurrent layer."""
    length, batch, width, hidden = draw.ints(4, 1, 4)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    way = draw.one("forward", "reverse", "bidirectional")
    ways = 2 if way == "bidirectional" else 1
    options: dict[str, Any] = {"hidden_size": hidden, "direction": way}
    held = {1: floats(ways, gates * hidden, width), 2: floats(ways, gates * hidden, hidden)}
    return Drawn(kind, draw.opset, options, {0: ([length, batch, width], "float32")}, held,
                 draw.one(1, 2, 3) if kind == "LSTM" else draw.one(1, 2))  # fmt: skip


def look(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator that looks at parts of pictures, or at frequencies."""
    data = [draw.random.randint(1, 2), 2, *draw.ints(2, 2, 7)]
    if kind == "GridSample":
        grid = [data[0], *draw.ints(2, 1, 5), 2]
        return Drawn(kind, max(draw.opset, 16), {}, {0: (data, "float32"), 1: (grid, "float32")})
    if kind == "RoiAlign":
        count = draw.random.randint(1, 3)
        options = draw.some(output_height=draw.one(1, 3), output_width=draw.one(1, 2))
        held = {1: np.ones((count, 4), np.float32), 2: np.zeros(count, np.int64)}
        return Drawn(kind, max(draw.opset, 10), options, {0: (data, "float32")}, held)
    if kind == "MaxRoiPool":
        held = {1: np.zeros((draw.random.randint(1, 3), 5), np.float32)}
        return Drawn(kind, draw.opset, {"pooled_shape": draw.ints(2, 1, 3)}, {0: (data, "float32")},
                     held)  # fmt: skip
    if kind == "Col2Im":
        block, size = draw.ints(2, 1, 2), draw.ints(2, 3, 6)
        count = (size[0] - block[0] + 1) * (size[1] - block[1] + 1)
        shape = [1, 2 * block[0] * block[1], count]
        held = {1: whole(size), 2: whole(block)}
        return Drawn(kind, max(draw.opset, 18), {}, {0: (shape, "float32")}, held)
    if kind == "CenterCropPad":
        axes = draw.axes(4)
        return Drawn(kind, max(draw.opset, 18), {"axes": axes}, {0: (data, "float32")},
                     {1: whole(draw.ints(len(axes), 1, 9))})  # fmt: skip
    if kind == "AffineGrid":
        size = [data[0], 1, *draw.ints(2, 1, 5)]
        return Drawn(kind, max(draw.opset, 20), draw.some(align_corners=1),
                     {0: ([data[0], 2, 3], "float32")}, {1: whole(size)})  # fmt: skip
    if kind == "DFT":
        rank = draw.random.randint(1, 2)
        shape = [1, *draw.ints(rank, 2, 6), draw.one(1, 2)]
        options = draw.some(onesided=draw.one(0, 1), inverse=draw.one(0, 1))
        axis = draw.random.randint(1, rank)
        held = {1: whole(draw.random.randint(1, 8))} if draw.maybe() else {}
        if draw.opset >= 20:
            held |= {2: whole(axis)}
        else:
            options |= {"axis": axis}
        return Drawn(kind, max(draw.opset, 17), options, {0: (shape, "float32")}, held)
    count, step, frame = draw.random.randint(16, 40), draw.one(4, 5), draw.one(8, 9, 16)
    held = {1: whole(step), 2: floats(frame)}
    if draw.maybe():
        held[3] = whole(frame)
    return Drawn(kind, max(draw.opset, 17), draw.some(onesided=draw.one(0, 1)),
                 {0: ([1, count, 1], "float32")}, held)  # fmt: skip


def fill(draw: Drawer, kind: str) -> Drawn:
    """Draw an operator that makes elements of its own."""
    if kind == "ConstantOfShape":
        shape = draw.one(draw.shape(0, 3), [0, 2])
        return Drawn(kind, max(draw.opset, 9), {}, {}, {0: whole(shape)})
    if kind == "Range":
        first, last, step = draw.one((0, 7, 2), (5, -3, -2), (3, 3, 1), (0, 10, 3), (4, 1, 1))
        return Drawn(
            kind, max(draw.opset, 11), {}, {}, {0: whole(first), 1: whole(last), 2: whole(step)}
        )
    if kind == "EyeLike":
        return Drawn(kind, max(draw.opset, 9), draw.some(k=1), {0: (draw.ints(2, 1, 5), "float32")})
    if kind in ("RandomNormal", "RandomUniform"):
        return Drawn(kind, draw.opset, {"shape": draw.shape()})
    if kind in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        return Drawn(kind, max(draw.opset, 17), draw.some(periodic=0), {},
                     {0: whole(draw.random.randint(1, 9))})  # fmt: skip
    if kind == "MelWeightMatrix":
        held = {0: whole(draw.one(4, 8)), 1: whole(draw.one(16, 17)), 2: whole(8000)}
        return Drawn(
            kind, max(draw.opset, 17), {}, {}, held | {3: np.float32(0), 4: np.float32(4000)}
        )
    return Drawn(kind, draw.opset, {}, {0: (draw.shape(), "float32")})


RULES: dict[Rule, str] = {
    convolve: "Conv Conv Conv ConvTranspose ConvTranspose ConvInteger QLinearConv",
    pool: "AveragePool AveragePool LpPool LpPool MaxPool MaxPool MaxPool",
    unpool: "MaxUnpool",
    by_point: "BatchNormalization Dropout Flatten GlobalAveragePool GlobalMaxPool GlobalLpPool "
    "GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax "
    "MeanVarianceNormalization Relu Softmax",
    pad: "Pad Pad",
    cut: "Slice Slice",
    resize: "Resize Resize Resize Upsample",
    reduce: "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare",
    search: "ArgMax ArgMin TopK",
    move: "DepthToSpace Expand Reshape SpaceToDepth Squeeze Tile Transpose Unsqueeze",
    gather: "Concat Gather GatherElements GatherND OneHot Split",
    multiply: "Einsum Gemm MatMul MatMulInteger",
    by_element: "Add Div Less Max Mean Min Mul Pow PRelu Sub Sum Where",
    recur: "GRU LSTM RNN",
    look: "AffineGrid CenterCropPad Col2Im DFT GridSample MaxRoiPool RoiAlign STFT",
    fill: "BlackmanWindow ConstantOfShape EyeLike HammingWindow HannWindow MelWeightMatrix "
    "RandomNormal RandomUniform Range Shape Size",
}
KINDS: list[tuple[Rule, str]] = [
    (rule, kind) for rule, names in RULES.items() for kind in names.split()
]


def draw(random: Random, opset: int) -> Drawn:
    """Return a random operator of an opset, or of a later one that has it."""
    rule, kind = random.choice(KINDS)
    return rule(Drawer(random, opset), kind)
