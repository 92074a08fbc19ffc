"""In place: operators write their results over inputs that are not needed any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memplan.answer import Step
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.writers import Variant, Writer
from memplan.planning import layouts

__all__ = ["InPlace"]


class InPlace(Lever):
    """See the module; a layout with such writes may need more, as less can move."""

    name = "in place"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`."""
        for layout in layouts(program.variant.loaded, in_place=True):
            if layout.in_place:
                step = Step(self.name, layout.problem.max_load, words="results over inputs")
                variant = replace(program.variant, loaded=layout)
                yield replace(program, variant=variant, steps=(*program.steps, step), plan=None)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what is live at one time at least in one of the layouts."""
        ways = layouts(program.loaded, in_place=True)
        return min(layout.problem.max_load for layout in ways)
