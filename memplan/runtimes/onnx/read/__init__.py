"""ONNX models, planned for an inference that runs the operators in the order of the file.

A file goes through these modules from top to bottom:

    read_weights         the file without its weights
    read_names           checks that each name is made once, puts operators behind what they read
    read_functions       inlines the functions of the model
    read_checks          refuses attributes and constants that are not what ONNX says
    shapes_defaults      finds sizes without the defaults of inputs, which a caller may replace
    shapes_rounds        calls the library's inference until all shapes are known, by means of
      shapes_growth        a bound on the sizes that the library would compute
      library              the library's compiled code, in a process of its own (library_child)
      shapes_windows       attributes with which the library infers what runtimes make
      shapes_constants     computes what is known before the run (shapes_arithmetic: with NumPy)
      shapes_elements      element types of what operators of other domains make
      shapes_loops         states of loops that change their shape
      shapes_follow        goes on behind operators of onnxruntime (shapes_runtime: their rules)
      sizes_declared       the sizes that the file declares and the user gives, or has to give
      sizes_expressions    sizes that are written as expressions
      sizes_formulas       sizes as formulas of the dimensions, for many of these at once
      sizes_lineage        which inputs and sizes a tensor depends on
      sizes_data           what is known of sizes that depend on data
      faults_search        finds what is unknown, and operators that cannot run (faults_rules)
    graph_build          makes the graph, by means of
      graph_pictures       which rows of its inputs an operator needs
      graph_origin         the line and the module of an operator
    graph_order          the order in which onnxruntime runs operators
    fused                a model as onnxruntime runs it, after its optimizations (fused_child)

`protos` has what all of them need to read messages. What is known of each operator is a row of
`memplan.runtimes.onnx.operators`, which names the rules of these modules.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError, GraphError, ProblemError
from memplan.base.extras import require
from memplan.base.files import of_file, reading
from memplan.base.notes import Code, Note
from memplan.programs.graph import Graph
from memplan.programs.sources.loaded import Loaded, of_graph
from memplan.programs.sources.options import Options
from memplan.programs.sources.wire import WireError
from memplan.runtimes.onnx.read.fused import fuse
from memplan.runtimes.onnx.read.graph_build import build
from memplan.runtimes.onnx.read.graph_order import in_runtime_order
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, start
from memplan.runtimes.onnx.read.protos import copy
from memplan.runtimes.onnx.read.read_checks import check_values
from memplan.runtimes.onnx.read.read_functions import inline_calls
from memplan.runtimes.onnx.read.read_names import (
    check_order,
    check_texts,
    drop_masks,
    name_apart,
    sort_operators,
)
from memplan.runtimes.onnx.read.read_weights import looks_like_model, strip_weights
from memplan.runtimes.onnx.read.shapes_defaults import find_defaults, find_sizes
from memplan.runtimes.onnx.read.shapes_rounds import declared_shapes, with_names
from memplan.runtimes.onnx.read.sizes_formulas import Formulas

__all__ = [
    "graph_of",
    "in_runtime_order",
    "matches",
    "needs_library",
    "open_graphs",
    "read",
    "read_bytes",
    "read_declared",
]


def matches(head: bytes, path: Path) -> bool:
    """Whether a file begins as an ONNX model does."""
    return looks_like_model(head)


def needs_library(path: Path) -> bool:
    """Whether the extra has to be installed to read this file."""
    return True


def read(path: Path, options: Options) -> Loaded:
    """Read a model; its weights, in the file or in files of their own, are never loaded."""
    if options.fused:
        return read_bytes(fuse(path).data, path, options)
    return _load(_read_bare(path), path, options)


def _read_bare(path: Path) -> bytes:
    """Return the bytes of a file without its weights; raises as `read`."""
    start()
    require("onnx", extra="onnx")
    with reading(path), path.open("rb") as file:
        if path.stat().st_size == 0:
            raise FormatError(str(path), "the file is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return strip_weights(data)
            except WireError as error:
                raise FormatError(str(path), f"the file {error}") from None


def read_declared(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a model declares for results of its operators, with all sizes."""
    return declared_shapes(_parse(strip_weights(path.read_bytes())).graph)


