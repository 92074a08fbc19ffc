"""What goes into a page: everything about a problem and its plans, as JSON that no text can leave.

Columns are packed as base64 of little-endian integers, in the fewest bits that hold them. Numbers
that may be beyond 2^53, where JavaScript's numbers lose their last digits, are strings.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, Status
from memplan.problem.spans import spans
from memplan.referee import verify
from memplan.view import picture
from memplan.view.classes import PALETTE, Classes
from memplan.view.facts import Facts
from memplan.view.supports import Ground, find_supports
from memplan.view.units import human
from memplan.view.verdict import Verdict, find_verdict
from memplan.view.waste import find_waste

__all__ = ["Shown", "check_plans", "format_json", "payload", "write_headline"]

_EXACT = 1 << 53  # whole numbers up to here are exact as floats
_LISTED = 8  # names in a row; the others are counted
_SIZES = (1, 2, 4, 8)  # bytes of the integers in a column
_GROUNDS = {
    Ground.NONE: "nothing: it could be placed lower",
    Ground.ADDRESS_ZERO: "address 0",
    Ground.PIN: "its pin",
    Ground.RESERVED: "a reserved range",
}
# JSON has these characters only inside of strings, where `\uXXXX` means the same. The escapes keep
# a string from ending the <script>, from beginning a comment, and from ending a line.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


@dataclass(frozen=True, eq=False)
class Shown:
    """A plan as a page shows it."""

    name: str  # what the page calls it
    plan: Plan
    offset: Column  # of every buffer of the problem, shape (n,)
    peak: int  # computed from the offsets
    fault: str  # the referee's error for an invalid plan, or empty


def check_plans(problem: Problem, plans: Mapping[str, Plan]) -> list[Shown]:
    """Return every plan with its offsets and its peak, and with the referee's error if it has one.

    A plan without an offset for some buffer is refused.
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
    """Return the data of a page, as its scripts read them.

    The unit of addresses is its bytes, and its name.
    """
    loads = Loads(problem)
    held = spans(problem)
    bound = find_bound(problem, seen)
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
        "bound": str(bound),
        "naive": str(sum(problem.size.tolist())),
        "best": seen.index(find_best(seen)),
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
            "operator": _describe_classes(_name_operators(facts), problem.size),
            "module": _describe_classes(cut_modules(facts.module), problem.size),
        },
        "spans": None
        if whole
        else {
            name: pack(getattr(held, name)) for name in ("buffer", "start", "end", "lower", "upper")
        },
        "plans": [_describe_plan(problem, each, bound) for each in seen],
    }


def find_origin(problem: Problem) -> int:
    """Return the time that the page draws as 0: the first one if times are too large for floats."""
    if not len(problem):
        return 0
    first, last = int(problem.start.min()), int(problem.end.max())
    return 0 if first > -_EXACT and last < _EXACT else first


def find_bound(problem: Problem, seen: Iterable[Shown]) -> int:
    """Return the best lower bound: the greatest load, or a claim of a plan that none refutes."""
    lowest = min((each.peak for each in seen if not each.fault), default=0)
    claims = [each.plan.lower_bound for each in seen if each.plan.lower_bound <= lowest]
    return max([problem.max_load, *claims])


def find_best(seen: Sequence[Shown]) -> Shown:
    """Return the valid plan with the smallest peak; an invalid one if there are no others."""
    return min(seen, key=lambda each: (bool(each.fault), each.peak))


def write_headline(problem: Problem, seen: Sequence[Shown]) -> Verdict:
    """Return the verdict on the best plan, as a sentence for the top of the page."""
    best = find_best(seen)
    found = _judge(problem, best, find_bound(problem, seen))
    text = f"peak {human(best.peak)}, {found.text}"
    text = f"{best.name}: {text}" if len(seen) > 1 else text[0].upper() + text[1:]
    return Verdict(found.grade, text)


def _judge(problem: Problem, each: Shown, bound: int) -> Verdict:
    fit = each.plan.status is Status.FITS
    return find_verdict(each.peak, bound, problem.capacity, valid=not each.fault, fit=fit)


def _describe_plan(problem: Problem, each: Shown, bound: int) -> dict[str, object]:
    found = _judge(problem, each, bound)
    facts: dict[str, object] = {
        "name": each.name,
        "peak": str(each.peak),
        "grade": found.grade,
        "verdict": found.text,
        "offset": pack(each.offset),
        "fault": each.fault,
        "supports": None,
        "waste": None,
    }
    if each.fault:
        return facts  # "sits on" has no meaning where buffers overlap
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
    """Return a column as base64 of integers of 8, 16, 32 or 64 bits, the fewest that hold all."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    size = next(size for size in _SIZES if -1 << 8 * size - 1 <= low and high < 1 << 8 * size - 1)
    data = column.astype(f"<i{size}").tobytes()
    return {"type": f"int{8 * size}", "data": base64.b64encode(data).decode("ascii")}


def encode(texts: Iterable[str]) -> dict[str, object]:
    """Return each text once and numbers for them, as many buffers share few types of operators."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return {"code": pack(np.array(codes, dtype=np.int64)), "text": list(numbers)}


def _name_operators(facts: Facts) -> list[str]:
    """Return the type of operator of every buffer; its kind where no operator makes it."""
    if not any(facts.operator):
        return []
    return [name or kind for name, kind in zip(facts.operator, facts.kind, strict=True)]


def cut_modules(modules: Sequence[str]) -> list[str]:
    """Cut the paths of modules to a depth at which there is a colour for each, if there is one."""
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
    """Return JSON that is safe inside of a <script>, whatever its strings hold."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
