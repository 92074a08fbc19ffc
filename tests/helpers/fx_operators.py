"""Random operators of PyTorch that can be done in bands of rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from slab_models import Calls

__all__ = ["DRAWS", "export", "move"]

nn = torch.nn
functional = torch.nn.functional


OPTIONS = {"stride": 3, "dilation": 2}


def convolve(draw: random.Random) -> Any:
    """Draw a convolution."""
    kernel = [draw.randint(1, 5) for _ in "hw"]
    padding: Any = [draw.randint(0, 3) for _ in "hw"]
    if draw.random() < 0.2:
        kernel, padding = [3, 5], draw.choice(["same", "valid"])
        return nn.Conv2d(4, 4, kernel, padding=padding)
    options = {name: [draw.randint(1, top) for _ in "hw"] for name, top in OPTIONS.items()}
    return nn.Conv2d(4, 4, kernel, padding=padding, groups=draw.choice([1, 2, 4]), **options)


def transpose(draw: random.Random) -> Any:
    """Draw a transposed convolution whose padding may cut off rows of its result, or all."""
    kernel, stride, hole = ([draw.randint(1, top) for _ in "hw"] for top in (5, 3, 2))
    reaches = [(one - 1) * other + 1 for one, other in zip(kernel, hole, strict=True)]
    padding = [draw.randint(0, min(3, reach)) for reach in reaches]
    more = [draw.randrange(max(one, other)) for one, other in zip(stride, hole, strict=True)]
    options = {"padding": padding, "output_padding": more, "groups": draw.choice([1, 2, 4])}
    return nn.ConvTranspose2d(4, 4, kernel, stride, dilation=hole, **options)


def pool(draw: random.Random) -> Any:
    """Draw a pooling."""
    kernel = [draw.randint(1, 4) for _ in "hw"]
    options: dict[str, Any] = {"padding": [draw.randint(0, each // 2) for each in kernel]}
    if draw.random() < 0.7:
        options["stride"] = [draw.randint(1, 3) for _ in "hw"]
    if draw.random() < 0.5:
        return nn.MaxPool2d(kernel, dilation=draw.randint(1, 2), **options)
    return nn.AvgPool2d(kernel, count_include_pad=draw.random() < 0.5, **options)


def resize(draw: random.Random) -> Any:
    """Draw a resize by a power of two."""
    scale = draw.choice([(2, 2), (4, 4), (2, 1), (0.5, 0.5), (1, 2)])
    size = [int(16 * scale[0]), int(12 * scale[1])]
    given = draw.choice([{"size": size}, {"scale_factor": scale}])
    return nn.Upsample(mode=draw.choice(["nearest", "bilinear"]), **given)


def element(draw: random.Random) -> Any:
    """Draw an operator on elements."""
    kinds = (nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.Sigmoid, nn.GELU, nn.LeakyReLU, nn.Mish)
    if draw.random() < 0.4:
        return draw.choice(kinds)()
    shape = draw.choice(
        [(4, 1, 1), (1, 4, 1, 1), (), (1, 4, 16, 12), (1, 1, 16, 12), (1, 4, 16, 1)]
    )
    other, twice = torch.randn(shape), draw.random() < 0.5
    return Calls(lambda _, x: (x + other) * x if twice else other - x.clamp(-1, 1))


def move(draw: random.Random) -> Any:
    """Draw an operator that moves or joins rows."""
    kind, axis = draw.randrange(4), draw.randint(1, 3)
    pads = [draw.randint(0, 3) for _ in range(draw.choice([2, 4, 6]))]
    made = (
        lambda _, x: torch.cat([x, -x, x], axis - 4),
        lambda _, x: functional.pad(x, pads, value=0.5),
        lambda _, x: functional.pixel_shuffle(x, 2),
        lambda _, x: functional.pixel_unshuffle(x, 2),
    )
    return Calls(made[kind])


def channel(draw: random.Random) -> Any:
    """Draw an operator on the channels of a point."""
    if draw.random() < 0.5:
        return nn.Softmax(1)
    made = nn.BatchNorm2d(4)
    made.running_mean.normal_()
    return made


DRAWS: list[Callable[[random.Random], Any]] = [
    convolve,
    transpose,
    pool,
    resize,
    element,
    move,
    channel,
]


def export(model: Any, x: Any, *, decomposed: bool = False) -> Any:
    """Return the program of a module."""
    program = torch.export.export(model.eval(), (x,))
    return program.run_decompositions() if decomposed else program
