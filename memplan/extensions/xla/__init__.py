"""Reads dumps of XLA (`--xla_dump_to`): a folder, or one file of it.

Protocol buffers (`*.hlo.pb`) are read where there are any, otherwise the reports for people
(`*buffer-assignment.txt`). Memplan plans what XLA plans: the temporary buffers of one program.
XLA's own offsets become hints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memplan.base.errors import FormatError, MemplanError, ProblemError, listed
from memplan.base.files import read_bytes, reading
from memplan.base.notes import Code, Note
from memplan.extensions.xla import proto, text
from memplan.extensions.xla.heap import Heap
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Figure, Loaded
from memplan.programs.sources.options import Options

__all__ = ["matches", "read"]

_PROTO = ".hlo.pb"
_EARLY = ".before_optimizations.hlo.pb"  # has no buffers yet


def matches(head: bytes, path: Path) -> bool:
    """Whether this is a file of a dump, or a folder that has one."""
    try:
        if path.is_dir():
            return any(_is_dump(file) for file in path.iterdir())
        return head.startswith(text.HEAD) or proto.looks_like_proto(head, path.stat().st_size)
    except OSError:
        return False


def needs_library(path: Path) -> bool:
    """Return whether `protobuf` reads a file, or one of a folder; others are text."""
    with reading(path):
        files = filter(_is_dump, path.iterdir()) if path.is_dir() else [path]
        return any(_choose_reader(file) is proto.read_heaps for file in files)


def read(path: Path, options: Options) -> Loaded:
    """Read the program with the largest temporary memory."""
    found = _read_heaps(path)
    if not found:
        raise FormatError(str(path), _explain_nothing(path))
    largest, notes = _choose(path, found, options.part)
    if options.include is not None and options.include != {Kind.INTERMEDIATE}:
        text = "an XLA dump has temporary buffers only; other kinds cannot be included"
        notes.append(Note(Code.KINDS_MISSING, text))
    return _make_loaded(path, largest, tuple(notes))


def _explain_nothing(path: Path) -> str:
    """Say why a dump has nothing to plan, and which file would have it."""
    if path.name.endswith(_EARLY):
        return (
            "this is a program before XLA's optimizations, which has no buffer assignment; give "
            f"the file *after_optimizations*{_PROTO} of the same dump, or the folder"
        )
    if path.is_dir() or _choose_reader(path) is text.read_heaps or proto.has_assignment(path):
        return "this dump has no temporary memory, so there is nothing to plan"
    if path.name.endswith(_PROTO):
        return (
            "this program has no buffer assignment, which XLA writes when it is done; give the "
            f"file *after_optimizations*{_PROTO} of the same dump, or the folder"
        )
    return (
        "this protocol buffer has no buffer assignment of XLA; of a dump, give a file "
        f"*after_optimizations*{_PROTO}; a graph of TensorFlow must be converted to ONNX or TFLite"
    )


def _choose(path: Path, found: list[Heap], asked: int | None) -> tuple[Heap, list[Note]]:
    """Return the allocation of a number, or the largest one, and a note on the others."""
    if asked is not None:
        named = [heap for heap in found if heap.number == asked]
        if len(named) == 1:
            return named[0], []
        numbers = listed([f"{heap.number} of {heap.module}" for heap in found], quote=False)
        if named:
            raise MemplanError(
                f"{path}: {len(named)} programs have a temporary allocation {asked}; give the "
                "file of one program"
            )
        raise MemplanError(f"{path}: there is no temporary allocation {asked}; there is {numbers}")
    largest = max(found, key=lambda heap: heap.bytes)
    if len(found) == 1:
        return largest, []
    inside = [heap for heap in found if heap.module == largest.module]
    text = (
        f"only {largest.module} is read, the largest of {len(found)} temporary allocations "
        f"(number {largest.number}, {largest.bytes:,} bytes)"
    )
    if len(inside) > 1:
        others = [f"{h.number} ({h.bytes:,} bytes)" for h in inside if h is not largest]
        known = listed(others, quote=False)
        text += f"; the same program has {known}: choose with --read allocation=N"
    if len(inside) < len(found):
        text += "; give a file of the dump to choose another program"
    return largest, [Note(Code.PARTLY_READ, text)]


def _read_heaps(path: Path) -> list[Heap]:
    if not path.is_dir():
        return _choose_reader(path)(path)
    with reading(path):
        files = sorted(file for file in path.iterdir() if _is_dump(file))
    protos = [file for file in files if file.name.endswith(_PROTO)]
    for some in (protos, [file for file in files if file not in protos]):
        found = [heap for file in some for heap in _choose_reader(file)(file)]
        if found:
            return found
    return []


def _choose_reader(path: Path) -> Callable[[Path], list[Heap]]:
    """Return the reader for a file, chosen by its content."""
    head = read_bytes(path, len(text.HEAD))
    return text.read_heaps if head == text.HEAD else proto.read_heaps


def _is_dump(file: Path) -> bool:
    if file.name.endswith(_EARLY):
        return False
    return file.name.endswith((_PROTO, text.END)) and file.is_file()


def _make_loaded(path: Path, heap: Heap, notes: tuple[Note, ...]) -> Loaded:
    chunks = heap.chunks
    gaps = [(row, *gap, NONE, NONE) for row, c in enumerate(chunks) for gap in c.gaps]
    try:
        problem = Problem.from_arrays(
            [chunk.start for chunk in chunks],
            [chunk.end for chunk in chunks],
            [chunk.bytes for chunk in chunks],
            ids=[chunk.values[0] for chunk in chunks],
            alignment=[heap.alignment] * len(chunks),
            hint=[chunk.offset for chunk in chunks],
            gaps=list(zip(*gaps, strict=True)) or None,
        )
    except ProblemError as error:
        raise FormatError(str(path), str(error)) from None
    return Loaded(
        problem,
        "xla",
        sum(len(chunk.values) for chunk in chunks),
        tuple(replace(chunk.origin, tensors=chunk.values) for chunk in chunks),
        figures=(Figure("XLA", heap.bytes, "recorded"),),
        notes=notes,
    )
