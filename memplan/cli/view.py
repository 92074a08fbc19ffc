"""`memplan view`: plans as a page to look around in, as a picture, or in a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memplan.cli import options, output, reading
from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded
    from memplan.solvers.planning import Planned
    from memplan.view.panel import Panel

NAME = "view"
EXAMPLES = (
    "memplan view problem.csv plan.csv",
    "memplan view model.tflite -o plan.html",
)


_DPI = 110  # of a heap map, which is large


class Colour(StrEnum):
    """What the colours show."""

    SIZE = "size"
    KIND = "kind"
    OPERATOR = "operator"
    MODULE = "module"


@dataclass(frozen=True)
class _Seen:
    """What is drawn."""

    path: str
    loaded: Loaded
    plans: dict[str, Plan]  # of its problem, by name
    recordings: dict[str, Loaded]  # runs, by name: their own plans are those of their own problems


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    out: Annotated[
        str | None,
        options.write_to("Write an interactive page (.html) or a picture (.png, .svg, .pdf)."),
    ] = None
    terminal: Annotated[
        bool,
        typer.Option(
            "--terminal", help="Draw in the terminal too; without --output this is the default."
        ),
    ] = False
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            metavar="NAME",
            help="Also show the plan of this solver; see `memplan solvers`. May be repeated. The "
            "default is auto if no PLAN is given.",
        ),
    ] = None
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="Also show the addresses in the file itself: those of a recorded run, of XLA's "
            "assignment, or of an offline plan.",
        ),
    ] = False
    recorded_from: Annotated[
        list[str] | None,
        typer.Option(
            "--recorded-from",
            metavar="TRACE",
            help="Also show another recorded run, for example under another allocator. May be "
            "repeated.",
        ),
    ] = None
    colour: Annotated[
        Colour | None,
        typer.Option(
            "--colour",
            help="What the colours show, and a page can change: by default operators on a page, "
            "if they are known, and else sizes.",
        ),
    ] = None
    width: Annotated[
        float | None,
        typer.Option(
            "--width",
            metavar="MM",
            help="Width of a picture of one plan: 85 for one column, 178 for two.",
        ),
    ] = None
    order: Annotated[
        bool,
        typer.Option(
            "--order",
            help="Instead of a plan, show the load in the given order of operators, and in the "
            "best one.",
        ),
    ] = False


def command(
    problem: options.Input,
    plan: Annotated[
        str | None,
        typer.Argument(metavar="PLAN", help="A plan: CSV or JSON.", callback=keep),
    ] = None,
    *,
    model: options.Model,
    constraints: options.Constraints,
    limits: options.Limits,
    pure: options.Pure = None,
    asked: _Asked,
) -> None:
    """Draw a plan: time to the right, addresses upwards.

    A page (.html; needs the extra `view`) is one file that loads nothing from a network. It has
    search and zoom, and shows what is live at a moment. Plans of several solvers, or a recorded
    run, are drawn side by side at the same scale.

    Pictures (the extra `plot`) are for print: one plan as in MiniMalloc's paper, or a heap map of
    several plans. A plan in CSV contains its lifetimes, so that it can be drawn without a problem.
    """
    terminal = asked.terminal or asked.out is None
    others = asked.recorded_from or []
    form = output.choose_drawing(asked.out, problem, *others, solvers=asked.solver or ())
    if asked.width is not None and form in (None, "html"):
        raise typer.BadParameter("--width is for pictures: .png, .svg or .pdf")
    output.check_output(asked.out, problem, *([plan] if plan else []), *others)
    if pure and not asked.order:
        raise typer.BadParameter("it needs --order", param_hint="'--pure'")
    if asked.order:
        shown = (plan, asked.solver, asked.recorded, others, asked.colour, form == "html")
        if any(shown) or constraints.reserve or constraints.pin:
            raise typer.BadParameter(
                "the loads of two orders have no plan: give only an INPUT, and a picture (.png, "
                ".svg, .pdf) for --output",
                param_hint="'--order'",
            )
        read = reading.read_input(problem, model, constraints)
        budget = {"timeout": limits.timeout, "states": limits.nodes, "pure": pure or ()}
        _show_loads(read, asked.out, asked.width, terminal, model.in_place, **budget)
        return
    loaded, alone = _read(problem, plan, constraints, model)
    plans = _load_given(problem, plan, alone)
    loaded, plans = _list_plans(loaded, plans, asked.solver, limits, in_place=model.in_place)
    runs = _collect_recordings({problem: loaded} if asked.recorded else {}, others)
    if not plans and not runs:
        raise typer.Exit(output.UNKNOWN)
    seen = _Seen(problem, loaded, plans, runs)
    if terminal:
        _print(seen)
    if asked.out is not None:
        if form == "html":
            _write_page(seen, asked.out, asked.colour)
        else:
            _write_picture(seen, asked.out, asked.colour or Colour.SIZE, asked.width)
        output.tell_written(asked.out)


def _list_plans(
    loaded: Loaded,
    plans: dict[str, Plan],
    solvers: Sequence[str] | None,
    limits: options.Limits,
    *,
    in_place: bool,
) -> tuple[Loaded, dict[str, Plan]]:
    """Return the given plans and those of solvers, and the layout that all of them are of."""
    for given in plans.values() if in_place else ():
        loaded = _layout_of(loaded, given)
    settled = bool(plans) or not in_place
    for name in solvers or ([] if plans else ["auto"]):
        found = _solve(loaded, name, limits, in_place=not settled)
        if found is not None:
            loaded, plans[name], settled = found.loaded, found.plan, True
    return loaded, plans


def _show_loads(
    given: Loaded,
    out: str | None,
    width: float | None,
    terminal: bool,
    in_place: bool,
    **limits: Any,
) -> None:
    """Show the load of a program in its given order, and in the best one that is found."""
    from memplan.levers.rewrite import reorder
    from memplan.solvers.planning import layouts

    found = reorder(given, in_place=in_place, **limits)
    ways = [each.problem for each in layouts(given, in_place=in_place)]
    before, after = min(ways, key=lambda each: each.max_load), found.loaded.problem
    if terminal:
        from memplan.view.words.problems import draw_loads

        output.console().print(draw_loads({"given order": before, "best order": after}))
    if out is not None:
        from memplan.view import load_plot, picture

        picture.write(load_plot.draw_orders(before, after, width=width), out)
        output.tell_written(out)
    if found.interrupted:
        output.message("interrupted: the best order so far is shown")


def draw_plan(path: str, loaded: Loaded, plan: Plan, out: str) -> None:
    """Draw one plan, as the suffix of the file says: `memplan plan -o`."""
    seen = _Seen(path, loaded, {"plan": plan}, {})
    if out.lower().endswith(".html"):
        _write_page(seen, out, None)
    else:
        _write_picture(seen, out, Colour.SIZE, None)


def _read(
    path: str, plan: str | None, constraints: options.Constraints, model: options.Model
) -> tuple[Loaded, Plan | None]:
    """Read the input, and where it is a plan that says its own lifetimes, that plan."""
    from memplan.base.errors import FormatError
    from memplan.problem import formats
    from memplan.programs.sources import Loaded

    try:
        loaded = reading.read_input(path, model, options.Constraints(constraints.capacity))
        if plan is not None:
            loaded = reading.follow_order(loaded, formats.load_plan(plan))
        return constraints.add_to(loaded), None
    except FormatError:
        if plan is not None or reading.find_plan(path) is None:
            raise
    asked, answer = formats.load_planned(path)
    if constraints.reserve or constraints.pin:
        raise FormatError(
            path, "this is a plan without its problem: --reserve and --pin need the problem"
        )
    if constraints.capacity is not None:
        asked = asked.with_capacity(constraints.capacity)
    return Loaded(asked, "plan", len(asked)), answer


def _collect_recordings(own: dict[str, Loaded], others: Sequence[str]) -> dict[str, Loaded]:
    """Return runs by their files, all of which say where their buffers lay."""
    from memplan.base.errors import FormatError
    from memplan.view.recorded import find_recorded

    runs = own | {path: reading.read_input(path) for path in others}
    for path, run in runs.items():
        if find_recorded(run) is None:
            raise FormatError(
                path, "the file has no addresses of a recorded run; see `memplan record`"
            )
    return runs


def _load_given(path: str, plan: str | None, alone: Plan | None) -> dict[str, Plan]:
    """Return the plan that the command line names, if any, by its name."""
    from memplan.problem import formats

    if alone is not None:
        return {os.path.basename(path): alone}
    return {} if plan is None else {os.path.basename(plan): formats.load_plan(plan)}


def _layout_of(loaded: Loaded, plan: Plan) -> Loaded:
    """Return the layout that a plan is for; for a wrong plan, which is shown too, the input's."""
    from memplan.base.errors import PlanError
    from memplan.solvers.planning import layout_of

    try:
        return layout_of(loaded, plan, in_place=True)
    except PlanError:
        return loaded


