"""The networks of SOMAS (section 5) that `training` does not have, as they are trained.

The paper names its networks and the number of their tensors. Layers and sizes are those of the
publications; batches are our choice, as the paper gives none.
"""

from __future__ import annotations

import math
from typing import Any

from memplan_lab.bench.models.layers import Residual, convolution
from memplan_lab.bench.models.tokens import Attention, bert, feed_forward
from memplan_lab.extras import require

__all__ = ["Detector", "Language", "nezha", "recognition"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module


class RelativeAttention(Module):  # type: ignore[misc]
    """Self-attention with fixed vectors for the distance of two tokens (Wei et al. 2019)."""

    def __init__(self, width: int, heads: int, tokens: int = 128) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)
        inner = width // heads
        apart = torch.arange(tokens).unsqueeze(0) - torch.arange(tokens).unsqueeze(1)
        rates = torch.exp(torch.arange(0, inner, 2) * (-math.log(10000.0) / inner))
        angles = apart.clamp(-64, 64).unsqueeze(-1) * rates
        vectors = torch.stack((angles.sin(), angles.cos()), -1).flatten(2)
        self.register_buffer("distances", vectors)

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape, (batch, tokens, width)."""
        batch, tokens, width = x.shape
        split = self.project(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2)
        scores = scores + torch.einsum("bhid,ijd->bhij", query, self.distances)
        weights = self.dropout((scores / math.sqrt(width // self.heads)).softmax(-1))
        mixed = weights @ value + torch.einsum("bhij,ijd->bhid", weights, self.distances)
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))


def nezha(layers: int, width: int, heads: int, inner: int) -> Any:
    """Return the encoder of a NEZHA: a BERT with relative positions (Wei et al. 2019)."""
    return bert(layers, width, heads, inner, RelativeAttention)


def recognition(depths: tuple[int, int, int, int] = (3, 13, 30, 3), classes: int = 10_000) -> Any:
    """Return a ResNet for faces of 112 x 112, by default with 100 layers (Deng et al. 2019).

    Blocks are norm, convolution, norm, PReLU, convolution, norm.
    """
    layers = [convolution(3, 64, 3, activation=lambda: nn.PReLU(64))]
    channels = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            stride = 1 if block else 2
            body = nn.Sequential(
                nn.BatchNorm2d(channels),
                convolution(channels, width, 3, activation=lambda width=width: nn.PReLU(width)),
                convolution(width, width, 3, stride=stride, activation=None),
            )
            shortcut = convolution(channels, width, 1, stride=stride, activation=None)
            layers.append(Residual(body, None if block else shortcut))
            channels = width
    head = (nn.BatchNorm2d(channels), nn.Dropout(0.4), nn.Flatten())
    dense = (nn.Linear(channels * 49, 512), nn.BatchNorm1d(512), nn.Linear(512, classes))
    return nn.Sequential(*layers, *head, *dense)


def _leaky(inputs: int, outputs: int, kernel: int, stride: int = 1) -> Any:
    return convolution(inputs, outputs, kernel, stride=stride, activation=lambda: nn.LeakyReLU(0.1))


class Detector(Module):  # type: ignore[misc]
    """YOLOv3: Darknet-53, and heads at three scales (Redmon and Farhadi 2018).

    The loss is the mean squared distance from given boxes, which takes less memory than theirs.
    """

    def __init__(self, depths: tuple[int, ...] = (1, 2, 8, 8, 4), boxes: int = 18) -> None:
        super().__init__()
        stages, channels = [], 32
        for depth in depths:
            wide = 2 * channels
            blocks = (
                Residual(nn.Sequential(_leaky(wide, channels, 1), _leaky(channels, wide, 3)))
                for _ in range(depth)
            )
            stages.append(nn.Sequential(_leaky(channels, wide, 3, 2), *blocks))
            channels = wide
        self.stem = _leaky(3, 32, 3)
        self.stages = nn.ModuleList(stages)
        necks, heads, links = [], [], []
        inputs = channels
        for level in range(3):
            width = channels >> (level + 1)
            half = (_leaky(inputs, width, 1), _leaky(width, 2 * width, 3))
            again = (_leaky(2 * width, width, 1), _leaky(width, 2 * width, 3))
            necks.append(nn.Sequential(*half, *again, _leaky(2 * width, width, 1)))
            heads.append(nn.Sequential(_leaky(width, 2 * width, 3), nn.Conv2d(2 * width, boxes, 1)))
            links.append(_leaky(width, width // 2, 1))
            inputs = width // 2 + (channels >> (level + 1))
        self.necks, self.heads = nn.ModuleList(necks), nn.ModuleList(heads)
        self.links = nn.ModuleList(links[:2])

    def forward(self, images: Any, coarse: Any, middle: Any, fine: Any) -> Any:
        """Return the loss for images and the boxes at three scales."""
        x, kept = self.stem(images), []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        loss: Any = 0.0
        for level, wanted in enumerate((coarse, middle, fine)):
            x = self.necks[level](x)
            loss = loss + functional.mse_loss(self.heads[level](x), wanted)
            if level < 2:
                larger = functional.interpolate(self.links[level](x), scale_factor=2)
                x = torch.cat((larger, kept[-2 - level]), dim=1)
        return loss


class Language(Module):  # type: ignore[misc]
    """One device's share of PanGu-alpha (Zeng et al. 2021): a decoder, cut by heads.

    Each of `share` devices has a part of the heads, of the inner layers and of the vocabulary, as
    in tensor parallelism; results of a block have the full width.
    """

    def __init__(
        self, layers: int, width: int, heads: int, share: int, vocabulary: int = 40_000
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary // share, width)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            attention = nn.Sequential(nn.LayerNorm(width), _Share(width, heads, share))
            dense = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width // share))
            self.blocks.append(nn.Sequential(Residual(attention), Residual(dense)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any, wanted: Any) -> Any:
        """Return the loss for (batch, tokens), and the tokens that follow."""
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        scores = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())


class _Share(Attention):
    """A part of the heads of an attention."""

    def __init__(self, width: int, heads: int, share: int) -> None:
        super().__init__(width, heads, causal=True)
        self.heads = heads // share
        self.project = nn.Linear(width, 3 * width // share)
        self.output = nn.Linear(width // share, width)

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape, (batch, tokens, width)."""
        batch, tokens, _ = x.shape
        split = self.project(x).view(batch, tokens, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, -1))
