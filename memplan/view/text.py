"""Problems, plans and explanations in a terminal.

Every function returns something for Rich to print, and prints nothing itself. Names of buffers
are somebody's text: they go into `Text`, never into markup, with nothing that a terminal could
take for a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from memplan.errors import quoted
from memplan.explain import Explanation, SectionAtFault
from memplan.loads import Held, Loads
from memplan.plan import Plan, Status
from memplan.problem import Problem
from memplan.sources.loaded import Figure, Label, Loaded
from memplan.view import relations
from memplan.view.curve import load_curve
from memplan.view.units import exact, human, lifetime, percent, plural, seconds

__all__ = ["explanation", "inspection", "notes", "peak_buffers", "plan_summary", "solver_table"]

_MOST_ROWS = 10
_NARROW = 80  # columns that every terminal has
_FULL_SECTIONS = 3  # with their buffers; the others get a line

_STATUS_STYLE = {
    Status.OPTIMAL: "green",
    Status.FEASIBLE: "yellow",
    Status.INFEASIBLE: "red",
    Status.UNKNOWN: "red",
}


# Plans -----------------------------------------------------------------------------------------


def plan_summary(
    problem: Problem,
    plan: Plan,
    *,
    elapsed: float,
    interrupted: bool = False,
    loaded: Loaded | None = None,
    figures: Sequence[Figure] = (),
) -> RenderableType:
    """Return what was asked and what was answered, one fact a line.

    Parameters
    ----------
    problem, plan
        The question and the answer.
    elapsed
        Seconds that the solver took.
    interrupted
        Whether Ctrl-C cut it short.
    loaded
        Where the problem comes from a model.
    figures
        What other planners need for it.
    """
    facts: list[tuple[str, str | Text]] = _origin(loaded)
    facts += [
        ("buffers", f"{len(problem):,}"),
        ("sum of sizes", exact(_total(problem.size))),
    ]
    facts += relations.counts(problem)
    facts += _figures(figures)
    if problem.capacity is not None:
        facts.append(("capacity", exact(problem.capacity)))
    facts.append(("lower bound", exact(plan.lower_bound)))
    if plan.peak is not None:
        facts.append(("peak", exact(plan.peak)))
    if plan.gap is not None:
        facts.append(("gap", f"{plan.gap:.2%}"))
    facts.append(("status", status_text(plan, interrupted)))
    if plan.conflict:
        facts.append(("conflict", f"{plural(len(plan.conflict), 'buffer')} cannot be together"))
    facts.append(("solver", plan.solver or "-"))
    facts.append(("time", seconds(elapsed)))
    return _facts(facts)


def _origin(loaded: Loaded | None) -> list[tuple[str, str | Text]]:
    if loaded is None or not loaded.labels:
        return []
    return [("format", loaded.source), ("tensors", f"{loaded.tensors:,}")]


def _figures(figures: Sequence[Figure]) -> list[tuple[str, str | Text]]:
    facts: list[tuple[str, str | Text]] = []
    for figure in figures:
        how = figure.how + (f", {figure.what}" if figure.what else "")
        facts.append((quoted(figure.runtime)[1:-1], f"{exact(figure.bytes)}, {how}"))
    return facts


def notes(loaded: Loaded) -> RenderableType:
    """Return what was left out or assumed when a model was read."""
    return Group(*(Text(f"note: {_printable(note)}", style="dim") for note in loaded.notes))


def status_text(plan: Plan, interrupted: bool) -> Text:
    """Return the status, and what it means for this plan."""
    meaning = _meaning(plan)
    if interrupted:
        meaning = f"not proved; {meaning}" if plan.has_offsets else meaning
        return Text(f"interrupted: {plan.status}, {meaning}", style="yellow")
    return Text(f"{plan.status}: {meaning}", style=_STATUS_STYLE[plan.status])


def _meaning(plan: Plan) -> str:
    match plan.status:
        case Status.OPTIMAL if plan.peak == plan.lower_bound:
            return "no plan has a smaller peak"
        case Status.OPTIMAL:
            return "it fits the capacity; a smaller peak was not asked for"
        case Status.FEASIBLE:
            return "the best plan so far, a smaller peak is not ruled out"
        case Status.INFEASIBLE:
            return "proved, there is no plan within the capacity"
        case Status.UNKNOWN:
            return "the budget ended without a plan and without a proof"


def peak_buffers(
    problem: Problem, plan: Plan, most: int = _MOST_ROWS, labels: Sequence[Label] = ()
) -> RenderableType:
    """Return who is live at the peak of a plan: what a smaller model would have to shrink.

    Of all sections in which a buffer touches the peak, the one with the greatest load. `labels`, by
    row, say which operators make and use a buffer.
    """
    if plan.offsets is None:
        return Text("")
    loads = Loads(problem)
    section = loads.highest_of(np.flatnonzero(plan.offsets + problem.size == plan.peak))
    if section is None or plan.peak is None:
        return Text("no buffer holds anything at any time")
    held = loads.held(section)
    load = int(loads.load[section])
    when = lifetime(int(loads.start[section]), int(loads.end[section]))
    unused = f"; {exact(plan.peak - load)} unused below it" if load < plan.peak else ""
    offsets = {each.id: plan.offset(each.id) for each in held[:most]}
    return Group(
        Text(f"Live at the peak, time {when}", style="bold"),
        Text(f"{plural(len(held), 'buffer')} hold {exact(load)}{unused}"),
        _held_table(held, load, most, offsets, _who(problem, held[:most], labels)),
    )


def _who(problem: Problem, held: Sequence[Held], labels: Sequence[Label]) -> dict[str, str] | None:
    """Return by buffer "maker -> user, user"; `None` where nobody is known."""
    if not labels:
        return None
    found = {}
    for each in held:
        label = labels[problem.index(each.id)]
        users = [quoted(user)[1:-1] for user in label.used_by]
        more = f" and {len(users) - 2:,} more" if len(users) > 2 else ""
        reads = ", ".join(users[:2]) + more
        made = quoted(label.made_by)[1:-1] if label.made_by else str(label.kind)
        found[each.id] = f"{made} -> {reads}" if reads else made
    return found


# Problems --------------------------------------------------------------------------------------


class Curve:
    """The load over time, as wide as the console and in characters that it has."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, 100)
        yield Text(load_curve(self._loads, width, ascii_only=options.ascii_only), no_wrap=True)


