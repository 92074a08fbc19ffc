"""Well-known networks, written as `torch.nn` modules with random weights.

They are examples of what people plan: chains with short skips (ResNet, MobileNet), branches that
are joined (SqueezeNet), long skips (U-Net), a plain chain that grows (DCGAN), and transformers.
Layers and sizes are those of the cited papers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memplan_lab.bench.models.images import UNet, dcgan, mobilenet_v2, resnet, squeezenet, unet
from memplan_lab.bench.models.tokens import bert_base, encoder, gpt2_block
from memplan_lab.bench.models.vision import (
    alexnet,
    convnext_tiny,
    deeplabv3,
    densenet121,
    efficientnet_b0,
    fcn,
    googlenet,
    inception_v3,
    regnet_x_8gf,
    vgg16,
    vit_small,
)
from memplan_lab.extras import require

__all__ = [
    "MEMOMALLOC",
    "MODELS",
    "NETWORKS",
    "UNet",
    "bert_base",
    "dcgan",
    "encoder",
    "gpt2_block",
    "mobilenet_v2",
    "resnet",
    "squeezenet",
    "unet",
]

torch = require("torch", extra="torch")

Made = tuple[Any, tuple[Any, ...]]  # a module for inference, and what to call it with


def _images(batch: int, side: int) -> Any:
    return torch.randn(batch, 3, side, side)


def _resnet18(_: int) -> Any:
    return resnet((2, 2, 2, 2), bottleneck=False)


def _resnet50(_: int) -> Any:
    return resnet((3, 4, 6, 3), bottleneck=True)


# By name: a network for inputs of a size, and inputs of a batch and that size. The size is the side
# of an image; for the encoder, the number of tokens.
_SIZED: dict[str, tuple[Callable[[int], Any], Callable[[int, int], Any]]] = {
    "resnet18": (_resnet18, _images),
    "resnet50": (_resnet50, _images),
    "unet": (lambda _: UNet(3, 2, width=32), _images),
    "mobilenet_v2": (lambda _: mobilenet_v2(), _images),
    "squeezenet": (lambda _: squeezenet(), _images),
    "dcgan": (dcgan, lambda batch, _: torch.randn(batch, 100, 1, 1)),
    "encoder": (lambda _: encoder(), lambda batch, tokens: torch.randn(batch, tokens, 512)),
    "deeplabv3": (lambda _: deeplabv3(), _images),
    "fcn": (lambda _: fcn(), _images),
    "googlenet": (lambda _: googlenet(), _images),
    "wide_resnet50": (lambda _: resnet((3, 4, 6, 3), bottleneck=True, inner=2), _images),
    "vgg16": (lambda _: vgg16(), _images),
    "inception_v3": (lambda _: inception_v3(), _images),
    "regnet_x_8gf": (lambda _: regnet_x_8gf(), _images),
    "alexnet": (lambda _: alexnet(), _images),
    "resnext50": (lambda _: resnet((3, 4, 6, 3), bottleneck=True, inner=2, groups=32), _images),
    "densenet121": (lambda _: densenet121(), _images),
    "efficientnet_b0": (lambda _: efficientnet_b0(), _images),
    "convnext_tiny": (lambda _: convnext_tiny(), _images),
    "vit_small": (vit_small, _images),
}

# The nine networks of MemoMalloc's evaluation (chapter 4).
MEMOMALLOC = (
    *("dcgan", "deeplabv3", "fcn", "googlenet", "wide_resnet50"),
    *("vgg16", "inception_v3", "regnet_x_8gf", "squeezenet"),
)


def _on_meta(build: Callable[[], Any], argument: Callable[[], Any]) -> Callable[[], Made]:
    """Return what builds a model for inference, and an argument for it, without any memory."""

    def make() -> Made:
        with torch.device("meta"):
            return build().eval(), (argument(),)

    return make


# By name: what makes the module, on the meta device, and the arguments to call it with.
MODELS: dict[str, Callable[[], Made]] = {
    "resnet18": _on_meta(lambda: _resnet18(224), lambda: _images(1, 224)),
    "resnet50": _on_meta(lambda: _resnet50(224), lambda: _images(1, 224)),
    "mobilenet_v2": _on_meta(mobilenet_v2, lambda: _images(1, 224)),
    "squeezenet": _on_meta(squeezenet, lambda: _images(1, 224)),
    "dcgan": _on_meta(dcgan, lambda: torch.randn(1, 100, 1, 1)),
    "unet": _on_meta(unet, lambda: _images(1, 256)),
    "bert_base": _on_meta(bert_base, lambda: torch.zeros(1, 128, dtype=torch.long)),
    "gpt2_block": _on_meta(gpt2_block, lambda: torch.empty(1, 1024, 768)),
    "encoder": _on_meta(encoder, lambda: torch.randn(1, 128, 512)),
}


def _on_cpu(name: str) -> Callable[[int, int], Made]:
    build, argument = _SIZED[name]

    def make(batch: int, size: int) -> Made:
        torch.manual_seed(0)
        return build(size).eval(), (argument(batch, size),)

    return make


# By name: what makes the module with weights, always the same ones, and arguments for a batch and
# an input size. The U-Net has half the channels of the paper's.
NETWORKS: dict[str, Callable[[int, int], Made]] = {name: _on_cpu(name) for name in _SIZED}
