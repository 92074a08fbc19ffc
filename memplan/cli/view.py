"""`memplan view`: the picture of a plan, or of several and a recorded run beside one another."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.problem import Problem
    from memplan.sources import Loaded
    from memplan.view.panel import Panel

NAME = "view"


class Colour(StrEnum):
    """What colours say."""

    SIZE = "size"
    OPERATOR = "operator"

    @property
    def literal(self) -> Literal["size", "operator"]:
        """The choice as the library names it."""
        return "operator" if self is Colour.OPERATOR else "size"


def command(
    problem: options.Input,
    plan: Annotated[str | None, typer.Argument(metavar="PLAN", help="A plan: CSV or JSON.")] = None,
    *,
    out: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf."),
    ],
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            help="Also draw the plan of this solver; see `memplan solvers`. May be repeated. "
            "Without a plan: auto.",
        ),
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Also draw what the allocator of the recorded run did."),
    ] = False,
    recorded_from: Annotated[
        list[str] | None,
        typer.Option(
            "--recorded-from",
            metavar="TRACE",
            help="Also draw another recording, under another allocator say. May be repeated.",
        ),
    ] = None,
    colour: Annotated[
        Colour, typer.Option("--colour", help="What the colours of a heap map say.")
    ] = Colour.SIZE,
    timeout: options.Timeout = None,
    nodes: options.Nodes = None,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    in_place: options.InPlace = False,
) -> None:
    """Draw a plan: time to the right, addresses upwards. Needs the extra `plot`.

    Several solvers, or a recorded run, make a heap map: a panel each, all with the same scales,
    and without the capacity.
    """
    from memplan import formats
    from memplan.view import heap_map, panel, picture, plot

    picture.format_of(out)
    others = recorded_from or []
    output.check_output(out, problem, *([plan] if plan else []), *others)
    model = options.Model(dim, include, exclude, in_place)
    loaded = options.read_input(problem, None, reserve, pin, model)
    recordings = [_recording(problem, loaded)] if recorded else []
    recordings += [_recording(path, options.read_input(path)) for path in others]

    plans = [(os.path.basename(plan), formats.load_plan(plan))] if plan else []
    for name in solver or ([] if plan else ["auto"]):
        found = _solved(loaded.problem, name, timeout, nodes)
        if found is not None:
            plans.append((name, found))
    if not plans and not recordings:
        raise typer.Exit(output.UNKNOWN)
    if len(plans) == 1 and not recordings and colour is Colour.SIZE:
        plot.save(loaded.problem, plans[0][1], out)
        return
    made_by = _operators(loaded)
    panels = [panel.of_plan(name, loaded.problem, each, made_by) for name, each in plans]
    heap_map.save([*panels, *recordings], out, colour=colour.literal, title=_title(problem, loaded))


def _title(path: str, loaded: Loaded) -> str:
    from memplan.view import units

    problem = loaded.problem
    count, load = units.plural(len(problem), "buffer"), units.human(problem.max_load)
    return f"{os.path.basename(path)}   {count}   load {load} (dotted)"


def _recording(path: str, loaded: Loaded) -> Panel:
    from memplan.errors import FormatError
    from memplan.view import panel

    if loaded.trace is None or loaded.trace.address is None:
        raise FormatError(path, "has no addresses of a recorded run; see `memplan record`")
    return panel.of_recording(f"recorded: {os.path.basename(path)}", loaded.trace)


def _solved(problem: Problem, solver: str, timeout: float | None, nodes: int | None) -> Plan | None:
    """Return the solver's best plan, whatever it needs; `None`, after saying so, if it has none."""
    from memplan import solvers

    plan = solvers.solve(
        problem.with_capacity(None),
        solver=solver,
        objective="min_peak",
        timeout=timeout,
        nodes=nodes,
    )
    if plan.has_offsets:
        return plan
    output.message(f"{solver} found no plan in time; it is left out")
    return None


def _operators(loaded: Loaded) -> tuple[str, ...] | None:
    """Return the type of operator that made each buffer, or its kind if none did."""
    from memplan.view import panel

    if loaded.trace is not None:
        return panel.operators_of(loaded.trace)
    if not loaded.labels:
        return None
    return tuple(
        label.made_by.rpartition(" (")[2].removesuffix(")") or label.kind for label in loaded.labels
    )
