"""`memplan apply --stripes`: models and headers in bands, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memplan.cli import options, output
from memplan.cli.applied import check_budget, join_notes, require_offsets, show, show_notes

if TYPE_CHECKING:
    from memplan.targets.tflite_micro import InBands


def write_bands(
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
    notes = join_notes(found.plain.reordered.loaded.notes, found.applied)
    options.refuse_notes(input, notes if model.strict else ())
    formats.write_files({out: found.data})
    output.line(f"{out}: written")
    _show_bands(found)
    show(found.planned, (), found.applied, notes)


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
    from memplan.rewrite.bands import MAX_EXTRA
    from memplan.targets.onnx_bands import HOW_TO_RUN, stripe_bytes
    from memplan.view.units import exact
    from memplan.view.words.bands import describe_regions
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
    show_notes(found.notes)


def write_bands_header(
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
    from memplan.rewrite.bands import MAX_EXTRA, Uncut, find_frontier, tell_rows
    from memplan.sources import of_graph
    from memplan.targets.c_header import write_header
    from memplan.view.units import exact
    from memplan.view.words.bands import describe_regions

    loaded = options.read_input(input, model=model)
    found = find_frontier(Uncut(tell_rows(load_program(input, model).graph)))
    if max_extra is None:
        max_extra = MAX_EXTRA if budget is None else float("inf")
    point = found.choose(max_extra=max_extra, budget=budget)
    bands = found.cut(point)
    read = of_graph(bands.graph(), notes=loaded.notes)
    planned = plan_model(read, in_place=model.in_place, timeout=timeout, nodes=nodes)
    require_offsets(planned)
    check_budget(budget, planned.plan.peak or 0)
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
    show(planned, (), None, planned.notes)


def _show_bands(found: InBands) -> None:
    """Say what is in bands, what it needs, and what it costs."""
    from memplan.view.units import exact
    from memplan.view.words.bands import describe_regions

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
