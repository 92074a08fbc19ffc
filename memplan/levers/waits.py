"""Waits: streams wait for each other, so that tensors of both may share memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memplan.answer import Claim, Step
from memplan.base.errors import InfeasibleError, NoPlanError, PlanError
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.rewrite.waits import Waits as Waiting
from memplan.levers.rewrite.waits import plan_waits, with_waits
from memplan.levers.writers import Variant, Writer
from memplan.problem.plan import Status
from memplan.programs.sources import Loaded, lay_out_again

__all__ = ["Waits"]


class Waits(Lever):
    """See the module, and `memplan.plan_waits`."""

    name = "waits"
    needs_goal = True

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        missing = explain_missing(program)
        if missing or program.loaded.graph is None:
            return missing
        if program.loaded.graph.has_streams:
            return ""
        return "the program has only one stream, so nothing has to wait"

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`."""
        found_some = False
        for goal in aim.goals:
            found = plan_waits(
                program.variant.loaded, capacity=goal, timeout=aim.seconds(), nodes=aim.states
            )
            if not found.plan.has_offsets:
                if found_some:
                    return  # nor of a smaller goal
                is_proved = found.apart.status is Status.INFEASIBLE
                words = f"does not fit into {goal} bytes, whatever waits"
                raise (InfeasibleError if is_proved else NoPlanError)(
                    f"proved: the program {words}" if is_proved else f"as found, it {words}"
                )
            found_some = True
            if not found.arcs:
                continue
            words = f"{len(found.arcs)} waits, {found.lost} pairs of operators in order"
            data = {"arcs": [list(arc) for arc in found.arcs]}
            step = Step(self.name, found.plan.peak or 0, words=words, change=found, data=data)
            variant = replace(program.variant, loaded=found.loaded)
            yield replace(program, variant=variant, steps=(*program.steps, step))

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`."""
        arcs = step.data.get("arcs")
        if not isinstance(arcs, (list, tuple)) or any(not _is_arc(arc) for arc in arcs):
            raise PlanError("waits are pairs of operators, by index")
        return with_waits(lay_out_again(program, in_place=False), [(a, b) for a, b in arcs])

    def list_claims(self, program: Loaded, step: Step, aim: Aim) -> Iterable[Claim]:
        """See `Lever`."""
        if isinstance(step.change, Waiting):
            yield step.change.apart


def _is_arc(arc: object) -> bool:
    return isinstance(arc, (list, tuple)) and [type(end) for end in arc] == [int, int]
