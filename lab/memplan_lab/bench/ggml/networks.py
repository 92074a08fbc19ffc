"""Networks for llama.cpp, as GGUF: tiny ones with random weights, large ones with shapes alone.

The weights of a large one are a hole in its file, which llama.cpp does not read when it only
reserves memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from memplan_lab.extras import require

if TYPE_CHECKING:
    from gguf import GGUFWriter

__all__ = ["LARGE", "TINY", "Network", "write_network"]


@dataclass(frozen=True)
class Network:
    """A network of llama's architecture."""

    name: str  # what tables call it
    # width, layers, heads, groups, hidden, words: Of an embedding, of the network, of queries, of
    # keys, of the feed-forward part, of the vocabulary.
    width: int
    layers: int
    heads: int
    groups: int
    hidden: int
    words: int
    # experts, chosen: Of a mixture of experts, and how many of them each token uses; 0 without.
    experts: int = 0
    chosen: int = 0

    def list_tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor of weights, as GGUF names them."""
        keys = self.width // self.heads * self.groups
        of_experts = (self.experts,) if self.experts else ()
        kind = "_exps" if self.experts else ""
        layer: dict[str, tuple[int, ...]] = {
            "attn_norm": (self.width,),
            "attn_q": (self.width, self.width),
            "attn_k": (keys, self.width),
            "attn_v": (keys, self.width),
            "attn_output": (self.width, self.width),
            "ffn_norm": (self.width,),
            f"ffn_gate{kind}": (*of_experts, self.hidden, self.width),
            f"ffn_up{kind}": (*of_experts, self.hidden, self.width),
            f"ffn_down{kind}": (*of_experts, self.width, self.hidden),
        }
        if self.experts:
            layer["ffn_gate_inp"] = (self.experts, self.width)
        ends = {
            "token_embd": (self.words, self.width),
            "output_norm": (self.width,),
            "output": (self.words, self.width),
        }
        layers = {
            f"blk.{n}.{name}": shape for n in range(self.layers) for name, shape in layer.items()
        }
        return {f"{name}.weight": shape for name, shape in (ends | layers).items()}


TINY: Final = (
    Network("dense", 64, 3, 4, 2, 192, 256),
    Network("mixture", 64, 3, 4, 2, 96, 256, experts=4, chosen=2),
    Network("many words", 64, 3, 4, 4, 128, 32000),
)

LARGE: Final = (
    Network("llama2-7B", 4096, 32, 32, 32, 11008, 32000),
    Network("Mixtral-8x7B", 4096, 32, 32, 8, 14336, 32000, experts=8, chosen=2),
    Network("llama3-8B", 4096, 32, 32, 8, 14336, 128256),
    Network("TinyLlama-1.1B", 2048, 22, 32, 4, 5632, 32000),
)


def write_network(network: Network, path: Path, seed: int | None) -> None:
    """Write a network as GGUF, with random weights, or none if there is no seed."""
    gguf = require("gguf", extra="ggml")
    writer: GGUFWriter = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(131072)
    writer.add_embedding_length(network.width)
    writer.add_block_count(network.layers)
    writer.add_feed_forward_length(network.hidden)
    writer.add_head_count(network.heads)
    writer.add_head_count_kv(network.groups)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(network.words)
    writer.add_tokenizer_model("no_vocab")
    if network.experts:
        writer.add_expert_count(network.experts)
        writer.add_expert_used_count(network.chosen)
    rng = np.random.default_rng(seed)
    for name, shape in network.list_tensors().items():
        if seed is not None:
            weights = rng.standard_normal(shape, np.float32) * shape[-1] ** -0.5
            writer.add_tensor(name, weights if len(shape) == 1 else weights.astype(np.float16))
        else:
            dtype = np.dtype(np.float32 if len(shape) == 1 else np.float16)
            size = int(np.prod(shape)) * dtype.itemsize
            writer.add_tensor_info(name, shape, dtype, size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    if seed is not None:
        writer.write_tensors_to_file()
        writer.close()
        return
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        unit = writer.data_alignment
        sizes = [each.nbytes for tensors in writer.tensors for each in tensors.values()]
        end = file.seek(0, 2) + unit + sum(size + unit for size in sizes)
        file.truncate(end)
