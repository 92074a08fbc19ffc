"""Reads and writes MiniMalloc's CSV (section A.3.4), in all of its dialects.

Columns may have any order. They are `id` (or `buffer`, `buffer_id`); `lower` and `upper`,
half-open, or `start`/`begin` and `end`, where the end is inclusive; `size`; and optionally
`alignment`, `hint`, `gaps` (`3-7@0:128 9-12`: times, with or without a window) and `offset`, which
is a pin in a problem and the answer in a plan. A `hint` or a pin that is -1 or empty is none.

What the columns of a plan cannot contain is in a file beside the table, `plan.csv.memplan`, so that
the table itself is plain for any reader of CSV. The last word is the hash of the table: a file
beside a table that has changed is not read.

    # memplan plan 1 status=optimal peak=12 lower_bound=12 problem=sha256:... table=sha256:...

Earlier versions wrote this line, without the hash, behind the table and a blank line; it is read
there too.

A problem in CSV has no capacity, reserved ranges, conflicts and groups, and a plan in CSV has no
`stats` and no `conflict`. JSON has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

import numpy as np

from memplan.base.errors import FormatError, MemplanError, PlanError, ProblemError, quoted
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, NONE, Column
from memplan.problem.dialect import GapColumns, Header, format_gap, is_header, parse_gaps
from memplan.problem.formats._records import cell, records
from memplan.problem.intake import GAP_COLUMNS
from memplan.problem.plan import Plan, Status, restate

Dialect = Literal["lower-upper", "start-end", "begin-end"]
DIALECTS: tuple[Dialect, ...] = ("lower-upper", "start-end", "begin-end")

_WHOLE = re.compile(r"-?[0-9]+")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_TRAILER = "# memplan plan "
_PLAN = "this is a plan, as {} says, not a problem; give the problem or the model of which it is"

# The file with the claims of a plan has the name of the table and this behind it.
BESIDE = ".memplan"


def read_problem(
    text: str, name: str, *, capacity: int | None = None, beside: str | None = None
) -> Problem:
    """Read a problem.

    The capacity is not in the file. With the file beside it, the table may turn out to be a plan.
    """
    table = _Table.of(text, name, beside)
    if table.trailer is not None:
        _, line, where = table.trailer
        if where != name:
            raise FormatError(name, _PLAN.format(where))
        raise FormatError(name, _PLAN.format("its last line"), line=line)
    return _make_problem(table, pin=table.integers("offset"), capacity=capacity)


def read_planned(text: str, name: str, beside: str | None = None) -> tuple[Problem, Plan]:
    """Read a plan, and its problem as far as the file contains it.

    The plan loses the fingerprint of the original problem, because that may have had constraints
    that are not in the file: those that CSV cannot contain (see `write_problem`), and pins.
    """
    table = _Table.of(text, name, beside)
    plan = _make_plan(table)
    problem = _make_problem(table, capacity=plan.capacity)
    answer = {"status": plan.status, "lower_bound": plan.lower_bound, "solver": plan.solver}
    return problem, Plan.of(problem, plan.offsets, **answer)  # type: ignore[arg-type]


def write_problem(problem: Problem, dialect: Dialect = "lower-upper") -> str:
    """Format a problem; its capacity is lost.

    A problem with reserved ranges, conflicts or groups is refused, and so are ids with a NUL in
    them.
    """
    for there, what in (
        (problem.has_reserved, "reserved ranges"),
        (problem.has_conflicts, "conflicts"),
        (problem.has_groups, "groups"),
    ):
        if there:
            raise MemplanError(f"CSV cannot store {what}; write this problem as JSON")
    columns = _problem_columns(problem, dialect)
    if problem.has_hints:
        columns["hint"] = map(str, problem.hint.tolist())
    if problem.has_pins:
        columns["offset"] = map(str, problem.pin.tolist())
    return _format_table(columns)


def read_plan(text: str, name: str, beside: str | None = None) -> Plan:
    """Read a plan: offsets, which are `feasible`, with what the file beside it claims."""
    return _make_plan(_Table.of(text, name, beside))


def write_plan(problem: Problem | None, plan: Plan, dialect: Dialect = "lower-upper") -> str:
    """Format a plan with offsets, in the order of the problem's rows.

    The problem may be `None` if the plan has lifetimes, as one read from CSV does.
    """
    if plan.offsets is None:
        raise MemplanError(f"CSV cannot store a plan without offsets ({plan.status}); write JSON")
    if problem is None:
        problem = plan.problem
    if problem is None:
        if plan.start is None or plan.end is None:
            raise MemplanError("CSV needs the lifetimes of the buffers: give the problem too")
        problem = Problem.from_arrays(plan.start, plan.end, plan.size, ids=plan.ids)
    elif plan.fingerprint not in (None, problem.fingerprint):
        raise PlanError("the plan was made for another problem: the fingerprints differ")
    columns = _problem_columns(problem, dialect)
    columns["offset"] = (str(plan.offset(id)) for id in problem.ids)
    return _format_table(columns)


def write_claims(plan: Plan, table: str) -> str:
    """Format what a table cannot contain: the file beside what `write_plan` returned."""
    return f"{_format_trailer(plan)} {_name_table(table)}\n"


@dataclass(frozen=True, slots=True)
class _Table:
    """The text of the cells of a file, by field."""

    name: str
    header: Header
    columns: dict[str, list[str]]
    lines: list[int]  # the line of every row
    trailer: tuple[str, int, str] | None  # the claims of a plan: their text, line and file

    @classmethod
    def of(cls, text: str, name: str, beside: str | None = None) -> _Table:
        comments: list[tuple[int, str]] = []
        found = records(text, name, comments)
        try:
            line, names = next(found, (0, None))
        except FormatError:  # quotes as no header has them
            line, names = 0, [""]
        if names is None:
            raise FormatError(name, "the file has no header and no rows")
        if not is_header(names):
            raise _refuse_text(text, name)
        try:
            header = Header.of(names)
        except ProblemError as error:
            raise FormatError(name, str(error), line=line) from None
        cells: list[str] = []  # the cells of all rows in one list, which needs less memory
        lines: list[int] = []
        for line, fields in found:
            if len(fields) != len(names):
                raise FormatError(name, _describe_count(fields, names), line=line)
            cells += fields
            lines.append(line)
        trailers = [(text, line, name) for line, text in comments if text.startswith(_TRAILER)]
        if len(trailers) > 1:
            raise FormatError(name, "the file ends a plan twice", line=trailers[1][1])
        if not trailers and beside is not None:
            claims, _, named = beside.strip().rpartition(" ")
            if named == _name_table(text):
                trailers.append((claims, 1, name + BESIDE))
        return cls(
            name,
            header,
            {
                field: cells[names.index(column) :: len(names)]
                for field, column in header.names.items()
            },
            lines,
            trailers[0] if trailers else None,
        )

    def label(self, row: int) -> str:
        return f"buffer {quoted(self.columns['id'][row])}"

    def required(self, field: str) -> Column:
        column = self.integers(field)
        if column is None:
            raise FormatError(self.name, f"column {field} is missing")
        return column

    def integers(self, field: str) -> Column | None:
        """Return a column as integers, or `None` if the file does not have it."""
        cells = self.columns.get(field)
        if cells is None:
            return None
        if field in ("hint", "offset"):
            cells = [text or str(NONE) for text in cells]
        # int() accepts more than this format (underscores, spaces, digits of other scripts). If
        # there are only these characters, it accepts whole numbers only.
        if not "".join(cells).encode(errors="replace").translate(None, b"-0123456789"):
            try:
                column = np.array(list(map(int, cells)), dtype=np.int64)
            except (ValueError, OverflowError):
                pass
            else:
                if not len(column) or -MAX_BYTES <= column.min() <= column.max() <= MAX_BYTES:
                    return column
        raise self._find_bad_integer(field, cells)

    def _find_bad_integer(self, field: str, cells: Iterable[str]) -> FormatError:
        for row, text in enumerate(cells):
            if _WHOLE.fullmatch(text) is None:
                wanted = "a whole number"
                if _HEX.fullmatch(text):
                    wanted += f" in decimal, as MiniMalloc's reader has it: write {int(text, 16)}"
            elif len(text) > 30 or abs(int(text)) > MAX_BYTES:
                wanted = "between -2^62 and 2^62"
            else:
                continue
            column = self.header.names[field]
            message = f"{self.label(row)}: {column} is {quoted(text)}; it must be {wanted}"
            return FormatError(self.name, message, line=self.lines[row])
        raise AssertionError(f"every {field} is fine")

    def lifetimes(self) -> tuple[Column, Column]:
        """Return starts and half-open ends; errors quote the columns and values of the file."""
        start, end = self.required("start"), self.required("end") + self.header.inclusive
        bad = end <= start
        if bad.any():
            row = int(bad.argmax())
            first, last = self.header.names["start"], self.header.names["end"]
            order = "at least" if self.header.inclusive else "more than"
            message = (
                f"{self.label(row)}: {last} is {self.columns['end'][row]}; "
                f"it must be {order} {first} ({self.columns['start'][row]})"
            )
            raise FormatError(self.name, message, line=self.lines[row])
        return start, end

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Add the line of the buffer to errors of `Problem` and `Plan`."""
        try:
            yield
        except (ProblemError, PlanError) as error:
            line = None if error.row is None else self.lines[error.row]
            raise FormatError(self.name, str(error), line=line) from None


