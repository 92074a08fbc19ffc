"""Reads models, traces and dumps as problems; the content of a file decides its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memplan.base.errors import FormatError, MemplanError, listed, quoted, shown
from memplan.base.files import read_bytes, reading
from memplan.base.notes import Code, Note
from memplan.problem import formats
from memplan.programs.graph import Graph, Kind
from memplan.programs.sources.loaded import (
    Failure,
    Figure,
    Label,
    Loaded,
    lay_out_again,
    of_graph,
    of_problem,
)
from memplan.programs.sources.options import Options
from memplan.programs.sources.recognise import is_ours, is_table
from memplan.programs.sources.registry import (
    find_format,
    find_others,
    find_source,
    import_runtime,
    list_sources,
)

if TYPE_CHECKING:
    from memplan.programs.sources.options import Board

__all__ = [
    "Failure",
    "Figure",
    "Label",
    "Loaded",
    "Options",
    "detect",
    "find_extra",
    "lay_out_again",
    "load",
    "of_graph",
    "of_problem",
    "open_graphs",
]

# By option of `Options` that only some formats take: what a refusal says of the others.
_ONLY_SOME_TAKE = {
    "dims": "has no symbolic dimensions, so {} has no meaning",
    "runtime_order": "is not an ONNX model; only their runtime has an order of its own",
    "fused": "is not an ONNX model; only their runtime fuses operators",
    "part": "has one program; only CUDA snapshots have devices, and only XLA dumps allocations, "
    "to choose from",
    "board": "is not a TFLite model; only TFLM's kernels need a board",
}
_HEAD = 4096  # bytes at the beginning of a file from which a source recognises it


def load(
    path: Any,
    *,
    capacity: int | None = None,
    dims: Mapping[str, int] | None = None,
    include: Iterable[str] | None = None,
    in_place: bool = False,
    pins: bool = True,
    limit_factor: int = 1,
    runtime_order: bool = False,
    fused: bool = False,
    part: int | None = None,
    board: str | Board | None = None,
) -> Loaded:
    """Read a file of any supported format as a problem; its name does not matter.

    Parameters
    ----------
    path
        A model, trace or dump, a folder of `--xla_dump_to`, or a problem as CSV or JSON. Also a
        `torch.export.ExportedProgram` in memory.
    capacity
        The capacity in bytes, in place of the one in the file. That of a TFLite model is of the
        planned part of TFLM's arena alone, which a note says: `memplan.plan_model(path,
        capacity=...)` and the command line hold it against the whole arena.
    dims
        Values of symbolic dimensions of a model, by name.
    include
        The kinds of tensors (`programs.graph.Kind`) to plan; by default those that the format's own
        runtime plans.
    in_place
        Whether operators that may do so write over inputs that are not needed any more.
        `memplan.plan_model` finds out whether that makes the plan better.
    pins
        Whether to keep offsets that the file gives.
    limit_factor
        How many times the usual limits (docs/sources.md) a file may expand while it is read.
    runtime_order
        Whether the operators of an ONNX model run in onnxruntime's default order, and not in that
        of the file.
    fused
        Whether an ONNX model is read as onnxruntime runs it here: it fuses operators, and has to
        be installed. Its operators are in the runtime's default order.
    part
        Which device of a CUDA snapshot, or which allocation of an XLA dump; by default the one
        with the most bytes.
    board
        The board on which a TFLite model will run: "cortex-m4", "esp32-s3", or a
        `memplan.programs.sources.options.Board`. The scratch of its kernels is planned then.

    Returns
    -------
    Loaded
        The problem, with what else is in the file. `memplan.solve`, `lower_bound`, `verify`,
        `explain`, `compare`, `inspect` and all functions that draw accept it.

    Raises
    ------
    FormatError
        One sentence, if the file is damaged or its format is not known.
    MemplanError
        If a library that reads it is missing, a dimension has no value, there is no such kind,
        part or board, or `runtime_order`, `fused` or `board` is asked for in another format.
    """
    options = Options(
        dims or {}, _parse_kinds(include), in_place, pins, limit_factor, runtime_order, part, fused
    )
    if board is not None:
        boards = import_runtime("tflite", "read.boards")
        options = replace(options, board=boards.find_board(board))
    if not isinstance(path, (str, os.PathLike)):
        if board is not None:
            raise MemplanError("a program in memory runs on no board; only TFLite models do")
        loaded: Loaded = _load_program(path, options)
        problem = loaded.problem.with_capacity(capacity) if capacity else loaded.problem
        return replace(loaded, problem=problem)
    path = Path(path)
    try:
        name = detect(path)
        source = find_format(name)
        for option, why in _ONLY_SOME_TAKE.items():
            is_asked = getattr(options, option) != getattr(Options(), option)
            if is_asked and option not in source.takes:
                raise MemplanError(f"{path} {why.format(quoted(next(iter(options.dims), '')))}")
        if not source.module:
            problem = formats.load(path, capacity=capacity)
            if not pins:
                problem = problem.with_pins(dict.fromkeys(problem.ids))
            return of_problem(problem, name)
        loaded = import_module(source.module).read(path, options)
    except MemoryError:
        raise FormatError(str(path), "there is not enough memory to read the file") from None
    except RecursionError:
        raise FormatError(str(path), "the file is nested too deeply") from None
    if capacity is None:
        return loaded
    notes = (*loaded.notes, _limit_part(capacity)) if source.has_arena else loaded.notes
    return replace(loaded, problem=loaded.problem.with_capacity(capacity), notes=notes)


def open_graphs(
    program: Any, names: Collection[str]
) -> Callable[[Mapping[str, int]], Graph] | None:
    """Return a function that makes the graph of a program from values of its dimensions.

    The values may be numbers of any kind, such as `memplan.problem.many.Many`: only readers that
    know the sizes as formulas of the dimensions have such a function. Others give `None`.
    """
    if not isinstance(program, (str, os.PathLike)):
        module = find_source("torch") if hasattr(program, "graph_signature") else None
    else:
        module, program = find_source(detect(program)), Path(program)
    make: Any = getattr(module, "open_graphs", None)
    found: Callable[[Mapping[str, int]], Graph] | None = make and make(program, names)
    return found


def _load_program(program: Any, options: Options) -> Loaded:
    """Return the problem of a program in memory."""
    if hasattr(program, "graph_signature"):
        found: Loaded = find_source("torch").load(program, options)
        return found
    if hasattr(program, "state_dict") and hasattr(program, "forward"):
        raise MemplanError(
            f"a module ({type(program).__name__}) has no order of operators yet; write: program = "
            "torch.export.export(module, (example,)); memplan.load(program)"
        )
    raise MemplanError(
        f"memplan.load takes the path of a file or an ExportedProgram, not a "
        f"{type(program).__name__}"
    )


def _limit_part(capacity: int) -> Note:
    """Return the note on a capacity that a reader cannot hold against a whole arena."""
    text = (
        f"the capacity of {capacity} bytes is held against the planned part of the arena only; "
        f"memplan.plan_model(path, capacity={capacity}) holds it against the whole arena"
    )
    return Note(Code.ARENA_UNMEASURED, text)


def _parse_kinds(include: Iterable[str] | None) -> frozenset[Kind] | None:
    if include is None:
        return None
    names = tuple(include)
    for name in names:
        if name not in list(Kind):
            known = ", ".join(Kind)
            raise MemplanError(f"include has {shown(name)}; the kinds of tensors are {known}")
    return frozenset(map(Kind, names))


def detect(path: str | os.PathLike[str]) -> str:
    """Return the format of a file, by its content: the name of a source, "csv" or "json".

    Raises
    ------
    FormatError
        If it cannot be read, is empty, or its format is not known.
    """
    path = Path(path)
    with reading(path):
        head = b"" if path.is_dir() else read_bytes(path, _HEAD)
    if is_table(head):  # the most common file loads no reader of others
        return "csv"
    for name, source in list_sources().items():
        if import_module(source.module).matches(head, path):
            return name
    from memplan.programs.sources import foreign

    if not is_ours(head):
        for name, source in find_others().items():
            if import_module(source.module).matches(head, path):
                return name
    advice = foreign.advise(head, path)
    if advice is not None:
        raise FormatError(str(path), advice)
    if path.is_dir():
        raise FormatError(str(path), _describe_folder(path))
    if not head:
        raise FormatError(str(path), "the file is empty")
    if b"\0" in head:
        *others, onnx = (source.binary for source in list_sources().values() if source.binary)
        *known, last = onnx, *others
        listing = f"{', '.join(known)} and {last}"
        message = f"this is a binary file of an unknown format; memplan reads {listing}"
        raise FormatError(str(path), message)
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    return "json" if formats.is_json(text) else "csv"


def find_extra(path: str | os.PathLike[str]) -> str | None:
    """Return the extra of the package that reads a file, or `None` if it needs none."""
    name = detect(path)
    needs_library = getattr(find_source(name), "needs_library", None)
    return name if needs_library is not None and needs_library(Path(path)) else None


_SUFFIXES = (".onnx", ".tflite", ".pt2", ".xml", ".pickle", ".hlo.pb", ".csv", ".json")
_MOST_ENTRIES = 1000  # of a folder that are looked through


def _describe_folder(path: Path) -> str:
    """Say what a folder that is no dump has, as far as it is a model or a problem."""
    dump = "no files of an XLA dump (--xla_dump_to)" if "xla" in list_sources() else "no dump"
    message = f"this folder has {dump}"
    try:
        entries = sorted(entry.name for entry in islice(path.iterdir(), _MOST_ENTRIES))
    except OSError:
        return message
    if not entries:
        return "this folder is empty"
    found = [name for name in entries if name.lower().endswith(_SUFFIXES)]
    return f"{message}; give one of its files: {listed(found)}" if found else message
