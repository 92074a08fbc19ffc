"""Random ONNX models: operators whose sizes are exact, follow from shapes, or are written down."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx_models import FLOAT, model, node, value

_ELEMENTWISE = ("Relu", "Sigmoid", "Exp", "Neg", "Softmax", "Identity", "Erf", "Ceil")
_REDUCTIONS = ("ReduceMean", "ReduceMax", "ReduceSum")


class Builder:
    """Adds one random operator after the other to a model of one picture x, [2, 4, 8, 12]."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": (2, 4, 8, 12)}

    def model(self, steps: int) -> Any:
        """Return a model of some operators, with what the last of them makes as output."""
        kinds = [one for one in dir(self) if one.startswith("add_")]
        while len(self.shapes) <= steps:
            name = self.rng.choice([*self.shapes][-4:])
            if prod(self.shapes[name]) < 20_000:
                getattr(self, self.rng.choice(kinds))(name, self.shapes[name])
        last = [*self.shapes][-1]
        return model(
            self.nodes,
            [value("x", self.shapes["x"])],
            [value(last, self.shapes[last])],
            self.weights,
        )

    def make(self, kind: str, inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(kind, inputs, name, **attributes))
        return name

    def weight(self, array: Any) -> str:
        """Add a weight; return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        """Add a weight of integers."""
        return self.weight(np.array(values, np.int64))

    def floats(self, *shape: int) -> str:
        """Add a weight of numbers."""
        return self.weight(np.ones(shape, np.float32))

    def size_of(self, name: str, axis: int) -> str:
        """Add what asks for the size of an axis, as exporters write it; a list of one."""
        taken = self.make("Gather", f"{self.make('Shape', name)} {self.ints(axis)}", axis=0)
        return self.make("Cast", taken, to=onnx.TensorProto.INT64)

    def keep(self, name: str, shape: tuple[int, ...]) -> None:
        """Let later operators read a tensor."""
        self.shapes[name] = shape

    def add_elementwise(self, name: str, shape: tuple[int, ...]) -> None:
        """Add an operator of one input."""
        self.keep(self.make(self.rng.choice(_ELEMENTWISE), name), shape)

    def add_sum(self, name: str, shape: tuple[int, ...]) -> None:
        """Add a tensor, or a weight that can be as large as it was."""
        same = [other for other, its in self.shapes.items() if its == shape]
        whole = self.rng.random() < 0.3
        other = [self.floats(*(shape if whole else shape[-1:]))] if shape else []
        self.keep(self.make("Add", f"{name} {self.rng.choice(same + other)}"), shape)

    def add_reduction(self, name: str, shape: tuple[int, ...]) -> None:
        """Reduce an axis, which stays or goes."""
        if shape:
            axis, kept = self.rng.randrange(len(shape)), self.rng.randint(0, 1)
            found = self.make(
                self.rng.choice(_REDUCTIONS), f"{name} {self.ints(axis)}", keepdims=kept
            )
            self.keep(found, (*shape[:axis], *[1] * kept, *shape[axis + 1 :]))

    def add_transposition(self, name: str, shape: tuple[int, ...]) -> None:
        """Change the order of axes."""
        order = self.rng.sample(range(len(shape)), len(shape))
        self.keep(self.make("Transpose", name, perm=order), tuple(shape[at] for at in order))

    def add_reshape(self, name: str, shape: tuple[int, ...]) -> None:
        """Flatten the axes behind one: with sizes as numbers, as zero and -1, or computed."""
        if len(shape) < 2:
            return
        at = self.rng.randrange(1, len(shape))
        result = (*shape[:at], prod(shape[at:]))
        how = self.rng.choice(["numbers", "rest", "zeros", "computed"])
        if how == "computed":
            sizes = [self.size_of(name, axis) for axis in range(at)]
            to = self.make("Concat", f"{' '.join(sizes)} {self.ints(-1)}", axis=0)
        elif how == "rest":
            to = self.ints(*result[:-1], -1)
        else:
            to = self.ints(*(result if how == "numbers" else (*[0] * at, -1)))
        self.keep(self.make("Reshape", f"{name} {to}"), result)

    def add_slice(self, name: str, shape: tuple[int, ...]) -> None:
        """Take every other element of an axis, or leave out its ends."""
        if shape and min(shape) > 2:
            axis, step = self.rng.randrange(len(shape)), self.rng.randint(1, 2)
            start, end = self.rng.randint(0, 1), self.rng.choice([-1, 2**31, shape[axis]])
            bounds = [self.ints(one) for one in (start, end, axis, step)]
            found = len(range(shape[axis])[start:end:step])
            result = (*shape[:axis], found, *shape[axis + 1 :])
            self.keep(self.make("Slice", " ".join([name, *bounds])), result)

    def add_padding(self, name: str, shape: tuple[int, ...]) -> None:
        """Pad all axes a little."""
        before = [self.rng.randint(0, 1) for _ in shape]
        after = [self.rng.randint(0, 1) for _ in shape]
        if shape:
            result = tuple(sum(one) for one in zip(shape, before, after, strict=True))
            self.keep(self.make("Pad", f"{name} {self.ints(*before, *after)}"), result)

    def add_concatenation(self, name: str, shape: tuple[int, ...]) -> None:
        """Join a tensor with itself, or with a weight that is as large as it was."""
        if shape:
            axis = self.rng.randrange(len(shape))
            other = name if self.rng.random() < 0.8 else self.floats(*shape)
            result = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
            self.keep(self.make("Concat", f"{name} {other}", axis=axis), result)

    def add_expansion(self, name: str, shape: tuple[int, ...]) -> None:
        """Repeat a new axis, by a number or by the size of another one."""
        wide = self.make("Unsqueeze", f"{name} {self.ints(0)}")
        if self.rng.random() < 0.5 or not shape:
            to, count = self.ints(3, *[1] * len(shape)), 3
        else:
            ones = self.ints(*[1] * len(shape))
            to = self.make("Concat", f"{self.size_of(name, 0)} {ones}", axis=0)
            count = shape[0]
        self.keep(self.make("Expand", f"{wide} {to}"), (count, *shape))

    def add_product(self, name: str, shape: tuple[int, ...]) -> None:
        """Multiply by a matrix of weights."""
        if shape:
            found = self.make("MatMul", f"{name} {self.floats(shape[-1], 5)}")
            self.keep(found, (*shape[:-1], 5))

    def add_square(self, name: str, shape: tuple[int, ...]) -> None:
        """Multiply a tensor by itself, as attention does."""
        if len(shape) > 1:
            order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            turned = self.make("Transpose", name, perm=order)
            self.keep(self.make("MatMul", f"{name} {turned}"), (*shape[:-1], shape[-2]))

    def add_convolution(self, name: str, shape: tuple[int, ...]) -> None:
        """Add a convolution, up or down, or a pool."""
        if len(shape) != 4 or min(shape[2:]) < 3:
            return
        batch, channels, high, wide = shape
        how = self.rng.choice(["down", "up", "pool"])
        if how == "down":
            inputs = f"{name} {self.floats(6, channels, 3, 3)}"
            found = self.make("Conv", inputs, strides=[2, 1], pads=[1] * 4)
            self.keep(found, (batch, 6, (high + 1) // 2, wide))
        elif how == "up":
            inputs = f"{name} {self.floats(channels, 3, 2, 2)}"
            found = self.make("ConvTranspose", inputs, strides=[2, 2])
            self.keep(found, (batch, 3, 2 * high, 2 * wide))
        else:
            found = self.make("MaxPool", name, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
            self.keep(found, (batch, channels, (high + 1) // 2, -(-(wide - 3) // 2) + 1))

    def add_resize(self, name: str, shape: tuple[int, ...]) -> None:
        """Add a resize: by a factor, or to sizes as numbers or computed."""
        if len(shape) != 4:
            return
        doubled = (*shape[:2], 2 * shape[2], 2 * shape[3])
        how = self.rng.choice(["factor", "numbers", "computed"])
        if how == "factor":
            scales = self.weight(np.array([1, 1, 2, 2], np.float32))
            self.keep(self.make("Resize", f"{name} - {scales}"), doubled)
            return
        sizes = self.ints(*doubled)
        if how == "computed":
            sizes = self.make("Mul", f"{self.make('Shape', name)} {self.ints(1, 1, 2, 2)}")
        self.keep(self.make("Resize", f"{name} - - {sizes}"), doubled)

    def add_best(self, name: str, shape: tuple[int, ...]) -> None:
        """Take the largest of an axis, all but one of which there are, or three."""
        if not shape or shape[-1] < 4:
            return
        count, kept = self.ints(3), 3
        if self.rng.random() < 0.5:
            count = self.make("Sub", f"{self.size_of(name, len(shape) - 1)} {self.ints(1)}")
            kept = shape[-1] - 1
        self.keep(self.make("TopK", f"{name} {count}", axis=-1), (*shape[:-1], kept))
        self.nodes[-1].output.append(f"{self.nodes[-1].output[0]}i")

    def add_recurrence(self, name: str, shape: tuple[int, ...]) -> None:
        """Add a recurrent layer; its first state may be written down."""
        if len(shape) != 3:
            return
        steps, batch, wide = shape
        kind, gates = self.rng.choice([("GRU", 3), ("LSTM", 4), ("RNN", 1)])
        inputs = f"{name} {self.floats(1, gates * 6, wide)} {self.floats(1, gates * 6, 6)}"
        if self.rng.random() < 0.3:
            inputs += f" - - {self.floats(1, batch, 6)}"
        self.keep(self.make(kind, inputs, hidden_size=6), (steps, 1, batch, 6))

    def add_count(self, name: str, shape: tuple[int, ...]) -> None:
        """Add numbers up to a size, as positions are made."""
        if shape:
            zero, one = self.weight(np.int64(0)), self.weight(np.int64(1))
            end = self.make("Squeeze", self.size_of(name, 0))
            found = self.make("Range", f"{zero} {end} {one}")
            self.keep(self.make("Cast", found, to=FLOAT), shape[:1])