def _make_problem(
    table: _Table, *, pin: Column | None = None, capacity: int | None = None
) -> Problem:
    start, end = table.lifetimes()
    with table.locate_errors():
        gaps = None
        if "gaps" in table.columns:
            gaps = parse_gaps(table.columns["gaps"], table.header.inclusive, table.label)
            gaps = _cut_gaps(gaps, start, end)
        return Problem.from_arrays(
            start,
            end,
            table.required("size"),
            ids=table.columns["id"],
            alignment=table.integers("alignment"),
            hint=table.integers("hint"),
            pin=pin,
            gaps=gaps,
            capacity=capacity,
        )


def _cut_gaps(gaps: GapColumns, start: Column, end: Column) -> GapColumns:
    """Cut gaps to the lifetimes, and leave out those outside.

    MiniMalloc's reader accepts gaps outside a lifetime, and its validator judges a plan as if they
    were cut. Gaps that are errors in any case stay as they are.
    """
    first, last = start.tolist(), end.tolist()
    kept: list[tuple[int, int, int, int, int]] = []
    for row, since, until, lower, upper in zip(*gaps, strict=True):
        if -MAX_BYTES <= since < until <= MAX_BYTES:
            since, until = max(since, first[row]), min(until, last[row])
            if since >= until:
                continue
        kept.append((row, since, until, lower, upper))
    buffer, start_, end_, lower_, upper_ = zip(*kept, strict=True) if kept else ((),) * 5
    return buffer, start_, end_, lower_, upper_


