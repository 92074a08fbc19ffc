"""Rewrites a program by the levers that are allowed, plans it, and says what each one brought.

    a file ──► Writer.open ──► plan ──► order ──► bands ──► Writer.write ──► a file, a header
                                 └────────┴─────────┴──── what costs nothing comes first

What a program is, its graph says; what may be changed, the levers say; what a runtime takes, and
what it needs for it, a `Writer` says. Each step is planned and, where a runtime is installed,
measured; the best is kept. With a capacity, the first that fits is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from memplan.base.errors import MemplanError, MissingExtraError
from memplan.levers import Aim, Writer
from memplan.levers.pipeline.arranged import Arranged
from memplan.levers.pipeline.run import Run
from memplan.levers.rewrite.bands import MAX_EXTRA
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = ["arrange"]


def arrange(
    writer: Writer,
    *,
    in_place: bool = False,
    order: bool = False,
    again: bool = False,
    bands: bool = False,
    max_extra: float | None = None,
    capacity: int | None = None,
    first_fit: bool = False,
    exact: bool = False,
    pure: Iterable[str] = (),
    timeout: float | None = None,
    nodes: int | None = None,
    **options: Any,
) -> Arranged:
    """Rewrite a program by the levers that are allowed, and plan it.

    Parameters
    ----------
    writer
        The program, and the runtime that it is written for. `Plain(memplan.load(file))` is for none
        in particular.
    in_place
        Whether operators may write over inputs that are not needed any more.
    order
        Whether operators may run in another order; see `memplan.levers.rewrite.reorder`.
    again
        Whether operators may run again, where the program does not fit otherwise; see
        `memplan.levers.rewrite.recompute`. Nothing is done without a capacity. If bands fit too,
        the smaller share of more work decides.
    bands
        Whether large pictures may be computed in bands, which repeat some work.
    max_extra
        The most work that may be added, as a share of that of the program. Copied elements
        of bands count as one multiplication each. Without it, 0.1, or no limit if there is a
        capacity.
    capacity
        Bytes that the arena may have: bands are those with the least work that fit. Without it,
        they are those with the smallest arena. If nothing fits, `fits` of the result is false.
    first_fit
        Whether levers that cost nothing are left alone too once the program fits. Of a problem
        without operators, only offsets are chosen then.
    exact
        Whether bands are left out whose outputs differ in any bit from those of the program: some
        kernels add up in another order in pictures of another size, and other bands may not differ.
    pure
        See `memplan.levers.rewrite.reorder`.
    timeout
        In seconds, for all searches together: half of what is left for the search of an order, and
        equal parts of the rest for each plan that may have to be made.
    nodes
        For each search.
    options
        Further arguments of `memplan.plan_model`: the solver, and what it is told.

    Raises
    ------
    GraphError, MemplanError
        As `memplan.plan_model` and `memplan.levers.rewrite.reorder`; if there is no plan within the
        budget, or the writer refuses the program.
    KeyboardInterrupt
        On Ctrl-C before there is a plan; after that, the best program so far is returned.
    """
    if again and not (first_fit or writer.runs_again):
        raise MemplanError(f"{writer.name}: its runtime runs no copies of operators")
    missing = ""
    if bands:
        try:
            writer.check_bands()
        except MissingExtraError as error:
            if not first_fit:
                raise
            bands, missing = False, str(error)
    if max_extra is None:
        max_extra = MAX_EXTRA if capacity is None else inf
    aim = Aim(in_place=in_place, has_order=order, pure=tuple(pure), max_extra=max_extra)
    run = Run(writer, capacity, aim, timeout, nodes, options, exact=exact)
    with stoppable():
        if first_fit and not run.has_operators:
            order = again = bands = False
        if order and not first_fit:
            run.find_order()  # before the work, what it refuses
        run.plan(first_fit=first_fit, parts=4 if order or again or bands else 1)
        if order and not (first_fit and run.fits):
            run.reorder()
        plain, fitted = run.best, run.fits
        tries_more = not (fitted or is_stopped())
        if again and capacity is not None and tries_more and writer.runs_again:
            run.run_again()
        if bands and tries_more and not is_stopped():
            run.cut(plain)
        if missing and run.has_operators and not run.fits:
            run.note("bands", f"not tried: {missing}")
        return run.finish(plain)
