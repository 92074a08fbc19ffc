"""Reads and writes problems and plans as JSON, without loss, in a versioned schema.

    {"memplan": {"kind": "problem", "version": 1},
     "capacity": 12,
     "reserved": [[16, 32]],
     "groups": [["b1", "b3"]],
     "buffers": [
       {"id": "b1", "start": 0, "end": 3, "size": 4},
       {"id": "b2", "start": 3, "end": 9, "size": 4, "alignment": 4, "pin": 0, "hint": 8,
        "conflicts": ["b3"],
        "gaps": [{"start": 4, "end": 5}, {"start": 6, "end": 7, "window": [0, 2]}]},
       {"id": "b3", "start": 9, "end": 12, "size": 4}]}

    {"memplan": {"kind": "plan", "version": 1},
     "problem": "sha256:...",
     "status": "optimal", "peak": 12, "lower_bound": 12, "capacity": 12, "solver": "exact",
     "stats": {"nodes": 7}, "conflict": [],
     "buffers": [
       {"id": "b1", "size": 4, "offset": 8}, ...]}

Lifetimes and gaps are half-open. A field with its default value (an alignment of 1, no pin, no
window, no capacity) may be left out or `null`. Unknown fields are rejected, so that no constraint
is lost in silence. Numbers are whole, except in `stats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memplan.base.errors import FormatError, MemplanError, PlanError, ProblemError
from memplan.problem import Problem
from memplan.problem.buffer import Buffer
from memplan.problem.columns import NONE
from memplan.problem.formats._fields import Fields, dumps, join, lines, shown
from memplan.problem.formats._relations import (
    read_conflicts,
    read_groups,
    write_conflicts,
    write_groups,
)
from memplan.problem.plan import Plan, Status, restate

VERSION = 1

_PROBLEM = {
    **dict.fromkeys(("memplan", "buffers"), True),
    **dict.fromkeys(("capacity", "reserved", "groups"), False),
}
_BUFFER = {
    **dict.fromkeys(("id", "start", "end", "size"), True),
    **dict.fromkeys(("alignment", "pin", "hint", "gaps", "conflicts"), False),
}
_GAP = {"start": True, "end": True, "window": False}
_PLAN = {
    **dict.fromkeys(("memplan", "problem", "status", "peak", "lower_bound", "buffers"), True),
    **dict.fromkeys(("capacity", "solver", "stats", "conflict"), False),
}
_PLACED = {"id": True, "size": True, "offset": False}


def read_problem(text: str, name: str, *, capacity: int | None = None) -> Problem:
    """Read a problem; the capacity replaces the one in the file, if given."""
    reader = _Reader(name)
    document = reader.document(text, "problem", VERSION, _PROBLEM)
    buffers = reader.objects(document["buffers"], "buffers", _BUFFER)
    gaps = reader.gaps(buffers)
    try:
        return Problem.from_arrays(
            [buffer["start"] for buffer in buffers],
            [buffer["end"] for buffer in buffers],
            [buffer["size"] for buffer in buffers],
            ids=[buffer["id"] for buffer in buffers],
            alignment=_read_column(buffers, "alignment", 1),
            pin=_read_column(buffers, "pin", NONE),
            hint=_read_column(buffers, "hint", NONE),
            gaps=gaps,
            capacity=document.get("capacity") if capacity is None else capacity,
            reserved=reader.array(document.get("reserved", []), "reserved"),
            conflicts=read_conflicts(reader, buffers),
            groups=read_groups(reader, document.get("groups", []), buffers),
        )
    except ProblemError as error:
        raise FormatError(name, reader.located(error)) from None


def write_problem(problem: Problem) -> str:
    """Format a problem, one buffer a line."""
    head: dict[str, object] = {}
    if problem.capacity is not None:
        head["capacity"] = problem.capacity
    if problem.has_reserved:
        head["reserved"] = [[block.lower, block.upper] for block in problem.reserved]
    if problem.has_groups:
        head["groups"] = write_groups(problem)
    rows = map(_format_row, problem.buffers)
    if problem.has_conflicts:
        rows = map(_with_conflicts, rows, write_conflicts(problem))
    return _format_document("problem", head, rows)


def _with_conflicts(row: dict[str, object], others: list[str]) -> dict[str, object]:
    return row | ({"conflicts": others} if others else {})


def read_plan(text: str, name: str) -> Plan:
    """Read a plan."""
    reader = _Reader(name)
    document = reader.document(text, "plan", VERSION, _PLAN)
    buffers = reader.objects(document["buffers"], "buffers", _PLACED)
    peak = reader.scalar(document["peak"], "peak", int)
    offsets = None
    if peak is not None or any("offset" in buffer for buffer in buffers):
        offsets = _read_column(buffers, "offset", None)
    bound = reader.scalar(document["lower_bound"], "lower_bound", int) or 0
    capacity = reader.scalar(document.get("capacity"), "capacity", int)
    status = document["status"]
    if status not in list(Status):
        known = ", ".join(Status)
        raise FormatError(name, f"status is {shown(status)}; it must be one of {known}")
    try:
        plan = Plan(
            ids=[buffer["id"] for buffer in buffers],
            size=[buffer["size"] for buffer in buffers],
            offsets=offsets,
            status=Status(restate(status, capacity is not None, peak, bound)),
            peak=peak,
            lower_bound=bound,
            capacity=capacity,
            solver=reader.scalar(document.get("solver"), "solver", str) or "",
            stats=reader.scalar(document.get("stats"), "stats", dict),
            conflict=[
                reader.scalar(id, f"conflict[{at}]", str) or ""
                for at, id in enumerate(reader.array(document.get("conflict", []), "conflict"))
            ],
            fingerprint=reader.scalar(document["problem"], "problem", str),
        )
        _ = plan.shared  # an arena that it says wrongly is a fault of this file
    except (ProblemError, PlanError) as error:
        raise FormatError(name, reader.located(error)) from None
    return plan


def write_plan(plan: Plan) -> str:
    """Format a plan, one buffer a line.

    Raises
    ------
    MemplanError
        If the plan's `stats` have a value that JSON cannot represent.
    """
    head = {
        "problem": plan.fingerprint,
        "status": str(plan.status),
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "capacity": plan.capacity,
        "solver": plan.solver,
        "stats": dict(plan.stats),
        "conflict": list(plan.conflict),
    }
    rows: Iterable[dict[str, object]]
    sizes = zip(plan.ids, plan.size.tolist(), strict=True)
    if plan.offsets is None:
        rows = ({"id": id, "size": size} for id, size in sizes)
    else:
        rows = (
            {"id": id, "size": size, "offset": offset}
            for (id, size), offset in zip(sizes, plan.offsets.tolist(), strict=True)
        )
    return _format_document("plan", head, rows)


class _Reader(Fields):
    """Reads the gaps of a problem."""

    def gaps(self, buffers: list[Any]) -> list[Any] | None:
        """Return the gaps of all buffers as the columns of `Problem.from_arrays`."""
        rows: list[tuple[Any, ...]] = []
        for row, buffer in enumerate(buffers):
            if "gaps" in buffer:
                where = f"buffers[{row}].gaps"
                for at, gap in enumerate(self.objects(buffer["gaps"], where, _GAP)):
                    window = self.window(gap.get("window"), f"{where}[{at}]")
                    rows.append((row, gap["start"], gap["end"], *window))
        return list(zip(*rows, strict=True)) if rows else None

    def window(self, value: object, where: str) -> tuple[Any, Any]:
        """Return the two ends of a gap's window."""
        if value is None:
            return NONE, NONE
        if not isinstance(value, list) or len(value) != 2 or NONE in value:
            raise FormatError(
                self.name, f"{where}.window is {shown(value)}; it must be [lower, upper]"
            )
        return value[0], value[1]

    def located(self, error: MemplanError) -> str:
        """Return an error with the index of its buffer, because an id may be missing or wrong."""
        return str(error) if error.row is None else f"buffers[{error.row}]: {error}"


