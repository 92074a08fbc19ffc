"""Networks for tinygrad with random weights, written by their papers' tables.

Each is a function of the device's state alone: it returns what a step computes from one input, and
the input. `small` makes networks and inputs that a CPU computes in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from memplan_lab.extras import require

__all__ = ["CHECKED", "MODELS", "Model"]

# Expansion, channels, blocks, stride of the first block, and kernel.
_EFFICIENTNET_B0: Final[Sequence[tuple[int, int, int, int, int]]] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
_MOBILENET_V2: Final[Sequence[tuple[int, int, int, int, int]]] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
)  # fmt: skip


class Model(NamedTuple):
    """A network: its tensors that stay, one step, and the step's input."""

    parameters: list[Any]
    step: Callable[[Any], Any]
    input: Any


class _Library:
    """tinygrad's names, and layers of them; each layer is a function that keeps its weights."""

    def __init__(self) -> None:
        self.nn = require("tinygrad.nn", extra="tinygrad")
        self.tensor = require("tinygrad", extra="tinygrad").Tensor
        self.parameters: list[Any] = []

    def keep(self, layer: Any) -> Any:
        self.parameters += self.nn.state.get_parameters(layer)
        return layer

    def conv(
        self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> Any:
        """Make a convolution of the same size, and a batch normalization."""
        conv = self.keep(
            self.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        )
        norm = self.keep(self.nn.BatchNorm2d(outputs))
        return lambda x: norm(conv(x))

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any:
        return self.keep(self.nn.Linear(inputs, outputs, bias=bias))

    def norm(self, width: int) -> Any:
        return self.keep(self.nn.LayerNorm(width))

    def rms_norm(self, width: int) -> Any:
        return self.keep(self.nn.RMSNorm(width))

    def picture(self, side: int, batch: int = 1, channels: int = 3) -> Any:
        return self.tensor.rand(batch, channels, side, side)

    def tokens(self, length: int, vocabulary: int) -> Any:
        return self.tensor.randint(1, length, high=vocabulary)


def _residual(of: _Library, channels: int, width: int, stride: int, wide: bool) -> Any:
    """Return a block of ResNet, and how many channels it makes."""
    out = 4 * width if wide else width
    if wide:
        parts = [of.conv(channels, width), of.conv(width, width, 3, stride), of.conv(width, out)]
    else:
        parts = [of.conv(channels, width, 3, stride), of.conv(width, out, 3)]
    short = of.conv(channels, out, 1, stride) if stride > 1 or channels != out else None

    def block(x: Any) -> Any:
        y = x
        for part in parts[:-1]:
            y = part(y).relu()
        return (parts[-1](y) + (x if short is None else short(x))).relu()

    return block, out


def _resnet(of: _Library, depths: Sequence[int], wide: bool, classes: int) -> Any:
    stem, blocks, channels = of.conv(3, 64, 7, 2), [], 64
    for stage, depth in enumerate(depths):
        for at in range(depth):
            stride = 2 if stage and not at else 1
            block, channels = _residual(of, channels, 64 << stage, stride, wide)
            blocks.append(block)
    head = of.linear(channels, classes)

    def run(x: Any) -> Any:
        x = stem(x).relu().pad((1, 1, 1, 1)).max_pool2d((3, 3), 2)
        for block in blocks:
            x = block(x)
        return head(x.mean((2, 3)))

    return run


def resnet50(small: bool) -> Model:
    """Make ResNet-50 (He et al., 2015), with the stride in the 3 x 3 convolution."""
    of = _Library()
    run = _resnet(of, (3, 4, 6, 3), wide=True, classes=1000)
    return Model(of.parameters, run, of.picture(64 if small else 224))


def training(small: bool) -> Model:
    """Make a training step of ResNet-18: forward, backward and SGD."""
    of = _Library()
    run = _resnet(of, (1, 1, 1, 1) if small else (2, 2, 2, 2), wide=False, classes=10)
    optimizer = of.nn.optim.SGD(of.parameters, lr=0.01)
    training_on = require("tinygrad", extra="tinygrad").Context
    batch = 2 if small else 8
    labels = of.tensor.zeros(batch, dtype="int32")

    def step(x: Any) -> Any:
        with training_on(TRAINING=1):
            optimizer.zero_grad()
            loss = run(x).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
            return loss

    return Model(of.parameters, step, of.picture(32 if small else 64, batch))


def _bottlenecks(of: _Library, rows: Sequence[Any], head: int, excite: bool) -> Any:
    """Return a network of inverted bottlenecks; with `excite`, of those with squeezed channels."""

    def act(x: Any) -> Any:
        return x.silu() if excite else x.relu6()

    def bottleneck(inputs: int, outputs: int, expand: int, stride: int, kernel: int) -> Any:
        wide = inputs * expand
        parts = [of.conv(inputs, wide)] if expand > 1 else []
        parts.append(of.conv(wide, wide, kernel, stride, groups=wide))
        few = max(1, inputs // 4)
        squeeze = of.keep(of.nn.Conv2d(wide, few, 1)) if excite else None
        back = of.keep(of.nn.Conv2d(few, wide, 1)) if excite else None
        project = of.conv(wide, outputs)

        def block(x: Any) -> Any:
            y = x
            for part in parts:
                y = act(part(y))
            if squeeze is not None and back is not None:
                y = y * back(squeeze(y.mean((2, 3), keepdim=True)).silu()).sigmoid()
            y = project(y)
            return x + y if x.shape == y.shape else y

        return block

    layers, channels = [of.conv(3, 32, 3, 2)], 32
    for expand, outputs, count, stride, kernel in rows:
        for at in range(count):
            layers.append(bottleneck(channels, outputs, expand, 1 if at else stride, kernel))
            channels = outputs
    last, classes = of.conv(channels, head), of.linear(head, 1000)

    def run(x: Any) -> Any:
        x = act(layers[0](x))
        for layer in layers[1:]:
            x = layer(x)
        return classes(act(last(x)).mean((2, 3)))

    return run


def efficientnet_b0(small: bool) -> Model:
    """Make EfficientNet-B0 (Tan and Le, 2019)."""
    of = _Library()
    rows = _EFFICIENTNET_B0[:3] if small else _EFFICIENTNET_B0
    return Model(
        of.parameters, _bottlenecks(of, rows, 1280, True), of.picture(32 if small else 224)
    )


def mobilenet_v2(small: bool) -> Model:
    """Make MobileNetV2 (Sandler et al., 2018)."""
    of = _Library()
    rows = _MOBILENET_V2[:3] if small else _MOBILENET_V2
    return Model(
        of.parameters, _bottlenecks(of, rows, 1280, False), of.picture(32 if small else 224)
    )


def _attention(of: _Library, width: int, heads: int, causal: bool = False, few: int = 0) -> Any:
    """Return attention; `few` heads of keys and values, if they are fewer than those of queries."""
    size, few = width // heads, few or heads
    bias = not causal
    query, out = of.linear(width, width, bias), of.linear(width, width, bias)
    key, value = of.linear(width, few * size, bias), of.linear(width, few * size, bias)

    def split(x: Any, count: int) -> Any:
        x = x.reshape(x.shape[0], x.shape[1], count, size).transpose(1, 2)
        return x if count == heads else x.repeat_interleave(heads // count, dim=1)

    def run(x: Any) -> Any:
        parts = split(query(x), heads), split(key(x), few), split(value(x), few)
        y = parts[0].scaled_dot_product_attention(parts[1], parts[2], is_causal=causal)
        return out(y.transpose(1, 2).reshape(x.shape))

    return run


def _encoder(of: _Library, width: int, heads: int, before: bool) -> Any:
    """Return a layer of a transformer, normalized before or after its parts."""
    attend, norms = _attention(of, width, heads), (of.norm(width), of.norm(width))
    wide, narrow = of.linear(width, 4 * width), of.linear(4 * width, width)

    def layer(x: Any) -> Any:
        if before:
            x = x + attend(norms[0](x))
            return x + narrow(wide(norms[1](x)).gelu())
        x = norms[0](x + attend(x))
        return norms[1](x + narrow(wide(x).gelu()))

    return layer


def vit_tiny(small: bool) -> Model:
    """Make ViT-Ti/16 (Dosovitskiy et al., 2020)."""
    of = _Library()
    patches = of.keep(of.nn.Conv2d(3, 192, 16, 16))
    mark, place = of.tensor.rand(1, 1, 192), of.tensor.rand(1, 197, 192)
    of.parameters += [mark, place]
    layers = [_encoder(of, 192, 3, before=True) for _ in range(2 if small else 12)]
    norm, head = of.norm(192), of.linear(192, 1000)

    def run(x: Any) -> Any:
        x = mark.cat(patches(x).flatten(2).transpose(1, 2), dim=1) + place
        for layer in layers:
            x = layer(x)
        return head(norm(x)[:, 0])

    return Model(of.parameters, run, of.picture(224))


def bert(small: bool) -> Model:
    """Make an encoder as BERT's (Devlin et al., 2018): 6 layers, 384 wide, 256 tokens."""
    of = _Library()
    words = of.keep(of.nn.Embedding(2000, 384))
    norm, layers = of.norm(384), [_encoder(of, 384, 6, before=False) for _ in range(6)]

    def run(x: Any) -> Any:
        x = norm(words(x))
        for layer in layers[: 1 if small else 6]:
            x = layer(x)
        return x

    return Model(of.parameters, run, of.tokens(32 if small else 256, 2000))


def llama(small: bool) -> Model:
    """Make the prefill of a decoder as TinyLlama's (Zhang et al., 2024): 22 layers, 512 tokens."""
    of = _Library()
    width, wide, count = (64, 176, 2) if small else (2048, 5632, 22)
    heads, length = (4, 16) if small else (32, 512)
    words = of.keep(of.nn.Embedding(1000 if small else 32000, width))
    size = width // heads
    angles = of.tensor.arange(length).reshape(-1, 1) * (
        10000.0 ** (-2.0 * of.tensor.arange(size // 2) / size)
    )
    turns = angles.cos().float().contiguous(), angles.sin().float().contiguous()
    of.parameters += turns

    def turn(x: Any) -> Any:
        even, odd = x.chunk(2, dim=-1)
        return (even * turns[0] - odd * turns[1]).cat(even * turns[1] + odd * turns[0], dim=-1)

    def decoder() -> Any:
        norms = of.rms_norm(width), of.rms_norm(width)
        few = max(1, heads // 8)
        query, out = of.linear(width, width, False), of.linear(width, width, False)
        key, value = of.linear(width, few * size, False), of.linear(width, few * size, False)
        gate, up = of.linear(width, wide, False), of.linear(width, wide, False)
        down = of.linear(wide, width, False)

        def split(x: Any, number: int) -> Any:
            return x.reshape(1, length, number, size).transpose(1, 2)

        def layer(x: Any) -> Any:
            y = norms[0](x)
            q, k = turn(split(query(y), heads)), turn(split(key(y), few))
            shared = [z.repeat_interleave(heads // few, dim=1) for z in (k, split(value(y), few))]
            y = q.scaled_dot_product_attention(*shared, is_causal=True)
            x = x + out(y.transpose(1, 2).reshape(1, length, width))
            y = norms[1](x)
            return x + down(gate(y).silu() * up(y))

        return layer

    layers, norm = [decoder() for _ in range(count)], of.rms_norm(width)
    head = of.linear(width, 1000 if small else 32000, False)

    def run(x: Any) -> Any:
        x = words(x)
        for layer in layers:
            x = layer(x).contiguous()
        return head(norm(x)[:, -1:])

    return Model(of.parameters, run, of.tokens(length, 1000 if small else 32000))


def unet(small: bool) -> Model:
    """Make U-Net (Ronneberger et al., 2015), padded, for pictures of 256 x 256."""
    of = _Library()
    base, depth = (8, 2) if small else (32, 4)

    def double(inputs: int, outputs: int) -> Any:
        parts = of.conv(inputs, outputs, 3), of.conv(outputs, outputs, 3)
        return lambda x: parts[1](parts[0](x).relu()).relu()

    down = [double(3 if not at else base << at - 1, base << at) for at in range(depth + 1)]
    up = [
        (
            of.keep(of.nn.ConvTranspose2d(base << at + 1, base << at, 2, 2)),
            double(base << at + 1, base << at),
        )
        for at in reversed(range(depth))
    ]
    head = of.keep(of.nn.Conv2d(base, 2, 1))

    def run(x: Any) -> Any:
        seen = []
        for at, layer in enumerate(down):
            x = layer(x if not at else x.max_pool2d(2))
            seen.append(x)
        for (wider, layer), skip in zip(up, reversed(seen[:-1]), strict=True):
            x = layer(wider(x).cat(skip, dim=1))
        return head(x)

    return Model(of.parameters, run, of.picture(32 if small else 256))


MODELS: Final[dict[str, Callable[[bool], Model]]] = {
    "ResNet-50": resnet50,
    "EfficientNet-B0": efficientnet_b0,
    "MobileNetV2": mobilenet_v2,
    "ViT-Ti/16": vit_tiny,
    "encoder, 6 layers": bert,
    "decoder, prefill": llama,
    "U-Net": unet,
    "training step, ResNet-18": training,
}
CHECKED: Final = ("ResNet-50", "ViT-Ti/16", "decoder, prefill", "U-Net", "training step, ResNet-18")
