"""Writes plans into TFLite models for users of the library: one function for each way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memplan.base.errors import MemplanError
from memplan.base.files import read_bytes
from memplan.levers.pipeline import Arranged, Variant, arrange
from memplan.problem.formats import write_bytes
from memplan.problem.plan import Plan
from memplan.programs.sources.options import Board, Options
from memplan.runtimes.tflm.read.model import load
from memplan.runtimes.tflm.write.folding import require_library
from memplan.runtimes.tflm.write.planning import plan_file
from memplan.runtimes.tflm.write.writer import Applied, TfliteMicro

__all__ = ["apply", "apply_in_bands", "apply_in_order", "patch"]


def apply(
    model: Path,
    out: Path,
    *,
    plan: Plan | None = None,
    capacity: int | None = None,
    in_place: bool = False,
    replan: bool = False,
    overwrite: bool = False,
    allow_refused: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
    board: Board | None = None,
) -> Applied:
    """Write a plan into a TFLite model, as the metadata that TensorFlow Lite Micro obeys.

    The new file is the old one with new tables in front (`metadata`), or with other numbers in the
    plan that it had. It is only rewritten as a whole if weights have to be unpacked (`folding`).

    Parameters
    ----------
    model, out
        The file as it is, and where to write it; not the same unless `overwrite`.
    plan
        A plan of this model, with or without in-place choices; `None` makes the one that
        `memplan.plan_model` makes.
    capacity
        Bytes that the arena may have. Where tflite-micro is installed, the smallest whole arena is
        measured; elsewhere only its head is computed and compared with the capacity, and a note
        says so.
    in_place
        Whether results may be written over inputs that are not needed any more, where the kernel
        allows it (`memplan.runtimes.tflm.operators.TABLE` says which and why). This includes
        inputs of the model. Even without this option their memory is reused after their last
        read, so set the inputs before every run.
    replan
        Whether offsets in the file are dropped; otherwise they are kept.
    overwrite
        Whether `out` may be the model itself.
    allow_refused
        Whether a model may be written that TFLM refuses, as another build of it may have the
        kernels. A note says why TFLM refuses it.
    timeout, nodes
        Arguments of `memplan.plan_model`, for all searches together.
    board
        Where the model will run: the scratch of its kernels is planned, and the arena is computed
        for it and not measured.

    Raises
    ------
    FormatError
        If the file is damaged or cannot be written.
    PlanError
        If the plan does not fit this model; the sentence says what differs.
    MemplanError
        If the plan exceeds the capacity (the sentence says by how many bytes), TFLM refuses the
        model, there is no plan in time, or a library is missing. Then no file has been written.
    """
    if out.exists() and model.exists() and out.samefile(model) and not overwrite:
        raise MemplanError(f"{out} is the model itself: name another file, or use --overwrite")
    require_library(load(model))
    if plan is None:
        plan = plan_file(
            model,
            None,
            in_place=in_place,
            replan=replan,
            timeout=timeout,
            nodes=nodes,
            board=board,
        ).plan
    applied, data = patch(model, out, plan, capacity, allow_refused=allow_refused, board=board)
    write_bytes(out, data)
    return applied


def patch(
    model: Path,
    out: Path,
    plan: Plan,
    capacity: int | None = None,
    *,
    allow_refused: bool = False,
    board: Board | None = None,
    as_file: bool = True,
) -> tuple[Applied, bytes]:
    """Return the bytes that `apply` would write, and its result; no file is written.

    Parameters
    ----------
    model, out, plan, capacity, allow_refused, board
        See `apply`.
    as_file
        Whether the bytes will be used, and not only a header beside the model: no file can place
        the scratch of kernels in an arena that several programs share.

    Raises
    ------
    FormatError, PlanError, MemplanError
        As `apply` does.
    """
    made = plan_file(model, plan, board=board)
    options = Options(board=board)
    writer = TfliteMicro(
        model, out, options, allow_refused=allow_refused, head_only=True, capacity=capacity
    )
    if as_file:
        writer.require_scratch_in_place(made)
    written = writer.write(Variant(made.loaded, read_bytes(model)), made)
    return written.details, written.data


def apply_in_order(
    model: Path,
    out: Path,
    *,
    replan: bool = False,
    allow_refused: bool = False,
    **asked: Any,
) -> Arranged:
    """Plan a model in its own order and in the one with the least load; take the smaller arena.

    No file is written.

    Parameters
    ----------
    model, out, replan, allow_refused
        See `memplan.runtimes.tflm.write.apply`.
    asked
        Arguments of `memplan.levers.pipeline.arrange`: `in_place`, `bands`, `max_extra`,
        `capacity`, `pure`, `timeout`, `nodes`.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `memplan.levers.pipeline.arrange` and `memplan.runtimes.tflm.write.apply` do; if nothing
        meets the capacity (the sentence says what is the least, and what holds it up).
    """
    options = Options(pins=not replan)
    writer = TfliteMicro(model, out, options, allow_refused=allow_refused)
    found = arrange(writer, order=True, **asked)
    found.require_fit(asked.get("max_extra"))
    return found


def apply_in_bands(
    model: Path, out: Path, *, allow_inexact: bool = False, **asked: Any
) -> Arranged:
    """Cut a model into bands, plan it, and compare its outputs with those of the model.

    No file is written. The best programs in bands by their loads are planned and measured, beside
    the model without bands; so the arena is never larger than that of `apply_in_order`.

    Parameters
    ----------
    model, out, asked
        See `apply_in_order`.
    allow_inexact
        Whether outputs may differ from those of the model in some bits, or are not compared because
        TFLM does not run the model.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `apply_in_order`; or if outputs differ.
    """
    found = apply_in_order(model, out, bands=True, **asked)
    if not allow_inexact:
        found.require_equal()
    return found
