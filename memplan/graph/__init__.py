"""Operators and tensors between a model and a `Problem`.

`sources` make a `Graph`; `lay_out` says which pieces of memory it needs, and when.
"""

from memplan.graph.layout import Layout, Storage, lay_out
from memplan.graph.liveness import Lives, lives
from memplan.graph.model import Block, Graph, Kind, Operator, Tensor, View

__all__ = [
    "Block",
    "Graph",
    "Kind",
    "Layout",
    "Lives",
    "Operator",
    "Storage",
    "Tensor",
    "View",
    "lay_out",
    "lives",
]
