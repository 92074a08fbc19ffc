"""More networks that take images: those of MemoMalloc's evaluation, and others of many kinds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from memplan_lab.bench.models.images import resnet
from memplan_lab.bench.models.layers import Branches, Residual, convolution
from memplan_lab.bench.models.tokens import Attention, feed_forward
from memplan_lab.extras import require

__all__ = [
    "alexnet",
    "convnext_tiny",
    "deeplabv3",
    "densenet121",
    "efficientnet_b0",
    "fcn",
    "googlenet",
    "inception_v3",
    "regnet_x_8gf",
    "vgg16",
    "vit_small",
]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module

_CLASSES = 1000


def _classify(*layers: Any, channels: int) -> Any:
    """Return the layers, an average over all places, and a layer with a score for each class."""
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)
    )


def _dense(*widths: int) -> list[Any]:
    """Return fully connected layers with dropout between them."""
    layers: list[Any] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout()]
    return layers[:-2]


def alexnet() -> Any:
    """Return AlexNet in one column (Krizhevsky 2014)."""
    layers = [nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    layers += [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    for inputs, outputs in ((192, 384), (384, 256), (256, 256)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(6), nn.Flatten(), *_dense(256 * 36, 4096, 4096, _CLASSES)
    )


def vgg16() -> Any:
    """Return VGG with 16 layers (Simonyan and Zisserman 2014, table 1, D)."""
    layers: list[Any] = []
    channels = 3
    for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *_dense(512 * 49, 4096, 4096, _CLASSES)
    )


# Outputs of the branches of each module, poolings between them (Szegedy et al. 2014, table 1).
_INCEPTION = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)


def googlenet() -> Any:
    """Return GoogLeNet (Szegedy et al. 2014) with batch norm, as it is used today."""
    layers = [convolution(3, 64, 7, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    layers += [convolution(64, 64, 1), convolution(64, 192, 3)]
    channels = 192
    for modules in _INCEPTION:
        layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for one, reduced, three, squeezed, five, pooled in modules:
            layers.append(
                Branches(
                    convolution(channels, one, 1),
                    nn.Sequential(
                        convolution(channels, reduced, 1), convolution(reduced, three, 3)
                    ),
                    nn.Sequential(
                        convolution(channels, squeezed, 1), convolution(squeezed, five, 3)
                    ),
                    nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(channels, pooled, 1)),
                )
            )
            channels = one + three + five + pooled
    return _classify(*layers, channels=channels)


def _chain(*steps: tuple[Any, ...]) -> Any:
    """Return convolutions of (inputs, outputs, kernel, stride, padding), with norm and ReLU."""
    layers: list[Any] = []
    for inputs, outputs, kernel, stride, padding in steps:
        layers += [nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)]
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _same(inputs: int, outputs: int, *kernels: tuple[int, int]) -> Any:
    """Return convolutions that keep the size; the first of them has all the outputs' channels."""
    sizes = [inputs, *[outputs] * len(kernels)]
    return _chain(
        *(
            (sizes[at], sizes[at + 1], kernel, 1, (kernel[0] // 2, kernel[1] // 2))
            for at, kernel in enumerate(kernels)
        )
    )


def _average(inputs: int, outputs: int) -> Any:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _same(inputs, outputs, (1, 1)))


def inception_v3() -> Any:
    """Return Inception-v3 (Szegedy et al. 2015, table 1), for images of at least 75 x 75."""
    layers = [_chain((3, 32, 3, 2, 0), (32, 32, 3, 1, 0), (32, 64, 3, 1, 1)), nn.MaxPool2d(3, 2)]
    layers += [_chain((64, 80, 1, 1, 0), (80, 192, 3, 1, 0)), nn.MaxPool2d(3, 2)]
    for channels, pooled in ((192, 32), (256, 64), (288, 64)):
        layers.append(
            Branches(
                _same(channels, 64, (1, 1)),
                nn.Sequential(_same(channels, 48, (1, 1)), _same(48, 64, (5, 5))),
                nn.Sequential(_same(channels, 64, (1, 1)), _same(64, 96, (3, 3), (3, 3))),
                _average(channels, pooled),
            )
        )
    layers.append(
        Branches(
            _chain((288, 384, 3, 2, 0)),
            nn.Sequential(_same(288, 64, (1, 1)), _same(64, 96, (3, 3)), _chain((96, 96, 3, 2, 0))),
            nn.MaxPool2d(3, 2),
        )
    )
    for inner in (128, 160, 160, 192):
        long = (_same(inner, inner, (7, 1), (1, 7), (7, 1)), _same(inner, 192, (1, 7)))
        layers.append(
            Branches(
                _same(768, 192, (1, 1)),
                nn.Sequential(_same(768, inner, (1, 1), (1, 7)), _same(inner, 192, (7, 1))),
                nn.Sequential(_same(768, inner, (1, 1)), *long),
                _average(768, 192),
            )
        )
    layers.append(
        Branches(
            nn.Sequential(_same(768, 192, (1, 1)), _chain((192, 320, 3, 2, 0))),
            nn.Sequential(_same(768, 192, (1, 1), (1, 7), (7, 1)), _chain((192, 192, 3, 2, 0))),
            nn.MaxPool2d(3, 2),
        )
    )
    for channels in (1280, 2048):
        layers.append(
            Branches(
                _same(channels, 320, (1, 1)),
                nn.Sequential(
                    _same(channels, 384, (1, 1)),
                    Branches(_same(384, 384, (1, 3)), _same(384, 384, (3, 1))),
                ),
                nn.Sequential(
                    _same(channels, 448, (1, 1)),
                    _same(448, 384, (3, 3)),
                    Branches(_same(384, 384, (1, 3)), _same(384, 384, (3, 1))),
                ),
                _average(channels, 192),
            )
        )
    return _classify(*layers, channels=2048)


def regnet_x_8gf() -> Any:
    """Return RegNet-X of 8 billion operations (Radosavovic et al. 2020, figure 16)."""
    layers = [convolution(3, 32, 3, stride=2)]
    channels = 32
    for width, depth in ((80, 2), (240, 5), (720, 15), (1920, 1)):
        for block in range(depth):
            stride = 1 if block else 2
            body = nn.Sequential(
                convolution(channels, width, 1),
                convolution(width, width, 3, stride=stride, groups=max(1, width // 120)),
                convolution(width, width, 1, activation=None),
            )
            shortcut = None
            if not block:
                shortcut = convolution(channels, width, 1, stride=stride, activation=None)
            layers.append(Residual(body, shortcut, nn.ReLU()))
            channels = width
    return _classify(*layers, channels=channels)


class Segmenter(Module):  # type: ignore[misc]
    """A head on the features of a network, enlarged to the size of the image."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.body = resnet((3, 4, 6, 3), bottleneck=True, dilated=True)
        self.head = head

    def forward(self, x: Any) -> Any:
        """Return a score for every class and pixel."""
        return functional.interpolate(
            self.head(self.body(x)), size=x.shape[2:], mode="bilinear", align_corners=False
        )


def fcn() -> Any:
    """Return a fully convolutional network (Shelhamer et al. 2016) on a dilated ResNet-50."""
    return Segmenter(
        nn.Sequential(convolution(2048, 512, 3), nn.Dropout(0.1), nn.Conv2d(512, 21, 1))
    )


class Overall(Module):  # type: ignore[misc]
    """The average over all places, at every place."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(inputs, outputs, 1), nn.ReLU()
        )

    def forward(self, x: Any) -> Any:
        """Return (batch, outputs, height, width)."""
        return self.layers(x).expand(-1, -1, *x.shape[2:])


def deeplabv3() -> Any:
    """Return DeepLab-v3 (Chen et al. 2017) on a dilated ResNet-50."""
    wide = [convolution(2048, 256, 3, dilation=rate) for rate in (12, 24, 36)]
    pyramid = Branches(convolution(2048, 256, 1), *wide, Overall(2048, 256))
    joined = [convolution(1280, 256, 1), nn.Dropout(0.5), convolution(256, 256, 3)]
    return Segmenter(nn.Sequential(pyramid, *joined, nn.Conv2d(256, 21, 1)))


def densenet121(growth: int = 32) -> Any:
    """Return DenseNet with 121 layers (Huang et al. 2016, table 1)."""
    channels = 64
    layers = [convolution(3, channels, 7, stride=2), nn.MaxPool2d(3, 2, padding=1)]
    for stage, depth in enumerate((6, 12, 24, 16)):
        if stage:
            layers += [nn.BatchNorm2d(channels), nn.ReLU()]
            channels //= 2
            layers += [nn.Conv2d(2 * channels, channels, 1, bias=False), nn.AvgPool2d(2)]
        for _ in range(depth):
            more = nn.Sequential(
                *(nn.BatchNorm2d(channels), nn.ReLU(), convolution(channels, 4 * growth, 1)),
                nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
            )
            layers.append(Branches(nn.Identity(), more))
            channels += growth
    return _classify(*layers, nn.BatchNorm2d(channels), nn.ReLU(), channels=channels)


class Squeeze(Module):  # type: ignore[misc]
    """Channels weighed by what is in all of them (Hu et al. 2017)."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, inner, 1), nn.SiLU()),
            *(nn.Conv2d(inner, channels, 1), nn.Sigmoid()),
        )

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape."""
        return x * self.weigh(x)


# Expansion, channels, blocks, stride of the first, kernel (Tan and Le 2019, table 1).
_MOBILE = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def efficientnet_b0() -> Any:
    """Return EfficientNet-B0 (Tan and Le 2019)."""
    channels = 32
    layers = [convolution(3, channels, 3, stride=2, activation=nn.SiLU)]
    for expansion, outputs, blocks, first, kernel in _MOBILE:
        for block in range(blocks):
            stride, wide = (1 if block else first), channels * expansion
            grow = [convolution(channels, wide, 1, activation=nn.SiLU)] if expansion > 1 else []
            body = nn.Sequential(
                *grow,
                convolution(wide, wide, kernel, stride=stride, groups=wide, activation=nn.SiLU),
                Squeeze(wide, channels // 4),
                convolution(wide, outputs, 1, activation=None),
            )
            layers.append(Residual(body) if stride == 1 and channels == outputs else body)
            channels = outputs
    return _classify(*layers, convolution(channels, 1280, 1, activation=nn.SiLU), channels=1280)


class ChannelNorm(Module):  # type: ignore[misc]
    """Layer normalisation over the channels of an image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape."""
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext_tiny() -> Any:
    """Return ConvNeXt-T (Liu et al. 2022)."""
    layers: list[Any] = []
    channels = 3
    for stage, (width, depth) in enumerate(((96, 3), (192, 3), (384, 9), (768, 3))):
        step = 2 if stage else 4
        layers += [ChannelNorm(channels)] if stage else []
        layers += [nn.Conv2d(channels, width, step, step)]
        layers += [] if stage else [ChannelNorm(width)]
        for _ in range(depth):
            body = nn.Sequential(
                *(nn.Conv2d(width, width, 7, padding=3, groups=width), ChannelNorm(width)),
                *(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)),
            )
            layers.append(Residual(body))
        channels = width
    return _classify(*layers, channels=channels)


def vit_small(side: int, layers: int = 12, width: int = 384, heads: int = 6) -> Any:
    """Return a vision transformer with tiles of 16 x 16 (Dosovitskiy et al. 2020)."""
    blocks: list[Any] = []
    for _ in range(layers):
        blocks += [Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, heads)))]
        blocks += [Residual(nn.Sequential(nn.LayerNorm(width), feed_forward(width)))]
    return Tiles(side // 16, width, nn.Sequential(*blocks, nn.LayerNorm(width)))


class Tiles(Module):  # type: ignore[misc]
    """A network of tokens on the tiles of an image."""

    def __init__(self, tiles: int, width: int, body: Any) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 16, 16)
        self.places = nn.Parameter(torch.zeros(1, tiles * tiles, width))
        self.body = body
        self.head = nn.Linear(width, _CLASSES)

    def forward(self, x: Any) -> Any:
        """Return a score for every class."""
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.body(tokens).mean(1))
