"""An `OrderProblem` as lists for heuristics: waits, and the makers and readers of storages."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.problem import OrderProblem

__all__ = ["OrderLists", "program_of"]


@dataclass(frozen=True)
class OrderLists:
    """An `OrderProblem` as lists."""

    problem: OrderProblem
    # before, behind: By operator: the operators that it waits for, and those that wait for it;
    # ascending.
    before: list[list[int]]
    behind: list[list[int]]
    touched: list[list[int]]  # by operator: the storages that it touches
    # By operator: the storages that it is the first to touch in the given order.
    makes: list[list[int]]
    reads: list[list[int]]  # by operator: the others that it touches
    users: list[list[int]]  # by storage: the operators that touch it

    def size(self, storage: int) -> int:
        """Return the bytes of a storage."""
        return int(self.problem.size[storage])


def program_of(problem: OrderProblem) -> OrderLists:
    """Return the lists of a problem."""
    count = len(problem)
    before: list[set[int]] = [set() for _ in range(count)]
    behind: list[set[int]] = [set() for _ in range(count)]
    for first, second in problem.arcs.tolist():
        before[second].add(first)
        behind[first].add(second)
    touched: list[list[int]] = [[] for _ in range(count)]
    makes: list[list[int]] = [[] for _ in range(count)]
    reads: list[list[int]] = [[] for _ in range(count)]
    users = [problem.users(storage).tolist() for storage in range(len(problem.size))]
    for storage, own in enumerate(users):
        made = bool(own) and not problem.given[storage]
        if made:
            makes[own[0]].append(storage)
        for user in own:
            touched[user].append(storage)
        for user in own[made:]:
            reads[user].append(storage)
    return OrderLists(
        problem, list(map(sorted, before)), list(map(sorted, behind)), touched, makes, reads, users
    )
