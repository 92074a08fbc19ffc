"""Policies for the search of `telamalloc`: the caller says what is placed next (TelaMalloc, 4).

The search keeps the state, as Telamon does in the paper: it computes which offsets are still valid,
finds the placements that caused a failure, and undoes placements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from memplan.base.errors import MemplanError, shown
from memplan.problem import Problem
from memplan.problem.columns import Column

__all__ = ["Functions", "Policy", "State", "functions_of"]

# The functions that the core calls: see bindings/published/policy.h.
Functions = tuple[Callable[..., tuple[int, int | None] | None], Callable[..., int | None]]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A decision point of the search (TelaMalloc, sections 4 and 5.1).

    Buffers are rows of `problem`. The search splits a problem at times that no buffer crosses
    (option `subproblems`) and searches the parts one after the other; a state is of one part. A
    buffer that overlaps no other is in no part.

    Attributes
    ----------
    problem
        The problem.
    capacity
        In bytes. A search for the least peak asks for several capacities, one after the other.
    placed
        Rows of the p buffers that are placed, in the order of their placement; int64, shape (p,).
    offsets
        Their offsets in bytes; int64, shape (p,).
    candidates
        Rows of the c buffers that are not placed and were not tried at this point, ascending; at
        least one; int64, shape (c,).
    lower, upper
        Their valid ranges in bytes, both ends included; int64, shape (c,). No offset outside leads
        to a solution from here. At `lower` a buffer overlaps no placed buffer (section 5.2); at
        an offset above it may, and then it fails.
    failed
        Rows of the f buffers that were tried at this point and failed, in this order; int64,
        shape (f,).
    culprits
        The placements that caused these failures, as ascending indices into `placed` (section
        5.4); int64, shape (k,).
    """

    problem: Problem
    capacity: int
    placed: Column
    offsets: Column
    candidates: Column
    lower: Column
    upper: Column
    failed: Column
    culprits: Column


class Policy(ABC):
    """Decides at each step of `telamalloc`; give an instance as `policy=` to `memplan.solve`.

    The methods are called in the thread of the caller. An exception that they raise ends the search
    and is raised by `memplan.solve`. An answer that is not possible is a `MemplanError`.
    """

    @abstractmethod
    def choose(self, state: State) -> int | tuple[int, int] | None:
        """Return which buffer to place next (section 5.1).

        Parameters
        ----------
        state
            The decision point. A buffer that fails is not offered there again.

        Returns
        -------
        int, tuple or None
            One of `state.candidates`, which goes to its lowest valid offset; or a candidate and an
            offset in its valid range, which its alignment and reserved ranges must allow; or `None`
            to leave this point, as if all candidates had failed.
        """

    def go_back(self, state: State) -> int | None:
        """Return how far a major backtrack goes (section 5.4).

        Parameters
        ----------
        state
            The point that the policy left, or where all candidates failed (then `candidates` is
            empty). At least one buffer is placed.

        Returns
        -------
        int or None
            An index into `state.placed`: this placement and the later ones are undone. `None`,
            the default, stands for the rule of the paper: the last of `culprits`, or one placement
            if there are none.
        """
        return None


def functions_of(policy: object, problem: Problem) -> Functions:
    """Return the two functions that the core calls; they return a row with an offset, and a level.

    Both raise a `MemplanError` for invalid answers.
    """
    if not isinstance(policy, Policy):
        raise MemplanError(
            f"the option policy of telamalloc is {shown(policy)}; it must be a "
            "memplan.extensions.published.policy.Policy, which the command line cannot give"
        )

    def choose(*columns: object) -> tuple[int, int | None] | None:
        state = State(problem, *columns)  # type: ignore[arg-type]
        return _check_choice(policy.choose(state), state)

    def go_back(*columns: object) -> int | None:
        state = State(problem, *columns)  # type: ignore[arg-type]
        level = policy.go_back(state)
        if level is None or (_is_whole(level) and 0 <= level < len(state.placed)):
            return None if level is None else int(level)
        raise MemplanError(
            f"the policy went back to {shown(level)}; go_back must return None or an index of "
            f"state.placed, 0 to {len(state.placed) - 1}"
        )

    return choose, go_back


def _check_choice(answer: object, state: State) -> tuple[int, int | None] | None:
    if answer is None:
        return None
    row, offset = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not _is_whole(row) or not (offset is None or _is_whole(offset)):
        raise MemplanError(
            f"the policy chose {shown(answer)}; choose must return a row, a row and an offset, or "
            "None"
        )
    if row not in state.candidates:
        raise MemplanError(f"the policy chose row {row}, which is not one of its candidates")
    if offset is None:
        return int(row), None
    at = int(np.searchsorted(state.candidates, row))
    lower, upper = int(state.lower[at]), int(state.upper[at])
    if not lower <= offset <= upper:
        raise MemplanError(
            f"the policy chose the offset {offset} for {state.problem.label(row)}, which must be "
            f"from {lower} to {upper}"
        )
    return int(row), int(offset)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
