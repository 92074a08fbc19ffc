"""Networks that take tokens: transformers."""

from __future__ import annotations

from typing import Any

from memplan_lab.bench.models.layers import Residual
from memplan_lab.extras import require

__all__ = ["Attention", "bert", "bert_base", "encoder", "feed_forward", "gpt2_block"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
functional = nn.functional
Module: Any = nn.Module


class Attention(Module):  # type: ignore[misc]
    """Causal self-attention with several heads: no token sees those after it."""

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


def feed_forward(width: int, inner: int = 0, activation: Any = nn.GELU) -> Any:
    """Return the two layers between attentions, by default four times as wide inside."""
    inner = inner or 4 * width
    return nn.Sequential(nn.Linear(width, inner), activation(), nn.Linear(inner, width))


class Embedding(Module):  # type: ignore[misc]
    """Vectors for tokens and their positions (Devlin et al. 2018)."""

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


def bert(layers: int, width: int, heads: int, inner: int, attention: Any = Attention) -> Any:
    """Return the encoder of a BERT (Devlin et al. 2018): norms come after the sums."""
    encoder: list[Any] = []
    for _ in range(layers):
        mixing = nn.Sequential(attention(width, heads), nn.Dropout(0.1))
        dense = nn.Sequential(feed_forward(width, inner), nn.Dropout(0.1))
        encoder += [Residual(mixing, activation=nn.LayerNorm(width))]
        encoder += [Residual(dense, activation=nn.LayerNorm(width))]
    return nn.Sequential(Embedding(30522, 512, width), *encoder)


def bert_base() -> Any:
    """Return the encoder of BERT-base."""
    return bert(layers=12, width=768, heads=12, inner=3072)


def gpt2_block(width: int = 768, heads: int = 12) -> Any:
    """Return a block of GPT-2 small (Radford et al. 2019): norms come first, no look ahead."""
    attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads, causal=True))
    return nn.Sequential(
        Residual(attention), Residual(nn.Sequential(nn.LayerNorm(width), feed_forward(width)))
    )


def encoder(layers: int = 6, width: int = 512, heads: int = 8) -> Any:
    """Return the encoder of the first transformer (Vaswani et al. 2017), behind its embedding."""
    blocks = []
    for _ in range(layers):
        blocks += [Residual(Attention(width, heads), activation=nn.LayerNorm(width))]
        blocks += [Residual(feed_forward(width), activation=nn.LayerNorm(width))]
    return nn.Sequential(*blocks)
