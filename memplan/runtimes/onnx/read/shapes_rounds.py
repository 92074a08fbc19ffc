"""Finds the shapes of all tensors of a model, or the dimensions that a user has to give."""

from __future__ import annotations

import re
import textwrap
from collections import ChainMap
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

from memplan.base.errors import GraphError, listed, quoted
from memplan.base.extras import require
from memplan.base.notes import Code, Note
from memplan.programs.sources._limits import SHAPE_SIZES, check_growth
from memplan.runtimes.onnx.read.faults_search import FaultSearch
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, infer_shapes
from memplan.runtimes.onnx.read.protos import (
    copy,
    describe_node,
    has_subgraphs,
    is_known,
    opsets_of,
    row_of,
    subgraphs,
    tensor_type,
    types_in,
    walk_nodes,
)
from memplan.runtimes.onnx.read.shapes_constants import Folder
from memplan.runtimes.onnx.read.shapes_elements import Elements
from memplan.runtimes.onnx.read.shapes_follow import follow
from memplan.runtimes.onnx.read.shapes_growth import most_sizes
from memplan.runtimes.onnx.read.shapes_loops import Loops
from memplan.runtimes.onnx.read.shapes_runtime import DOMAINS
from memplan.runtimes.onnx.read.shapes_windows import amend
from memplan.runtimes.onnx.read.sizes_declared import Evidence, make_note

__all__ = ["declared_shapes", "with_names", "with_shapes"]

# More rounds of inference than these find nothing more: each round carries a given dimension, or
# the state of a loop, one level down.
_ROUNDS = 32
_HIDDEN = "declared:"  # begins the type of an operator that the library must not infer
_LONGEST_NAME = 60  # of a dimension that a sentence repeats without quotes
_NAMES = 300  # characters of the dimensions that a sentence asks for, without where they are
_SHOWN = 70  # characters of the library's error on a model
# The library writes these before its sentences.
_NOISE = re.compile(r"\[\w+\] |Inference error\(s\): ")


def with_shapes(
    model: Any, dims: Mapping[str, int], limit_factor: int = 1
) -> tuple[Any, tuple[Note, ...]]:
    """Return the model with the shape of every tensor, and notes on what was assumed.

    Shapes are inferred from those of the inputs; a declared shape counts where that fails. The
    `ModelProto` is in order and without functions of its own; it is changed. `dims` has values of
    symbolic dimensions by their name, or of nameless ones by "TENSOR:AXIS". All shapes together may
    have `limit_factor` times the usual number of sizes.
    """
    opsets = _import_domains(model)
    _write_defaults(model.graph)
    _hide_makers(model.graph, dims)
    evidence = Evidence.take(model, dims)
    folder, elements, loops = Folder(), Elements(opsets), Loops(opsets)
    notes: list[Note] = []
    folded = False  # whether the graph was changed after all shapes were last removed
    for _ in range(_ROUNDS):
        model, complaint = _infer(model, limit_factor)
        if "existing elem type" in complaint and evidence.forget_elements(model.graph):
            continue
        changed = _spread(model.graph, ChainMap(), opsets)
        if folder.fold(model.graph):
            folded = changed = True
        if amend(model.graph):
            evidence.forget_inferred(model.graph)
            changed = True
        if changed or loops.settle(model.graph) or elements.settle(model.graph):
            continue
        search = FaultSearch.through(model)
        dropped = search.drop_contradictions()
        if dropped:
            notes += dropped
        elif search.faults or not _complete(evidence, model.graph, search):
            if not folded:
                break
            evidence.forget_inferred(model.graph)
            folded = False
    else:
        search = FaultSearch.through(model)
    if search.faults:
        raise GraphError(search.faults[0])
    overridden = evidence.find_overridden(model.graph)
    missing = dict.fromkeys(ask for one in search.open for ask in evidence.ask(one))
    missing |= dict.fromkeys(evidence.find_doubtful(overridden))
    if missing:
        raise GraphError(_ask(list(missing), complaint))
    # The existing shape was given by the user, or it was declared and believed.
    if "existing shape differ" in complaint:
        raise GraphError(_explain_contradiction(complaint))
    evidence.require_used(model.graph)
    folder.take_back(model.graph)
    _show_makers(model.graph)
    if overridden:
        notes.append(make_note(overridden))
    other = evidence.find_other_elements(model.graph)
    if other:
        text = "declared element types that contradict the operators are ignored: "
        notes.append(Note(Code.SHAPE_OVERRIDDEN, text + listed(other), tuple(other)))
    notes += [*evidence.make_notes(), *elements.notes(), *loops.notes(model.graph)]
    return model, tuple(notes)


