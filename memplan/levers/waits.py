"""Waits: streams wait for each other, so that tensors of both may share memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memplan.answer import Step
from memplan.apart import plan_waits
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.writers import Variant, Writer

__all__ = ["Waits"]


class Waits(Lever):
    """See the module, and `memplan.apart.plan_waits`."""

    name = "waits"
    needs_goal = True

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        missing = explain_missing(program)
        if missing or program.loaded.graph is None:
            return missing
        streams = {operator.stream for operator in program.loaded.graph.operators}
        return "" if len(streams) > 1 else "the program has only one stream, so nothing has to wait"

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`."""
        for goal in aim.goals:
            found = plan_waits(
                program.variant.loaded, capacity=goal, timeout=aim.seconds(), nodes=aim.states
            )
            if not found.plan.has_offsets:
                return  # of a smaller goal too
            if not found.arcs:
                continue
            words = f"{len(found.arcs)} waits, {found.lost} pairs of operators in order"
            step = Step(self.name, found.plan.peak or 0, words=words, change=found)
            variant = replace(program.variant, loaded=found.loaded)
            yield replace(program, variant=variant, steps=(*program.steps, step), plan=found.plan)

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: nothing is known of all ways to wait."""
        return 0
