"""Networks that return their loss, as they are trained: those of SOMAS, section 5."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from memplan_lab.bench.models.images import UNet, mobilenet_v2, resnet
from memplan_lab.bench.models.layers import Residual
from memplan_lab.bench.models.somas import Detector, Language, nezha, recognition
from memplan_lab.bench.models.tokens import Attention, bert, feed_forward
from memplan_lab.extras import require

__all__ = ["STEPS", "TRAINED", "Classifier", "MaskedWords", "Translator"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module

_MASKED = 20  # words of 128 that BERT is asked for


class Classifier(Module):  # type: ignore[misc]
    """How well a network tells classes apart."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Any, classes: Any) -> Any:
        """Return the loss for a batch of images, of which each has a class."""
        return functional.cross_entropy(self.network(images), classes)


class MaskedWords(Module):  # type: ignore[misc]
    """How well an encoder guesses words that were hidden (Devlin et al. 2018, section 3.1)."""

    def __init__(self, encoder: Any, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(encoder[0].tokens.num_embeddings))

    def forward(self, tokens: Any, places: Any, words: Any) -> Any:
        """Return the loss for (batch, tokens), and (batch, hidden) places with their words."""
        batch = torch.arange(tokens.shape[0], device=tokens.device).unsqueeze(1)
        hidden = self.head(self.encoder(tokens)[batch, places])
        scores = functional.linear(hidden, self.encoder[0].tokens.weight, self.bias)
        return functional.cross_entropy(scores.flatten(0, 1), words.flatten())


class CrossAttention(Module):  # type: ignore[misc]
    """Attention with several heads to another sequence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(width, width)
        self.answer = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Any, memory: Any) -> Any:
        """Return a tensor of the shape of x, (batch, tokens, width)."""
        batch, tokens, width = x.shape
        query = self.ask(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
        split = self.answer(memory).view(batch, memory.shape[1], 2, self.heads, -1)
        key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Decoding(Module):  # type: ignore[misc]
    """A layer of the decoder: attention to itself, to the encoder's result, and feed-forward."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        own = nn.Sequential(Attention(width, heads, causal=True), nn.Dropout(0.1))
        dense = nn.Sequential(feed_forward(width, activation=nn.ReLU), nn.Dropout(0.1))
        self.own = Residual(own, activation=nn.LayerNorm(width))
        self.other = CrossAttention(width, heads)
        self.dropout = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(width)
        self.dense = Residual(dense, activation=nn.LayerNorm(width))

    def forward(self, x: Any, memory: Any) -> Any:
        """Return a tensor of the shape of x, (batch, tokens, width)."""
        x = self.own(x)
        return self.dense(self.norm(x + self.dropout(self.other(x, memory))))


