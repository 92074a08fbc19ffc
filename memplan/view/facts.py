"""What people ask of a buffer that they point at: what it is, which operator makes it and where."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.planning import Planned
from memplan.problem import Asked, Problem, problem_of
from memplan.sources import Loaded

__all__ = ["Facts", "find_facts", "find_problem_facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of every buffer in addition to its numbers, as columns by row of the problem.

    Attributes
    ----------
    name
        The id of the buffer.
    tensors
        The names of all that share it; its own name where the file knows no tensors.
    kind
        What it is to the program (`memplan.graph.Kind`), or empty.
    operator
        The type of the operator that makes it ("Conv", "aten.mm"); empty where none does or none
        is known, as for an input.
    made_by
        That operator as "name (type)", or empty.
    used_by
        Those that read it, likewise.
    module
        The module that it is made in ("layer1.0.conv1"), or empty.
    line
        The line of the source that makes it ("model.py:41"), or empty.
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
    """Return what a file says of the buffers of a problem; names alone where it says nothing."""
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
    """Return what is known of the buffers of a problem that came without a program: names."""
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
