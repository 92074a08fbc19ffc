"""Why one order of operators needs less than another, and what every order needs at least."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from memplan.levers.rewrite.columns import order_problem
from memplan.levers.rewrite.order import Reordered
from memplan.problem import OrderProblem
from memplan.programs.sources import lay_out_again

__all__ = ["Cut", "Move", "Moves", "cut_of", "explain_moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that runs at another place."""

    operator: str
    old: int  # its places in both orders, from 0
    new: int
    # Whether it ran after the operator at the given order's peak, and now runs before it.
    earlier: bool
    # What it touches that was live at that peak, and no longer is while the same operator runs: it
    # dies earlier if the operator runs earlier, and otherwise is made later.
    storages: tuple[str, ...]
    bytes: int  # of these together


@dataclass(frozen=True, slots=True)
class Moves:
    """The operators that moved, and where the given order has its peak."""

    operator: str  # it runs at the first peak of the given order, without in-place writes
    old: int  # what is live while it runs in both orders, in bytes
    new: int
    moves: tuple[Move, ...]  # those that save most there are first


@dataclass(frozen=True, slots=True)
class Cut:
    """What is live while one operator runs, in the case in which that is least."""

    operator: str
    storages: tuple[tuple[str, int], ...]  # names and bytes, the most bytes first
    workspace: int  # bytes that only the operator needs


def explain_moves(found: Reordered) -> Moves | None:
    """Return which operators moved and what that saves at the peak; `None` if none did."""
    if not found.moved:
        return None
    layout = lay_out_again(found.given, in_place=False).layout
    assert layout is not None
    problem = order_problem(layout)
    loads = _find_loads(problem)
    peak = int(loads.argmax())
    place = {operator: at for at, operator in enumerate(found.order)}
    before = set(problem.live_while(peak, range(peak)))
    after = set(problem.live_while(peak, found.order[: place[peak]]))
    gone = before - after
    touched: dict[int, set[int]] = {operator: set() for operator in found.moved}
    for storage in gone:
        for user in problem.users(storage).tolist():
            if user in touched and (user < peak) != (place[user] < place[peak]):
                touched[user].add(storage)
    if peak in touched:
        touched[peak] = gone
    moves = [
        Move(
            problem.operators[operator],
            operator,
            place[operator],
            place[operator] < operator if operator == peak else operator > peak,
            tuple(problem.storages[each] for each in sorted(storages)),
            _add_up(problem, storages),
        )
        for operator, storages in touched.items()
    ]
    moves.sort(key=lambda move: (-move.bytes, move.old))
    workspace = int(problem.workspace[peak])
    return Moves(
        problem.operators[peak],
        _add_up(problem, before) + workspace,
        _add_up(problem, after) + workspace,
        tuple(moves),
    )


def cut_of(found: Reordered) -> Cut | None:
    """Return what the certificate of a bound says; `None` if only the whole search shows it."""
    certificate, problem = found.certificate, found.problem
    if certificate is None:
        return None
    live = problem.live_while(certificate.operator, certificate.done)
    sizes = ((problem.storages[each], int(problem.size[each])) for each in live)
    return Cut(
        problem.operators[certificate.operator],
        tuple(sorted(sizes, key=lambda each: -each[1])),
        int(problem.workspace[certificate.operator]),
    )


def _add_up(problem: OrderProblem, storages: Collection[int]) -> int:
    return sum(int(problem.size[each]) for each in storages)


def _find_loads(problem: OrderProblem) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return what is live while each operator runs in the given order, in bytes."""
    count = len(problem)
    change = np.zeros(count + 1, dtype=np.int64)
    for storage, size in enumerate(problem.size.tolist()):
        users: Iterable[int] = problem.users(storage)
        first = 0 if problem.given[storage] else min(users, default=count)
        last = count - 1 if problem.wanted[storage] else max(users, default=-1)
        if first <= last:
            change[first] += size
            change[last + 1] -= size
    loads: np.ndarray[tuple[int], np.dtype[np.int64]] = change.cumsum()[:-1] + problem.workspace
    return loads
