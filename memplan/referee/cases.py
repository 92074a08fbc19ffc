"""Cases of a certificate: whether they are the leaves of a tree, and so all that there are.

A case is the list of its decisions, from the root of the tree on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memplan.base.errors import ProofError

__all__ = ["check_cases"]

Decision = TypeVar("Decision")


def check_cases(
    cases: Sequence[Sequence[Decision]],
    find_branches: Callable[[Sequence[Decision]], Sequence[Decision]],
) -> None:
    """Check that at each inner node of the tree, the branches are all that can be decided there.

    `find_branches` takes the decisions of all cases at a node, at least one, and returns those that
    are possible there, or raises a `ProofError` if the cases do not agree what is decided.
    """
    todo = [(0, list(cases))]
    while todo:
        depth, here = todo.pop()
        if len(here) == 1 and len(here[0]) == depth:
            continue
        if not here or any(len(case) <= depth for case in here):
            raise ProofError("the cases of the certificate are not all that there are")
        for branch in find_branches([case[depth] for case in here]):
            todo.append((depth + 1, [case for case in here if case[depth] == branch]))
