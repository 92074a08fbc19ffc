"""Makes a program fit into the memory that there is, at the least cost: `memplan fit`.

What costs nothing comes first: offsets, writes over inputs, the order of operators. Operators that
run again, and bands, come last, with as little repeated work as fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from memplan.base.errors import MemplanError, quoted
from memplan.base.files import write_files
from memplan.base.notes import Note
from memplan.base.sizes import parse_size
from memplan.memories import Memory
from memplan.memories.accesses import Times
from memplan.pipeline import Arranged, Writer, arrange
from memplan.rewrite.bands import MAX_EXTRA
from memplan.runtimes.choosing import choose_writer
from memplan.runtimes.memories import Housed, house
from memplan.runtimes.tflm.read.boards import Board, find_board
from memplan.solvers.stopping import stoppable
from memplan.sources import Loaded, detect, load
from memplan.sources.options import Options

__all__ = ["FittedMemories", "find_fit", "fit", "fit_memories"]


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
        See `memplan.reorder`.
    board
        See `memplan.load`: the size is then of the arena on that board.
    timeout, nodes
        See `memplan.pipeline.arrange`.

    Returns
    -------
    Arranged
        `fits` says whether it does; `steps` what each lever brought; `find_floor()` what no change
        known to memplan goes below.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `memplan.load` and `memplan.pipeline.arrange`; if outputs in bands differ; if the output
        is of another kind.

    Examples
    --------
    >>> import memplan as mp
    >>> fitted = mp.fit("examples/models/mobile.tflite", "36KiB", head_only=True)
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

    `asked` are arguments of `memplan.pipeline.arrange`.
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
    """

    alone: Arranged
    housed: Housed | None
    files: Mapping[str, bytes]

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
    Otherwise what costs no work (an order, writes over inputs) is kept where it helps, and buffers
    are assigned to all memories.

    Parameters
    ----------
    model, dims, allow_inexact, allow_refused, pure, board, timeout, nodes
        See `fit`.
    memories, allowed, reads, residency
        See `memplan.assign`. Only programs in C can have buffers that move.
    max_extra
        As for `fit`, but a tenth by default: slow traffic may cost less than more work.

    Raises
    ------
    FormatError, GraphError, MemplanError, PlanError
        As `fit` and `memplan.assign`.
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
    with stoppable():
        alone = _pull_levers(
            writer,
            fast.capacity,
            allow_inexact,
            max_extra=MAX_EXTRA if max_extra is None else max_extra,
            pure=pure,
            timeout=timeout,
            nodes=nodes,
        )
        if alone.fits and not allowed:
            if not allow_inexact:
                alone.require_equal()
            suffix = ".tflite" if is_tflite else ".h"
            return FittedMemories(alone, None, {f"{name}{suffix}": alone.data})
        # Offsets in the file are of one arena.
        variants = [replace(alone.given, loaded=writer.bare(alone.given))]
        if alone.plain.variant.order is not None:
            variants.append(alone.plain.variant)
        housed = house(
            writer,
            variants,
            memories,
            allowed,
            name=name,
            board=place,
            reads=reads,
            residency=residency,
            timeout=timeout,
            nodes=nodes,
        )
        return FittedMemories(alone, housed, housed.files)


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
