"""Finds what every tensor of a model depends on: its parents, and inputs of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memplan.runtimes.onnx.read.protos import initializers, subgraphs, tensor_type, walk_nodes
from memplan.runtimes.onnx.read.sizes_expressions import names_in

__all__ = ["Lineage"]


@dataclass
class Lineage:
    """By name, what each tensor depends on; tensors of one name in several graphs count as one.

    Inputs of the model, and sizes that a user gives (by the name of the dimension or as
    "TENSOR:AXIS"), are bits of an integer: a model may have hundreds of inputs.
    """

    # By tensor: what its operator reads, also in the sub-graphs of that.
    parents: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    inputs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    sizes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _given: list[str] = field(default_factory=list)
    _own: dict[str, int] = field(default_factory=dict)  # by tensor: sizes given as "TENSOR:AXIS"

    @staticmethod
    def of(graph: Any, given: Iterable[str]) -> Lineage:
        """Return the lineage in a graph; `given` are the sizes that the user gives."""
        found = Lineage(_given=list(given))
        for at, key in enumerate(found._given):
            name = key.rpartition(":")[0]
            found._own[name] = found._own.get(name, 0) | 1 << at
        for at, value in enumerate(graph.input):
            found.inputs[value.name] = 1 << at
            found.sizes[value.name] = found._find_names(value)
        found._follow(graph)
        return found

    def names(self, sizes: int) -> Iterator[str]:
        """Yield the names of sizes that are given as bits."""
        yield from (key for at, key in enumerate(self._given) if sizes >> at & 1)

    def _find_names(self, value: Any) -> int:
        declared = tensor_type(value.type)
        dims = () if declared is None else declared.shape.dim
        params = {name for dim in dims for name in (dim.dim_param, *names_in(dim.dim_param))}
        named = sum(1 << at for at, key in enumerate(self._given) if key in params)
        return named | self._own.get(value.name, 0)

    def _follow(self, graph: Any) -> None:
        for name in initializers(graph):
            self.inputs[name] = self.sizes[name] = 0
        for node in graph.node:
            read = set(_read(node))
            inputs = sizes = 0
            for name in read:
                inputs |= self.inputs[name]
                sizes |= self.sizes[name]
            made = list(filter(None, node.output))
            for _, inner in subgraphs(node):
                for value in inner.input:
                    self.parents[value.name] |= read
                made += [value.name for value in inner.input]
            for name in made:
                self.parents[name] |= read
                self.inputs[name] |= inputs
                self.sizes[name] |= sizes | self._own.get(name, 0)
            for _, inner in subgraphs(node):
                self._follow(inner)


def _read(node: Any) -> Iterator[str]:
    """Yield the tensors that a node and its sub-graphs read."""
    yield from filter(None, node.input)
    for _, inner in subgraphs(node):
        yield from (name for one in walk_nodes(inner) for name in one.input if name)