class Translator(Module):  # type: ignore[misc]
    """The first transformer (Vaswani et al. 2017), by default its base model."""

    def __init__(
        self, layers: int = 6, width: int = 512, heads: int = 8, vocabulary: int = 37000
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.words = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(0.1)
        encoder = []
        for _ in range(layers):
            attention = nn.Sequential(Attention(width, heads), nn.Dropout(0.1))
            dense = nn.Sequential(feed_forward(width, activation=nn.ReLU), nn.Dropout(0.1))
            encoder += [Residual(attention, activation=nn.LayerNorm(width))]
            encoder += [Residual(dense, activation=nn.LayerNorm(width))]
        self.encoder = nn.Sequential(*encoder)
        self.decoder = nn.ModuleList(Decoding(width, heads) for _ in range(layers))
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        angles = torch.arange(512).unsqueeze(1) * rates
        self.register_buffer("places", torch.stack((angles.sin(), angles.cos()), 2).flatten(1))

    def forward(self, source: Any, target: Any, wanted: Any) -> Any:
        """Return the loss for sentences, the begun translations, and the words that follow."""
        memory = self.encoder(self._embed(source))
        x = self._embed(target)
        for layer in self.decoder:
            x = layer(x, memory)
        scores = functional.linear(x, self.words.weight)
        return functional.cross_entropy(scores.flatten(0, 1), wanted.flatten(), label_smoothing=0.1)

    def _embed(self, tokens: Any) -> Any:
        return self.dropout(self.words(tokens) * self.scale + self.places[: tokens.shape[1]])


Made = tuple[Any, tuple[Any, ...]]  # a module that returns its loss, and what to call it with


def _zeros(*shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.long)


def _fake(make: Callable[[], Made]) -> Callable[[], Made]:
    """Return what makes the same of fake tensors, which have no memory."""

    def fake() -> Made:
        with require("torch._subclasses.fake_tensor", extra="torch").FakeTensorMode():
            return make()

    return fake


def _words(encoder: Callable[[], Any], width: int, batch: int = 32) -> Callable[[], Made]:
    def make() -> Made:
        model = MaskedWords(encoder(), width)
        return model, (_zeros(batch, 128), _zeros(batch, _MASKED), _zeros(batch, _MASKED))

    return make


def _bert(layers: int, width: int, heads: int, inner: int, batch: int) -> Callable[[], Made]:
    return _words(lambda: bert(layers, width, heads, inner), width, batch)


def _classes(build: Callable[[], Any], batch: int, side: int = 224) -> Callable[[], Made]:
    return lambda: (Classifier(build()), (torch.empty(batch, 3, side, side), _zeros(batch)))


def _translation() -> Made:
    return Translator(), (_zeros(32, 128), _zeros(32, 128), _zeros(32, 128))


def _detection(batch: int = 16, side: int = 416) -> Made:
    boxes = (torch.empty(batch, 18, side // scale, side // scale) for scale in (32, 16, 8))
    return Detector(), (torch.empty(batch, 3, side, side), *boxes)


def _pangu(layers: int, width: int, heads: int) -> Callable[[], Made]:
    model = partial(Language, layers, width, heads, share=8)
    return lambda: (model(), (_zeros(2, 1024), _zeros(2, 1024)))


# By name: what makes the module, in training and of fake tensors, and the arguments to call it
# with. Sentences have 128 tokens. Tiny-BERT is that of Jiao et al. (2019) with four layers. PanGu
# is the share of one of eight devices; the layers of "8b" are ours, as SOMAS does not say them.
TRAINED: dict[str, Callable[[], Made]] = {
    "bert_base": _fake(_bert(12, 768, 12, 3072, batch=32)),
    "bert_large": _fake(_bert(24, 1024, 16, 4096, batch=32)),
    "tiny_bert": _fake(_bert(4, 312, 12, 1200, batch=32)),
    "resnet50": _fake(_classes(lambda: resnet((3, 4, 6, 3), bottleneck=True), batch=32)),
    "mobilenet_v2": _fake(_classes(mobilenet_v2, batch=32)),
    "transformer": _fake(_translation),
    "bert_nezha": _fake(_words(lambda: nezha(24, 1024, 16, 4096), 1024)),
    "face_recognition": _fake(_classes(recognition, batch=32, side=112)),
    "face_detection": _fake(_detection),
    "pangu_2.6b": _fake(_pangu(32, 2560, 32)),
    "pangu_8b": _fake(_pangu(40, 4096, 32)),
    "pangu_13b": _fake(_pangu(40, 5120, 40)),
}


def _language(layers: int, width: int, heads: int, words: int) -> Callable[[], Made]:
    model = partial(Language, layers, width, heads, share=1, vocabulary=words)
    return lambda: (model(), (_zeros(4, 512), _zeros(4, 512)))


def _segmentation(batch: int = 4, side: int = 128) -> Made:
    model = Classifier(UNet(3, 2, width=32))
    return model, (torch.empty(batch, 3, side, side), _zeros(batch, side, side))


def _without_dropout(make: Callable[[], Made]) -> Made:
    model, args = make()
    return model.eval(), args


# By name: as above, for re-runs; nothing is dropped at random. GPT-2 is its small model.
STEPS: dict[str, Callable[[], Made]] = {
    "mobilenet_v2": TRAINED["mobilenet_v2"],
    "resnet50": TRAINED["resnet50"],
    "unet": _fake(_segmentation),
    "bert": _fake(lambda: _without_dropout(_bert(12, 768, 12, 3072, batch=4))),
    "gpt2": _fake(_language(12, 768, 12, 50_257)),
    "gpt_48_layers": _fake(_language(48, 256, 4, 1000)),
}
