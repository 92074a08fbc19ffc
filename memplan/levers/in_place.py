"""In place: operators write their results over inputs that are not needed any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memplan.answer import Step
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.writers import Variant, Writer
from memplan.programs.sources import Loaded, lay_out_again
from memplan.solvers.planning import layouts

__all__ = ["InPlace", "list_layouts"]


class InPlace(Lever):
    """See the module; a layout with such writes may need more, as less can move."""

    name = "in place"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`: the layout that the program does not have."""
        yield from list_layouts(program)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what is live at one time at least in one of the layouts."""
        ways = layouts(program.loaded, in_place=True)
        return min(layout.problem.max_load for layout in ways)

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`."""
        return lay_out_again(program, in_place=bool(step.data.get("in_place")))


def list_layouts(program: Candidate) -> Iterator[Candidate]:
    """Yield a program in the other layout: with writes over inputs, or without, if that differs."""
    given = program.variant.loaded
    for layout in layouts(given, in_place=True):
        if layout.in_place != given.in_place:
            words = f"results {'over' if layout.in_place else 'beside'} inputs"
            data = {"in_place": layout.in_place}
            step = Step(InPlace.name, layout.problem.max_load, words=words, data=data)
            variant = replace(program.variant, loaded=layout)
            yield replace(program, variant=variant, steps=(*program.steps, step))
