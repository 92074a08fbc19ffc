"""Order: operators run in the order in which the least is live at one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from memplan.answer import Claim, Step
from memplan.levers.in_place import list_layouts
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.rewrite import Reordered, put_in_order, reorder, reorder_to_plan, verify_order
from memplan.levers.writers import Variant, Writer
from memplan.programs.sources import Loaded
from memplan.solvers.planning import layouts

__all__ = ["Order"]


class Order(Lever):
    """See the module, and `memplan.levers.rewrite.reorder`."""

    name = "order"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`; also with writes over inputs, if the program was loaded with them."""
        variant = program.variant
        was_in_place = variant.loaded.in_place
        step = self.find_step(variant, writer, replace(aim, in_place=aim.in_place or was_in_place))
        moved = writer.put(variant, step.change)
        moved = replace(moved, loaded=layouts(moved.loaded, in_place=False)[0])
        made = replace(program, variant=moved, steps=(*program.steps, step), base=variant)
        yield made
        if was_in_place:
            yield from list_layouts(made)

    def find_step(self, program: Variant, writer: Writer, aim: Aim) -> Step:
        """Return the best order of a program, which may be its own; its layout is not chosen."""
        found = (reorder_to_plan if writer.takes_offsets else reorder)(
            writer.bare(program),
            in_place=aim.in_place,
            timeout=aim.seconds(),
            states=aim.states,
            pure=aim.pure,
        )
        proved = " (proved: no order needs less)" if found.peak == found.bound else ""
        words = f"load {found.peak}, at least {found.bound}{proved}"
        data = {"runs": list(found.order)}
        return Step(self.name, found.peak, words=words, change=found, data=data)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: what every order needs."""
        changes = [step.change for each in made for step in each.steps]
        return max((one.bound for one in changes if isinstance(one, Reordered)), default=0)

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`."""
        return put_in_order(program, step.data.get("runs"))

    def list_claims(self, program: Loaded, step: Step, aim: Aim) -> Iterable[Claim]:
        """See `Lever`."""
        if isinstance(step.change, Reordered):
            yield _Legal(program, step.change)


@dataclass(frozen=True)
class _Legal:
    """That an order is one of the program, and what it proves of all orders."""

    given: Loaded
    change: Reordered

    def verify(self) -> None:
        """See `memplan.answer.Claim`."""
        verify_order(self.given, self.change)
