"""Follows the states of loops that change their shape, round by round, where rounds are known.

The library infers one round only, and assumes that a state may change. If the number of rounds is a
constant and nothing else ends the loop, each round is inferred with the states of the one before.
The round that is planned must make the most of every tensor: the last one of a loop that grows.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from memplan.base.errors import listed
from memplan.base.extras import require
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, infer_shapes
from memplan.runtimes.onnx.read.protos import (
    bytes_of,
    copy,
    describe_node,
    dtype_of,
    has_subgraphs,
    initializers,
    is_known,
    is_standard,
    known_shape,
    subgraphs,
    tensor_type,
    types_in,
    types_of,
    walk_graphs,
    walk_nodes,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants
from memplan.runtimes.onnx.read.sizes_data import DataCall, count_rounds

__all__ = ["Loops"]

_MOST = 20_000  # operators of all rounds: more are not followed
_VERSION = 8  # of the format, for the model of a round

_Path = tuple[str, ...]


class _Rounds(NamedTuple):
    """The states of a loop: their types in the round that is planned, and behind the last one."""

    planned: list[Any]
    last: list[Any]


@dataclass
class Loops:
    """Gives states of loops the types of the largest round, and results those of the last one."""

    opsets: Mapping[str, int]
    _found: dict[_Path, _Rounds | None] = field(default_factory=dict)  # by the results around

    def settle(self, graph: Any) -> bool:
        """Settle the loops whose types are known for the first round; return what changed."""
        return self._settle(graph, ChainMap(), Constants(type(graph)()), ())

    def notes(self, graph: Any, path: _Path = ()) -> Iterator[Note]:
        """Yield notes on loops of which only the first round is known."""
        for node in graph.node:
            here = (*path, *node.output)
            for _, body in subgraphs(node):
                yield from self.notes(body, here)
                states = zip(body.input[2:], body.output[1:], strict=False)
                changing = [one.name for one, after in states if one.type != after.type]
                if node.op_type != "Loop" or not changing or self._found.get(here):
                    continue
                made = (name for one in body.node for name in one.output if name)
                text = (
                    f"{describe_node(node)} changes the shape of "
                    f"{listed(changing)}; its rounds are planned like the first one"
                )
                yield Note(Code.DIM_ASSUMED, text, (*changing, *made))

    def _settle(
        self, graph: Any, outside: ChainMap[str, Any], around: Constants, path: _Path
    ) -> bool:
        types, constants, changed = types_in(graph, outside), Constants(graph, around), False
        for at, node in enumerate(graph.node):
            here = (*path, *node.output)
            if node.op_type == "Loop" and is_standard(node) and has_subgraphs(node):
                changed |= self._settle_loop(at, graph, types, constants, here)
            for _, inner in subgraphs(node):
                changed |= self._settle(inner, types, constants, here)
        return changed

    def _settle_loop(
        self, at: int, graph: Any, types: ChainMap[str, Any], constants: Constants, path: _Path
    ) -> bool:
        node = graph.node[at]
        ((_, body),) = subgraphs(node)
        states = body.input[2:]
        after = body.output[1 : 1 + len(states)]
        if len(after) < len(states):
            return False  # the body is wrong, which is said where the model is read
        if not all(is_known(one.type) for one in (*states, *after)):
            return False
        if path not in self._found:
            if all(one.type == other.type for one, other in zip(states, after, strict=True)):
                return False
            data = [constants.find(name) for name in node.input]
            call = DataCall(node, self.opsets.get("", 1), [], data)
            rounds = count_rounds(call, body)
            self._found[path] = None if rounds is None else self._follow(body, types, rounds)
        found = self._found[path]
        if found is None:
            return False
        changed = False
        for name, last in zip(node.output, found.last, strict=False):
            if name and not is_known(types.get(name)):
                if name not in types.maps[0]:
                    types[name] = graph.value_info.add(name=name).type
                types[name].CopyFrom(last)
                changed = True
        if any(one.type != new for one, new in zip(states, found.planned, strict=True)):
            _forget(body)
            for one, new in zip(states, found.planned, strict=True):
                one.type.CopyFrom(new)
            changed = True
        return changed

    def _follow(self, body: Any, types: Mapping[str, Any], rounds: int) -> _Rounds | None:
        """Return the states of a loop after all rounds, if one round needs the most of each."""
        if rounds * sum(1 for _ in walk_nodes(body)) > _MOST:
            return None
        count = len(body.input) - 2
        model = self._make_model(body, types)
        states = [[copy(one.type) for one in body.input[2:]]]
        sizes: list[dict[str, int]] = []
        for _ in range(rounds):
            for value, one in zip(model.graph.input[2 : 2 + count], states[-1], strict=True):
                value.type.CopyFrom(one)
            try:
                made = infer_shapes(model, strict=False, follow_data=True).graph
            except (CrashError, LibraryError):
                return None
            found = _measure(made)
            if found is None:
                return None
            sizes.append(found)
            states.append([copy(one.type) for one in made.output[1 : 1 + count]])
        if all(one[name] <= other[name] for one, other in pairwise(sizes) for name in one):
            return _Rounds(states[max(rounds - 1, 0)], states[-1])
        if all(one[name] >= other[name] for one, other in pairwise(sizes) for name in one):
            return _Rounds(states[0], states[-1])
        return None

    def _make_model(self, body: Any, types: Mapping[str, Any]) -> Any:
        """Return one round as a model, with what it reads of the graphs around as inputs."""
        model = require("onnx", extra="onnx").ModelProto(ir_version=_VERSION)
        model.graph.CopyFrom(body)
        _forget(model.graph)
        own = set(initializers(body)) | {value.name for value in body.input}
        own |= {name for node in walk_nodes(body) for name in node.output}
        own |= {value.name for inner in walk_graphs(body) for value in inner.input}
        read = {name for node in walk_nodes(body) for name in node.input if name}
        read |= {value.name for inner in walk_graphs(body) for value in inner.output}
        for name in sorted(read - own):
            if types.get(name) is not None:
                model.graph.input.add(name=name).type.CopyFrom(types[name])
        for domain, version in self.opsets.items():
            model.opset_import.add(domain=domain, version=version)
        return model


def _forget(graph: Any) -> None:
    """Remove the shapes of what a graph makes, also in those inside."""
    for one in walk_graphs(graph):
        inside = one.input if one is not graph else ()
        for value in (*one.value_info, *one.output, *inside):
            declared = tensor_type(value.type)
            if declared is not None:
                declared.ClearField("shape")


def _measure(graph: Any) -> dict[str, int] | None:
    """Return the bytes of all that the operators of a graph make; `None` if some are unknown."""
    types, found = types_of(graph), {}
    for name in (name for node in graph.node for name in node.output if name):
        declared, shape = tensor_type(types.get(name)), known_shape(types.get(name))
        if declared is None or shape is None or dtype_of(declared.elem_type) is None:
            return None
        found[name] = bytes_of(declared.elem_type, shape)
    return found
