"""`memplan apply`: hand a plan to the runtime that will use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.sources import Loaded
    from memplan.targets.tflite_micro import Applied

NAME = "apply"


def command(
    input: options.Input,
    out: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The model with the plan in it (.tflite)."
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Write the plan into the model's own file.")
    ] = False,
    header: Annotated[
        str | None, typer.Option("--c-header", metavar="FILE", help="The plan as C and C++.")
    ] = None,
    shim: Annotated[
        str | None,
        typer.Option(
            "--shim", metavar="FILE", help="As a NonPersistentMemoryPlannerShim of TFLM, in C++."
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="PLAN", help="This plan, instead of a new one."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--arena-budget",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Write nothing if the arena needs more.",
        ),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Never write a result over an input.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of what is declared in C.")
    ] = None,
    dim: options.Dim = None,
    timeout: options.Timeout = None,
) -> None:
    """Write a plan where a runtime obeys it: into a TFLite model, or as a C header.

    The input is never the output, unless --in-place is given, and what is written is written as a
    whole or not at all. A plan of another model is refused, with what differs.
    """
    written = [out if not in_place else input, header, shim]
    if in_place and out is not None:
        raise typer.BadParameter("--output names another file", param_hint="'--in-place'")
    if not any((in_place, out, header, shim)):
        raise typer.BadParameter("say what to write: --output, --c-header or --shim")
    for path in (out, header, shim):
        output.check_output(path, input, *([plan] if plan else []))
    if len({path for path in written if path}) < sum(path is not None for path in written):
        raise typer.BadParameter("two things cannot be written to one file")

    from memplan import formats

    given = formats.load_plan(plan) if plan else None
    if out is not None or in_place:
        target = Path(input if in_place else str(out))
        given = _patched(Path(input), target, given, budget, apart, in_place, timeout)
    if shim is not None:
        from memplan.targets.tflite_micro import shim_header

        text = shim_header(Path(input), given, name or "memory_plan")
        formats.write_text(shim, text)
        output.line(f"{shim}: written")
    if header is not None:
        _write_header(header, options.read_input(input, model=options.Model(dim)), given, name)


def _patched(
    model: Path,
    out: Path,
    plan: Plan | None,
    budget: int | None,
    apart: bool,
    in_place: bool,
    timeout: float | None,
) -> Plan:
    from memplan.errors import MemplanError
    from memplan.sources import detect
    from memplan.targets import tflite_micro

    if detect(model) != "tflite":
        raise MemplanError(f"{model} is no TFLite model; only these carry their plan in them")
    applied = tflite_micro.apply(
        model,
        out,
        plan=plan,
        arena_budget=budget,
        in_place=not apart,
        in_place_file=in_place,
        timeout=timeout,
    )
    _show(applied)
    return applied.plan


def _show(applied: Applied) -> None:
    from memplan.view.units import exact, plural

    output.line(f"{applied.path}: {exact(applied.planned)} planned, {applied.plan.status}")
    for when, figure in (("before", applied.before), ("after", applied.after)):
        output.line(f"{when:<8}{exact(figure.bytes)} of {figure.runtime}, {figure.how}")
    if applied.arena is not None:
        output.line(f"arena   {exact(applied.arena)} are enough for all of it, measured")
    if applied.in_place:
        output.line(f"sharing {plural(applied.in_place, 'tensor')} written over another one")
    if applied.folded:
        output.line(f"folded  {plural(applied.folded, 'operator')} that only unpacked weights")


def _write_header(path: str, loaded: Loaded, plan: Plan | None, name: str | None) -> None:
    from memplan import formats, solvers
    from memplan.errors import MemplanError
    from memplan.targets.c_header import write_header

    if plan is None:
        plan = solvers.solve(loaded.problem)
        if not plan.has_offsets:
            raise MemplanError(f"there is no plan to write ({plan.status}); {path} was not touched")
    formats.write_text(path, write_header(loaded, plan, name=name))
    output.line(f"{path}: written, {loaded.source}, a peak of {plan.peak:,} bytes")
