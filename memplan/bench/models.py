"""Networks that everybody knows, written as `torch.nn` modules with random weights.

They stand for what people plan: chains with short skips (ResNet, MobileNet), long skips (U-Net),
and transformers. Layers and sizes are those of the papers named at each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memplan.sources._extras import require

__all__ = ["MODELS", "bert_base", "gpt2_block", "mobilenet_v2", "resnet", "unet"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module


class Residual(Module):  # type: ignore[misc]
    """`activation(body(x) + shortcut(x))`."""

    def __init__(self, body: Any, shortcut: Any = None, activation: Any = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut or nn.Identity()
        self.activation = activation or nn.Identity()

    def forward(self, x: Any) -> Any:
        """Return a tensor of the shape that `body` makes."""
        return self.activation(self.body(x) + self.shortcut(x))


def convolution(
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    activation: Any = nn.ReLU,
) -> Any:
    """Return a convolution that keeps the size (at stride 1), batch norm, and an activation."""
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def resnet(depths: tuple[int, int, int, int], *, bottleneck: bool) -> Any:
    """Return a ResNet for 1 000 classes (He et al. 2015, table 1).

    Parameters
    ----------
    depths
        Blocks in each of the four stages.
    bottleneck
        Whether blocks are 1 x 1, 3 x 3, 1 x 1 convolutions instead of two of 3 x 3.
    """
    channels, expansion = 64, 4 if bottleneck else 1
    layers = [convolution(3, channels, 7, stride=2), nn.MaxPool2d(3, 2, padding=1)]
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            outputs = width * expansion
            if bottleneck:
                body = nn.Sequential(
                    convolution(channels, width, 1),
                    convolution(width, width, 3, stride=stride),
                    convolution(width, outputs, 1, activation=None),
                )
            else:
                body = nn.Sequential(
                    convolution(channels, width, 3, stride=stride),
                    convolution(width, outputs, 3, activation=None),
                )
            shortcut = None
            if stride != 1 or channels != outputs:
                shortcut = convolution(channels, outputs, 1, stride=stride, activation=None)
            layers.append(Residual(body, shortcut, nn.ReLU()))
            channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


# Expansion, channels, blocks, stride of the first (Sandler et al. 2018, table 2).
_INVERTED = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2() -> Any:
    """Return MobileNet-v2 for 1 000 classes (Sandler et al. 2018)."""
    channels = 32
    layers = [convolution(3, channels, 3, stride=2, activation=nn.ReLU6)]
    for expansion, outputs, blocks, first in _INVERTED:
        for block in range(blocks):
            stride = 1 if block else first
            wide = channels * expansion
            body = nn.Sequential(
                *([convolution(channels, wide, 1, activation=nn.ReLU6)] if expansion > 1 else []),
                convolution(wide, wide, 3, stride=stride, groups=wide, activation=nn.ReLU6),
                convolution(wide, outputs, 1, activation=None),
            )
            layers.append(Residual(body) if stride == 1 and channels == outputs else body)
            channels = outputs
    head = convolution(channels, 1280, 1, activation=nn.ReLU6)
    return nn.Sequential(
        *layers, head, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)
    )


class UNet(Module):  # type: ignore[misc]
    """U-Net (Ronneberger et al. 2015), padded so that sizes stay: `width` channels at the top."""

    def __init__(self, inputs: int, classes: int, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            self._block(a, b) for a, b in zip([inputs, *widths], widths, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.up = nn.ModuleList(self._block(a, b) for a, b in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _block(inputs: int, outputs: int) -> Any:
        return nn.Sequential(convolution(inputs, outputs, 3), convolution(outputs, outputs, 3))

    def forward(self, x: Any) -> Any:
        """Return a score for every class and pixel; sides have to divide by `2 ** depth`."""
        skips = []
        for level, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if level else x)
            skips.append(x)
        skips.pop()
        for enlarge, block in zip(self.enlarge, self.up, strict=True):
            x = block(torch.cat([skips.pop(), enlarge(x)], dim=1))
        return self.head(x)


def unet() -> Any:
    """Return the U-Net of the paper for colour images and two classes."""
    return UNet(3, 2)


class Attention(Module):  # type: ignore[misc]
    """Self-attention with several heads; causal: nobody looks ahead."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape, (batch, tokens, width)."""
        batch, tokens, width = x.shape
        split = self.project(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))


def feed_forward(width: int) -> Any:
    """Return the two layers between attentions, four times as wide inside."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Embedding(Module):  # type: ignore[misc]
    """What tokens, and where they stand, look like as vectors (Devlin et al. 2018)."""

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens: Any) -> Any:
        """Return (batch, tokens, width) for (batch, tokens)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.dropout(self.norm(self.tokens(tokens) + self.places(places)))


def bert_base(layers: int = 12, width: int = 768, heads: int = 12) -> Any:
    """Return the encoder of BERT-base (Devlin et al. 2018): norms come after the sums."""
    encoder: list[Any] = []
    for _ in range(layers):
        attention = nn.Sequential(Attention(width, heads), nn.Dropout(0.1))
        dense = nn.Sequential(feed_forward(width), nn.Dropout(0.1))
        encoder += [Residual(attention, activation=nn.LayerNorm(width))]
        encoder += [Residual(dense, activation=nn.LayerNorm(width))]
    return nn.Sequential(Embedding(30522, 512, width), *encoder)


def gpt2_block(width: int = 768, heads: int = 12) -> Any:
    """Return a block of GPT-2 small (Radford et al. 2019): norms come first, no look ahead."""
    attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads, causal=True))
    return nn.Sequential(
        Residual(attention), Residual(nn.Sequential(nn.LayerNorm(width), feed_forward(width)))
    )


def _image(side: int) -> Any:
    return torch.empty(1, 3, side, side, device="meta")


Model = Callable[[], tuple[Any, tuple[Any, ...]]]


def _on_meta(build: Callable[[], Any], argument: Callable[[], Any]) -> Model:
    """Return what builds a model for inference, and an argument for it, without any memory."""

    def made() -> tuple[Any, tuple[Any, ...]]:
        with torch.device("meta"):
            return build().eval(), (argument(),)

    return made


# By name: what makes the module, on the meta device, and the arguments to call it with.
MODELS: dict[str, Model] = {
    "resnet18": _on_meta(lambda: resnet((2, 2, 2, 2), bottleneck=False), lambda: _image(224)),
    "resnet50": _on_meta(lambda: resnet((3, 4, 6, 3), bottleneck=True), lambda: _image(224)),
    "mobilenet_v2": _on_meta(mobilenet_v2, lambda: _image(224)),
    "unet": _on_meta(unet, lambda: _image(256)),
    "bert_base": _on_meta(bert_base, lambda: torch.zeros(1, 128, dtype=torch.long)),
    "gpt2_block": _on_meta(gpt2_block, lambda: torch.empty(1, 1024, 768)),
}