def _solve(
    loaded: Loaded, solver: str, limits: options.Limits, *, in_place: bool
) -> Planned | None:
    """Return the solver's best plan, whatever it needs; `None`, after saying so, if it has none.

    Plans that are shown side by side are of one layout: that of the first one.
    """
    from memplan.solvers.planning import Planned, plan_model
    from memplan.solvers.stopping import stoppable

    free = loaded.problem.with_capacity(None)
    model = replace(loaded, problem=free) if in_place else free
    with stoppable() as stop:
        found = plan_model(model, in_place=in_place, solver=solver, **vars(limits))
    output.tell_interrupted(stop.is_set, found.plan.status)
    if not found.plan.has_offsets:
        from memplan.view.words.plans import status_text

        output.message(f"{solver}: {status_text(found.plan, stop.is_set)}; it is left out")
        return None
    chosen = found.loaded if in_place else loaded
    problem = chosen.problem.with_capacity(loaded.problem.capacity)
    return Planned(replace(chosen, problem=problem), found.plan)


def _write_page(seen: _Seen, out: str, colour: Colour | None) -> None:
    from memplan.view import page

    page.save(
        seen.loaded,
        _with_recordings(seen),
        out,
        title=os.path.basename(seen.path),
        colour=colour.value if colour else None,
    )