def with_names(model: Any, names: Collection[str]) -> Any:
    """Return the model with shapes in which sizes may be names; it is changed.

    The `ModelProto` is in order and without functions of its own; `names` are of dimensions, or
    "TENSOR:AXIS" for nameless ones of inputs. A `LibraryError` or a `CrashError` says that the
    library finds no shapes.
    """
    _import_domains(model)
    _write_defaults(model.graph)
    Evidence.take(model, {})
    for value in model.graph.input:
        declared = tensor_type(value.type)
        for axis, dim in enumerate(() if declared is None else declared.shape.dim):
            place = f"{value.name}:{axis}"
            if place in names and not dim.HasField("dim_value"):
                dim.dim_param = place
    return infer_shapes(model, strict=False, follow_data=True)


def _complete(evidence: Evidence, graph: Any, search: FaultSearch) -> bool:
    """Complete the open shapes as far as possible; return whether that changed anything."""
    evidence.read_names(graph, search.open)
    changed = sum(evidence.fill(one) for one in search.open) > 0
    if changed:
        evidence.forget_names(graph)
    return changed


def _import_domains(model: Any) -> dict[str, int]:
    """Add what onnxruntime takes for granted, the version of its domains; return all versions."""
    opsets = opsets_of(model)
    for domain in sorted(DOMAINS - opsets.keys()):
        model.opset_import.add(domain=domain, version=1)
        opsets[domain] = 1
    return opsets


def _write_defaults(graph: Any) -> None:
    """Write the defaults that the library takes for others into the operators.

    It infers an STFT without `onesided` as if both sides were made; ONNX says that one is.
    """
    make_attribute = require("onnx.helper", extra="onnx").make_attribute
    for node in walk_nodes(graph):
        if node.op_type == "STFT" and all(one.name != "onesided" for one in node.attribute):
            node.attribute.append(make_attribute("onesided", 1))


def _hide_makers(graph: Any, dims: Mapping[str, int]) -> None:
    """Make operators foreign whose results the user gives the sizes that the file declares.

    Both are right then, and the library may be wrong: it does not infer what it does not know.
    """
    declared = declared_shapes(graph)
    for node in graph.node:
        made = [name for name in node.output if name]
        if has_subgraphs(node) or not all(declared.get(name) for name in made):
            continue
        sizes = {f"{name}:{at}": n for name in made for at, n in enumerate(declared[name])}
        if made and all(dims.get(place) == size for place, size in sizes.items()):
            node.op_type = f"{_HIDDEN}{node.domain}:{node.op_type}"
            node.domain = "com.microsoft"


def _show_makers(graph: Any) -> None:
    """Give operators their types again."""
    for node in graph.node:
        if node.op_type.startswith(_HIDDEN):
            _, node.domain, node.op_type = node.op_type.split(":")


