"""Problems and plans as notebooks show them: a table of facts, and a small picture where it fits.

It is HTML that needs nothing else. All lines and fills have the colour of the text, so that dark
pages show them too; names of buffers may hold any text, so that they are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from memplan.base.errors import quoted
from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, gap_text
from memplan.problem.spans import spans
from memplan.programs.sources.loaded import Loaded
from memplan.view import relations
from memplan.view.curve import column_loads
from memplan.view.levels import find_levels, find_top
from memplan.view.picture import offsets
from memplan.view.units import exact, lifetime

if TYPE_CHECKING:
    from memplan.solvers.planning import Planned

__all__ = ["of_loaded", "of_plan", "of_planned", "of_problem"]

_WIDTH, _HEIGHT, _LOW = 480, 180, 60  # pixels; a picture of the load needs less height than a plan
_MOST = 400  # boxes; with more a notebook would grow by megabytes

Facts = list[tuple[str, str]]


def of_problem(problem: Problem) -> str:
    """Return the HTML of a problem: its facts, and its load over time."""
    return _page("memplan problem", _list_problem_facts(problem), _load(problem))


def of_loaded(loaded: Loaded) -> str:
    """Return the HTML of what a file was read as: its problem's, and what the file says."""
    facts = _add_file(loaded, _list_problem_facts(loaded.problem))
    return _page("memplan model", facts, _load(loaded.problem))


def _list_problem_facts(problem: Problem) -> Facts:
    return [
        ("buffers", f"{len(problem):,}"),
        ("sum of sizes", exact(sum(problem.size.tolist()))),
        ("greatest load", exact(problem.max_load)),
        *_capacity(problem.capacity),
        *_times(problem),
        *_constraints(problem),
    ]


def of_plan(plan: Plan) -> str:
    """Return the HTML of a plan: its facts, and its boxes if the problem is in memory.

    A plan of more than 400 boxes has no picture here; `Plan.plot` draws it.
    """
    return _page("memplan plan", _list_plan_facts(plan), _boxes(plan))


def of_planned(planned: Planned) -> str:
    """Return the HTML of a model with its plan: the plan's, and what the file says."""
    facts = _add_file(planned.loaded, _list_plan_facts(planned.plan))
    return _page("memplan plan", facts, _boxes(planned.plan))


def _add_file(loaded: Loaded, facts: Facts) -> Facts:
    """Return facts between those of the file and its notes."""
    file = [("source", loaded.source), ("tensors", f"{loaded.tensors:,}")]
    return [*file, *facts, *(("note", note.text) for note in loaded.notes)]


def _list_plan_facts(plan: Plan) -> Facts:
    facts = [("status", str(plan.status)), ("buffers", f"{len(plan):,}")]
    if plan.peak is not None:
        facts.append(("peak", exact(plan.peak)))
    gap = "" if plan.gap is None else f", gap {gap_text(plan)}"
    facts += [("lower bound", exact(plan.lower_bound) + gap), *_capacity(plan.capacity)]
    if plan.solver:
        facts.append(("solver", plan.solver))
    if plan.conflict:
        facts.append(("conflict", plan.describe_conflict()))
    return facts


def _capacity(capacity: int | None) -> Facts:
    return [] if capacity is None else [("capacity", exact(capacity))]


def _times(problem: Problem) -> Facts:
    if not len(problem):
        return []
    return [("time", lifetime(int(problem.start.min()), int(problem.end.max())))]


def _constraints(problem: Problem) -> Facts:
    """Return the constraints in addition to lifetimes and sizes."""
    named = {
        "alignment": problem.has_alignment,
        "pins": problem.has_pins,
        "gaps": problem.has_gaps,
        "reserved ranges": problem.has_reserved,
    }
    has = [name for name, there in named.items() if there]
    return [*([("has", ", ".join(has))] if has else []), *relations.count_relations(problem)]


def _page(title: str, facts: Iterable[tuple[str, str]], picture: str) -> str:
    cell = "text-align:left;padding:1px 12px 1px 0;background:none;border:none"
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{cell};font-weight:normal;opacity:.7">'
        f'{escape(name)}</th><td style="{cell}">{escape(value)}</td></tr>'
        for name, value in facts
    )
    table = f'<table style="border-collapse:collapse;border:none;margin:4px 0">{rows}</table>'
    return f'<div aria-label="{escape(title)}">{table}{picture}</div>'


def _svg(what: str, height: int, inside: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(what)}" xmlns="http://www.w3.org/2000/svg" '
        f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'style="max-width:100%">{inside}</svg>'
    )


def _line(y: float, dashes: str) -> str:
    return (
        f'<path d="M0 {y:.1f}H{_WIDTH}" fill="none" stroke="currentColor" '
        f'stroke-dasharray="{dashes}"/>'
    )


def _load(problem: Problem) -> str:
    loads = Loads(problem)
    if not len(loads):
        return ""
    marked = find_levels(problem)
    end = find_top(marked)
    shown = column_loads(loads, _WIDTH) / end * (_LOW - 2)
    # The path has a step only where the load changes, which keeps the page small.
    changes = np.flatnonzero(np.diff(shown, prepend=-1.0))
    steps = "".join(f"H{x}V{_LOW - shown[x]:.1f}" for x in changes.tolist())
    area = (
        f'<path d="M0 {_LOW}{steps}H{_WIDTH}V{_LOW}Z" fill="currentColor" fill-opacity=".3" '
        'stroke="none"/>'
    )
    lines = [
        _line(_LOW - level.bytes / end * (_LOW - 2), "6 3" if "capacity" in level.names else "2 2")
        for level in marked
        if level.bytes <= end
    ]
    return _svg("load over time", _LOW, area + "".join(lines))


def _boxes(plan: Plan) -> str:
    problem = plan.problem
    if problem is None or plan.offsets is None:
        return ""
    held, offset = spans(problem), offsets(problem, plan)
    if not 0 < len(held.buffer) <= _MOST:
        return ""
    marked = find_levels(problem, plan, offset)
    end = find_top(marked)
    first = int(problem.start.min())
    across = _WIDTH / (int(problem.end.max()) - first)
    up = (_HEIGHT - 2) / end
    columns = (held.buffer, held.start, held.end, held.lower, held.upper)
    boxes = []
    for row, start, stop, lower, upper in zip(*(each.tolist() for each in columns), strict=True):
        base = int(offset[row])
        x, wide = (start - first) * across, (stop - start) * across
        y, high = _HEIGHT - (base + upper) * up, (upper - lower) * up
        tooltip = f"{quoted(problem.ids[row])[1:-1]}: {exact(upper - lower)} at {base + lower:,}"
        boxes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}">'
            f"<title>{escape(tooltip)}, {lifetime(start, stop)}</title></rect>"
        )
    style = 'fill="currentColor" fill-opacity=".18" stroke="currentColor" stroke-width=".6"'
    lines = [
        _line(_HEIGHT - level.bytes * up, "6 3")
        for level in marked
        if "capacity" in level.names and level.bytes <= end
    ]
    inside = f"<g {style}>{''.join(boxes)}</g>{''.join(lines)}"
    return _svg("addresses over time", _HEIGHT, inside)
