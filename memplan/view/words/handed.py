"""What `memplan plan` says of a model or a header that it wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from memplan.base.errors import listed
from memplan.view.units import exact, plural
from memplan.view.words.bands import describe_regions

if TYPE_CHECKING:
    from memplan.levers.pipeline import Arranged
    from memplan.problem.plan import Plan
    from memplan.runtimes.tflm.write import Applied

__all__ = ["describe_levers", "describe_plan"]


def describe_plan(plan: Plan, applied: Applied | None) -> Iterator[str]:
    """Yield what a plan needs, and what a model needs with it."""
    from memplan.view.words.parts import tell_unknown

    yield f"planned {exact(plan.peak or 0)}, {plan.status}"
    if plan.shared is not None:
        others = [name for name in plan.shared.programs if name != plan.shared.program]
        kept = plural(len(plan.shared.kept), "buffer")
        size = exact(sum(each.size for each in plan.shared.kept))
        arena = exact(plan.shared.arena)
        yield f"shared  {arena} of arena with {listed(others, quote=False)}; {kept} kept, {size}"
    if applied is None:
        return
    for when, figure in (("before", applied.before), ("after", applied.after)):
        yield f"{when:<8}{exact(figure.bytes)} of {figure.runtime}, {figure.how}"
    if applied.arena is not None:
        enough = "are for" if applied.unknown else "are enough for"
        how = f"{applied.how}{tell_unknown(applied.unknown)}"
        yield f"arena   {exact(applied.arena)} {enough} the whole model, {how}"
    if applied.saves_nothing and plan.shared is None:  # other programs need an arena too
        yield "saved   nothing: the arena of the file as it was is no larger"
    if applied.in_place:
        yield f"sharing {plural(applied.in_place, 'tensor')} in the memory of another one"
    if applied.kept:
        kept = plural(applied.kept, "tensor")
        yield f"kept    {kept} at the offsets in the file; --read no-offsets ignores them"
    if applied.folded:
        yield f"folded  {plural(applied.folded, 'operator')} that only unpack weights"


def describe_levers(
    found: Arranged | None, levers: Collection[str], *, is_header: bool
) -> Iterator[str]:
    """Yield what the levers did to a program, and what that costs."""
    if found is None:
        return
    if "again" in levers:
        yield from _describe_again(found)
    if "bands" in levers:
        yield from _describe_bands(found, compared=not is_header)
    elif "again" not in levers:
        yield from _describe_order(found, measured=not is_header)


def _describe_order(found: Arranged, *, measured: bool) -> Iterator[str]:
    """Yield what the order needs, and which one was written if a runtime was asked."""
    order = found.order
    assert order is not None, "it was asked for"
    yield f"given   {exact(order.given_peak)} of load"
    moved = plural(len(order.moved), "operator")
    yield f"order   {exact(order.peak)} of load, {moved} moved"
    yield f"bound   {exact(order.bound)}: no order needs less"
    if not measured:
        return
    best = found.best
    how = best.written.how if best.written.is_whole else "the head only, not measured"
    if found.is_reordered:
        taken, other = "in the new order, which is written", "in the order of the file"
    else:
        taken, other = "in the order of the file, which is kept", "in the new order"
    yield f"arena   {exact(found.arena)} {taken}; {how}"
    others = [draft.arena for draft in found.drafts if draft is not best]
    if found.is_reordered or (others and others[-1] != found.arena):
        yield f"        {exact(others[-1] if others else found.arena)} {other}"


def _describe_again(found: Arranged) -> Iterator[str]:
    """Yield what runs again, or why nothing does."""
    words = next((step.words for step in found.steps if step.lever == "again"), "")
    yield f"again   {words or 'nothing: the program fits without'}"
    yield f"arena   {exact(found.arena)}; {exact(found.plain.arena)} without more work"
    if found.again is not None:
        yield f"work    {found.extra:.2%} more"


def _describe_bands(found: Arranged, *, compared: bool) -> Iterator[str]:
    """Yield what is in bands, what it needs, and what it costs."""
    assert found.frontier is not None or found.fits, "bands were looked for"
    if found.point is None:
        why = found.explain().removeprefix(": ") or "the program fits as it is"
        yield f"bands   none: {why}"
        yield f"arena   {exact(found.arena)}"
        return
    assert found.frontier is not None
    yield f"bands   {describe_regions(found.frontier, found.point.regions)}"
    yield f"arena   {exact(found.arena)}; {exact(found.plain.arena)} without bands"
    repeated = f", of which {found.macs:,} repeated multiplications" * compared
    yield f"work    {found.extra:.1%} more{repeated}"
    if not compared:
        return
    if found.comparison is None:
        yield "outputs not compared: the runtime does not run the model here"
        return
    apart = found.comparison.difference
    words = f"not the same bits, up to {apart:g} apart" if apart else "the same bits"
    times = found.comparison.time
    yield f"outputs {words}" + (
        "" if times is None else f"; {times:.2f} times the CPU time, on this machine"
    )
