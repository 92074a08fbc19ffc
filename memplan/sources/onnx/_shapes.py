"""The shapes of all tensors of a model, or which dimensions a user has to give."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memplan.errors import GraphError, MemplanError, quoted
from memplan.notes import Code, Note
from memplan.sources._extras import require
from memplan.sources.onnx._fold import Folder, open_branches
from memplan.sources.onnx._order import initializers, subgraphs
from memplan.sources.onnx._types import is_known, tensor_type, types_of

__all__ = ["with_shapes"]

# What exporters write where a dimension has no name.
_NAMELESS = frozenset({"", "?", "*", "-1", "None"})
# More rounds of inference than that do not find more: each round follows a given dimension or the
# state of a loop one level down.
_ROUNDS = 32
_SHOWN = 200  # characters of what the library says of a model


def with_shapes(model: Any, dims: Mapping[str, int]) -> tuple[Any, tuple[Note, ...]]:
    """Return the model with the shape of every tensor, and notes on what it took.

    Parameters
    ----------
    model
        A `ModelProto` in order, without functions of its own.
    dims
        Values of symbolic dimensions by their name, or of nameless ones by "TENSOR:AXIS".

    Raises
    ------
    GraphError
        If dimensions are missing or negative (the sentence has them all), or shapes contradict.
    MemplanError
        If a given dimension is negative, or not in the model.
    """
    for name, value in dims.items():
        if value < 0:
            raise MemplanError(f"dimension {quoted(name)} has the value {value}; it is a size")
    _forget_negative(model.graph)
    named = _names(model.graph)
    given = _Given(dims, named)
    given.apply(model.graph)
    complaint = ""
    folder = Folder()
    search = _Search(named)
    notes: list[Note] = []
    for _ in range(_ROUNDS):
        model, complaint = _infer(model)
        changed = given.apply(model.graph)
        changed |= _spread(model.graph, {})
        changed |= folder.fold(model.graph)
        if changed or given.apply(model.graph, ranks=True):
            continue
        search = _Search(named)
        search.run(model.graph, {})
        note = search.drop_contradiction(model) if complaint else None
        if note is None:
            break
        notes.append(note)
    if search.missing:
        raise GraphError(_ask(list(search.missing), complaint))
    given.require_used()
    folder.take_back(model.graph)
    return model, tuple(notes)


def _values(graph: Any) -> Iterator[Any]:
    """Yield all declarations, also those of inner graphs."""
    yield from graph.input
    yield from graph.value_info
    yield from graph.output
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from _values(inner)


def _names(graph: Any) -> frozenset[str]:
    types = (tensor_type(value.type) for value in _values(graph))
    named = {dim.dim_param for one in types if one is not None for dim in one.shape.dim}
    return frozenset(named - _NAMELESS)


@dataclass
class _Given:
    """Dimensions that the user gives."""

    dims: Mapping[str, int]
    named: frozenset[str]
    used: set[str] = field(default_factory=set)

    def apply(self, graph: Any, *, ranks: bool = False) -> bool:
        """Write them into all declarations; return whether that changed anything.

        With `ranks`, the axes that are given of a tensor of unknown rank are all that it has.
        """
        changed = False
        for value in _values(graph):
            declared = tensor_type(value.type)
            if declared is None:
                continue
            if ranks and not declared.HasField("shape"):
                while f"{value.name}:{len(declared.shape.dim)}" in self.dims:
                    declared.shape.dim.add()
            for axis, dim in enumerate(declared.shape.dim):
                name = dim.dim_param
                key = name if name in self.dims else f"{value.name}:{axis}"
                if key not in self.dims:
                    continue
                self.used.add(key)
                if not dim.HasField("dim_value"):
                    dim.dim_value = self.dims[key]
                    changed = True
                elif dim.dim_value != self.dims[key]:
                    raise MemplanError(
                        f"axis {axis} of {quoted(value.name)} has the size {dim.dim_value}, it "
                        f"cannot be given as {self.dims[key]}"
                    )
        return changed

    def require_used(self) -> None:
        for name in self.dims:
            if name not in self.used:
                there = ", ".join(quoted(one) for one in sorted(self.named)) or "none by name"
                raise MemplanError(
                    f"the model has no dimension {quoted(name)} to give a value; it has {there}"
                )


def _forget_negative(graph: Any) -> None:
    """Open the sizes below zero, which some exporters write where they do not know better."""
    for value in _values(graph):
        declared = tensor_type(value.type)
        for dim in declared.shape.dim if declared is not None else ():
            if dim.dim_value < 0:
                dim.ClearField("dim_value")


def _infer(model: Any) -> tuple[Any, str]:
    """Infer shapes; also return what the library complains of, if it does."""
    shape_inference = require("onnx.shape_inference", extra="onnx")
    try:
        return shape_inference.infer_shapes(model, strict_mode=True, data_prop=True), ""
    except Exception as error:  # the native library raises types of its own, and bare ones
        complaint = str(error)
    try:
        return shape_inference.infer_shapes(model, data_prop=True), complaint
    except Exception as error:
        reason = textwrap.shorten(str(error), _SHOWN)
        raise GraphError(f"its shapes contradict each other: {reason}") from None


def _spread(graph: Any, outside: Mapping[str, Any]) -> bool:
    """Let the state of loops keep its shape; the library takes it for one that may change.

    Returns whether that changed anything.
    """
    types = {**outside, **types_of(graph)}
    for name, (element, shape) in initializers(graph).items():
        types[name] = _declared(element, shape)
    changed = False
    for node in graph.node:
        for _, inner in subgraphs(node):
            if node.op_type == "Loop":
                pairs = zip(node.input[2:], inner.input[2:], strict=False)
                for name, value in pairs:
                    if is_known(types.get(name)) and not is_known(value.type):
                        value.type.CopyFrom(types[name])
                        changed = True
                changed |= _hand_over(graph, node, inner, types)
            changed |= _spread(inner, types)
    return changed


def _hand_over(graph: Any, node: Any, body: Any, types: dict[str, Any]) -> bool:
    """Give the results of a loop the shape of its state, if a round leaves that as it is."""
    changed = False
    states = zip(node.output, body.input[2:], body.output[1:], strict=False)
    for name, before, after in states:
        same = is_known(before.type) and before.type == after.type
        if name and same and not is_known(types.get(name)):
            declared = next((v for v in (*graph.output, *graph.value_info) if v.name == name), None)
            if declared is None:
                declared = graph.value_info.add(name=name)
            declared.type.CopyFrom(after.type)
            types[name] = declared.type
            changed = True
    return changed


def _declared(element: int, shape: tuple[int, ...]) -> Any:
    return require("onnx.helper", extra="onnx").make_tensor_type_proto(element, shape)


@dataclass
class _Search:
    """Finds what is to be asked for: values that are unknown though all they come from is known."""

    named: frozenset[str]
    # (name of the dimension, or empty where not even the rank is known; where it is)
    missing: dict[tuple[str, str], None] = field(default_factory=dict)
    # Ifs of which one branch alone is known: (its graph, its position, that branch, the other)
    halves: list[tuple[Any, int, str, str]] = field(default_factory=list)

    def run(self, graph: Any, outside: Mapping[str, bool]) -> None:
        types = types_of(graph)
        known = {**outside, **dict.fromkeys(initializers(graph), True)}
        for value in graph.input:
            if value.name not in known:
                known[value.name] = is_known(value.type)
                if not known[value.name]:
                    self._ask_for(value.name, value.type, "")
        for at, node in enumerate(graph.node):
            settled = all(known.get(name, False) for name in node.input if name)
            inside = self._branches(graph, at, known)
            for name in filter(None, node.output):
                # What comes from an unknown shape is unknown: its value may be a shape again.
                known[name] = settled and inside and is_known(types.get(name))
                if settled and inside and not known[name]:
                    maker = f"operator {quoted(node.name or node.op_type)} ({node.op_type})"
                    self._ask_for(name, types.get(name), maker)

    def _branches(self, graph: Any, at: int, known: Mapping[str, bool]) -> bool:
        """Search the sub-graphs of a node; return whether everything in them is known."""
        complete: list[str] = []
        lacking: list[str] = []
        for attribute, inner in subgraphs(graph.node[at]):
            before = len(self.missing)
            self.run(inner, known)
            (lacking if len(self.missing) > before else complete).append(attribute)
        if graph.node[at].op_type == "If" and len(complete) == len(lacking) == 1:
            self.halves.append((graph, at, complete[0], lacking[0]))
        return not lacking

    def _ask_for(self, name: str, declared: Any | None, maker: str) -> None:
        one = tensor_type(declared) if declared is not None else None
        if one is None or one.elem_type == 0 or not one.HasField("shape"):
            where = f"tensor {quoted(name)}" + (f", which {maker} makes," if maker else "")
            self.missing["", where] = None
            return
        for axis, dim in enumerate(one.shape.dim):
            if not dim.HasField("dim_value"):
                key = dim.dim_param if dim.dim_param in self.named else f"{name}:{axis}"
                self.missing[key, f"axis {axis} of {quoted(name)}"] = None

    def drop_contradiction(self, model: Any) -> Note | None:
        """Leave out the branch of an If that cannot run with these sizes; return a note on it.

        A model may have branches for inputs of different sizes: of them one fits.
        """
        for graph, at, complete, lacking in self.halves:
            node = graph.node[at]
            complaints = [_complaint(model, node, branch) for branch in (complete, lacking)]
            if complaints[1] in ("", complaints[0]):
                continue  # what is wrong is not in the branch
            open_branches(graph, {at: dict(subgraphs(node))[complete]})
            return Note(
                Code.BRANCH_DROPPED,
                f"operator {quoted(node.name or node.op_type)} (If) is planned without its "
                f"{lacking}, whose shapes contradict the sizes given",
                tuple(filter(None, node.output)),
            )
        return None


def _complaint(model: Any, node: Any, branch: str) -> str:
    """Return what the library would complain of if an If had this branch alone."""
    branches = dict(subgraphs(node))
    kept = {name: graph.SerializeToString() for name, graph in branches.items()}
    for graph in branches.values():
        graph.ParseFromString(kept[branch])
    _, complaint = _infer(model)
    for name, graph in branches.items():
        graph.ParseFromString(kept[name])
    return complaint


def _ask(missing: list[tuple[str, str]], complaint: str) -> str:
    """Return the one sentence about all that is missing."""
    because = f" ({textwrap.shorten(complaint, _SHOWN)})" if complaint else ""
    names = {_plain(name): where for name, where in reversed(missing) if name}
    if not names:
        return (
            f"nothing says what shape {missing[0][1]} has{because}; write it into the file, with "
            "onnx.shape_inference or onnxruntime.tools.symbolic_shape_infer"
        )
    listed = ", ".join(f"{name} ({names[name]})" for name in reversed(names))
    first = next(reversed(names))
    return (
        f"the file leaves sizes open: {listed}; give each a value, as in --dim {first}=8{because}"
    )


def _plain(name: str) -> str:
    """Return a name as it can be given again, on one line."""
    return name if name.isprintable() else quoted(name)
