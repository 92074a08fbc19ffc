"""Traces that memplan recorded (`memplan record`, `memplan.extensions.slab.record`)."""

from __future__ import annotations

import re
from pathlib import Path

from memplan.base.errors import FormatError, ProblemError
from memplan.base.files import read_text
from memplan.base.notes import Code, Note
from memplan.problem.formats.trace_json import read_trace
from memplan.problem.trace import Scope, Trace, format_scope
from memplan.programs.sources.loaded import Label, Loaded
from memplan.programs.sources.options import Options

__all__ = ["matches", "of_trace", "read"]

# The first match decides what a document is; a match inside a string would have escaped quotes.
_HEAD = re.compile(rb'"memplan"\s*:\s*\{([^{}]*)')
_KIND = re.compile(rb'"kind"\s*:\s*"trace"')


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file with this beginning is a trace of memplan."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{":
        return False
    found = _HEAD.search(head)
    return found is not None and _KIND.search(found[1]) is not None


def read(path: Path, options: Options) -> Loaded:
    """Read a trace, and make the problem of what a plan places of it."""
    try:
        return of_trace(read_trace(read_text(path), str(path)))
    except ProblemError as error:
        raise FormatError(str(path), str(error)) from None


def of_trace(trace: Trace) -> Loaded:
    """Make the problem of a trace, and label every buffer with what requested it."""
    labels = tuple(_make_label(trace.ids[row], trace.scopes[row]) for row in trace.planned.tolist())
    notes = []
    if trace.outlives.any():
        count, total = int(trace.outlives.sum()), sum(trace.size[trace.outlives].tolist())
        text = (
            f"{count} of {len(trace)} allocations ({total} bytes) outlive the run, as results do, "
            "and are not planned"
        )
        ids = tuple(trace.ids[row] for row in trace.outlives.nonzero()[0].tolist())
        notes.append(Note(Code.NOT_PLANNED, text, ids))
    return Loaded(trace.problem(), "trace", len(trace), labels, trace=trace, notes=tuple(notes))


def _make_label(id: str, scope: Scope) -> Label:
    """Label a buffer with the innermost module and the outermost operator inside that."""
    modules = [at for at, (name, _) in enumerate(scope) if name.startswith(".")]
    inside = scope[modules[-1] + 1 :] if modules else scope
    operator, module = format_scope(inside[:1]), scope[modules[-1]][0] if modules else ""
    maker = f"{module} ({operator})" if module and operator else module or operator
    type = inside[0][0] if inside else ""
    return Label((id,), "intermediate", maker, operator=type, module=module.lstrip("."))
