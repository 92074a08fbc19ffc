"""Reads and writes problems, plans and traces as text files.

The content of a file decides its format: one that begins with an object or a list of JSON is JSON
(`formats.json`), any other is MiniMalloc's CSV (`formats.minimalloc_csv`). The interference graph
of a problem is only written (`formats.interference`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Literal, get_args

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.base.files import is_special, read_text, write_bytes, write_files, write_text, writing
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.formats import interference, json, minimalloc_csv, trace_json
from memplan.problem.formats.minimalloc_csv import Dialect
from memplan.problem.intake import take_capacity
from memplan.problem.plan import Plan
from memplan.problem.trace import Trace

__all__ = [
    "Dialect",
    "choose_format",
    "is_json",
    "load",
    "load_plan",
    "load_planned",
    "load_trace",
    "render",
    "save",
    "write_bytes",
    "write_files",
    "write_text",
]

Format = Literal["csv", "json", "dot", "graphml"]

_SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".graphml": "graphml",
}
_NAMES = {"csv": "CSV", "json": "JSON", "dot": "DOT", "graphml": "GraphML"}
_WRITERS: dict[Format, Callable[[Problem], str]] = {
    "json": json.write_problem,
    "dot": interference.write_dot,
    "graphml": interference.write_graphml,
}


def load(path: str | os.PathLike[str], *, capacity: int | None = None) -> Problem:
    """Read a problem from a file, CSV or JSON.

    Parameters
    ----------
    path
        The file; its name does not matter.
    capacity
        The capacity, in place of the one in the file. CSV files have none.

    Raises
    ------
    FormatError
        `path:line: ` and one sentence, for everything that is wrong with the file.
    ProblemError
        If the capacity given here is not a positive number.
    """
    limit = take_capacity(capacity)
    text = read_text(path)
    name = os.fspath(path)
    if is_json(text):
        return json.read_problem(text, name, capacity=limit)
    return minimalloc_csv.read_problem(text, name, capacity=limit, beside=_read_beside(name))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a file, CSV (ours or MiniMalloc's own) or JSON.

    Beside a table in CSV that memplan wrote, `path.memplan` has its status, bound and fingerprint.
    The plan is not checked against a problem; `memplan.verify` does that.

    Raises
    ------
    FormatError
        `path:line: ` and one sentence, for everything that is wrong with the file.
    """
    text, name = read_text(path), os.fspath(path)
    if is_json(text):
        return json.read_plan(text, name)
    return minimalloc_csv.read_plan(text, name, _read_beside(name))


def load_planned(path: str | os.PathLike[str]) -> tuple[Problem, Plan]:
    """Read a plan and its problem from one file, which must be CSV.

    The problem lacks what such a file cannot contain: reserved ranges, conflicts, groups, pins and
    hints.

    Raises
    ------
    FormatError
        As `load_plan`, and for a plan in JSON, which has no lifetimes.
    """
    text, name = read_text(path), os.fspath(path)
    if is_json(text):
        json.read_plan(text, name)
        raise FormatError(
            name,
            "this is a plan in JSON, which has no lifetimes: give its problem or model first",
        )
    return minimalloc_csv.read_planned(text, name, _read_beside(name))


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace from a JSON file."""
    return trace_json.read_trace(read_text(path), os.fspath(path))


def save(
    what: Asked | Plan | Trace,
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,
    dialect: Dialect = "lower-upper",
    problem: Asked | None = None,
) -> tuple[str, ...]:
    """Write a problem, plan or trace to a file; on an error the old file stays as it was.

    A plan in CSV is the plain table. Its status, bound and fingerprint go to `path.memplan`, unless
    the path is a pipe or a device.

    Parameters
    ----------
    what
        A problem, plan or trace, or a result of `memplan.load`, of which the problem is written.
    path
        The file.
    format
        "csv", "json", "dot" or "graphml"; `None` lets the suffix of the name decide, as
        `choose_format` does. The last two store the interference graph of a problem; a plan with
        such a name is CSV. Traces are always JSON.
    dialect
        The columns of lifetimes in CSV: "lower-upper", "start-end" or "begin-end".
    problem
        The problem of a plan that was read from JSON, which has no lifetimes; CSV needs them.

    Returns
    -------
    tuple of str
        The files that were written.

    Raises
    ------
    FormatError
        If the file cannot be written.
    MemplanError
        If the format cannot represent the problem, plan or trace.
    """
    files = render(what, path, format=format, dialect=dialect, problem=problem)
    write_files(files)
    return tuple(files)


def render(
    what: Asked | Plan | Trace,
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,
    dialect: Dialect = "lower-upper",
    problem: Asked | None = None,
) -> dict[str, bytes]:
    """Return the files that `save` would write, with their content: for a caller with more files.

    The parameters and errors are those of `save`.
    """
    name = os.fspath(path)
    if format is None:
        format = "json" if isinstance(what, Trace) else choose_format(path)
        if isinstance(what, Plan) and format != "json":
            format = "csv"
    if format not in get_args(Format):
        raise MemplanError(f"unknown format {quoted(format)}; choose csv, json, dot or graphml")
    if isinstance(what, Trace):
        if format != "json":
            raise MemplanError(f"{_NAMES[format]} cannot store a trace; write it as JSON")
        text = trace_json.write_trace(what)
    elif isinstance(what, Plan):
        owner = None if problem is None else problem_of(problem)
        if format in ("dot", "graphml"):
            raise MemplanError(f"{_NAMES[format]} cannot store a plan; write it as CSV or JSON")
        if format == "csv":
            return _render_table(name, minimalloc_csv.write_plan(owner, what, dialect), what)
        text = json.write_plan(what)
    else:
        asked = problem_of(what)
        if format == "csv":
            text = minimalloc_csv.write_problem(asked, dialect)
        else:
            text = _WRITERS[format](asked)
    with writing(name):
        return {name: text.encode()}


def choose_format(path: str | os.PathLike[str]) -> Format:
    """Return the format that the suffix of a name asks for; CSV if it is none of the others."""
    name = os.fspath(path).lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), "csv")


def _render_table(name: str, table: str, plan: Plan) -> dict[str, bytes]:
    """Return a plan in CSV with the file beside it; a pipe or a device has none."""
    with writing(name):
        files = {name: table.encode()}
        if not is_special(name):
            claims = minimalloc_csv.write_claims(plan, table)
            files[name + minimalloc_csv.BESIDE] = claims.encode()
    return files


def _read_beside(name: str) -> str | None:
    """Return the file with the claims of a table, or `None` if there is none."""
    beside = name + minimalloc_csv.BESIDE
    return read_text(beside) if os.path.isfile(beside) else None


# Of a list, what comes next counts too: lines of logs begin with a time or a name in brackets.
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[{\"\]]|\[\s*[\[{\"\]\d-]|\[?\s*$))")


def is_json(text: str) -> bool:
    """Return whether text, or its beginning, is meant as JSON; any other is CSV."""
    return _JSON.match(text) is not None