def inspection(
    problem: Problem,
    bound: int,
    bound_rule: str,
    most: int = _MOST_ROWS,
    loaded: Loaded | None = None,
    figures: Sequence[Figure] = (),
) -> RenderableType:
    """Return what a problem asks: its amounts, its constraints, its load and who makes it.

    Parameters
    ----------
    problem
        What to look at.
    bound, bound_rule
        The lower bound on the peak in bytes, and what gave it.
    most
        How many buffers to name.
    loaded, figures
        Where the problem comes from a model: that, and what other planners need for it.
    """
    loads = Loads(problem)
    labels = loaded.labels if loaded else ()
    facts: list[tuple[str, str | Text]] = _origin(loaded)
    facts += [
        ("buffers", f"{len(problem):,}"),
        ("sum of sizes", exact(_total(problem.size))),
        *_figures(figures),
        ("max load", exact(loads.peak)),
    ]
    if problem.has_conflicts or problem.has_groups:
        what = " and ".join(name for name, _ in relations.counts(problem))
        facts[-1] = ("max load", f"{exact(loads.peak)}; {what} may force more")
    section = loads.peak_section
    if section is not None:
        when = lifetime(int(loads.start[section]), int(loads.end[section]))
        facts.append(("attained", f"time {when}, of {plural(len(loads), 'section')}"))
    facts.append(("lower bound", f"{exact(bound)}, by {bound_rule}"))
    if problem.capacity is not None:
        facts.append(("capacity", exact(problem.capacity)))
    facts += _constraints(problem)
    parts: list[RenderableType] = [_facts(facts)]
    if len(problem):
        parts += [Text(), _distribution(problem)]
    if section is not None:
        held = loads.held(section)
        heading = f"Live at the greatest load: {plural(len(held), 'buffer')}"
        who = _who(problem, held[:most], labels)
        table = _held_table(held, loads.peak, most, who=who)
        parts += [Text(), Text(heading, style="bold"), table]
        parts += [Text(), Text("Load over time", style="bold"), Curve(loads)]
    return Group(*parts)


