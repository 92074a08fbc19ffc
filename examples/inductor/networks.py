"""Ten small networks for torch.compile, with random weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["NETWORKS"]


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


def _dense(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Return linear layers, each with an activation."""
    pairs = itertools.pairwise(widths)
    return nn.Sequential(*(part for pair in pairs for part in (nn.Linear(*pair), act())))


def _classify(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


class Residual(nn.Module):
    """A block of ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _conv(inputs, outputs, 3, stride)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.short = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(self.first(x)) + self.short(x))


class Inception(nn.Module):
    """Four paths whose results are joined."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.one = _conv(inputs, 16, 1)
        self.three = nn.Sequential(_conv(inputs, 12, 1), _conv(12, 24, 3))
        self.five = nn.Sequential(_conv(inputs, 8, 1), _conv(8, 16, 5))
        self.pool = _conv(inputs, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(functional.avg_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.three(x), self.five(x), pooled], 1)


class UNet(nn.Module):
    """Three levels down, and up again with what each level made."""

    def __init__(self, base: int = 8) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [_conv(3, base), _conv(base, 2 * base), _conv(2 * base, 4 * base)]
        )
        self.middle = _conv(4 * base, 8 * base)
        self.up = nn.ModuleList(
            [_conv(12 * base, 4 * base), _conv(6 * base, 2 * base), _conv(3 * base, base)]
        )
        self.last = nn.Conv2d(base, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for layer in self.up:
            wider = functional.interpolate(x, scale_factor=2.0)
            x = layer(torch.cat([wider, kept.pop()], 1))
        return self.last(x)


class Block(nn.Module):
    """A layer of a transformer, with plain attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2)
        return self.out(mixed.reshape(batch, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.before(x))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


def _blocks(width: int, heads: int, count: int) -> nn.Module:
    return nn.Sequential(*(Block(width, heads) for _ in range(count)))


class Vision(nn.Module):
    """A transformer over the patches of a picture, as rows of 192 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(192, 96)
        self.blocks, self.head = _blocks(96, 3, 3), nn.Linear(96, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.patches(x)).mean(1))


class Mixer(nn.Module):
    """A layer that mixes tokens, and then channels."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(_dense(length, 2 * length), nn.Linear(2 * length, length))
        self.channels = nn.Sequential(_dense(width, 4 * width), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.between(x))


class Recommender(nn.Module):
    """Embeddings, and the products of all pairs of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(100, 32) for _ in range(12))
        self.bottom = _dense(13, 256, 32)
        self.top = nn.Sequential(_dense(32 + 78, 512, 256), nn.Linear(256, 1))
        rows, columns = torch.triu_indices(13, 13, 1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        x = self.bottom(dense)
        found = [table(sparse[:, at]) for at, table in enumerate(self.tables)]
        every = torch.stack([x, *found], 1)
        products = (every @ every.transpose(1, 2))[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([x, products], 1)))


class Translator(nn.Module):
    """An encoder, and a decoder that attends to it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = _blocks(96, 3, 2), _blocks(96, 3, 2)
        self.query, self.keys = nn.Linear(96, 96), nn.Linear(96, 192)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        key, value = self.keys(self.encoder(x)).chunk(2, -1)
        y = y + (self.query(y) @ key.transpose(1, 2)).softmax(-1) @ value
        return self.decoder(y)


class Experts(nn.Module):
    """Experts of several sizes, all of which run."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.gate, self.norm = nn.Linear(width, 4), nn.LayerNorm(width)
        wide = [2 * width + 64 * at for at in range(4)]
        self.experts = nn.ModuleList(
            nn.Sequential(_dense(width, each, act=nn.SiLU), nn.Linear(each, width)) for each in wide
        )

    def forward(self, x: Tensor) -> Tensor:
        gates = self.gate(x).softmax(-1)
        for at, expert in enumerate(self.experts):
            x = x + gates[..., at : at + 1] * expert(x)
        return self.norm(x)


class Towers(nn.Module):
    """Two networks whose results are compared; all three are outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.one = _dense(64, 300, 200, 400, 100, 64, act=nn.Tanh)
        self.two = _dense(64, 150, 500, 250, 64, act=nn.Tanh)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one, two = self.one(x), self.two(y)
        return (one * two).sum(-1), one, two


def _residual() -> tuple[nn.Module, tuple[Tensor, ...]]:
    blocks = Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)
    return nn.Sequential(_conv(3, 16), *blocks, *_classify(64)), (torch.randn(2, 3, 64, 64),)


def _inception() -> tuple[nn.Module, tuple[Tensor, ...]]:
    layers = _conv(3, 16, 3, 2), Inception(16), Inception(64), nn.MaxPool2d(2), Inception(64)
    return nn.Sequential(*layers, *_classify(64)), (torch.randn(2, 3, 64, 64),)


def _decoder() -> tuple[nn.Module, tuple[Tensor, ...]]:
    layers = nn.Embedding(500, 128), _blocks(128, 4, 3), nn.Linear(128, 500)
    return nn.Sequential(*layers), (torch.randint(0, 500, (2, 64)),)


NETWORKS: Final[dict[str, Callable[[], tuple[Any, tuple[Tensor, ...]]]]] = {
    "residual": _residual,
    "inception": _inception,
    "U-Net": lambda: (UNet(), (torch.randn(1, 3, 64, 64),)),
    "vision transformer": lambda: (Vision(), (torch.randn(2, 64, 192),)),
    "language model": _decoder,
    "encoder, decoder": lambda: (Translator(), (torch.randn(2, 64, 96), torch.randn(2, 48, 96))),
    "mixer": lambda: (
        nn.Sequential(Mixer(49, 128), Mixer(49, 128), Mixer(49, 128)),
        (torch.randn(4, 49, 128),),
    ),
    "experts": lambda: (nn.Sequential(Experts(), Experts()), (torch.randn(8, 32, 128),)),
    "recommender": lambda: (
        Recommender(),
        (torch.randn(512, 13), torch.randint(0, 100, (512, 12))),
    ),
    "two towers": lambda: (Towers(), (torch.randn(256, 64), torch.randn(256, 64))),
}