def _make_plan(table: _Table) -> Plan:
    start, end = table.lifetimes()
    size, offset = table.required("size"), table.required("offset")
    claims = {} if table.trailer is None else _read_trailer(*table.trailer)
    peak, bound = claims.get("peak"), claims.get("lower_bound", 0)
    if "status" in claims:
        claims["status"] = Status(restate(claims["status"], "capacity" in claims, peak, bound))
    with table.locate_errors():
        return Plan(
            ids=table.columns["id"],
            size=size,
            offsets=offset,
            start=start,
            end=end,
            **claims,
        )


def _refuse_text(text: str, name: str) -> FormatError:
    """Return what is said of text that is no table of buffers."""
    lines = enumerate(text.splitlines(), 1)
    at, first = next(each for each in lines if each[1].strip() and each[1][0] != "#")
    return FormatError(
        name,
        f"this is no table of buffers, but begins with {quoted(first.strip())}; give a model, a "
        "trace or a dump, or a problem as JSON or as CSV, whose header is id,lower,upper,size",
        line=at,
    )


def _describe_count(fields: list[str], names: list[str]) -> str:
    if len(fields) > len(names):
        return f"the row has {len(fields)} fields, but the header has {len(names)} columns"
    return f"the row has {len(fields)} of {len(names)} fields; {names[len(fields)]} is missing"


