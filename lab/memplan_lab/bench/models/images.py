"""Networks that take or make images."""

from __future__ import annotations

from typing import Any

from memplan_lab.bench.models.layers import Residual, convolution
from memplan_lab.extras import require

__all__ = ["UNet", "dcgan", "mobilenet_v2", "resnet", "squeezenet", "unet"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module


def resnet(
    depths: tuple[int, int, int, int],
    *,
    bottleneck: bool,
    inner: int = 1,
    groups: int = 1,
    dilated: bool = False,
) -> Any:
    """Return a ResNet for 1 000 classes (He et al. 2015, table 1)."""
    channels, expansion = 64, 4 if bottleneck else 1
    layers = [convolution(3, channels, 7, stride=2), nn.MaxPool2d(3, 2, padding=1)]
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            keeps = dilated and stage > 1
            stride = 2 if stage and not block and not keeps else 1
            dilation = 1 << (stage - 1 if block else stage - 2) if keeps else 1
            outputs = width * expansion
            if bottleneck:
                wide = width * inner
                spread = {"stride": stride, "groups": groups, "dilation": dilation}
                body = nn.Sequential(
                    convolution(channels, wide, 1),
                    convolution(wide, wide, 3, **spread),
                    convolution(wide, outputs, 1, activation=None),
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
    if dilated:
        return nn.Sequential(*layers)
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


# Channels that are squeezed to, and that each half expands to, between poolings (Iandola et al.
# 2016, table 1).
_FIRES = (
    ((16, 64), (16, 64), (32, 128)),
    ((32, 128), (48, 192), (48, 192), (64, 256)),
    ((64, 256),),
)


class Fire(Module):  # type: ignore[misc]
    """A few channels, and 1 x 1 and 3 x 3 convolutions of these, joined (Iandola et al. 2016)."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(inputs, squeezed, 1), nn.ReLU())
        self.expand = nn.ModuleList(
            nn.Sequential(nn.Conv2d(squeezed, expanded, kernel, padding=kernel // 2), nn.ReLU())
            for kernel in (1, 3)
        )

    def forward(self, x: Any) -> Any:
        """Return twice `expanded` channels of the same size."""
        squeezed = self.squeeze(x)
        return torch.cat([expand(squeezed) for expand in self.expand], dim=1)


def squeezenet() -> Any:
    """Return SqueezeNet 1.0 for 1 000 classes (Iandola et al. 2016)."""
    channels = 96
    layers: list[Any] = [nn.Conv2d(3, channels, 7, stride=2), nn.ReLU()]
    for fires in _FIRES:
        layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for squeezed, expanded in fires:
            layers.append(Fire(channels, squeezed, expanded))
            channels = 2 * expanded
    head = [nn.Dropout(0.5), nn.Conv2d(channels, 1000, 1), nn.ReLU()]
    return nn.Sequential(*layers, *head, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def dcgan(side: int = 64) -> Any:
    """Return the generator of DCGAN (Radford et al. 2015) for colour images from 100 numbers."""
    width = 8 * side
    layers = [nn.ConvTranspose2d(100, width, 4, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    while width > 64:
        layers += [nn.ConvTranspose2d(width, width // 2, 4, stride=2, padding=1, bias=False)]
        width //= 2
        layers += [nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1, bias=False), nn.Tanh()
    )
