"""`memplan apply`: hand a plan to the runtime that will use it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output
from memplan.cli.inputs import is_copy, keep

if TYPE_CHECKING:
    from memplan.notes import Note
    from memplan.plan import Plan
    from memplan.planning import Planned
    from memplan.rewrite import Reordered
    from memplan.targets.tflite_micro import Applied, InBands, InOrder

NAME = "apply"


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
    stripes: Annotated[
        bool,
        typer.Option(
            "--stripes",
            help="Compute the first large tensors one band of rows at a time: in the best order "
            "(.tflite, --c-header), or of an .onnx; outputs are compared with those of the model.",
        ),
    ] = False,
    max_extra: Annotated[
        float | None,
        typer.Option(
            "--max-extra-macs",
            parser=options.parse_share,
            metavar="SHARE",
            help="With --stripes: the most work that bands may add, as a share of the "
            "multiplications of the model; 10% by default, and no limit with --arena-budget.",
        ),
    ] = None,
    allow_inexact: Annotated[
        bool,
        typer.Option(
            "--allow-inexact",
            help="With --stripes: also write bands whose outputs differ in some bits, or could not "
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
            "--arena-budget",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Write nothing if the arena would need more than this.",
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
    """Write a plan where a runtime uses it: into a TFLite model, or as a C header.

    The input file is not changed unless --overwrite is given. All outputs contain one plan, which
    is that of `memplan plan` with the same options. Either all outputs are written or none. A plan
    of another model is rejected, with the difference.
    """
    from memplan.sources import detect

    if overwrite and is_copy(input):
        raise typer.BadParameter("the input is not a file on disk", param_hint="'--overwrite'")
    if overwrite and out is not None:
        raise typer.BadParameter("--output names another file", param_hint="'--overwrite'")
    model = input if overwrite else out
    _check_outputs(input, out, model, header, shim, plan)
    if pure and not (order or stripes):
        raise typer.BadParameter("it needs --order or --stripes", param_hint="'--pure'")
    if (max_extra is not None or allow_inexact) and not stripes:
        hint = "'--max-extra-macs'" if max_extra is not None else "'--allow-inexact'"
        raise typer.BadParameter("it needs --stripes", param_hint=hint)
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
    if stripes:
        if shim or plan or path or order or alignment > 1 or bool(model) == bool(header):
            message = "it writes one output, in the best order: --output, --overwrite or --c-header"
            raise typer.BadParameter(message, param_hint="'--stripes'")
        if header:
            _write_bands_header(input, reading, header, name, budget, max_extra, timeout, nodes)
        else:
            _write_bands(
                input, reading, model or "", budget, max_extra, allow_inexact, pure, timeout, nodes
            )
        return
    if order:
        if shim or plan or path or bool(model) == bool(header):
            message = "it writes one output: --output, --overwrite or --c-header"
            raise typer.BadParameter(message, param_hint="'--order'")
        if header:
            _write_ordered_header(input, reading, header, name, budget, pure, timeout, nodes)
        else:
            _write_ordered_model(input, reading, model or "", budget, pure, timeout, nodes)
        return
    if path:
        if model or shim or plan or not header:
            raise typer.BadParameter("plans of paths need --c-header alone", param_hint="'--path'")
        _write_paths(input, reading, path, known, header, name, budget, timeout, nodes)
        return
    if known:
        raise typer.BadParameter("it needs --path", param_hint="'--known'")
    chosen = _make_plan(input, reading, plan, timeout, nodes, tflite=bool(model or shim))
    _check_budget(budget, chosen.plan.peak or 0)

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
        also = "; of an ONNX model, --order or --stripes write another one"
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
    _require_offsets(found)
    return found


def _require_offsets(found: Planned) -> None:
    from memplan.errors import MemplanError

    if not found.plan.has_offsets:
        raise MemplanError(f"no plan was found ({found.plan.status}); nothing was written")


def _write_ordered_model(
    input: str,
    model: options.Model,
    out: str,
    budget: int | None,
    pure: list[str] | None,
    timeout: float | None,
    nodes: int | None,
) -> None:
    """Write a model with its operators in the order with the least load."""
    from memplan import formats
    from memplan.errors import MemplanError
    from memplan.sources import detect

    kind = detect(input)
    if model.alignment > 1 or (kind == "onnx" and budget is not None):
        raise typer.BadParameter(
            "leave out --alignment and, for an ONNX model, --arena-budget", param_hint="'--order'"
        )
    if kind == "tflite":
        from memplan.targets.tflite_micro import apply_in_order

        found = apply_in_order(
            Path(input),
            Path(out),
            in_place=model.in_place,
            replan=not model.pins,
            arena_budget=budget,
            allow_refused=model.allow_refused,
            pure=pure or (),
            timeout=timeout,
            nodes=nodes,
        )
        given = found.reordered.loaded.notes if found.is_new else ()
        notes = _join(given, found.applied)
        options.refuse_notes(input, notes if model.strict else ())
        formats.write_files({out: found.data})
        _show_loads(out, found.reordered)
        _show_arenas(found)
        _show(found.planned, (), found.applied, notes)
        return
    if kind != "onnx":
        raise MemplanError(
            f"{input} is neither a TFLite nor an ONNX model: no other file is written in another "
            "order; --c-header writes the order and its plan as a header"
        )
    from memplan.targets.onnx import HOW_TO_RUN, reorder_bytes

    ordered, data = reorder_bytes(
        Path(input), model.reading(), timeout=timeout, states=nodes, pure=pure or ()
    )
    options.refuse_notes(input, ordered.loaded.notes if model.strict else ())
    formats.write_files({out: data})
    _show_loads(out, ordered)
    output.line(HOW_TO_RUN)
    _show_notes(ordered.loaded.notes)


def _join(given: Sequence[Note], applied: Applied) -> tuple[Note, ...]:
    """Return the notes on a model with those on what was written; of refusals only the latter."""
    from memplan.notes import Code

    kept = (note for note in given if note.code is not Code.RUNTIME_REFUSES)
    return tuple(dict.fromkeys((*kept, *applied.notes)))


def _write_bands(
    input: str,
    model: options.Model,
    out: str,
    budget: int | None,
    max_extra: float | None,
    allow_inexact: bool,
    pure: list[str] | None,
    timeout: float | None,
    nodes: int | None,
) -> None:
    """Write a model whose first large tensors are computed in bands."""
    from memplan import formats
    from memplan.errors import MemplanError
    from memplan.sources import detect
    from memplan.targets.tflite_micro import apply_in_bands

    kind = detect(input)
    if kind == "onnx":
        _write_onnx_bands(input, model, out, budget, max_extra, allow_inexact)
        return
    if kind != "tflite":
        raise MemplanError(
            f"{input} is neither a TFLite nor an ONNX model: no other file is written in bands"
        )
    found = apply_in_bands(
        Path(input),
        Path(out),
        max_extra=max_extra,
        arena_budget=budget,
        allow_inexact=allow_inexact,
        allow_refused=model.allow_refused,
        in_place=model.in_place,
        replan=not model.pins,
        pure=pure or (),
        timeout=timeout,
        nodes=nodes,
    )
    notes = _join(found.plain.reordered.loaded.notes, found.applied)
    options.refuse_notes(input, notes if model.strict else ())
    formats.write_files({out: found.data})
    output.line(f"{out}: written")
    _show_bands(found)
    _show(found.planned, (), found.applied, notes)


def _write_onnx_bands(
    input: str,
    model: options.Model,
    out: str,
    budget: int | None,
    max_extra: float | None,
    allow_inexact: bool,
) -> None:
    """Write an ONNX model whose large tensors are computed in bands, compared in onnxruntime."""
    from memplan import formats
    from memplan.errors import MemplanError
    from memplan.rewrite.stripes import MAX_EXTRA
    from memplan.targets.onnx_bands import HOW_TO_RUN, stripe_bytes
    from memplan.view.units import exact
    from memplan.view.words.stripes import describe_regions
    from memplan.yardsticks.onnxruntime import measure_difference

    if max_extra is None:
        max_extra = MAX_EXTRA if budget is None else float("inf")
    found, data = stripe_bytes(Path(input), model.reading(), max_extra=max_extra, budget=budget)
    options.refuse_notes(input, found.notes if model.strict else ())
    difference = 0.0
    if found.cut.regions:
        apart = measure_difference(Path(input).read_bytes(), data)
        if apart is None and not allow_inexact:
            raise MemplanError(
                f"{input}: onnxruntime does not run this model here, so the outputs of its bands "
                "were not compared; --allow-inexact writes them nevertheless"
            )
        if apart and not allow_inexact:
            raise MemplanError(
                f"{input}: in bands, outputs differ from those of the model by up to {apart:g}; "
                "--allow-inexact writes the bands nevertheless"
            )
        difference = apart or 0.0
    formats.write_files({out: data})
    output.line(f"{out}: written")
    regions = describe_regions(found.frontier, found.cut.regions)
    explained = found.frontier.explain(found.frontier.points[0])
    output.line(f"bands   {regions or f'none: {explained}'}")
    output.line(f"load    {exact(found.peak)}; {exact(found.given_peak)} without bands")
    output.line(f"work    {found.extra:.1%} more")
    same = f"up to {difference:g} apart" if difference else "the same bits"
    output.line(f"outputs {same}")
    output.line(HOW_TO_RUN)
    _show_notes(found.notes)


def _write_bands_header(
    input: str,
    model: options.Model,
    header: str,
    name: str | None,
    budget: int | None,
    max_extra: float | None,
    timeout: float | None,
    nodes: int | None,
) -> None:
    """Write a header with the steps of a program in bands, and a plan of it."""
    from memplan import formats
    from memplan.cli.stripes import load_program
    from memplan.planning import plan_model
    from memplan.rewrite.stripes import MAX_EXTRA, find_frontier
    from memplan.sources import of_graph
    from memplan.targets.c_header import write_header
    from memplan.view.units import exact
    from memplan.view.words.stripes import describe_regions

    loaded = options.read_input(input, model=model)
    found = find_frontier(load_program(input, model).for_own_kernels())
    if max_extra is None:
        max_extra = MAX_EXTRA if budget is None else float("inf")
    point = found.choose(max_extra=max_extra, budget=budget)
    bands = found.cut(point)
    read = of_graph(bands.graph(), notes=loaded.notes)
    planned = plan_model(read, in_place=model.in_place, timeout=timeout, nodes=nodes)
    _require_offsets(planned)
    _check_budget(budget, planned.plan.peak or 0)
    options.refuse_notes(input, planned.notes if model.strict else ())
    text = write_header(planned.loaded, planned.plan, name=name, bands=bands)
    formats.write_files({header: text.encode()})
    output.line(f"{header}: written")
    if point.regions:
        output.line(f"bands   {describe_regions(found, point.regions)}")
        output.line(f"work    {found.extra(point):.1%} more")
    else:
        output.line(f"bands   none: {found.explain(point)}")
    output.line(f"whole   {exact(found.points[0].load)} of load")
    _show(planned, (), None, planned.notes)


def _show_bands(found: InBands) -> None:
    """Say what is in bands, what it needs, and what it costs."""
    from memplan.view.units import exact
    from memplan.view.words.stripes import describe_regions

    if not found.point.regions:
        output.line(f"bands   none: {found.frontier.explain(found.point)}")
        output.line(f"arena   {exact(found.arena)}")
        return
    output.line(f"bands   {describe_regions(found.frontier, found.point.regions)}")
    output.line(f"arena   {exact(found.arena)}; {exact(found.plain.arena)} without bands")
    share = found.frontier.extra(found.point)
    output.line(f"work    {share:.1%} more, of which {found.macs:,} repeated multiplications")
    if found.comparison is None:
        output.line("outputs not compared: TFLM does not run the model here")
    else:
        same = "the same bits" if not found.comparison.difference else "not the same bits"
        apart = f", up to {found.comparison.difference:g} apart" * bool(found.comparison.difference)
        times = f"{found.comparison.time:.2f}"
        output.line(f"outputs {same}{apart}; {times} times the CPU time, on this machine")


def _write_ordered_header(
    input: str,
    model: options.Model,
    header: str,
    name: str | None,
    budget: int | None,
    pure: list[str] | None,
    timeout: float | None,
    nodes: int | None,
) -> None:
    """Write a header with the order with the least load, and a plan of it."""
    from memplan import formats
    from memplan.planning import plan_model
    from memplan.rewrite import reorder_to_plan, require_stored
    from memplan.targets.c_header import write_header

    loaded = options.read_input(input, model=model)
    begun = time.perf_counter()
    found = reorder_to_plan(
        loaded,
        in_place=model.in_place,
        timeout=None if timeout is None else timeout / 2,
        states=nodes,
        pure=pure or (),
    )
    require_stored(loaded, found, input)
    left = None if timeout is None else max(timeout - (time.perf_counter() - begun), timeout / 2)
    planned = plan_model(found.loaded, in_place=model.in_place, timeout=left, nodes=nodes)
    _require_offsets(planned)
    _check_budget(budget, planned.plan.peak or 0)
    options.refuse_notes(input, planned.notes if model.strict else ())
    text = write_header(planned.loaded, planned.plan, name=name, order=found.order)
    formats.write_files({header: text.encode()})
    _show_loads(header, found)
    _show(planned, (), None, planned.notes)


def _show_loads(out: str, found: Reordered) -> None:
    from memplan.view.units import exact, plural

    output.line(f"{out}: written")
    output.line(f"given   {exact(found.given_peak)} of load")
    output.line(
        f"order   {exact(found.peak)} of load, {plural(len(found.moved), 'operator')} moved"
    )
    output.line(f"bound   {exact(found.bound)}: no order needs less")


def _show_arenas(found: InOrder) -> None:
    """Say which order the file is in, and what the other one needs."""
    from memplan.view.units import exact

    how = "measured" if found.is_measured else "the head only, not measured"
    if found.is_new:
        taken, other = "in the new order, which is written", "in the order of the file"
    else:
        taken, other = "in the order of the file, which is kept", "in the new order"
    output.line(f"arena   {exact(found.arena)} {taken}; {how}")
    if found.is_new or found.other != found.arena:
        output.line(f"        {exact(found.other)} {other}")


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
    _check_budget(budget, found.peak)
    formats.write_files({header: write_paths_header(found, name=name).encode()})
    output.line(f"{header}: written")
    output.console().print(words.describe_paths(found))


def _check_budget(budget: int | None, peak: int) -> None:
    """Refuse a plan above the budget for the arena; a later check counts what TFLM adds to it."""
    from memplan.errors import MemplanError

    if budget is not None and peak > budget:
        raise MemplanError(
            f"the plan needs {peak} bytes, {peak - budget} more than the budget of {budget}: "
            "nothing was written"
        )


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


def _show(
    chosen: Planned, outputs: Iterable[str], applied: Applied | None, notes: Sequence[Note]
) -> None:
    from memplan.view.units import exact, plural

    plan = chosen.plan
    for path in outputs:
        output.line(f"{path}: written")
    output.line(f"planned {exact(plan.peak or 0)}, {plan.status}")
    if applied is not None:
        for when, figure in (("before", applied.before), ("after", applied.after)):
            output.line(f"{when:<8}{exact(figure.bytes)} of {figure.runtime}, {figure.how}")
        if applied.arena is not None:
            output.line(f"arena   {exact(applied.arena)} are enough for the whole model, measured")
        if applied.in_place:
            output.line(
                f"sharing {plural(applied.in_place, 'tensor')} in the memory of another one"
            )
        if applied.kept:
            kept = plural(applied.kept, "tensor")
            output.line(f"kept    {kept} at the offsets in the file; --replan ignores them")
        if applied.folded:
            output.line(f"folded  {plural(applied.folded, 'operator')} that only unpack weights")
    _show_notes(notes)


def _show_notes(notes: Sequence[Note]) -> None:
    from memplan.view.words import parts

    if notes:
        output.console().print(parts.render_notes(notes))
