"""The types that functions accept as a problem: a `Problem`, or an object that has one."""

from __future__ import annotations

from typing import Protocol

from memplan.base.errors import MemplanError, shown
from memplan.problem.problem import Problem

__all__ = ["Asked", "HasProblem", "problem_of"]


class HasProblem(Protocol):
    """Something that has a problem, such as what `memplan.load` returns."""

    @property
    def problem(self) -> Problem:
        """The buffers to place, and their constraints."""
        ...


Asked = Problem | HasProblem


def problem_of(asked: Asked) -> Problem:
    """Return the problem itself, or the problem of something that has one.

    Raises
    ------
    MemplanError
        For anything else.
    """
    found = asked if isinstance(asked, Problem) else getattr(asked, "problem", None)
    if not isinstance(found, Problem):
        raise MemplanError(f"{shown(asked)} is no problem; memplan.load reads one from a file")
    return found
