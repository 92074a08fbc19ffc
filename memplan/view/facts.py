"""Facts about buffers for pages and pictures: kind, operator, module and line of source."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.problem import Asked, Problem, problem_of
from memplan.programs.sources import Loaded
from memplan.solvers.planning import Planned

__all__ = ["Facts", "find_facts", "find_problem_facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of every buffer besides its numbers: columns by row, empty if unknown."""

    name: tuple[str, ...]  # the id of the buffer
    tensors: tuple[tuple[str, ...], ...]  # the tensors in it; its own name where the file has none
    kind: tuple[str, ...]  # its role in the program (`memplan.programs.graph.Kind`)
    operator: tuple[str, ...]  # of its maker ("Conv", "aten.mm"); empty for an input
    made_by: tuple[str, ...]  # that operator as "name (type)"
    used_by: tuple[tuple[str, ...], ...]  # the operators that read it, in the same form
    module: tuple[str, ...]  # of the operator that makes it ("layer1.0.conv1")
    line: tuple[str, ...]  # of source code that makes it ("model.py:41")

    def __len__(self) -> int:
        return len(self.name)


def find_facts(asked: Asked) -> Facts:
    """Return the facts in a file about the buffers of a problem; only names where it has none."""
    loaded = asked.loaded if isinstance(asked, Planned) else asked
    if not isinstance(loaded, Loaded) or not loaded.labels:
        return find_problem_facts(problem_of(asked))
    labels = loaded.labels
    return Facts(
        name=loaded.problem.ids,
        tensors=tuple(label.tensors for label in labels),
        kind=tuple(label.kind for label in labels),
        operator=tuple(label.operator for label in labels),
        made_by=tuple(label.made_by for label in labels),
        used_by=tuple(label.used_by for label in labels),
        module=tuple(label.module for label in labels),
        line=tuple(label.line for label in labels),
    )


def find_problem_facts(problem: Problem) -> Facts:
    """Return the facts about the buffers of a problem without a program: only names."""
    unknown = ("",) * len(problem)
    return Facts(
        name=problem.ids,
        tensors=tuple((id,) for id in problem.ids),
        kind=unknown,
        operator=unknown,
        made_by=unknown,
        used_by=((),) * len(problem),
        module=unknown,
        line=unknown,
    )