def _constraints(problem: Problem) -> list[tuple[str, str | Text]]:
    """Say what there is beside lifetimes and sizes; what there is not is not mentioned."""
    found: list[tuple[str, str | Text]] = []
    empty = int((problem.size == 0).sum())
    if empty:
        found.append(("size 0", plural(empty, "buffer")))
    if problem.has_alignment:
        aligned = int((problem.alignment != 1).sum())
        most = int(problem.alignment.max())
        found.append(("alignment", f"{plural(aligned, 'buffer')}, up to {most:,}"))
    if problem.has_pins:
        found.append(("pins", plural(int((problem.pin >= 0).sum()), "buffer")))
    if problem.has_hints:
        found.append(("hints", plural(int((problem.hint >= 0).sum()), "buffer")))
    if problem.has_gaps:
        gaps, owners = len(problem.gap_buffer), len(np.unique(problem.gap_buffer))
        windows = int((problem.gap_lower >= 0).sum())
        text = f"{gaps:,} in {plural(owners, 'buffer')}, {windows:,} with a window"
        found.append(("gaps", text))
    found += relations.counts(problem)
    if problem.has_reserved:
        text = ", ".join(str(block) for block in problem.reserved[:_MOST_ROWS])
        more = len(problem.reserved) - _MOST_ROWS
        found.append(("reserved", text if more <= 0 else f"{text} and {more:,} more"))
    return found or [("constraints", "none beside lifetimes and sizes")]


def _distribution(problem: Problem) -> Table:
    shares = (0, 25, 50, 75, 90, 99, 100)
    names = ("smallest", "25 %", "median", "75 %", "90 %", "99 %", "largest")
    table = _table("")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    # Elements of the sorted column, never a mean of two: no size that nobody has.
    at = np.array(shares) * (len(problem) - 1) // 100
    # A lifetime of 2^63 does not fit in 63 bits, and unsigned the wrapped difference is right.
    lasting = np.sort((problem.end - problem.start).view(np.uint64))[at]
    table.add_row("size", *map(human, np.sort(problem.size)[at].tolist()))
    table.add_row("lifetime", *(f"{length:,}" for length in lasting.tolist()))
    return table


# Explanations ----------------------------------------------------------------------------------


def explanation(problem: Problem, found: Explanation, most: int = _MOST_ROWS) -> RenderableType:
    """Return whether a problem fits and why not, in the manner of an out-of-memory report."""
    parts: list[RenderableType] = [_verdict(found), _amounts(found)]
    for section in found.sections[:_FULL_SECTIONS]:
        parts += [Text(), _fault(section, most)]
    others = found.sections[_FULL_SECTIONS:]
    if others:
        parts += [Text(), _other_faults(others, found.section_count - len(found.sections))]
    if found.subset:
        parts += [Text(), _subset(problem, found, most)]
    return Group(*parts)


def _verdict(found: Explanation) -> Text:
    capacity = exact(found.capacity)
    if found.fits is None:
        text = f"Unknown: neither a plan nor a proof was found for {capacity} within the budget."
        return Text(text, style="bold yellow")
    if found.fits:
        return Text(f"It fits into {capacity}.", style="bold green")
    if found.required is None:
        text = "It does not fit, whatever the capacity: pins and groups contradict each other."
        return Text(text, style="bold red")
    return Text(f"It does not fit into {capacity}.", style="bold red")


def _amounts(found: Explanation) -> RenderableType:
    known = found.required == found.sufficient
    facts: list[tuple[str, str | Text]] = []
    if found.required is None:
        facts.append(("required", "no capacity is enough, proved"))
    elif known:
        facts.append(
            ("required", f"{exact(found.required)}, proved: no less is enough, and this is")
        )
    else:
        facts.append(("required", f"at least {exact(found.required)}, proved"))
        if found.sufficient is not None:
            facts.append(("sufficient", f"{exact(found.sufficient)}: a plan was found"))
    reserved = found.capacity - found.available
    note = f", and {exact(reserved)} reserved" if reserved else ""
    facts.append(("available", f"{exact(found.available)}{note}"))
    if found.excess:
        facts.append(("excess", ("" if known else "at least ") + exact(found.excess)))
    elif found.fits and found.sufficient is not None:
        facts.append(("spare", exact(found.capacity - found.sufficient)))
    facts.append(("max load", exact(found.max_load)))
    return _facts(facts)


def _fault(section: SectionAtFault, most: int) -> RenderableType:
    when = lifetime(section.start, section.end)
    worst = lifetime(section.peak_start, section.peak_end)
    count = plural(len(section.buffers), "buffer")
    return Group(
        Text(f"Time {when}" + ("" if when == worst else f", worst in {worst}"), style="bold"),
        Text(f"{count} hold {exact(section.load)}: {exact(section.excess)} too many"),
        _held_table(section.buffers, section.load, most),
    )


def _other_faults(sections: Sequence[SectionAtFault], uncounted: int) -> RenderableType:
    """Return the milder faults, a line each with its largest buffer."""
    table = _table("time")
    for name in ("bytes", "too many", "buffers", "largest", "bytes"):
        table.add_column(name, justify="right", no_wrap=True)
    for section in sections:
        largest = section.buffers[0]
        table.add_row(
            lifetime(section.start, section.end),
            f"{section.load:,}",
            f"{section.excess:,}",
            f"{len(section.buffers):,}",
            _name(largest.id),
            f"{largest.bytes:,}",
        )
    more = f", and {uncounted:,} more" if uncounted else ""
    return Group(Text(f"Also too much at {plural(len(sections), 'other time')}{more}"), table)