def _problem_columns(problem: Problem, dialect: Dialect) -> dict[str, Iterable[str]]:
    """Return the columns that problems and plans have in common, named as in the dialect."""
    if dialect not in DIALECTS:
        raise MemplanError(f"unknown dialect {quoted(dialect)}; choose {', '.join(DIALECTS)}")
    first, last = dialect.split("-")
    inclusive = last == "end"
    if any("\0" in id for id in problem.ids):
        raise MemplanError("CSV cannot store an id with a NUL character; write JSON")
    columns: dict[str, Iterable[str]] = {
        "id": map(cell, problem.ids),
        first: map(str, problem.start.tolist()),
        last: map(str, (problem.end - inclusive).tolist()),
        "size": map(str, problem.size.tolist()),
    }
    if problem.has_alignment:
        columns["alignment"] = map(str, problem.alignment.tolist())
    if problem.has_gaps:
        cells = [""] * len(problem)
        lists = (getattr(problem, name).tolist() for name in GAP_COLUMNS)
        for row, start, end, lower, upper in zip(*lists, strict=True):
            text = format_gap(start, end, lower, upper, inclusive)
            cells[row] = f"{cells[row]} {text}" if cells[row] else text
        columns["gaps"] = cells
    return columns


def _format_table(columns: dict[str, Iterable[str]]) -> str:
    rows = map(",".join, zip(*columns.values(), strict=True))
    return "\n".join([",".join(columns), *rows, ""])


def _format_trailer(plan: Plan) -> str:
    claims = {
        "status": str(plan.status),
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "capacity": plan.capacity,
        "solver": quote(plan.solver, safe="") or None,  # quoted, so that it is one word
        "problem": plan.fingerprint,
    }
    said = (f"{key}={value}" for key, value in claims.items() if value is not None)
    return f"{_TRAILER}1 {' '.join(said)}"


def _name_table(text: str) -> str:
    """Return the word by which a file beside a table names it, with any line ends."""
    from hashlib import sha256

    return f"table=sha256:{sha256(text.replace(chr(13), '').encode()).hexdigest()}"


def _parse_whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


_CLAIMS: dict[str, tuple[str, Callable[[str], object]]] = {
    "status": ("status", Status),
    "peak": ("peak", _parse_whole),
    "lower_bound": ("lower_bound", _parse_whole),
    "capacity": ("capacity", _parse_whole),
    "solver": ("solver", unquote),
    "problem": ("fingerprint", str),
}


def _read_trailer(text: str, line: int, name: str) -> dict[str, Any]:
    """Return the claims of a plan as the arguments of `Plan`."""
    if not text.startswith(_TRAILER):
        raise FormatError(name, "this is no file with the claims of a plan", line=line)
    version, *parts = text.removeprefix(_TRAILER).split()
    if version != "1":
        message = f"the plan has version {quoted(version)}; this memplan reads version 1"
        raise FormatError(name, message, line=line)
    claims: dict[str, Any] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key not in _CLAIMS or key in claims:
            raise FormatError(
                name, f"the plan has {quoted(part)}, which is unknown or repeated", line=line
            )
        argument, convert = _CLAIMS[key]
        try:
            claims[argument] = convert(value)
        except ValueError:
            message = f"the {key} of the plan is {quoted(value)}, which is not valid"
            raise FormatError(name, message, line=line) from None
    return claims
