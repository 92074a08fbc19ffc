"""`memplan apply`: write a plan, an order or bands where a runtime uses them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import arranged, options, output
from memplan.cli.applied import check_budget, require_offsets, show
from memplan.cli.inputs import is_copy, keep

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.planning import Planned
    from memplan.targets.tflite_micro import Applied

NAME = "apply"
EXAMPLES = (
    "memplan apply model.tflite -o planned.tflite",
    "memplan apply model.onnx --dim batch=8 --c-header plan.h",
)


def command(
    input: options.Input,
    out: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the model with the plan in it (.tflite)."
        ),
    ] = None,
    order: Annotated[
        bool,
        typer.Option(
            "--order",
            help="Write the operators in the order with the least load, with a plan of that "
            "(.tflite, --c-header), or as they are (.onnx).",
        ),
    ] = False,
    bands: Annotated[
        bool,
        typer.Option(
            "--bands",
            help="Split the first large tensors into bands of rows to save memory; a TFLite model "
            "is put in the best order too. Outputs are checked against the original.",
        ),
    ] = False,
    max_extra: Annotated[
        float | None,
        typer.Option(
            "--max-extra-macs",
            parser=options.parse_share,
            metavar="SHARE",
            help="With --bands: the most work that bands may add, as a share of the "
            "multiplications of the model; 10% by default, and no limit with --capacity.",
        ),
    ] = None,
    allow_inexact: Annotated[
        bool,
        typer.Option(
            "--allow-inexact",
            help="With --bands: also write bands whose outputs differ in some bits, or could not "
            "be compared.",
        ),
    ] = False,
    allow_refused: Annotated[
        bool,
        typer.Option(
            "--allow-refused",
            help="Also write a model that TensorFlow Lite Micro refuses here, for a build of it "
            "that takes it.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write the plan into the model's own file.")
    ] = False,
    header: Annotated[
        str | None,
        typer.Option("--c-header", metavar="FILE", help="Write the plan as a C and C++ header."),
    ] = None,
    shim: Annotated[
        str | None,
        typer.Option(
            "--shim",
            metavar="FILE",
            help="Write the plan as a NonPersistentMemoryPlannerShim of TFLM, in C++.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan", metavar="PLAN", help="Use this plan instead of a new one.", callback=keep
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            "-c",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Write nothing if more than this is needed: of a TFLite model, by the whole arena "
            "of TensorFlow Lite Micro.",
        ),
    ] = None,
    alignment: options.Alignment = 1,
    in_place: options.InPlace = False,
    pure: options.Pure = None,
    replan: Annotated[
        bool,
        typer.Option("--replan", help="Ignore the offsets in the file, which are kept by default."),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the declarations in C.")
    ] = None,
    path: options.Branches = None,
    known: options.Known = None,
    dim: options.Dim = None,
    timeout: options.Timeout = None,
    nodes: options.Nodes = None,
    strict: options.Strict = False,
    limit_factor: options.LimitFactor = 1,
) -> None:
    """Write a plan where a runtime uses it: into a TFLite model, as a C header, or as TFLM's shim.

    With --order or --bands, another program is written, of an ONNX model too. The input file
    is not changed unless --overwrite is given. All outputs contain one plan, which is that of
    `memplan plan` with the same options. Either all outputs are written or none. A plan
    of another model is rejected, with the difference.
    """
    from memplan.sources import detect

    if overwrite and is_copy(input):
        raise typer.BadParameter("the input is not a file on disk", param_hint="'--overwrite'")
    if overwrite and out is not None:
        raise typer.BadParameter("--output names another file", param_hint="'--overwrite'")
    model = input if overwrite else out
    _check_outputs(input, out, model, header, shim, plan)
    if pure and not (order or bands):
        raise typer.BadParameter("it needs --order or --bands", param_hint="'--pure'")
    if (max_extra is not None or allow_inexact) and not bands:
        hint = "'--max-extra-macs'" if max_extra is not None else "'--allow-inexact'"
        raise typer.BadParameter("it needs --bands", param_hint=hint)
    if plan is not None and (in_place or replan or alignment > 1):
        raise typer.BadParameter(
            "leave out --in-place, --replan and --alignment", param_hint="'--plan'"
        )
    if dim and (model or shim) and detect(input) != "onnx":
        message = (
            "TFLM uses the sizes that are stored in the file: convert the model with other sizes"
        )
        raise typer.BadParameter(message, param_hint="'--dim'")
    reading = options.Model(
        dim,
        in_place=in_place,
        strict=strict,
        pins=not replan,
        alignment=alignment,
        limit_factor=limit_factor,
        allow_refused=allow_refused,
    )
    if bands or order:
        if shim or plan or path or (bands and (order or alignment > 1)):
            message = "leave out --shim, --plan, --path, and with --bands --alignment, --order"
            raise typer.BadParameter(message, param_hint="'--bands' or '--order'")
        if bool(model) == bool(header):
            message = "it writes one output: --output, --overwrite or --c-header"
            raise typer.BadParameter(message, param_hint="'--bands' or '--order'")
        asked = arranged.Asked(
            order=order or (not header and detect(input) == "tflite"),
            bands=bands,
            max_extra=max_extra,
            budget=budget,
            allow_inexact=allow_inexact,
            pure=pure or (),
            timeout=timeout,
            nodes=nodes,
        )
        out = header or model or ""
        arranged.write_arranged(input, reading, asked, out, header=bool(header), name=name)
        return
    if path:
        if model or shim or plan or not header:
            raise typer.BadParameter("plans of paths need --c-header alone", param_hint="'--path'")
        _write_paths(input, reading, path, known, header, name, budget, timeout, nodes)
        return
    if known:
        raise typer.BadParameter("it needs --path", param_hint="'--known'")
    chosen = _make_plan(input, reading, plan, timeout, nodes, tflite=bool(model or shim))
    check_budget(budget, chosen.plan.peak or 0)

    from memplan import formats

    outputs: dict[str, bytes] = {}
    applied = None
    if model or shim:
        stored = chosen.plan if alignment == 1 else _plan_of_file(input, chosen, pins=not replan)
        applied, data = _patch(input, model or shim or "", stored, budget, allow_refused)
        if model:
            outputs[model] = data
    if shim:
        from memplan.targets.tflite_micro import shim_header

        outputs[shim] = shim_header(Path(input), stored, name or "memory_plan").encode()
    if header:
        from memplan.targets.c_header import write_header

        outputs[header] = write_header(chosen.loaded, chosen.plan, name=name).encode()
    notes = chosen.notes if applied is None else applied.notes
    options.refuse_notes(input, notes if strict else ())
    formats.write_files(outputs)
    show(chosen, outputs, applied if model else None, notes)


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
        raise typer.BadParameter("name an output: --output, --overwrite, --c-header or --shim")
    for path in (out, header, shim):
        output.check_output(path, input, *([plan] if plan else []))
    if len(set(written)) < len(written):
        raise typer.BadParameter("two outputs have the same file")


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
        also = "; of an ONNX model, --order or --bands write another one"
        raise MemplanError(
            f"{input} is not a TFLite model; only TFLite models carry their plan"
            + also * (detect(input) == "onnx")
        )
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
    require_offsets(found)
    return found


def _write_paths(
    input: str,
    model: options.Model,
    path: list[str],
    known: list[str] | None,
    header: str,
    name: str | None,
    budget: int | None,
    timeout: float | None,
    nodes: int | None,
) -> None:
    """Write one header with the plans of several paths."""
    from memplan import formats
    from memplan.paths import plan_paths
    from memplan.targets.c_paths import write_paths_header
    from memplan.view.words import paths as words

    loaded = options.read_input(input, model=model)
    asked = options.parse_paths(path, known)
    if nodes is not None:
        asked["nodes"] = nodes
    found = plan_paths(loaded, **asked, in_place=model.in_place, timeout=timeout)
    check_budget(budget, found.peak)
    formats.write_files({header: write_paths_header(found, name=name).encode()})
    output.line(f"{header}: written")
    output.console().print(words.describe_paths(found))


def _plan_of_file(input: str, chosen: Planned, *, pins: bool) -> Plan:
    """Return a plan with a stricter alignment as a plan of the problem in the file."""
    from memplan.plan import Plan
    from memplan.planning import layouts

    loaded = options.read_input(input, model=options.Model(pins=pins))
    problem = layouts(loaded, in_place=chosen.in_place)[-1].problem
    return Plan.of(problem, [chosen.plan.offset(id) for id in problem.ids])


def _patch(
    input: str, out: str, plan: Plan, budget: int | None, allow_refused: bool
) -> tuple[Applied, bytes]:
    from memplan.targets.tflite_micro import patch

    return patch(Path(input), Path(out), plan, budget, allow_refused=allow_refused)