def declared_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a graph declares for results, as far as they have all sizes."""
    types = ((one.name, tensor_type(one.type)) for one in (*graph.value_info, *graph.output))
    return {
        name: tuple(dim.dim_value for dim in one.shape.dim)
        for name, one in types
        if one is not None and all(dim.HasField("dim_value") for dim in one.shape.dim)
    }


def _infer(model: Any, limit_factor: int) -> tuple[Any, str]:
    """Infer shapes; also return the error of the library, or an empty text."""
    follow_data = most_sizes(model.graph, follow_data=True) <= SHAPE_SIZES * limit_factor
    if not follow_data:
        sizes = most_sizes(model.graph, follow_data=False)
        check_growth("all shapes together", sizes, SHAPE_SIZES, limit_factor, "sizes")
    try:
        return infer_shapes(model, strict=True, follow_data=follow_data), ""
    except LibraryError as error:
        complaint = str(error)
    except CrashError as error:
        raise GraphError(_explain_crash(model, follow_data, error)) from None
    try:
        return infer_shapes(model, strict=False, follow_data=follow_data), complaint
    except LibraryError as error:
        raise GraphError(_explain_contradiction(str(error))) from None
    except CrashError as error:
        raise GraphError(_explain_crash(model, follow_data, error)) from None


def _explain_crash(model: Any, follow_data: bool, error: CrashError) -> str:
    """Return at which operator of the model the library fails, and what is wrong with the model."""
    if error.is_slow:
        return f"the library onnx {error} with its shapes"
    part, count = None, len(model.graph.node)
    fine, fails = 0, count
    while fails - fine > 1:
        middle = (fine + fails) // 2
        found = _infer_part(model, middle, follow_data)
        part, fine, fails = (part, fine, middle) if found is None else (found, middle, fails)
    part = _infer_part(model, 0, follow_data) if part is None else part
    for search in () if part is None else [FaultSearch.through(part)]:
        if search.faults:
            return search.faults[0]
    where = describe_node(model.graph.node[fine]) if count else "the inputs"
    return f"the library onnx {error} as it infers the shapes of {where}: its inputs do not fit it"


def _infer_part(model: Any, count: int, follow_data: bool) -> Any | None:
    """Return a model of the first operators, with shapes; `None` if the library fails."""
    part = copy(model)
    del part.graph.node[count:]
    del part.graph.output[:]
    try:
        return infer_shapes(part, strict=False, follow_data=follow_data)
    except (CrashError, LibraryError):
        return None


def _explain_contradiction(complaint: str) -> str:
    return f"its shapes contradict each other: {_shorten(complaint)}"


def _shorten(complaint: str) -> str:
    """Return the error of the library, cut to fit into a sentence."""
    printable = "".join(c if c.isprintable() else " " for c in _NOISE.sub("", complaint))
    return textwrap.shorten(printable, _SHOWN, placeholder=" ...")


def _spread(graph: Any, outside: ChainMap[str, Any], opsets: Mapping[str, int]) -> bool:
    """Give shapes to values that the library leaves open: states of loops, and some results.

    The library assumes that the state of a loop may change its shape. Returns whether any shape
    was set.
    """
    types = types_in(graph, outside)
    changed = follow(graph, types, opsets)
    for node in graph.node:
        if row_of(node).keeps_shape:
            changed |= _copy_type(graph, types, node.output[0], types.get(node.input[0]))
        for _, inner in subgraphs(node):
            if node.op_type == "Loop":
                pairs = zip(node.input[2:], inner.input[2:], strict=False)
                for name, value in pairs:
                    if is_known(types.get(name)) and not is_known(value.type):
                        value.type.CopyFrom(types[name])
                        changed = True
                states = zip(node.output, inner.input[2:], inner.output[1:], strict=False)
                for name, before, after in states:
                    if name and before.type == after.type:
                        changed |= _copy_type(graph, types, name, after.type)
            changed |= _spread(inner, types, opsets)
    return changed


def _copy_type(graph: Any, types: MutableMapping[str, Any], name: str, known: Any | None) -> bool:
    """Give a result without a known type this type, if it is known; return whether it did so."""
    if not is_known(known) or is_known(types.get(name)):
        return False
    declared = next((v for v in (*graph.output, *graph.value_info) if v.name == name), None)
    if declared is None:
        declared = graph.value_info.add(name=name)
    declared.type.CopyFrom(known)
    types[name] = declared.type
    return True


def _ask(missing: list[tuple[str, str]], complaint: str) -> str:
    """Return the one sentence about all that is missing."""
    because = f" ({_shorten(complaint)})" if complaint else ""
    names = {_format_name(name): where for name, where in reversed(missing) if name}
    if not names:
        return missing[0][1] + because
    every = _list_dims([(name, names[name]) for name in reversed(names)])
    first = next(reversed(names))
    return f"the file leaves sizes open: {every}; give each a value, like --dim {first}=8{because}"


def _list_dims(dims: list[tuple[str, str]]) -> str:
    """List dimensions and where they are; without the latter, if all of them fit only so."""
    text = listed([f"{name} ({where})" for name, where in dims], quote=False)
    names = ", ".join(name for name, _ in dims)
    is_whole = all(f"{name} ({where})" in text for name, where in dims)
    return text if is_whole or len(names) > _NAMES else names


def _format_name(name: str) -> str:
    """Return a name as it can be given again, on one line."""
    return name if name.isprintable() and len(name) <= _LONGEST_NAME else quoted(name)
