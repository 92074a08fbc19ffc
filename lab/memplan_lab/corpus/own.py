"""Problems of the networks in `memplan_lab.bench.models`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from memplan_lab.corpus.recipe import Network, Recipe

if TYPE_CHECKING:
    from memplan_lab.corpus.runs import Ready

__all__ = ["FAMILIES"]

_IMAGES = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "unet", "dcgan")

# By name: batches, and sides of images or numbers of tokens, that go together.
_CALLED: dict[str, tuple[tuple[int, int], ...]] = {
    "resnet18": ((1, 224), (32, 160)),
    "resnet50": ((4, 256), (64, 224)),
    "mobilenet_v2": ((1, 224), (16, 192)),
    "squeezenet": ((2, 224), (32, 227)),
    "unet": ((1, 256), (8, 512)),
    "dcgan": ((16, 64), (64, 128)),
    "encoder": ((1, 128), (32, 512)),
}

# These networks return their loss, because they are made for training.
_LEARNING: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny_bert": ((64, 128), (4, 512)),
    "bert_base": ((32, 128), (8, 384)),
    "bert_large": ((16, 128), (2, 512)),
    "translator": ((32, 128), (64, 48)),
}
_BERTS = {
    "tiny_bert": (4, 312, 12, 1200),
    "bert_base": (12, 768, 12, 3072),
    "bert_large": (24, 1024, 16, 4096),
}
_HIDDEN = 0.15  # share of the tokens that BERT has to guess

_FAMILY = "models"
_PARTITIONS = ("ddp", "overlap", "category")
_SERVED = 16  # larger batches are for throughput; a scratchpad has no use for them
_TILES = ((4, 64 << 10), (8, 32 << 10), (16, 128 << 10))


def _network(name: str, batch: int, size: int) -> Ready:
    from memplan_lab.bench.models import NETWORKS
    from memplan_lab.corpus.runs import Ready
    from memplan_lab.corpus.weightless import Weightless

    with Weightless():
        module, args = NETWORKS[name](batch, size)
    args = tuple(each.to("meta") for each in args)
    return Ready(module.to("meta"), args, loss=lambda result: result.square().mean())


def _make_training(name: str, batch: int, size: int) -> Ready:
    from memplan_lab.bench.models import torch
    from memplan_lab.bench.models.tokens import bert
    from memplan_lab.bench.models.training import MaskedWords, Translator
    from memplan_lab.corpus.runs import Ready
    from memplan_lab.corpus.weightless import Weightless

    lengths = [size] * 3
    with Weightless():
        if name == "translator":
            module: Any = Translator()
        else:
            module = MaskedWords(bert(*_BERTS[name]), _BERTS[name][1])
            lengths[1:] = [int(_HIDDEN * size)] * 2
    args = (torch.empty(batch, each, dtype=torch.long, device="meta") for each in lengths)
    return Ready(module.to("meta"), tuple(args))


def _recipes() -> Iterator[Recipe]:
    for model, calls in _CALLED.items():
        for at, (batch, size) in enumerate(calls):
            network = Network("memplan", model, partial(_network, model, batch, size), batch, size)
            yield network.recipe(_FAMILY, "inference")
            yield network.recipe(_FAMILY, "training", gradients=("kept", "released")[at])
            yield network.recipe(_FAMILY, "int8")
            yield network.recipe(_FAMILY, "streams", partition=_PARTITIONS[at], optimizer="sgd")
            if model in _IMAGES and batch < _SERVED:
                for tiles, chunk in _TILES:
                    yield network.recipe(_FAMILY, "scratchpad", tiles=tiles, chunk=chunk)
    for model, calls in _LEARNING.items():
        for batch, size in calls:
            network = Network(
                "memplan", model, partial(_make_training, model, batch, size), batch, size
            )
            yield network.recipe(_FAMILY, "training", gradients="kept")
            yield network.recipe(_FAMILY, "training", gradients="released")
            for partition in _PARTITIONS:
                yield network.recipe(_FAMILY, "streams", partition=partition, optimizer="adam")


FAMILIES = {_FAMILY: _recipes}
