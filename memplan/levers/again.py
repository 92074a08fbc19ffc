"""Again: what is read much later is made again, or moved to another memory and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from memplan.answer import Claim, Step
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.rewrite import (
    Recomputed,
    Reordered,
    find_floor,
    put_in_order,
    recompute,
    verify_recompute,
)
from memplan.levers.rewrite.again import Costs, NoRunsError
from memplan.levers.writers import Variant, Writer, graph_of
from memplan.programs.sources import Loaded

__all__ = ["Again", "describe_again"]


class Again(Lever):
    """See the module, and `memplan.levers.rewrite.recompute`."""

    name = "again"
    needs_goal = True

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        if not writer.runs_again:
            return f"{writer.name}: its runtime runs no copies of operators"
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`; it takes the order that was found, or looks for one by itself."""
        if aim.has_order and program.base is None:
            return
        given, before, better = program.variant, program.steps, None
        if program.base is not None:
            given, before, better = program.base, program.steps[:-1], program.steps[-1].change
        found_some, plain = False, None
        try:
            for step in self.list_steps(better or writer.bare(given), aim):
                found_some = True
                if not _repeats(step.change):
                    plain = step
                elif step.extra <= aim.max_extra + 1e-12:
                    plain = None
                    extra = program.extra + step.extra
                    yield Candidate(writer.put(given, step.change), (*before, step), extra)
            if plain is not None:  # why nothing runs again is an answer too
                yield replace(program, steps=(*program.steps, plain))
        except NoRunsError:
            if not found_some:
                raise  # otherwise there are none of a smaller goal either

    def list_steps(
        self, program: Loaded | Reordered, aim: Aim, *, order: bool = True
    ) -> Iterator[Step]:
        """Yield the cheapest re-runs for each goal, which may be none.

        Parameters
        ----------
        program, order
            See `memplan.levers.rewrite.recompute`.
        aim
            Its limit on the work is left to the caller, and so may be a goal: the next one is asked
            for when the re-runs of the last one were seen.

        Raises
        ------
        NoRunsError
            If there are none for the goal.
        """
        for goal in aim.goals:
            found = recompute(
                program,
                goal,
                costs=aim.costs,
                spill=aim.spill,
                order=order,
                timeout=aim.seconds(),
                states=aim.states,
                pure=aim.pure,
            )
            words, data = describe_again(found), {"runs": list(found.runs)}
            yield Step(self.name, found.peak, found.share, words, change=found, data=data)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: the largest operator, whatever runs when."""
        return find_floor(graph_of(program))[0]

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`."""
        return put_in_order(program, step.data.get("runs"))

    def list_claims(self, program: Loaded, step: Step, aim: Aim) -> Iterable[Claim]:
        """See `Lever`."""
        if isinstance(step.change, Recomputed):
            yield _Same(program, step.change, aim.costs, aim.spill)


@dataclass(frozen=True)
class _Same:
    """That a program with re-runs computes what the given one does, and what they cost at least."""

    given: Loaded
    change: Recomputed
    costs: Costs | None
    spill: str | None

    def verify(self) -> None:
        """See `memplan.answer.Claim`."""
        verify_recompute(self.given, self.change, costs=self.costs, spill=self.spill)


def _repeats(found: Recomputed) -> bool:
    return list(found.runs) != sorted(found.runs)


def describe_again(found: Recomputed) -> str:
    """Return in a few words what runs again, and what is proved of it."""
    least = f"at least {found.share_of(found.bound):.2%}"
    proved = "proved: no re-runs cost less" if found.bound == found.extra else least
    runs = "run" if found.repeated == 1 else "runs"
    return f"{found.repeated} {runs} more; {proved}"
