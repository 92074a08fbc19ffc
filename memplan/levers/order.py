"""Order: operators run in the order in which the least is live at one time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memplan.answer import Step
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.writers import Variant, Writer
from memplan.rewrite import Reordered, reorder, reorder_to_plan

__all__ = ["Order"]


class Order(Lever):
    """See the module, and `memplan.rewrite.reorder`."""

    name = "order"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`."""
        variant = program.variant
        search = reorder_to_plan if writer.takes_offsets else reorder
        found = search(
            writer.bare(variant),
            in_place=aim.in_place,
            timeout=aim.seconds(),
            states=aim.states,
            pure=aim.pure,
        )
        proved = " (proved: no order needs less)" if found.peak == found.bound else ""
        words = f"load {found.peak}, at least {found.bound}{proved}"
        step = Step(self.name, found.peak, words=words, change=found)
        moved = writer.put(variant, found)
        yield replace(program, variant=moved, steps=(*program.steps, step), plan=None)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what every order needs."""
        changes = [step.change for each in made for step in each.steps]
        return max((one.bound for one in changes if isinstance(one, Reordered)), default=0)
