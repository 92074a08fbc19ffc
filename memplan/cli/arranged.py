"""Programs in another order or in bands: what `memplan apply` writes of them, refuses and says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memplan.cli import options, output, reading
from memplan.cli.applied import join_notes, show, show_notes

if TYPE_CHECKING:
    from memplan.levers.pipeline import Arranged, Writer
    from memplan.runtimes.tflm.read.boards import Board


def write_arranged(
    input: str,
    model: options.Model,
    out: str,
    rewriting: options.Rewriting,
    *,
    board: Board | None,
    header: bool,
    name: str | None,
    fused: bool | None,
    **asked: Any,
) -> None:
    """Write a program in another order, or in bands.

    `asked` are more arguments of `memplan.arrange`: `order`, `again`, `bands`, `capacity`, limits.
    """
    from memplan.levers.pipeline import arrange
    from memplan.problem import formats
    from memplan.programs.sources import detect

    writer = _choose_writer(input, model, out, board, header=header, name=name, fused=fused)
    is_onnx = not header and detect(input) == "onnx"
    if not (header or asked["bands"] or asked["again"]) and (
        model.alignment > 1 or (is_onnx and asked["capacity"])
    ):
        raise typer.BadParameter(
            "leave out --alignment and, for an ONNX model, --capacity", param_hint="'--order'"
        )
    found = arrange(
        writer,
        in_place=model.in_place or is_onnx,
        max_extra=rewriting.max_extra,
        pure=rewriting.pure or (),
        **asked,
    )
    found.require_fit(rewriting.max_extra)
    if not rewriting.allow_inexact and not header:
        found.require_equal()
    details = found.best.written.details
    notes = found.notes if details is None else join_notes(found.planned.notes, details)
    reading.refuse_notes(input, notes if model.strict else ())
    formats.write_files({out: found.data})
    output.tell_written(out)
    output.tell_interrupted(found.interrupted, "the best so far")
    if asked["again"]:
        _show_again(found)
    if asked["bands"]:
        _show_bands(found, compared=not header)
    elif not asked["again"]:
        _show_order(found, measured=not header)
    if is_onnx:
        output.line(f"run     {found.best.written.run}")
        show_notes(notes)
    else:
        show(found.planned, (), details, notes)


def _choose_writer(
    input: str,
    model: options.Model,
    out: str,
    board: Board | None,
    *,
    header: bool,
    name: str | None,
    fused: bool | None,
) -> Writer:
    """Return the writer of a file, or of a header of any program."""
    if header:
        from memplan.runtimes.c.writer import CHeader

        return CHeader(reading.read_input(input, model=model, board=board), input, prefix=name)
    from memplan.runtimes.choosing import choose_writer

    asked = replace(model.reading(), board=board)
    return choose_writer(
        Path(input),
        Path(out),
        asked,
        allow_refused=model.allow_refused,
        written=True,
        fused=fused is not False,
    )


def _show_order(found: Arranged, *, measured: bool) -> None:
    """Say what the order needs, and which one was written if a runtime was asked."""
    from memplan.view.units import exact, plural

    order = found.order
    assert order is not None, "it was asked for"
    output.line(f"given   {exact(order.given_peak)} of load")
    moved = plural(len(order.moved), "operator")
    output.line(f"order   {exact(order.peak)} of load, {moved} moved")
    output.line(f"bound   {exact(order.bound)}: no order needs less")
    if not measured:
        return
    best = found.best
    how = best.written.how if best.written.is_whole else "the head only, not measured"
    if found.is_reordered:
        taken, other = "in the new order, which is written", "in the order of the file"
    else:
        taken, other = "in the order of the file, which is kept", "in the new order"
    output.line(f"arena   {exact(found.arena)} {taken}; {how}")
    others = [draft.arena for draft in found.drafts if draft is not best]
    if found.is_reordered or (others and others[-1] != found.arena):
        output.line(f"        {exact(others[-1] if others else found.arena)} {other}")


def _show_again(found: Arranged) -> None:
    """Say what runs again, or why nothing does."""
    from memplan.view.units import exact

    words = next((step.words for step in found.steps if step.lever == "again"), "")
    output.line(f"again   {words or 'nothing: the program fits without'}")
    output.line(f"arena   {exact(found.arena)}; {exact(found.plain.arena)} without more work")
    if found.again is not None:
        output.line(f"work    {found.extra:.2%} more")


def _show_bands(found: Arranged, *, compared: bool) -> None:
    """Say what is in bands, what it needs, and what it costs."""
    from memplan.view.units import exact
    from memplan.view.words.bands import describe_regions

    assert found.frontier is not None or found.fits, "bands were looked for"
    if found.point is None:
        why = found.explain().removeprefix(": ") or "the program fits as it is"
        output.line(f"bands   none: {why}")
        output.line(f"arena   {exact(found.arena)}")
        return
    assert found.frontier is not None
    output.line(f"bands   {describe_regions(found.frontier, found.point.regions)}")
    output.line(f"arena   {exact(found.arena)}; {exact(found.plain.arena)} without bands")
    repeated = f", of which {found.macs:,} repeated multiplications" * compared
    output.line(f"work    {found.extra:.1%} more{repeated}")
    if not compared:
        return
    if found.comparison is None:
        output.line("outputs not compared: the runtime does not run the model here")
        return
    apart = found.comparison.difference
    words = f"not the same bits, up to {apart:g} apart" if apart else "the same bits"
    times = found.comparison.time
    times_words = "" if times is None else f"; {times:.2f} times the CPU time, on this machine"
    output.line(f"outputs {words}{times_words}")
