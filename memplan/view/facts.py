"""Facts about buffers for pages and pictures: kind, operator, module and line of source."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.planning import Planned
from memplan.problem import Asked, Problem, problem_of
from memplan.sources import Loaded

__all__ = ["Facts", "find_facts", "find_problem_facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of every buffer besides its numbers: columns, by row of the problem.

    Attributes
    ----------
    name
        The id of the buffer.
    tensors
        The names of the tensors in it; its own name where the file has no tensors.
    kind
        Its role in the program (`memplan.graph.Kind`), or empty.
    operator
        The type of the operator that makes it ("Conv", "aten.mm"); empty for an input, or where
        the operator is not known.
    made_by
        That operator as "name (type)", or empty.
    used_by
        The operators that read it, in the same form.
    module
        The module of the operator that makes it ("layer1.0.conv1"), or empty.
    line
        The line of source code that makes it ("model.py:41"), or empty.
    """

    name: tuple[str, ...]
    tensors: tuple[tuple[str, ...], ...]
    kind: tuple[str, ...]
    operator: tuple[str, ...]
    made_by: tuple[str, ...]
    used_by: tuple[tuple[str, ...], ...]
    module: tuple[str, ...]
    line: tuple[str, ...]

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
