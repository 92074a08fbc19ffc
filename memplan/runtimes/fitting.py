"""Makes a program fit into the memory that there is, at the least cost: `memplan fit`.

What costs nothing comes first: offsets, writes over inputs, the order of operators. Operators that
run again, and bands, come last, with as little repeated work as fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from memplan.base.errors import MemplanError, quoted
from memplan.base.files import write_files
from memplan.base.notes import Note
from memplan.base.sizes import parse_size
from memplan.levers.pipeline import Arranged, Variant, Writer, Written, arrange
from memplan.levers.rewrite.bands import MAX_EXTRA
from memplan.machine.memories import Memory
from memplan.machine.memories.accesses import Times
from memplan.programs.sources import Loaded, detect, load
from memplan.programs.sources.options import Board, Options
from memplan.runtimes.choosing import choose_writer
from memplan.runtimes.housed import Housed
from memplan.runtimes.memories import house
from memplan.runtimes.tflm.read.boards import find_board
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = ["FittedMemories", "find_fit", "fit", "fit_memories"]

_MOST_POINTS: Final = 8  # of the frontier of bands that are assigned to several memories


def fit(
    model: Any,
    size: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    max_extra: float | None = None,
    head_only: bool = False,
    allow_inexact: bool = False,
    allow_refused: bool = False,
    pure: Iterable[str] = (),
    board: str | Board | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Arranged:
    """Make a program need no more memory than there is, and say what was done.

    Parameters
    ----------
    model
        What `memplan.load` takes (a file, or a `torch.export.ExportedProgram`), or its result.
    size
        What there is: bytes, or words like "256KiB". For a TFLite model it is the whole arena of
        TensorFlow Lite Micro. Without it, all levers are tried, and the steps of the result say the
        least that each needs.
    out
        Where to write what fits: a model of the same kind, or a header in C (`.h`). Nothing is
        written if nothing fits, nor without a size.
    dims
        See `memplan.load`.
    max_extra
        The most work that may be added, as a share of that of the program; no limit by default.
    head_only
        Whether the size is that of the plan alone, without what TFLM keeps beside it.
    allow_inexact
        Whether outputs may differ in some bits, or are not compared because the runtime does not
        run the program here.
    allow_refused
        Whether a model may be written that TFLM refuses.
    pure
        See `memplan.levers.rewrite.reorder`.
    board
        See `memplan.load`: the size is then of the arena on that board.
    timeout, nodes
        See `memplan.levers.pipeline.arrange`.

    Returns
    -------
    Arranged
        `fits` says whether it does; `steps` what each lever brought; `find_floor()` what no change
        known to memplan goes below.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `memplan.load` and `memplan.levers.pipeline.arrange`; if outputs in bands differ; if the
        output is of another kind.

    Examples
    --------
    >>> from memplan.runtimes.fitting import fit
    >>> fitted = fit("examples/models/mobile.tflite", "36KiB", head_only=True)
    >>> fitted.fits, fitted.plan.peak
    (True, 36864)
    """
    found = find_fit(
        model,
        size,
        out=out,
        dims=dims,
        head_only=head_only,
        allow_inexact=allow_inexact,
        allow_refused=allow_refused,
        board=board,
        max_extra=inf if max_extra is None else max_extra,
        pure=pure,
        timeout=timeout,
        nodes=nodes,
    )
    if out is not None and size is not None and found.fits:
        write_files({os.fspath(out): found.data})
    return found


def find_fit(
    model: Any,
    size: int | str | None,
    *,
    out: str | os.PathLike[str] | None,
    dims: Mapping[str, int] | None,
    head_only: bool,
    allow_inexact: bool,
    allow_refused: bool,
    board: str | Board | None = None,
    **asked: Any,
) -> Arranged:
    """Do what `fit` does, but leave the file `out` to the caller.

    `asked` are arguments of `memplan.levers.pipeline.arrange`.
    """
    place = None if board is None else find_board(board)
    writer = choose_writer(
        _take(model, dims),
        None if out is None else Path(out),
        Options(dims=dict(dims or {}), board=place),
        allow_refused=allow_refused,
        head_only=head_only,
    )
    capacity = None if size is None else parse_size(size)
    found = _pull_levers(writer, capacity, allow_inexact, **asked)
    if out is not None and capacity is not None and found.fits and not allow_inexact:
        found.require_equal()
    return found


@dataclass(frozen=True)
class FittedMemories:
    """A program in the fastest memory alone, or in all of them.

    Attributes
    ----------
    alone
        What the levers of `fit` make of it for the fastest memory.
    housed
        What is where, and the files of its runtime; `None` if the fastest memory is enough.
    files
        What was made, by the name of a file.
    variant
        The program that lies in several memories; `None` in one.
    extra
        The work that was added to it, as a share of that of the program.
    """

    alone: Arranged
    housed: Housed | None
    files: Mapping[str, bytes]
    variant: Variant | None = None
    extra: float = 0.0

    @property
    def change(self) -> str:
        """What was done to the program for several memories, in words; empty if nothing."""
        made = self.variant
        if made is None:
            return ""
        ways = {"bands": made.cut, "re-runs": made.again, "another order": made.order}
        return next((words for words, change in ways.items() if change is not None), "")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a search; this is the best so far."""
        housed = self.housed is not None and self.housed.found.interrupted
        return self.alone.interrupted or housed

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed."""
        return self.alone.notes if self.housed is None else self.housed.notes


def fit_memories(
    model: Any,
    memories: Sequence[Memory],
    allowed: Mapping[str, Iterable[str]],
    *,
    reads: Mapping[str, Times | Sequence[Times]] | None = None,
    residency: bool = False,
    dims: Mapping[str, int] | None = None,
    allow_inexact: bool = False,
    allow_refused: bool = False,
    max_extra: float | None = None,
    pure: Iterable[str] = (),
    board: str | Board | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
) -> FittedMemories:
    """Make a program fit into several memories, with as little traffic in slow ones as possible.

    If the fastest memory alone is enough, with at most `max_extra` more work, nothing else is used.
    Otherwise all that the levers made of the program (orders, re-runs, bands; within `max_extra`)
    is assigned to all memories: the least traffic counts, and then the least work.

    Parameters
    ----------
    model, dims, allow_inexact, allow_refused, pure, board, timeout, nodes
        See `fit`.
    memories, allowed, reads, residency
        See `memplan.machine.memories.assign`. Only programs in C can have buffers that move.
    max_extra
        As for `fit`, but a tenth by default: slow traffic may cost less than more work.

    Raises
    ------
    FormatError, GraphError, MemplanError, PlanError
        As `fit` and `memplan.machine.memories.assign`.
    """
    fast = memories[0]
    if fast.capacity is None:
        raise MemplanError(f"memory {quoted(fast.name)} is the fastest, and needs a size")
    given = _take(model, dims)
    is_tflite = isinstance(given, Path) and detect(given) == "tflite"
    if residency and is_tflite:
        raise MemplanError(
            "the kernels of TensorFlow Lite Micro have one address for each tensor, so no buffer "
            "moves; leave out --residency"
        )
    name = _name_files(given)
    place = None if board is None else find_board(board)
    writer = choose_writer(
        given,
        None if is_tflite else Path(f"{name}.h"),
        Options(dims=dict(dims or {}), board=place),
        allow_refused=allow_refused,
    )
    limit = MAX_EXTRA if max_extra is None else max_extra
    with stoppable():
        alone = _pull_levers(
            writer,
            fast.capacity,
            allow_inexact,
            max_extra=limit,
            pure=pure,
            timeout=timeout,
            nodes=nodes,
        )
        if alone.fits and not allowed:
            if not allow_inexact:
                alone.require_equal()
            suffix = ".tflite" if is_tflite else ".h"
            return FittedMemories(alone, None, {f"{name}{suffix}": alone.data})
        asked: dict[str, Any] = {"reads": reads, "residency": residency, "timeout": timeout}
        made: list[_House] = []
        failed: list[MemplanError] = []
        for variant, extra in _list_variants(writer, alone, limit):
            try:
                housed = house(
                    writer, variant, memories, allowed, name=name, board=place, nodes=nodes, **asked
                )
            except MemplanError as error:  # such as what TFLM keeps for more operators
                failed.append(error)
            else:
                made.append(_House(housed, variant, extra))
            if is_stopped() and made:
                break
        if not made:
            raise failed[0]
        best = _choose(writer, alone.given, made, allow_inexact=allow_inexact)
        return FittedMemories(alone, best.housed, best.housed.files, best.variant, best.extra)


class _House(NamedTuple):
    """A program in several memories, as a lever made it or as it was given."""

    housed: Housed
    variant: Variant
    extra: float  # the work that was added, as a share of that of the program

    @property
    def repeats_work(self) -> bool:
        """Whether it is in bands, or runs operators again."""
        return self.variant.cut is not None or self.variant.again is not None


def _list_variants(
    writer: Writer, alone: Arranged, limit: float
) -> Iterator[tuple[Variant, float]]:
    """Yield what could lie in several memories, and its work: all that the levers can make.

    That is the program, without the offsets of its file, which are of one arena; what was drafted
    for the fastest memory alone; and some of the programs in bands, from the least work to the
    least memory.
    """
    yield replace(alone.given, loaded=writer.bare(alone.given)), 0.0
    seen, points = {id(alone.given)}, {draft.point for draft in alone.drafts}
    for draft in alone.drafts:
        if id(draft.variant) not in seen and draft.extra <= limit:
            seen.add(id(draft.variant))
            yield draft.variant, draft.extra
    frontier = alone.frontier
    if frontier is None:
        return
    left = [
        point
        for point in frontier.points[1:]
        if point not in points and frontier.extra(point) <= limit
    ]
    step = max(1, -(-len(left) // _MOST_POINTS))
    for point in left[::-1][::step]:
        yield writer.put(alone.plain.variant, frontier.cut(point)), frontier.extra(point)


def _choose(writer: Writer, given: Variant, made: list[_House], *, allow_inexact: bool) -> _House:
    """Return what has the least traffic, then the least work, and the same outputs."""
    for each in sorted(made, key=lambda one: (one.housed.found.traffic, one.extra)):
        if allow_inexact or not (each.repeats_work and writer.has_runtime):
            return each
        compared = writer.compare(given, Written(each.variant.data, 0))
        if compared is not None and not compared.difference:
            return each
    return made[0]


def _take(model: Any, dims: Mapping[str, int] | None) -> Path | Loaded:
    """Return a program as `choose_writer` takes it."""
    if isinstance(model, (str, os.PathLike)):
        return Path(model)
    return model if isinstance(model, Loaded) else load(model, dims=dims)


def _pull_levers(
    writer: Writer, capacity: int | None, allow_inexact: bool, **asked: Any
) -> Arranged:
    """Try all levers until one fits; `asked` are further arguments of `arrange`."""
    return arrange(
        writer,
        capacity=capacity,
        in_place=True,
        order=True,
        again=True,
        bands=True,
        first_fit=True,
        exact=not allow_inexact,
        **asked,
    )


def _name_files(model: Path | Loaded) -> str:
    """Return the name of what is written, without a suffix."""
    if isinstance(model, Path):
        return model.name.partition(".")[0] or "program"
    return "program" if model.graph is None or not model.graph.name else model.graph.name
