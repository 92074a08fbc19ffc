"""TFLite models (LiteRT), planned as TensorFlow Lite Micro runs them.

Reading them takes no library. A file goes through these modules from top to bottom:

    flatbuffer    checks every offset of the file
    model         its sub-graphs, tensors and operators; what is known of each type of operators is
                  a row of `memplan.runtimes.tflm.operators`
    sizes         another batch, and whether the stored sizes fit the operators (shapes: the rules)
    graph         makes the graph, by means of
      kernels       what the kernels of TFLM may overwrite, and which scratch they ask for
      boards        which scratch they ask for on a board, by extensions.boards
      pictures      which rows of its inputs an operator needs
    sizes_data    notes sizes that only the kernels know
    refusals      notes what TFLM has no kernel for
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memplan.base.errors import FormatError, ProblemError, listed
from memplan.base.files import of_file
from memplan.base.notes import Code, Note
from memplan.programs.graph import Graph
from memplan.programs.sources.loaded import Loaded, of_graph
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm.read.boards import put_on_board
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.graph import graph_of as _graph_of
from memplan.runtimes.tflm.read.model import IDENTIFIER, Model, load, parse
from memplan.runtimes.tflm.read.refusals import list_refusals
from memplan.runtimes.tflm.read.sizes import check_shapes, note_guesses, resize
from memplan.runtimes.tflm.read.sizes_data import note_sizes

__all__ = ["graph_of", "matches", "read", "read_model"]


def matches(head: bytes, path: Path) -> bool:
    """Whether this is the beginning of a TFLite model."""
    return head[4:8] == IDENTIFIER


def read(path: Path, options: Options) -> Loaded:
    """Return the problem of a `.tflite` model, with every sub-graph that it can enter.

    Offsets in its `OfflineMemoryAllocation` become pins; `options.dims` may give `batch`, the one
    dimension that a file may leave open.
    """
    return read_model(load(path), path, options)


def read_model(stored: Model, path: Path, options: Options) -> Loaded:
    """Return the problem of a model that is parsed; see `read`, also for what it raises."""
    model = resize(stored, options.dims)
    notes = note_guesses(stored, model) if options.dims else check_shapes(model)
    model, unknown = put_on_board(model, options.board)
    if unknown:
        text = f"the scratch of {listed(unknown, quote=False)} on {options.board} is not known"
        notes = (*notes, Note(Code.SCRATCH_UNKNOWN, f"{text}, and not planned"))
    if not options.pins:
        model = replace(model, offsets=())
    try:
        with of_file(path):
            loaded = of_graph(
                _graph_of(model),
                include=options.include,
                in_place=options.in_place,
                notes=(*_notes(model), *notes),
            )
    except ProblemError as error:  # the offsets in the file contradict each other
        raise FormatError(str(path), str(error)) from None
    return replace(loaded, tensors=model.first[-1])  # without copies and scratch


def graph_of(data: bytes, name: str = "model") -> Graph:
    """Return the graph of a model in memory."""
    return _graph_of(parse(data, name))


def _notes(model: Model) -> tuple[Note, ...]:
    notes = []
    program = model.subgraphs[0]
    given = [program.tensors[index] for index in program.inputs if index >= 0]
    open = tuple(tensor.name for tensor in given if tensor.open_axes)
    if open:
        several = any(len(tensor.open_axes) > 1 for tensor in model.tensors())
        other = "convert the model with fixed shapes" if several else "use --dim batch=N"
        text = (
            "open dimensions have the size that is stored in the file, as in TFLM: for another "
            f"size, {other}"
        )
        notes.append(Note(Code.DIM_ASSUMED, text, open))
    unpacked = sum(len(operators) for operators in find_folded(model).values())
    if unpacked:
        text = (
            f"{unpacked} operators only unpack float16 or sparse weights and are not planned: "
            "TFLM needs them stored as float32, which memplan plan does"
        )
        notes.append(Note(Code.WEIGHTS_UNPACKED, text))
    notes += note_sizes(model)
    refused, results = list_refusals(model)
    if refused:
        text = f"TensorFlow Lite Micro refuses the model: it has {listed(refused, quote=False)}"
        notes.append(Note(Code.RUNTIME_REFUSES, text, tuple(results)))
    return tuple(notes)