def _print(seen: _Seen) -> None:
    from rich.text import Text

    from memplan.view import terminal

    console = output.console()
    plans = _with_recordings(seen)
    for name, plan in plans.items():
        if len(plans) > 1:
            console.print(Text(name))
        console.print(terminal.picture(seen.loaded.problem, plan))


def _with_recordings(seen: _Seen) -> dict[str, Plan]:
    """Return all plans, and the recordings as plans of the same problem."""
    from memplan.base.errors import FormatError
    from memplan.view.recorded import find_recorded, of_trace

    plans, problem = dict(seen.plans), seen.loaded.problem
    for path, run in seen.recordings.items():
        if run is seen.loaded:
            found = find_recorded(run)
        else:
            found = None if run.trace is None else of_trace(problem, run.trace)
        if found is None:
            message = (
                f"is a run of other buffers than those of {seen.path}; a picture can show both"
            )
            raise FormatError(path, message)
        plans[f"recorded: {os.path.basename(path)}"] = found
    return plans


def _write_picture(seen: _Seen, out: str, colour: Colour, width: float | None) -> None:
    from memplan.view import heap_map, panel, picture, plot

    problem, classes = seen.loaded.problem, _find_classes(seen.path, seen.loaded, colour)
    if len(seen.plans) == 1 and not seen.recordings:
        (plan,) = seen.plans.values()
        picture.write(plot.draw(problem, plan, width=width, classes=classes), out)
        return
    if width is not None:
        raise typer.BadParameter(
            "--width is for a picture of one plan; a heap map has a width of its own"
        )
    panels = [panel.of_plan(name, problem, each, classes) for name, each in seen.plans.items()]
    panels += [_draw_recording(path, run, colour) for path, run in seen.recordings.items()]
    mode: Literal["size", "class"] = "size" if colour is Colour.SIZE else "class"
    picture.write(heap_map.draw(panels, colour=mode, title=_make_title(seen)), out, _DPI)


def _draw_recording(path: str, run: Loaded, colour: Colour) -> Panel:
    from memplan.view import panel
    from memplan.view.recorded import find_recorded

    name, classes = f"recorded: {os.path.basename(path)}", _find_classes(path, run, colour)
    if run.trace is not None:
        return replace(panel.of_recording(name, run.trace), classes=classes)
    offsets = find_recorded(run)
    assert offsets is not None  # `_collect_recordings` has refused runs without
    return panel.of_plan(name, run.problem, offsets, classes)


def _find_classes(path: str, loaded: Loaded, colour: Colour) -> tuple[str, ...] | None:
    """Return the class of each buffer, which sets its colour; `None` for sizes."""
    from memplan.base.errors import FormatError
    from memplan.view.facts import find_facts

    if colour is Colour.SIZE:
        return None
    known = find_facts(loaded)
    classes: tuple[str, ...] = getattr(known, colour.value)
    if not any(classes):
        raise FormatError(path, f"the file names no {colour.value}s to colour by")
    if colour is Colour.OPERATOR:  # a buffer that no operator makes has a kind
        return tuple(name or kind for name, kind in zip(classes, known.kind, strict=True))
    return classes


def _make_title(seen: _Seen) -> str:
    from memplan.view import units

    problem = seen.loaded.problem
    count, load = units.plural(len(problem), "buffer"), units.human(problem.max_load)
    return f"{os.path.basename(seen.path)}   {count}   load {load} (dotted)"
