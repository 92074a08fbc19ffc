"""PyTorch networks that are exported at one size and run at others."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import onnx
import torch
from torch import nn


class Network(NamedTuple):
    """A module, its arguments, and their axes that can have other sizes, by name."""

    name: str
    make: Callable[[], Any]
    args: Callable[[], tuple[Any, ...]]
    axes: list[dict[int, str]]  # of every argument

    def sizes(self, rng: random.Random) -> dict[str, int]:
        """Return random sizes for the axes, by name."""
        ranges = {"batch": (1, 9, 1), "time": (1, 40, 1), "height": (2, 12, 8), "width": (2, 12, 8)}
        found = {}
        for name in (name for one in self.axes for name in one.values()):
            least, most, step = ranges[name]
            found[name] = step * rng.randint(least, most)
        return found


def exported(network: Network, *, old: bool, fixed: bool) -> Any:
    """Return a network as a model, by the exporter of today or the one before.

    With `fixed`, all sizes are those of the example.
    """
    args = network.args()
    module = network.make().eval()
    axes = [{} for _ in args] if fixed else network.axes
    names = [f"x{at}" for at in range(len(args))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if old:
            file = BytesIO()
            dynamic = dict(zip(names, axes, strict=True))
            torch.onnx.export(
                module, args, file, dynamo=False, input_names=names, dynamic_axes=dynamic
            )
            return onnx.load_from_string(file.getvalue())
        dims = {name: torch.export.Dim(name, min=1) for one in axes for name in one.values()}
        shapes = tuple({axis: dims[name] for axis, name in one.items()} for one in axes)
        program = torch.onnx.export(
            module,
            args,
            dynamo=True,
            input_names=names,
            dynamic_shapes=None if fixed else shapes,
            verbose=False,
        )
        assert program is not None
        return program.model_proto


class Recurrent(nn.Module):
    """A recurrent layer, and a layer on what it gives."""

    def __init__(self, kind: str, both: bool, first: bool, state: bool = False) -> None:
        super().__init__()
        self.layer = getattr(nn, kind)(8, 12, batch_first=first, bidirectional=both)
        self.head = nn.Linear(24 if both else 12, 5)
        self.state = state

    def forward(self, x: Any) -> Any:
        """Return a label for every step, or of the last state."""
        y, h = self.layer(x)
        if self.state:
            h = h[0] if isinstance(h, tuple) else h
            return torch.relu(h.transpose(0, 1).flatten(1))
        return torch.relu(self.head(y)).softmax(-1)


class Attention(nn.Module):
    """A block of a transformer over tokens."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
        self.causal = causal

    def forward(self, tokens: Any) -> Any:
        """Return a vector for every token."""
        x = self.table(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (4, 4)).transpose(1, 2) for one in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Detector(nn.Module):
    """Convolutions at three scales, a path back up, and heads in one list of boxes."""

    def __init__(self, mode: str = "nearest") -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.mid = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.merge = nn.Conv2d(32, 16, 1)
        self.heads = nn.ModuleList([nn.Conv2d(16, 10, 1), nn.Conv2d(16, 10, 1)])
        self.mode = mode

    def forward(self, x: Any) -> Any:
        """Return five numbers for every box of both scales."""
        mid = self.mid(self.stem(x))
        deep = self.deep(mid)
        up = nn.functional.interpolate(deep, scale_factor=2.0, mode=self.mode)
        both = self.merge(torch.cat([up, mid], 1))
        boxes = [
            head(one).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 5)
            for head, one in zip(self.heads, (both, deep), strict=True)
        ]
        return torch.cat(boxes, 1).sigmoid()


class Classifier(nn.Module):
    """A residual network whose last reshape can be to the batch it was traced with."""

    def __init__(self, baked: bool) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 12, 3, 2, 1)
        self.two = nn.Conv2d(12, 12, 3, 1, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(12, 7)
        self.baked = baked

    def forward(self, x: Any) -> Any:
        """Return a label for every picture."""
        x = torch.relu(self.one(x))
        x = self.pool(x + torch.relu(self.two(x)))
        return self.head(x.reshape(1, 12) if self.baked else x.flatten(1))


class Patches(nn.Module):
    """A vision transformer without positions: patches, a token for the class, attention."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, x: Any) -> Any:
        """Return the vector of the class."""
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.block(x)[:, 0]


def networks() -> Iterator[Network]:
    """Yield all networks."""
    for kind in ("GRU", "LSTM", "RNN"):
        for both in (False, True):
            for first in (False, True):
                for state in (False, True):
                    axes = {0: "batch", 1: "time"} if first else {0: "time", 1: "batch"}
                    name = f"{kind}{'-both' * both}{'-first' * first}{'-state' * state}"
                    make = lambda a=(kind, both, first, state): Recurrent(*a)  # noqa: E731
                    yield Network(name, make, lambda: (torch.randn(3, 10, 8),), [axes])
    picture = {0: "batch", 2: "height", 3: "width"}
    pictures = lambda: (torch.randn(2, 3, 32, 48),)  # noqa: E731
    for causal in (False, True):
        name = "attention-causal" if causal else "attention"
        tokens = lambda: (torch.zeros(2, 11, dtype=torch.int64),)  # noqa: E731
        make = lambda causal=causal: Attention(causal)  # noqa: E731
        yield Network(name, make, tokens, [{0: "batch", 1: "time"}])
    for mode in ("nearest", "bilinear"):
        make = lambda mode=mode: Detector(mode)  # noqa: E731
        yield Network(f"detector-{mode}", make, pictures, [picture])
    yield Network("classifier", lambda: Classifier(False), pictures, [picture])
    yield Network(
        "classifier-baked", lambda: Classifier(True), lambda: (torch.randn(1, 3, 32, 48),), [{}]
    )
    yield Network("patches", Patches, pictures, [picture])