def _subset(problem: Problem, found: Explanation, most: int) -> RenderableType:
    rows = [problem.index(id) for id in found.subset]
    buffers = [
        Held(id, size, size, start, end)
        for id, size, start, end in zip(
            found.subset,
            problem.size[rows].tolist(),
            problem.start[rows].tolist(),
            problem.end[rows].tolist(),
            strict=True,
        )
    ]
    part = problem.subset(rows)
    load = Loads(part).peak
    if len(rows) == 1:
        heading = "This buffer alone cannot be placed"
    else:
        heading = (
            f"These {len(rows):,} buffers cannot be placed together, "
            f"though no more than {exact(load)} of them live at one time"
        )
    closing = "Leave out any one of them and the rest fits: the subset is irreducible."
    if not found.irreducible:
        closing = (
            "The budget ended before every one of them was tried: "
            "a part of them may be enough (raise --nodes)."
        )
    total = sum(each.size for each in buffers)
    table = _held_table(buffers, total, most)
    said = [*relations.reasons(part), *([closing] if len(rows) > 1 else [])]
    return Group(Text(heading, style="bold"), table, *map(Text, said))


# Solvers ---------------------------------------------------------------------------------------


def solver_table(
    rows: Iterable[tuple[str, str, Sequence[bool]]], constraints: Sequence[str]
) -> RenderableType:
    """Return the solvers by name: what each is, then the constraints that each supports.

    The constraints are rows and not columns, and there are several tables where one would not fit
    a narrow terminal.
    """
    rows = list(rows)
    parts: list[RenderableType] = [_facts([(name, summary) for name, summary, _ in rows])]
    while rows:
        ends = accumulate((3 + len(name) for name, _, _ in rows), initial=len("constraint"))
        most = max(1, sum(end <= _NARROW for end in ends) - 1)
        table = _table("constraint")
        for name, _, _ in rows[:most]:
            table.add_column(name, justify="center", no_wrap=True)
        for number, constraint in enumerate(constraints):
            marks = ["yes" if supported[number] else "-" for _, _, supported in rows[:most]]
            table.add_row(constraint, *marks)
        parts += ["", table]
        rows = rows[most:]
    return Group(*parts)


# Parts -----------------------------------------------------------------------------------------


def _facts(facts: Sequence[tuple[str, str | Text]]) -> RenderableType:
    """Return a name and a value a line; not a table, which would fill lines up with spaces."""
    width = max(len(name) for name, _ in facts) + 2
    return Group(*(Text(f"{name:<{width}}", style="dim").append(value) for name, value in facts))


def _table(first: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    return table


def _held_table(
    held: Sequence[Held],
    total: int,
    most: int,
    offsets: dict[str, int] | None = None,
    who: dict[str, str] | None = None,
) -> Table:
    """Return the largest buffers, and all others in one line."""
    table = _table("buffer")
    names = ["bytes", "", "share", "lifetime"] + (["offset"] if offsets is not None else [])
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if who is not None:
        table.add_column("made by -> used by", overflow="fold")
    for each in held[:most]:
        size = f"{each.bytes:,}" + (f" of {each.size:,}" if each.bytes != each.size else "")
        cells = [size, human(each.bytes), percent(each.bytes, total)]
        cells.append(lifetime(each.start, each.end))
        if offsets is not None:
            cells.append(f"{offsets[each.id]:,}")
        if who is not None:
            cells.append(who[each.id])
        table.add_row(_name(each.id), *map(Text, cells))
    rest = held[most:]
    if rest:
        size_of_rest = sum(each.bytes for each in rest)
        cells = [f"{size_of_rest:,}", human(size_of_rest), percent(size_of_rest, total)]
        name = f"{len(rest):,} smaller" if len(rest) > 1 else "1 smaller"
        table.add_row(Text(name, style="dim"), *map(Text, cells))
    return table


def _name(id: str) -> Text:
    """Return a name that a terminal shows and does not obey."""
    return Text(quoted(id)[1:-1])


def _printable(text: str) -> str:
    """Return a sentence with names in it, with nothing that a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _total(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Sum without overflow: a million sizes of 2^62 do not fit in 64 bits."""
    high, low = sizes >> 31, sizes & (2**31 - 1)
    return (int(high.sum()) << 31) + int(low.sum())
