"""What goes into a page: everything about a problem and its plans, as JSON that no text can leave.

Columns are packed as base64 of little-endian integers, in 32 bits where they fit. Numbers that
may be beyond 2^53, which is where JavaScript's lose their last digits, are strings.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from memplan.errors import PlanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.loads import Loads
from memplan.problem.spans import spans
from memplan.referee import verify
from memplan.view import picture
from memplan.view.classes import PALETTE, Classes
from memplan.view.facts import Facts
from memplan.view.supports import Ground, find_supports
from memplan.view.waste import find_waste

__all__ = ["Shown", "check_plans", "format_json", "payload"]

_EXACT = 1 << 53  # whole numbers up to here are exact as floats
_LISTED = 8  # names in a row; the model has the rest
_GROUNDS = {
    Ground.NONE: "could lie lower",
    Ground.ADDRESS_ZERO: "address 0",
    Ground.PIN: "its pin",
    Ground.RESERVED: "a reserved range",
}
# JSON has these characters only inside of strings, where `\uXXXX` means the same. Written so, no
# string can end the <script>, begin a comment in it, or be a line end to an older parser.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


@dataclass(frozen=True, eq=False)
class Shown:
    """A plan as a page shows it.

    Attributes
    ----------
    name
        What the page calls it.
    plan
        As it was given.
    offset
        Of every buffer of the problem, shape (n,).
    peak
        Computed from the offsets.
    fault
        What the referee says of an invalid plan, or empty.
    """

    name: str
    plan: Plan
    offset: Column
    peak: int
    fault: str


def check_plans(problem: Problem, plans: Mapping[str, Plan]) -> list[Shown]:
    """Look at every plan: where it puts the buffers, and whether the referee lets it pass.

    Raises
    ------
    PlanError
        If one has no offsets, or none for some buffer.
    """
    unlimited = problem.with_capacity(None)  # a plan above the capacity is drawn all the same
    seen = []
    for name, plan in plans.items():
        offset = picture.offsets(problem, plan)
        try:
            verify(unlimited, plan)
            fault = ""
        except PlanError as error:
            fault = str(error)
        peak = int((offset + problem.size).max(initial=0))
        seen.append(Shown(name, plan, offset, peak, fault))
    return seen


def payload(
    problem: Problem, seen: list[Shown], facts: Facts, unit: tuple[int, str]
) -> dict[str, object]:
    """Return what the scripts of a page read of a problem and its plans.

    Parameters
    ----------
    problem, seen, facts
        What is shown.
    unit
        Of its addresses: bytes, and a name.
    """
    loads = Loads(problem)
    held = spans(problem)
    whole = len(held.buffer) == len(problem) and not problem.has_gaps
    order = sorted(range(len(problem)), key=lambda row: (-int(problem.size[row]), facts.name[row]))
    return {
        "unit": {"bytes": unit[0], "name": unit[1]},
        "origin": str(find_origin(problem)),
        "load": {
            "time": pack(np.append(loads.start, loads.end[-1:])),
            "bytes": pack(loads.load),
            "peak": str(loads.peak),
        },
        "capacity": None if problem.capacity is None else str(problem.capacity),
        "bound": str(find_bound(problem, seen)),
        "buffers": {
            "name": facts.name,
            **{name: pack(getattr(problem, name)) for name in ("start", "end", "size")},
            "tensors": encode(map(_list_others, facts.tensors, facts.name)),
            "used_by": encode(map(_join_names, facts.used_by)),
            **{name: encode(getattr(facts, name)) for name in ("module", "made_by", "line")},
            "by_size": pack(np.array(order, dtype=np.int64)),
        },
        "classes": {
            "kind": _describe_classes(facts.kind, problem.size),
            "operator": _describe_classes(facts.operator, problem.size),
            "module": _describe_classes(cut_modules(facts.module), problem.size),
        },
        "spans": None
        if whole
        else {
            name: pack(getattr(held, name)) for name in ("buffer", "start", "end", "lower", "upper")
        },
        "plans": [_describe_plan(problem, each) for each in seen],
    }


def find_origin(problem: Problem) -> int:
    """Return the time that the page draws as 0: 0, unless times are too large for floats."""
    if not len(problem):
        return 0
    first, last = int(problem.start.min()), int(problem.end.max())
    return 0 if first > -_EXACT and last < _EXACT else first


def find_bound(problem: Problem, seen: Iterable[Shown]) -> int:
    """Return the best bound that the plans bring: the load, or one that no valid plan refutes."""
    lowest = min((each.peak for each in seen if not each.fault), default=0)
    claims = [each.plan.lower_bound for each in seen if each.plan.lower_bound <= lowest]
    return max([problem.max_load, *claims])


def _describe_plan(problem: Problem, each: Shown) -> dict[str, object]:
    facts: dict[str, object] = {
        "name": each.name,
        "peak": str(each.peak),
        "status": str(each.plan.status),
        "offset": pack(each.offset),
        "fault": each.fault,
        "supports": None,
        "waste": None,
    }
    if each.fault:
        return facts  # where buffers overlap, "sits on" has no meaning
    on, free = find_supports(problem, each.plan), find_waste(problem, each.plan)
    columns = ("below_begin", "below_row", "above_begin", "above_row", "ground", "next")
    facts["supports"] = {name: pack(getattr(on, name)) for name in columns} | {
        "grounds": [_GROUNDS[ground] for ground in Ground]
    }
    facts["waste"] = {
        name: pack(getattr(free, name)) for name in ("start", "end", "lower", "upper")
    } | {"share": free.share}
    return facts


def pack(column: Column) -> dict[str, str]:
    """Return a column as base64 of 32 or 64 bits each."""
    fits = not len(column) or (column.min() >= -(1 << 31) and column.max() < 1 << 31)
    kind = "int32" if fits else "int64"
    data = column.astype("<i4" if fits else "<i8").tobytes()
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def encode(texts: Iterable[str]) -> dict[str, object]:
    """Return each text once and numbers for them, as many buffers share few types of operators."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return {"code": pack(np.array(codes, dtype=np.int64)), "text": list(numbers)}


def cut_modules(modules: Sequence[str]) -> list[str]:
    """Cut the paths of modules to the longest for which there are colours."""
    paths = [module.split(".") for module in modules]
    for depth in range(max(map(len, paths), default=1), 0, -1):
        cut = [".".join(path[:depth]) for path in paths]
        if depth == 1 or len(set(cut)) <= len(PALETTE):
            return cut
    return []


def _describe_classes(names: Sequence[str], size: Column) -> dict[str, object] | None:
    """Return every buffer's class and the colours of classes; `None` where nothing is known."""
    if not any(names):
        return None
    numbers = encode(names)
    texts = cast("list[str]", numbers["text"])
    classes = Classes.of([(names, size)])
    return numbers | {
        "colour": [classes.colour(text) for text in texts],
        "key": [[text or "none", colour] for text, colour in classes.colours.items()],
        "others": classes.others,
    }


def _list_others(tensors: tuple[str, ...], name: str) -> str:
    return "" if tensors == (name,) else _join_names(tensors)


def _join_names(names: tuple[str, ...]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def format_json(value: object) -> str:
    """Return JSON that may stand in a <script>, whatever is in its strings."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