def _read_column(rows: list[Any], field: str, default: int | None) -> list[Any]:
    """Return one field of all rows; `default` where it is null or left out."""
    values = (row.get(field) for row in rows)
    return [default if value is None else value for value in values]


def _format_row(buffer: Buffer) -> dict[str, object]:
    row: dict[str, object] = {
        "id": buffer.id,
        "start": buffer.start,
        "end": buffer.end,
        "size": buffer.size,
    }
    if buffer.alignment != 1:
        row["alignment"] = buffer.alignment
    if buffer.pin is not None:
        row["pin"] = buffer.pin
    if buffer.hint is not None:
        row["hint"] = buffer.hint
    if buffer.gaps:
        row["gaps"] = [
            {"start": gap.start, "end": gap.end}
            | ({} if gap.window is None else {"window": gap.window})
            for gap in buffer.gaps
        ]
    return row


def _format_document(
    kind: str, head: Mapping[str, object], rows: Iterable[dict[str, object]]
) -> str:
    fields = {"memplan": {"kind": kind, "version": VERSION}, **head}
    try:
        parts = [f"{dumps(key)}: {dumps(value)}" for key, value in fields.items()]
    except (TypeError, ValueError) as error:
        raise MemplanError(f"JSON cannot store the statistics of this plan: {error}") from None
    return join([*parts, lines("buffers", rows)])
