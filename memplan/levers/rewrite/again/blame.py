"""Says which operator would have to run again for less memory, and why it may not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from memplan.base.errors import quoted
from memplan.levers.rewrite.again.columns import Again

__all__ = ["blame_operator"]


def blame_operator(question: Again, floor_op: int) -> str:
    """Return what holds the floor up because its maker runs once, in a few words, or nothing.

    It is the largest tensor that is made before an operator in any order, and read after it, but
    not by it: the tensor is there while the operator runs, whatever else runs again. `floor_op` has
    the floor; it is -1 if none does.
    """
    problem = question.problem
    program = problem.program
    if floor_op < 0:
        return ""
    before, after = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for one, other in program.arcs.tolist():
        before[other].append(one)
        after[one].append(other)
    ancestors, descendants = _reach(before, floor_op), _reach(after, floor_op)
    best, words = 0, ""
    for storage, maker in enumerate(problem.maker.tolist()):
        users = program.users(storage).tolist()
        if program.given[storage] or not users or floor_op in users or problem.move[storage] >= 0:
            continue
        first = maker if maker >= 0 else users[0]
        later = bool(program.wanted[storage]) or not descendants.isdisjoint(users)
        size = int(program.size[storage])
        if first in ancestors and later and first in question.once and size > best:
            best = size
            words = (
                f"; {size} bytes of it are {quoted(program.storages[storage])}, as operator "
                f"{quoted(program.operators[first])} may not run again: {question.once[first]}"
            )
    return words


def _reach(arcs: Mapping[int, Iterable[int]], start: int) -> set[int]:
    """Return what can be reached from an operator."""
    found: set[int] = set()
    todo = [start]
    while todo:
        for each in arcs.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return found
