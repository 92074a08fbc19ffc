"""Reads PyTorch programs: `torch.export`, from a `.pt2` file or in memory, and training steps.

Files are read without torch, and nothing in them is run. Programs in memory are traced once more
with fake tensors, which shows which tensors share a storage. The modules, in the order of the work:

    archive       unpacks the JSON of a file
    serialized    makes an `Exported` of it (fields: checks every field)
    memory        makes an `Exported` of an `ExportedProgram` (scope: the run with fake tensors)
    training      traces a training step as an `ExportedProgram`
    program       the `Exported` itself (values: its tensors)
    sizes         values of symbolic sizes (guards: the conditions under which a program holds)
    autocast      adds the casts that autocast makes
    builder       makes the graph, by means of
      aten          which operators make views, write in place, or need scratch
      pictures      which rows of its inputs an operator needs
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError, listed
from memplan.base.files import of_file
from memplan.base.notes import Code, Note
from memplan.programs.graph import Graph
from memplan.programs.sources.loaded import Loaded, of_graph
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.read import aten
from memplan.runtimes.torch.read.archive import list_models, read_model
from memplan.runtimes.torch.read.autocast import with_casts
from memplan.runtimes.torch.read.builder import graph_with_indices, shorten_type
from memplan.runtimes.torch.read.memory import program_in_memory
from memplan.runtimes.torch.read.program import Exported, Node
from memplan.runtimes.torch.read.serialized import program_of

__all__ = [
    "graph_of",
    "load",
    "matches",
    "open_graphs",
    "program_in_file",
    "program_in_memory",
    "read",
    "training_graph",
]

_ZIP = b"PK\x03\x04"


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file is an archive of `torch.export.save`, perhaps a damaged one."""
    if not head.startswith(_ZIP):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:  # the directory is damaged: look at the first name instead
        return path.suffix == ".pt2" or b"data/weights/" in head or b"serialized_" in head
    return bool(list_models(names)) or any("archive_format" in name for name in names)


def read(path: Path, options: Options) -> Loaded:
    """Read an exported program from a file, without torch; all symbolic dimensions need values."""
    with _explain_errors(path):
        return _load_program(_program(path, options), options)


def program_in_file(path: Path, options: Options) -> Exported:
    """Return the program of a file, without torch; raises as `read`."""
    with _explain_errors(path):
        return _program(path, options)


def _program(path: Path, options: Options) -> Exported:
    model, places = read_model(path, options.limit_factor)
    return program_of(model, path.stem, options.dims, places)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Turn errors into a `FormatError` of one sentence that names the file."""
    try:
        with of_file(path):
            yield
    except RecursionError:
        raise FormatError(str(path), "its sub-graphs are nested too deeply") from None


def load(program: Any, options: Options | None = None) -> Loaded:
    """Return the problem of a `torch.export.ExportedProgram` in memory.

    Raises
    ------
    GraphError
        If a symbolic dimension has no value.
    MemplanError
        If torch is not installed.
    """
    options = options or Options()
    return _load_program(program_in_memory(program, options.dims), options)


def graph_of(program: Any, dims: Mapping[str, int] | None = None) -> Graph:
    """Return the graph of a `torch.export.ExportedProgram` in memory.

    Parameters
    ----------
    program
        What `torch.export.export` returned.
    dims
        Values of symbolic dimensions by the program's names for them ("s77"); by default the
        largest that they were exported for.

    Raises
    ------
    GraphError
        If a symbolic dimension has no value and no upper limit.
    """
    return graph_with_indices(with_casts(program_in_memory(program, dims or {})))[0]


def open_graphs(program: Any, names: Collection[str]) -> Callable[[Mapping[str, int]], Graph]:
    """Return a function that makes the graph of a program from values of its dimensions.

    The sizes of the program are expressions of these, so the values may be numbers of any kind,
    such as `memplan.problem.many.Many`, and the names do not matter here. The graph does not say
    which rows operators need.
    """
    if not isinstance(program, Path):
        return lambda dims: _plain_graph(program_in_memory(program, dims))
    with _explain_errors(program):
        model, places = read_model(program, 1)
    return lambda dims: _plain_graph(program_of(model, program.stem, dims, places))


def _plain_graph(program: Exported) -> Graph:
    return graph_with_indices(with_casts(program), rows=False)[0]


def training_graph(module: Any, args: tuple[Any, ...], loss: Any = None) -> Graph:
    """Return the graph of a training step, forward and backward in one; see `training`."""
    from memplan.runtimes.torch.read.training import training_program

    return graph_of(training_program(module, args, loss))


def _load_program(program: Exported, options: Options) -> Loaded:
    program = with_casts(program)
    graph, _ = graph_with_indices(program)  # checks every name
    notes = list(program.notes)
    users = [node for node in program.walk() if _has_scratch(program, node)]
    if users:
        kernels = sorted({shorten_type(node.target) for node in users})
        text = (
            f"scratch memory inside {listed(kernels, quote=False)} counts as zero: reserve more "
            "memory for it (--measure shows how much)"
        )
        made = (value.name for node in users for value in node.outputs)
        notes.append(Note(Code.SCRATCH_UNKNOWN, text, tuple(dict.fromkeys(made))))
    return of_graph(graph, include=options.include, in_place=options.in_place, notes=tuple(notes))


def _has_scratch(program: Exported, node: Node) -> bool:
    return not node.bodies and aten.has_scratch(
        node.target, [program.values[n] for n in node.inputs]
    )
