"""Finds why a model cannot be planned: unknown sizes, and operators that cannot run."""

from __future__ import annotations

import textwrap
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from math import prod
from typing import Any

from memplan.base.errors import listed
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.operators import find_row
from memplan.runtimes.onnx.read.faults_rules import is_contradictory
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, infer_node
from memplan.runtimes.onnx.read.protos import (
    describe_node,
    has_subgraphs,
    initializers,
    is_known,
    known_shape,
    opsets_of,
    subgraphs,
    type_of,
    types_in,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants, make_tensor
from memplan.runtimes.onnx.read.shapes_constants import open_branches
from memplan.runtimes.onnx.read.shapes_follow import explain_misfit
from memplan.runtimes.onnx.read.shapes_runtime import has_rule
from memplan.runtimes.onnx.read.sizes_data import DataCall, sizes_of
from memplan.runtimes.onnx.read.sizes_declared import Open

__all__ = ["FaultSearch"]

_SHOWN = 70  # characters of the library's error on an operator
_SHAPES = 50  # characters of the shapes that it reads, and of those that it makes


@dataclass
class FaultSearch:
    """Finds values that are unknown though all that they depend on is known, and the reasons."""

    opsets: Mapping[str, int]
    open: list[Open] = field(default_factory=list)  # the unknown values
    # Sentences on operators that cannot run at the sizes of their inputs.
    faults: list[str] = field(default_factory=list)
    # Ifs with one branch that can run: (graph, position, branch that can run, other branch).
    _halves: list[tuple[Any, int, str, str]] = field(default_factory=list)

    @staticmethod
    def through(model: Any) -> FaultSearch:
        """Return the search through a model, which has all shapes that can be inferred."""
        found = FaultSearch(opsets_of(model))
        found._run(model.graph, _Scope(ChainMap(), ChainMap(), Constants(type(model.graph)())))
        return found

    def _run(self, graph: Any, outside: _Scope) -> None:
        scope, weights = outside.enter(graph), initializers(graph)
        for value in graph.input:
            if value.name not in weights:
                scope.known[value.name] = is_known(value.type)
                if not scope.known[value.name]:
                    self.open.append(Open(value.name, value.type, ""))
        for at, node in enumerate(graph.node):
            settled = all(scope.known.get(name, False) for name in node.input if name)
            # A value that depends on an unknown shape is unknown, as it may be used as a shape.
            settled &= self._search_branches(graph, at, scope)
            made = [name for name in node.output if name]
            for name in made:
                scope.known[name] = settled and is_known(scope.types.get(name))
            if not settled:
                continue
            fault = self._explain_fault(node, scope)
            if fault:
                self.faults.append(fault)
            elif not all(scope.known[name] for name in made):
                self._open_results(node, scope)

    def _open_results(self, node: Any, scope: _Scope) -> None:
        """Add the unknown results of a node, with what is known of their sizes nevertheless."""
        data = [scope.constants.find(name) for name in node.input]
        call = DataCall(node, self.opsets.get("", 1), scope.shapes(node.input), data)
        maker, sizes = describe_node(node), sizes_of(call)
        kept = call.shapes[0] if find_row(type_of(node)).is_view else None
        count = None if kept is None else prod(kept)
        for name, found in zip_longest(node.output, sizes[: len(node.output)]):
            if not name or scope.known[name]:
                continue
            places = []
            for axis, size in enumerate(found or ()):
                own = f"{name}:{axis}"
                places.append(scope.places.setdefault(size.key, own) if size.key else own)
            type = scope.types.get(name)
            self.open.append(Open(name, type, maker, found, tuple(places), count))

    def _search_branches(self, graph: Any, at: int, scope: _Scope) -> bool:
        """Search the sub-graphs of a node; return whether everything in them is known."""
        complete: list[str] = []
        lacking: list[str] = []
        wrong = len(self.faults)
        for attribute, inner in subgraphs(graph.node[at]):
            before = len(self.open) + len(self.faults)
            self._run(inner, scope)
            found = len(self.open) + len(self.faults) - before
            (lacking if found else complete).append(attribute)
        one_runs = len(complete) == len(lacking) == 1 and len(self.faults) > wrong
        if one_runs and graph.node[at].op_type == "If":
            self._halves.append((graph, at, complete[0], lacking[0]))
        return not lacking

    def _explain_fault(self, node: Any, scope: _Scope) -> str:
        """Return why a node cannot run; an empty text if no reason is known."""
        reason = ""
        if not all(scope.known[name] for name in node.output if name):
            reason = self._find_complaint(node, scope)
            if not reason:
                return ""
            reason = f": {textwrap.shorten(reason, _SHOWN)}"
        elif not is_contradictory(
            node, scope.shapes(node.input), scope.shapes(node.output), scope.constants.find
        ):
            return ""
        read, made = (_format_shapes(scope.shapes(names)) for names in (node.input, node.output))
        what = f"it reads {read}" + (f" and makes {made}" if made else "")
        return f"{describe_node(node)} cannot run at these sizes, {what}{reason}"

    def _find_complaint(self, node: Any, scope: _Scope) -> str:
        """Return the error of the library about the shapes that a node reads."""
        names = [name for name in node.input if name]
        if has_subgraphs(node) or any(name not in scope.types for name in names):
            return ""
        if has_rule(node, self.opsets):
            return explain_misfit(node, scope.types, {})
        known = {name: scope.constants.find(name) for name in names}
        data = {name: make_tensor(one, name) for name, one in known.items() if one is not None}
        try:
            infer_node(node, self.opsets, {name: scope.types[name] for name in names}, data)
        except LibraryError as error:
            _, found, text = str(error).rpartition("[ShapeInferenceError]")
            return text.strip() if found else ""
        except CrashError as error:
            return f"the library onnx {error}"
        return ""

    def drop_contradictions(self) -> list[Note]:
        """Remove branches of Ifs that cannot run at these sizes; return notes on them.

        A model may have branches for inputs of different sizes, of which one fits. One call
        handles the Ifs of one graph; those of other graphs follow in the next round.
        """
        notes, taken = [], {}
        for graph, at, complete, lacking in self._halves:
            if graph is not self._halves[0][0]:
                continue
            node = graph.node[at]
            taken[at] = dict(subgraphs(node))[complete]
            notes.append(
                Note(
                    Code.BRANCH_DROPPED,
                    f"{describe_node(node)} is planned without its "
                    f"{lacking}, whose shapes contradict the sizes given",
                    tuple(filter(None, node.output)),
                )
            )
        if taken:
            open_branches(self._halves[0][0], taken)
        return notes


def _format_shapes(shapes: list[tuple[int, ...] | None]) -> str:
    known = [str(list(shape)) for shape in shapes if shape is not None]
    return textwrap.shorten(listed(known, quote=False), _SHAPES)


@dataclass
class _Scope:
    """What is known at the place of a graph, from it and from the graphs around it."""

    types: ChainMap[str, Any]
    known: ChainMap[str, bool]  # whether a size is known
    constants: Constants  # may be shapes
    # Where sizes of this graph are asked for, by the keys of those that are equal.
    places: dict[tuple[str | int, ...], str] = field(default_factory=dict)

    def enter(self, graph: Any) -> _Scope:
        """Return the scope of a graph in this one."""
        one = _Scope(
            types_in(graph, self.types), self.known.new_child(), Constants(graph, self.constants)
        )
        one.known.update(dict.fromkeys(initializers(graph), True))
        return one

    def shapes(self, names: Any) -> list[tuple[int, ...] | None]:
        """Return shapes of tensors, or `None` for one that is left out, unknown, or no tensor."""
        return [known_shape(self.types.get(name)) for name in names]
