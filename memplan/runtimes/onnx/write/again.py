"""Writes an ONNX file in which operators run again: nodes are copied, with names of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memplan.base.extras import require
from memplan.levers.rewrite.again import Emitted
from memplan.programs.graph import Graph
from memplan.runtimes.onnx.read.read_names import sort_operators
from memplan.runtimes.onnx.write.bands import match_nodes
from memplan.runtimes.onnx.write.hold import iterate_reads

__all__ = ["write_again"]


def write_again(data: bytes, graph: Graph, found: Emitted, path: Path) -> bytes:
    """Return a file with the operators of a program with re-runs.

    The graph is what was read of the file, and `found` that graph with re-runs; operators that are
    not nodes of the file are refused.
    """
    model = require("onnx", extra="onnx").ModelProto.FromString(data)
    sort_operators(model)
    _Writer(model, graph, found, match_nodes(model, graph, path)).write()
    written: bytes = model.SerializeToString(deterministic=True)
    return written


class _Writer:
    """Writes nodes one after the other.

    Nodes that are no operators of the graph are done before the run, or read shapes alone. Each is
    written once, as soon as what it reads is there.
    """

    def __init__(self, model: Any, graph: Graph, found: Emitted, places: list[int]) -> None:
        self._model, self._given, self._found = model.graph, graph, found
        self._places = places
        self._old = list(model.graph.node)
        self._made = {name for node in self._old for name in node.output if name}
        self._pending = [self._old[at] for at in sorted(set(range(len(self._old))) - set(places))]
        self._now: dict[str, str] = {}  # by name in the file: the name of the latest copy
        self._nodes: list[Any] = []
        self._copies: dict[str, str] = {}  # by new name: the name in the file

    def write(self) -> None:
        """Change the model."""
        new = self._found.graph
        for number, operator in zip(self._found.operators, new.operators, strict=True):
            self._write_ready()
            old = self._given.operators[number]
            names = {
                self._given.tensors[before].name: new.tensors[after].name
                for before, after in zip(
                    (*old.inputs, *old.outputs), (*operator.inputs, *operator.outputs), strict=True
                )
            }
            node = type(self._old[0])()
            node.CopyFrom(self._old[self._places[number]])
            if node.name and operator.name != old.name:  # the runtime refuses equal names
                node.name = operator.name
            self._rename(node, names)
        self._write_ready()
        self._nodes += self._pending
        values = {value.name: value for value in self._model.value_info}
        values |= {value.name: value for value in self._model.output}
        for name, before in self._copies.items():
            if before in values:
                value = self._model.value_info.add()
                value.CopyFrom(values[before])
                value.name = name
        del self._model.node[:]
        self._model.node.extend(self._nodes)

    def _write_ready(self) -> None:
        """Write the nodes beside the operators that have all that they read."""
        left = []
        for node in self._pending:
            if all(name in self._now or name not in self._made for name in iterate_reads(node)):
                self._rename(node, {})
            else:
                left.append(node)
        self._pending = left

    def _rename(self, node: Any, names: dict[str, str]) -> None:
        """Append a node that reads the latest copies and makes new ones."""
        for at, name in enumerate(node.input):
            if name:
                node.input[at] = names.get(name, self._now.get(name, name))
        for at, name in enumerate(node.output):
            if not name:
                continue
            new = names.get(name, name)
            if name not in names and name in self._now:  # it is made again, and nothing reads it
                new = f"{self._now[name]} (again)"
            node.output[at] = self._now[name] = new
            if new != name:
                self._copies[new] = name
        self._nodes.append(node)
