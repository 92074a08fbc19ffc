"""`memplan apply`: write a plan, an order or bands where a runtime uses them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import arranged, fit, options, output, reading
from memplan.cli.applied import check_capacity, require_offsets, show
from memplan.cli.inputs import is_copy, keep

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.runtimes.tflm.read.boards import Board
    from memplan.solvers.planning import Planned

NAME = "apply"
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")
EXAMPLES = (
    "memplan apply model.tflite -o planned.tflite",
    "memplan apply model.onnx --dim batch=8 --c-header plan.h",
)


def command(
    input: options.Input,
    paths: options.Paths,
    limits: options.Limits,
    rewriting: options.Rewriting,
    on: options.OnBoard,
    out: Annotated[
        str | None,
        options.write_to("Write the model with the plan in it (.tflite)."),
    ] = None,
    order: Annotated[
        bool,
        typer.Option(
            "--order",
            help="Write the operators in the order that needs least memory: with a plan "
            "(.tflite, --c-header), or without one (.onnx).",
        ),
    ] = False,
    recompute: Annotated[
        bool,
        typer.Option(
            "--recompute",
            help="Run operators again so that --capacity is enough (.onnx, --c-header).",
        ),
    ] = False,
    bands: Annotated[
        bool,
        typer.Option(
            "--bands",
            help="Split the first large tensors into bands of rows to save memory. Outputs are "
            "checked against the original. A TFLite model is also put in the best order.",
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
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            "-c",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Write nothing if more memory than this is needed. For a header in C, the plan "
            "counts; for a TFLite model or its shim, the whole arena of TensorFlow Lite Micro.",
        ),
    ] = None,
    alignment: options.Alignment = 1,
    in_place: options.InPlace = False,
    replan: Annotated[
        bool,
        typer.Option("--replan", help="Ignore the offsets in the file, which are kept by default."),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the declarations in C.")
    ] = None,
    fused: Annotated[
        bool | None,
        typer.Option(
            "--fused/--no-fused",
            help="Let onnxruntime fuse the operators of an ONNX model first. By default it does so "
            "for an ONNX output if it is installed, so that sessions with default settings keep "
            "what is written.",
        ),
    ] = None,
    dim: options.Dim = None,
    strict: options.Strict = False,
    limit_factor: options.LimitFactor = 1,
) -> None:
    """Write a plan where a runtime uses it: into a TFLite model, as a C header, or as TFLM's shim.

    With --order, --recompute or --bands, the program itself is changed; this can write ONNX models
    too. The input file is not changed unless --overwrite is given. All outputs contain the same
    plan, that of `memplan plan` with the same options. Either all outputs are written or none. A
    plan of another model is rejected, and the message says what differs.
    """
    from memplan.programs.sources import detect

    if overwrite and is_copy(input):
        raise typer.BadParameter("the input is not a file on disk", param_hint="'--overwrite'")
    if overwrite and out is not None:
        raise typer.BadParameter("--output names another file", param_hint="'--overwrite'")
    model = input if overwrite else out
    if not (model or header or shim):
        raise typer.BadParameter("name an output: --output, --overwrite, --c-header or --shim")
    asked = {"--output": out, "--c-header": header, "--shim": shim}
    output.check_outputs(asked, input, *([plan] if plan else []))
    _check_kind(input, out)
    for each in (header, shim):
        output.check_suffix(each, dict.fromkeys(_HEADERS, "a header"))
    if recompute and capacity is None:
        raise typer.BadParameter("it needs --capacity", param_hint="'--recompute'")
    if rewriting.pure and not (order or bands or recompute):
        message = "it needs --order, --recompute or --bands"
        raise typer.BadParameter(message, param_hint="'--pure'")
    if (rewriting.max_extra is not None or rewriting.allow_inexact) and not (bands or recompute):
        hint = "'--allow-inexact'" if rewriting.max_extra is None else "'--max-extra-macs'"
        raise typer.BadParameter("it needs --bands or --recompute", param_hint=hint)
    if plan is not None and (in_place or replan or alignment > 1):
        raise typer.BadParameter(
            "leave out --in-place, --replan and --alignment", param_hint="'--plan'"
        )
    if dim and (model or shim) and detect(input) != "onnx":
        message = (
            "TFLM uses the sizes that are stored in the file: convert the model with other sizes"
        )
        raise typer.BadParameter(message, param_hint="'--dim'")
    reading_options = options.Model(
        dim,
        in_place=in_place,
        strict=strict,
        pins=not replan,
        alignment=alignment,
        limit_factor=limit_factor,
        allow_refused=rewriting.allow_refused,
        fused=bool(fused),
    )
    board = on.find()
    if board is not None and paths.path:
        raise typer.BadParameter("it is of one path; leave out --path", param_hint="'--board'")
    alone = None if header is None or model or shim else header
    with fit.naming_fit(input, capacity, dim, on, alone):
        if bands or order or recompute:
            if shim or plan or paths.path or (bands and (order or alignment > 1)):
                message = "leave out --shim, --plan, --path, and with --bands --alignment, --order"
                raise typer.BadParameter(message, param_hint="'--bands' or '--order'")
            if bool(model) == bool(header):
                message = "it writes one output: --output, --overwrite or --c-header"
                raise typer.BadParameter(message, param_hint="'--bands' or '--order'")
            arranged.write_arranged(
                input,
                reading_options,
                header or model or "",
                rewriting,
                board=board,
                header=bool(header),
                name=name,
                fused=fused,
                order=order or recompute or (not header and detect(input) == "tflite"),
                again=recompute,
                bands=bands,
                capacity=capacity,
                **vars(limits),
            )
        elif paths.path:
            if model or shim or plan or not header:
                message = "plans of paths need --c-header alone"
                raise typer.BadParameter(message, param_hint="'--path'")
            _write_paths(input, reading_options, paths, limits, header, name, capacity)
        else:
            asked = {"--output": model, "--c-header": header, "--shim": shim}
            _write_plan(input, reading_options, asked, plan, limits, capacity, name, board)
    if alone is not None and capacity is not None and detect(input) == "tflite":
        output.line(
            "counted the plan alone, as a header is for a runtime of yours; with --output or "
            "--shim, the whole arena of TensorFlow Lite Micro counts"
        )


def _check_kind(input: str, out: str | None) -> None:
    """Refuse a model whose name ends like a file of another kind."""
    from memplan.programs.sources import detect

    suffix = {"tflite": ".tflite", "onnx": ".onnx"}.get(detect(input))
    if suffix is not None:
        own = Path(output.names.get(input, input)).suffix.lower()
        output.check_suffix(out, dict.fromkeys((suffix, own), "the model"))


def _write_plan(
    input: str,
    reading_options: options.Model,
    asked: Mapping[str, str | None],
    plan: str | None,
    limits: options.Limits,
    capacity: int | None,
    name: str | None,
    board: Board | None,
) -> None:
    """Write one plan to all outputs, which are given by the option that names each."""
    from memplan.problem import formats
    from memplan.programs.sources import detect

    model, header, shim = asked["--output"], asked["--c-header"], asked["--shim"]
    if model and detect(input) == "tflite":
        from memplan.runtimes.tflm.read.model import load
        from memplan.runtimes.tflm.write import require_library

        require_library(load(Path(input)))
    tflite = bool(model or shim)
    chosen = _make_plan(input, reading_options, plan, limits, capacity, tflite=tflite, board=board)
    check_capacity(capacity, chosen.plan.peak or 0)
    outputs: dict[str, bytes] = {}
    applied = None
    if model or shim:
        stored = chosen.plan
        if reading_options.alignment > 1:
            stored = _plan_of_file(input, chosen, pins=reading_options.pins, board=board)
        from memplan.runtimes.tflm.write import patch

        target = Path(model or shim or "")
        allowed = reading_options.allow_refused
        applied, data = patch(
            Path(input),
            target,
            stored,
            capacity,
            allow_refused=allowed,
            board=board,
            as_file=bool(model),
        )
        if model:
            outputs[model] = data
    if shim:
        from memplan.runtimes.tflm.write import shim_header

        outputs[shim] = shim_header(
            Path(input), stored, name or "memory_plan", board=board
        ).encode()
    if header:
        from memplan.runtimes.c.header import write_header

        outputs[header] = write_header(chosen.loaded, chosen.plan, name=name).encode()
    notes = chosen.notes if applied is None else applied.notes
    reading.refuse_notes(input, notes if reading_options.strict else ())
    formats.write_files(outputs)
    show(chosen, outputs, applied if model else None, notes)


def _make_plan(
    input: str,
    model: options.Model,
    plan: str | None,
    limits: options.Limits,
    capacity: int | None,
    *,
    tflite: bool,
    board: Board | None,
) -> Planned:
    """Return the one plan of all outputs, and ask for the unit of the capacity before."""
    from memplan.base.errors import MemplanError
    from memplan.problem import formats
    from memplan.programs.sources import detect
    from memplan.solvers.planning import Planned, layout_of, plan_model
    from memplan.solvers.stopping import stoppable

    if tflite and detect(input) != "tflite":
        also = "; of an ONNX model, --order or --bands write another one"
        raise MemplanError(
            f"{input} is not a TFLite model; only TFLite models carry their plan"
            + also * (detect(input) == "onnx")
        )
    given = formats.load_plan(plan) if plan else None
    if given is not None and tflite:
        from memplan.runtimes.tflm.write import plan_file

        found = plan_file(Path(input), given, board=board)
        reading.refuse_notes(input, found.notes if model.strict else ())
        reading.require_unit(capacity, found.loaded)
        return found
    loaded = reading.read_input(input, model=model, board=board)
    reading.require_unit(capacity, loaded)
    if given is not None:
        return Planned(layout_of(loaded, given, in_place=True), given)
    with stoppable() as stop:
        found = plan_model(loaded, in_place=model.in_place, **vars(limits))
    output.tell_interrupted(stop.is_set, found.plan.status)
    require_offsets(found)
    return found


def _write_paths(
    input: str,
    model: options.Model,
    paths: options.Paths,
    limits: options.Limits,
    header: str,
    name: str | None,
    capacity: int | None,
) -> None:
    """Write one header with the plans of several paths."""
    from memplan.problem import formats
    from memplan.runtimes.c.paths import write_paths_header
    from memplan.scenarios.paths import plan_paths
    from memplan.view.words import paths as words

    loaded = reading.read_input(input, model=model)
    reading.require_unit(capacity, loaded)
    asked = paths.arguments(limits.nodes)
    found = plan_paths(loaded, **asked, in_place=model.in_place, timeout=limits.timeout)
    output.tell_interrupted(found.interrupted, "the best so far")
    check_capacity(capacity, found.peak)
    formats.write_files({header: write_paths_header(found, name=name).encode()})
    output.tell_written(header)
    output.console().print(words.describe_paths(found))


def _plan_of_file(input: str, chosen: Planned, *, pins: bool, board: Board | None) -> Plan:
    """Return a plan with a stricter alignment as a plan of the problem in the file."""
    from memplan.problem.plan import Plan
    from memplan.solvers.planning import layouts

    loaded = reading.read_input(input, model=options.Model(pins=pins), board=board)
    problem = layouts(loaded, in_place=chosen.in_place)[-1].problem
    return Plan.of(problem, [chosen.plan.offset(id) for id in problem.ids])