def read_bytes(data: bytes, path: Path, options: Options) -> Loaded:
    """Read a model from the bytes of a file; raises as `read`, with the path in the sentence."""
    return _load(strip_weights(data), path, options)


def _load(serialized: bytes, path: Path, options: Options) -> Loaded:
    with of_file(path):
        model = _parse(serialized)
        if not model.graph.name:
            model.graph.name = path.stem.encode(errors="replace").decode()
        graph, notes = _convert(model, options.dims, options.limit_factor)
        # What the runtime fused is in its order: it would take another one if it read the file.
        ordered = graph if options.fused else in_runtime_order(graph)
        try:
            loaded = _lay_out(graph, options, notes)
            other = (
                loaded
                if ordered.operators == graph.operators
                else _lay_out(ordered, options, notes)
            )
        except ProblemError as error:
            raise FormatError(str(path), str(error)) from None
    if options.runtime_order:
        return other
    here, there = loaded.problem.max_load, other.problem.max_load
    return loaded if here == there else replace(loaded, notes=(*notes, _explain_order(here, there)))


def _lay_out(graph: Graph, options: Options, notes: tuple[Note, ...]) -> Loaded:
    return of_graph(graph, include=options.include, in_place=options.in_place, notes=notes)


def _explain_order(here: int, there: int) -> Note:
    text = (
        f"onnxruntime runs operators in an order of its own with a load of {there} bytes; {here} "
        "are those of the order of the file, which it keeps with ExecutionOrder.PRIORITY_BASED "
        "(--read runtime-order plans for its own order; its optimizations change operators, too)"
    )
    return Note(Code.ORDER_OF_RUNTIME, text)


def graph_of(model: Any, dims: Mapping[str, int] | None = None) -> Graph:
    """Return the graph of a `ModelProto`, which stays as it is.

    Parameters
    ----------
    model
        It may be large: weights are left out before anything else is done.
    dims
        Values of symbolic dimensions by their name, or of nameless ones by "TENSOR:AXIS".

    Raises
    ------
    GraphError
        If the model contradicts itself, or dimensions are missing.
    MemplanError
        If the library is missing, or `dims` names a dimension that the model lacks.
    """
    return _convert(_parse(strip_weights(model.SerializeToString())), dims or {})[0]


def _parse(serialized: bytes) -> Any:
    onnx = require("onnx", extra="onnx")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(serialized)
    except Exception as error:  # the class depends on the protobuf library that is installed
        raise GraphError(f"the file is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise GraphError("the file is not an ONNX model: it has no graph")
    return model


def open_graphs(path: Path, names: Collection[str]) -> Callable[[Mapping[str, int]], Graph] | None:
    """Return a function that makes the graph of a model from values of its dimensions.

    The values may be numbers of any kind, such as `memplan.problem.many.Many`; the graph does not
    say which rows operators need. `None` if not all sizes follow from names, or from formulas that
    are known. The dimensions are named as those of `read`.
    """
    with of_file(path):
        model, _ = _put_in_order(_parse(_read_bare(path)), 1)
        given = copy(model.graph)
        if find_defaults(model):
            return None
        try:
            named = with_names(model, names)
            formulas = Formulas(named)
        except (LookupError, LibraryError, CrashError):
            return None
    return lambda dims: build(named, given, formulas.sizes(dims), rows=False)[0]


def _put_in_order(model: Any, limit_factor: int) -> tuple[Any, tuple[Note, ...]]:
    """Check a model, and return it without functions of its own, with notes on its order."""
    check_texts([model.graph, *model.functions])
    notes = sort_operators(model)
    check_order(model.graph)
    if model.functions:
        model = inline_calls(model, limit_factor)
        check_order(model.graph)
    name_apart(model.graph)
    check_values(model)
    drop_masks(model.graph)
    return model, notes


def _convert(
    model: Any, dims: Mapping[str, int], limit_factor: int = 1
) -> tuple[Graph, tuple[Note, ...]]:
    model, sorted_notes = _put_in_order(model, limit_factor)
    # Where onnx's own inference would be wrong, operators are changed for it: which rows they need
    # follows from the operators of the file.
    given = copy(model.graph)
    model, notes = find_sizes(model, dims, limit_factor)
    graph, more = build(model, given)
    return graph, (*sorted_notes, *notes, *more)
