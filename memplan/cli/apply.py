"""`memplan apply`: hand a plan to the runtime that will use it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output
from memplan.cli.inputs import is_copy, keep

if TYPE_CHECKING:
    from memplan.notes import Note
    from memplan.planning import Planned
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
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write the plan into the model's own file.")
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
        typer.Option(
            "--plan", metavar="PLAN", help="This plan, instead of a new one.", callback=keep
        ),
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
    in_place: options.InPlace = False,
    replan: Annotated[
        bool,
        typer.Option("--replan", help="Forget the offsets that the file carries; they are kept."),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of what is declared in C.")
    ] = None,
    dim: options.Dim = None,
    timeout: options.Timeout = None,
    nodes: options.Nodes = None,
    strict: options.Strict = False,
    limit_factor: options.LimitFactor = 1,
) -> None:
    """Write a plan where a runtime uses it: into a TFLite model, or as a C header.

    The input is never the output, unless --overwrite is given. All outputs have one plan, which is
    that of `memplan plan` with the same options, and all of them are written, or none is. A plan of
    another model is refused, with what differs.
    """
    if overwrite and is_copy(input):
        raise typer.BadParameter("the input is no file on disk", param_hint="'--overwrite'")
    if overwrite and out is not None:
        raise typer.BadParameter("--output names another file", param_hint="'--overwrite'")
    model = input if overwrite else out
    _check_outputs(input, out, model, header, shim, plan)
    if plan is not None and (in_place or replan):
        raise typer.BadParameter("leave out --in-place and --replan", param_hint="'--plan'")
    if dim and (model or shim):
        message = "TFLM runs a file with the sizes that are stored in it: convert it with others"
        raise typer.BadParameter(message, param_hint="'--dim'")
    reading = options.Model(
        dim, in_place=in_place, strict=strict, pins=not replan, limit_factor=limit_factor
    )
    chosen = _make_plan(input, reading, plan, timeout, nodes, tflite=bool(model or shim))
    _check_budget(budget, chosen)

    from memplan import formats

    outputs: dict[str, bytes] = {}
    applied = None
    if model or shim:
        applied, data = _patch(input, model or shim or "", chosen, budget)
        if model:
            outputs[model] = data
    if shim:
        from memplan.targets.tflite_micro import shim_header

        outputs[shim] = shim_header(Path(input), chosen.plan, name or "memory_plan").encode()
    if header:
        from memplan.targets.c_header import write_header

        outputs[header] = write_header(chosen.loaded, chosen.plan, name=name).encode()
    notes = chosen.notes if applied is None else applied.notes
    options.refuse_notes(input, notes if strict else ())
    formats.write_files(outputs)
    _show(chosen, outputs, applied if model else None, notes)


def _check_outputs(
    input: str,
    out: str | None,
    model: str | None,
    header: str | None,
    shim: str | None,
    plan: str | None,
) -> None:
    """Refuse outputs that could not be written, before the work and not after it."""
    written = [os.path.realpath(path) for path in (model, header, shim) if path]
    if not written:
        raise typer.BadParameter("say what to write: --output, --overwrite, --c-header or --shim")
    for path in (out, header, shim):
        output.check_output(path, input, *([plan] if plan else []))
    if len(set(written)) < len(written):
        raise typer.BadParameter("two things cannot be written to one file")


def _make_plan(
    input: str,
    model: options.Model,
    plan: str | None,
    timeout: float | None,
    nodes: int | None,
    *,
    tflite: bool,
) -> Planned:
    """Return the one plan of all outputs."""
    from memplan import formats
    from memplan.errors import MemplanError
    from memplan.planning import Planned, layout_of, plan_model
    from memplan.sources import detect

    if tflite and detect(input) != "tflite":
        raise MemplanError(f"{input} is no TFLite model; only these carry their plan in them")
    given = formats.load_plan(plan) if plan else None
    if given is not None and tflite:
        from memplan.targets.tflite_micro import plan_file

        found = plan_file(Path(input), given)
        options.refuse_notes(input, found.notes if model.strict else ())
        return found
    loaded = options.read_input(input, model=model)
    if given is not None:
        return Planned(layout_of(loaded, given, in_place=True), given)
    found = plan_model(loaded, in_place=model.in_place, timeout=timeout, nodes=nodes)
    if not found.plan.has_offsets:
        raise MemplanError(f"there is no plan to write ({found.plan.status}); nothing was written")
    return found


def _check_budget(budget: int | None, chosen: Planned) -> None:
    """Refuse a plan above the budget for the arena; a later check counts what TFLM adds to it."""
    from memplan.errors import MemplanError

    peak = chosen.plan.peak or 0
    if budget is not None and peak > budget:
        raise MemplanError(
            f"the plan needs {peak} bytes, {peak - budget} more than the budget of {budget}: "
            "nothing was written"
        )


def _patch(input: str, out: str, chosen: Planned, budget: int | None) -> tuple[Applied, bytes]:
    from memplan.targets import tflite_micro

    return tflite_micro.patch(Path(input), Path(out), chosen.plan, budget)


def _show(
    chosen: Planned, outputs: Iterable[str], applied: Applied | None, notes: Sequence[Note]
) -> None:
    from memplan.view.units import exact, plural
    from memplan.view.words import parts

    plan = chosen.plan
    for path in outputs:
        output.line(f"{path}: written")
    output.line(f"planned {exact(plan.peak or 0)}, {plan.status}")
    if applied is not None:
        for when, figure in (("before", applied.before), ("after", applied.after)):
            output.line(f"{when:<8}{exact(figure.bytes)} of {figure.runtime}, {figure.how}")
        if applied.arena is not None:
            output.line(f"arena   {exact(applied.arena)} are enough for all of it, measured")
        if applied.in_place:
            output.line(f"sharing {plural(applied.in_place, 'tensor')} written over another one")
        if applied.kept:
            kept = plural(applied.kept, "tensor")
            output.line(f"kept    {kept} where the file had them; --replan forgets that")
        if applied.folded:
            output.line(f"folded  {plural(applied.folded, 'operator')} that only unpacked weights")
    if notes:
        output.console().print(parts.render_notes(notes))
