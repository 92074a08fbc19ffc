"""Reads and writes traces as JSON, without loss, in a versioned schema.

    {"memplan": {"kind": "trace", "version": 1},
     "alignment": 64,
     "about": {"model": "ResNet", "torch": "2.13.0"},
     "frames": [
       {"name": ".", "ordinal": 0, "parent": null},
       {"name": ".conv1", "ordinal": 0, "parent": 0},
       {"name": "aten::conv2d", "ordinal": 0, "parent": 1}],
     "allocations": [
       {"start": 0, "end": 3, "size": 100352, "frame": 2, "ordinal": 0, "address": 94326842395520},
       {"start": 1, "end": 4, "size": 64, "frame": 0, "ordinal": 0, "thread": 1, "outlives": true}]}

`frames` are the modules and operators (`memplan.problem.trace.Scope`) in which allocations were
requested; a frame comes after its parent. A field with its default (thread 0, `outlives` false,
no address, no frame) may be left out or `null`. Unknown fields are rejected.
"""

from __future__ import annotations

from typing import Any

from memplan.base.errors import FormatError, ProblemError, quoted
from memplan.problem.formats._fields import Fields, dumps, join, lines, shown
from memplan.problem.trace import Scope, Trace

__all__ = ["VERSION", "read_trace", "write_trace"]

VERSION = 1

_MAX_ADDRESS = (1 << 64) - 1
_MAX_DEPTH = 1000  # frames inside each other
_MAX_STEPS = 1 << 24  # of all scopes together, because long chains take quadratic memory

_TRACE = {
    **dict.fromkeys(("memplan", "alignment", "frames", "allocations"), True),
    "about": False,
}
_FRAME = {"name": True, "ordinal": False, "parent": False}
_ALLOCATION = {
    **dict.fromkeys(("start", "end", "size", "ordinal"), True),
    **dict.fromkeys(("frame", "thread", "address", "outlives"), False),
}


def read_trace(text: str, name: str) -> Trace:
    """Read a trace; a `FormatError` names the field, or the line where the text is not JSON."""
    reader = _Reader(name)
    document = reader.document(text, "trace", VERSION, _TRACE)
    scopes = reader.scopes(document["frames"])
    rows = reader.objects(document["allocations"], "allocations", _ALLOCATION)
    try:
        return Trace.from_arrays(
            reader.column(rows, "start"),
            reader.column(rows, "end"),
            reader.column(rows, "size"),
            reader.scopes_of(rows, scopes),
            ordinal=reader.column(rows, "ordinal"),
            outlives=[
                reader.scalar(row.get("outlives"), f"allocations[{at}].outlives", bool) or False
                for at, row in enumerate(rows)
            ],
            thread=reader.column(rows, "thread", 0),
            address=reader.addresses(rows),
            alignment=reader.number(document["alignment"], "alignment"),
            about=reader.about(document.get("about")),
        )
    except ProblemError as error:
        raise FormatError(name, str(error)) from None


def write_trace(trace: Trace) -> str:
    """Format a trace, one frame and one allocation a line."""
    index: dict[Scope, int] = {}
    frames: list[dict[str, object]] = []
    for scope in trace.scopes:
        _add_frames(scope, index, frames)
    addresses = [None] * len(trace) if trace.address is None else trace.address.tolist()
    columns = (trace.start, trace.end, trace.size, trace.ordinal, trace.thread, trace.outlives)
    allocations = (
        {"start": start, "end": end, "size": size, "ordinal": ordinal}
        | ({"frame": index[scope]} if scope else {})
        | ({"thread": thread} if thread else {})
        | ({"address": address} if address is not None else {})
        | ({"outlives": True} if outlives else {})
        for start, end, size, ordinal, thread, outlives, scope, address in zip(
            *(column.tolist() for column in columns), trace.scopes, addresses, strict=True
        )
    )
    parts = [
        f'"memplan": {dumps({"kind": "trace", "version": VERSION})}',
        f'"alignment": {trace.alignment}',
        f'"about": {dumps(dict(trace.about))}',
        lines("frames", frames),
        lines("allocations", allocations),
    ]
    return join(parts)


class _Reader(Fields):
    """Reads a trace; errors give places in the document as `allocations[3].size`."""

    def scopes(self, value: object) -> list[Scope]:
        """Return the scope that ends with each frame."""
        scopes: list[Scope] = []
        steps = 0
        for at, row in enumerate(self.objects(value, "frames", _FRAME)):
            where = f"frames[{at}]"
            name = self.scalar(row["name"], f"{where}.name", str)
            if not name:
                raise self.error(f"{where}.name is {shown(name)}; every frame needs a name")
            given = row.get("ordinal")
            ordinal = 0 if given is None else self.number(given, f"{where}.ordinal")
            outer: Scope = ()
            if row.get("parent") is not None:
                parent = self.number(row["parent"], f"{where}.parent")
                if parent >= at:
                    raise self.error(
                        f"{where}.parent is {parent}; it must be the index of an earlier frame"
                    )
                outer = scopes[parent]
            if len(outer) >= _MAX_DEPTH:
                raise self.error(f"{where} is nested too deeply")
            steps += len(outer) + 1
            if steps > _MAX_STEPS:
                raise self.error(f"the frames are nested too deeply, at {where}")
            scopes.append((*outer, (name, ordinal)))
        return scopes

    def scopes_of(self, rows: list[Any], scopes: list[Scope]) -> list[Scope]:
        """Return the scope of every allocation."""
        found: list[Scope] = []
        for at, row in enumerate(rows):
            frame = row.get("frame")
            if frame is not None:
                where = f"allocations[{at}].frame"
                frame = self.number(frame, where)
                if frame >= len(scopes):
                    raise self.error(f"{where} is {frame}; there are {len(scopes)} frames")
            found.append(() if frame is None else scopes[frame])
        return found

    def column(self, rows: list[Any], field: str, default: int | None = None) -> list[int]:
        """Return one field of all allocations."""
        values = (default if row.get(field) is None else row[field] for row in rows)
        return [self.number(value, f"allocations[{at}].{field}") for at, value in enumerate(values)]

    def addresses(self, rows: list[Any]) -> list[int] | None:
        """Return the addresses, which all allocations must have or none; `None` for none."""
        values = [row.get("address") for row in rows]
        if all(value is None for value in values):
            return None
        return [
            self.number(value, f"allocations[{at}].address", _MAX_ADDRESS)
            for at, value in enumerate(values)
        ]

    def about(self, value: object) -> dict[str, str]:
        """Return the facts about the recording, which are texts by name."""
        about = self.scalar(value, "about", dict) or {}
        # A key of the file may be any text, and the error of one is a single line.
        return {
            key: self.scalar(value, f"about.{quoted(key)[1:-1]}", str) or ""
            for key, value in about.items()
        }


def _add_frames(scope: Scope, index: dict[Scope, int], frames: list[dict[str, object]]) -> None:
    """Add the frames of a scope that are not in `frames` yet, outermost first."""
    known = len(scope)
    while known and scope[:known] not in index:
        known -= 1
    for depth in range(known, len(scope)):
        name, ordinal = scope[depth]
        parent = index[scope[:depth]] if depth else None
        index[scope[: depth + 1]] = len(frames)
        frames.append({"name": name, "ordinal": ordinal, "parent": parent})
