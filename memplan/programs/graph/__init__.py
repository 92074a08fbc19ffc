"""Operators and tensors between a model and a `Problem`.

`sources` make a `Graph`. `lay_out` finds the pieces of memory that it needs and their lifetimes,
and `unsafe_pairs` those which its streams may need at the same time.
"""

from memplan.programs.graph.layout import Layout, Storage, lay_out
from memplan.programs.graph.liveness import Lives, lives
from memplan.programs.graph.model import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.graph.streams import UnsafePairs, Why, beyond_lifetimes, unsafe_pairs, why

__all__ = [
    "Block",
    "Graph",
    "Kind",
    "Layout",
    "Lives",
    "Operator",
    "Storage",
    "Tensor",
    "UnsafePairs",
    "View",
    "Why",
    "beyond_lifetimes",
    "lay_out",
    "lives",
    "unsafe_pairs",
    "why",
]
