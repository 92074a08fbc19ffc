"""Unread: operators whose results nothing reads are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from memplan.answer import Claim, Step
from memplan.base.errors import PlanError
from memplan.levers.lever import Aim, Candidate, Lever, explain_missing
from memplan.levers.rewrite.effects import shared_by
from memplan.levers.writers import Plain, Variant, Writer, graph_of
from memplan.programs.graph import Graph, Kind, Operator
from memplan.programs.graph.updates import updates
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.dialects import find_dialect

__all__ = ["Unread"]


class Unread(Lever):
    """See the module; what draws random numbers, has effects or updates a state is kept."""

    name = "unread"

    def explain_refusal(self, program: Variant, writer: Writer) -> str:
        """See `Lever`."""
        if not isinstance(writer, Plain):
            return f"{writer.name}: no file of its runtime says which operators are left out"
        return explain_missing(program)

    def list_candidates(self, program: Candidate, writer: Writer, aim: Aim) -> Iterator[Candidate]:
        """See `Lever`."""
        graph = graph_of(program.variant)
        kept = _find_kept(graph, aim.pure)
        count = len(graph.operators) - len(kept)
        if count:
            data = {"kept": kept}
            loaded = self.redo(program.variant.loaded, Step(self.name, 0, data=data))
            words = f"{count} operator{'s' * (count > 1)} left out"
            step = Step(self.name, loaded.problem.max_load, words=words, data=data)
            variant = replace(program.variant, loaded=loaded)
            yield replace(program, variant=variant, steps=(*program.steps, step))

    def redo(self, program: Loaded, step: Step) -> Loaded:
        """See `Lever`."""
        graph, kept = graph_of(Variant(program)), step.data.get("kept")
        known = range(len(graph.operators))
        if not isinstance(kept, (list, tuple)) or any(each not in known for each in kept):
            raise PlanError("what is left out is said by the operators that are kept, by index")
        operators = tuple(graph.operators[at] for at in kept)
        gone = {*graph.operators} - {*operators}
        unread = {tensor for operator in gone for tensor in operator.outputs}
        views = tuple(view for view in graph.views if not unread & {view.tensor, view.base})
        left = replace(graph, operators=operators, views=views)
        made = of_graph(left, notes=program.notes)
        return replace(made, problem=made.problem.with_capacity(program.problem.capacity))

    def find_bound(self, program: Variant, made: list[Candidate]) -> int:
        """See `Lever`: nothing is said of what other levers make of what is left."""
        if any(step.lever != self.name for each in made for step in each.steps):
            return 0
        return min(each.variant.loaded.problem.max_load for each in made)

    def list_claims(self, program: Loaded, step: Step, aim: Aim) -> Iterable[Claim]:
        """See `Lever`."""
        yield _Same(program, step.data)


@dataclass(frozen=True)
class _Same:
    """That what is left out makes nothing that is read, handed out or lives on."""

    given: Loaded
    data: Mapping[str, object]

    def verify(self) -> None:
        """See `memplan.answer.Claim`."""
        graph = self.given.graph
        kept = self.data["kept"]
        assert graph is not None
        assert isinstance(kept, list)
        needed = {*graph.outputs}.union(*(_list_reads(graph.operators[at]) for at in kept))
        for at, operator in enumerate(graph.operators):
            if at not in kept and needed & {*operator.outputs}:
                raise PlanError(f"operator {operator.name!r} is left out, and its result is read")


def _find_kept(graph: Graph, pure: Iterable[str]) -> list[int]:
    """Return the operators without which a result, a state or an effect would be missing."""
    known, is_known = {*pure}, find_dialect(graph.source).is_known
    needed = {*graph.outputs, *(tensor for pair in graph.aliases for tensor in pair)}
    needed |= {tensor for group in graph.groups for tensor in group}
    kept: list[int] = []
    for at in reversed(range(len(graph.operators))):
        operator = graph.operators[at]
        has_effects = updates(operator) or shared_by(graph, operator)
        only_computes = not (operator.blocks or has_effects) and (
            operator.type in known or is_known(operator.type)
        )
        lives_on = any(
            graph.tensors[each].kind not in (Kind.INTERMEDIATE, Kind.WORKSPACE)
            for each in operator.outputs
        )
        if not only_computes or lives_on or needed & {*operator.outputs}:
            needed |= _list_reads(operator)
            kept.insert(0, at)
    return kept


def _list_reads(operator: Operator) -> set[int]:
    """Return what an operator and its blocks read."""
    inner = [*operator.walk()]
    read = {tensor for each in inner for tensor in each.inputs}
    return read | {tensor for each in inner for block in each.blocks for tensor in block.outputs}
