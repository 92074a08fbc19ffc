"""What `memplan apply` checks before it writes, and says of what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from memplan.cli import output

if TYPE_CHECKING:
    from memplan.base.notes import Note
    from memplan.runtimes.tflm.write import Applied
    from memplan.solvers.planning import Planned


def require_offsets(found: Planned) -> None:
    """Refuse to write anything without a plan; exit as `memplan plan` does."""
    if not found.plan.has_offsets:
        from memplan.view.words.plans import status_text

        output.message(f"{status_text(found.plan, interrupted=False)}; nothing was written")
        raise typer.Exit(output.exit_code(found.plan, interrupted=False))


def join_notes(given: Sequence[Note], applied: Applied) -> tuple[Note, ...]:
    """Return the notes on a model with those on what was written; of refusals only the latter."""
    from memplan.base.notes import Code

    kept = (note for note in given if note.code is not Code.RUNTIME_REFUSES)
    return tuple(dict.fromkeys((*kept, *applied.notes)))


def check_capacity(capacity: int | None, peak: int) -> None:
    """Refuse a plan above the capacity for the arena; a later check counts what TFLM adds to it."""
    from memplan.base.errors import CapacityError

    if capacity is not None and peak > capacity:
        raise CapacityError(
            f"the plan alone needs {peak} bytes, {peak - capacity} more than the capacity of "
            f"{capacity}: nothing was written"
        )


def show(
    chosen: Planned, outputs: Iterable[str], applied: Applied | None, notes: Sequence[Note]
) -> None:
    """Say what was written, what it needs, and what was assumed."""
    from memplan.base.errors import listed
    from memplan.view.units import exact, plural
    from memplan.view.words.parts import tell_unknown

    plan = chosen.plan
    output.tell_written(*outputs)
    output.line(f"planned {exact(plan.peak or 0)}, {plan.status}")
    if plan.shared is not None:
        others = [name for name in plan.shared.programs if name != plan.shared.program]
        kept = plural(len(plan.shared.kept), "buffer")
        size = exact(sum(each.size for each in plan.shared.kept))
        output.line(
            f"shared  {exact(plan.shared.arena)} of arena with {listed(others, quote=False)}; "
            f"{kept} kept, {size}"
        )
    if applied is not None:
        for when, figure in (("before", applied.before), ("after", applied.after)):
            output.line(f"{when:<8}{exact(figure.bytes)} of {figure.runtime}, {figure.how}")
        if applied.arena is not None:
            enough = "are for" if applied.unknown else "are enough for"
            how = f"{applied.how}{tell_unknown(applied.unknown)}"
            output.line(f"arena   {exact(applied.arena)} {enough} the whole model, {how}")
        if applied.saves_nothing and plan.shared is None:  # other programs need an arena too
            output.line("saved   nothing: the arena of the file as it was is no larger")
        if applied.in_place:
            output.line(
                f"sharing {plural(applied.in_place, 'tensor')} in the memory of another one"
            )
        if applied.kept:
            kept = plural(applied.kept, "tensor")
            output.line(f"kept    {kept} at the offsets in the file; --replan ignores them")
        if applied.folded:
            output.line(f"folded  {plural(applied.folded, 'operator')} that only unpack weights")
    show_notes(notes)


def show_notes(notes: Sequence[Note]) -> None:
    """Say what was assumed or left out."""
    from memplan.view.words import parts

    if notes:
        output.console().print(parts.render_notes(notes))
