"""The referee of orders: checks an order of operators, its peak and a bound on every order.

It shares no code with the search and uses no native code. docs/proofs.md says what a certificate
is, and why it is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from memplan.base.errors import PlanError, ProofError, quoted, shown
from memplan.problem import OrderBound, OrderProblem
from memplan.referee.flows import SINK, SOURCE, find_reached, measure_flow

__all__ = ["OrderClaim", "verify_order"]


class OrderClaim(NamedTuple):
    """The proved facts about an order, and about every order.

    Attributes
    ----------
    peak
        The most bytes that the order needs at one time.
    bound
        No order of the same operators has a smaller peak, in bytes.
    """

    peak: int
    bound: int


def verify_order(
    problem: OrderProblem,
    order: Iterable[int],
    *,
    peak: int | None = None,
    bound: int | None = None,
    certificate: OrderBound | None = None,
) -> OrderClaim:
    """Check that an order is legal and that claims about it are true; raise otherwise.

    Parameters
    ----------
    problem
        The operators and storages.
    order
        By place, the number of an operator. Each must occur once, after all that it waits for.
    peak
        The claimed peak in bytes, if any.
    bound
        The claimed lower bound on the peak of every order, in bytes, if any.
    certificate
        Why the bound holds. Without a certificate, only two bounds are accepted: the bytes that one
        operator needs by itself, and those that are live at either end of the program.

    Returns
    -------
    OrderClaim
        The peak, and the greatest bound that is proved.

    Raises
    ------
    PlanError
        One sentence about the first error in the order, or about a wrong peak.
    ProofError
        One sentence about a wrong certificate, or a bound that does not follow from it.

    Notes
    -----
    Linear in the number of operators, arcs and users, if each user of a storage has an arc from
    its maker; a fraction of a second for 2 500 operators.
    """
    program = _Columns(problem)
    sequence = _read_order(program, order)
    needed = _measure(program, sequence)
    if peak is not None and peak != needed:
        raise PlanError(f"the order claims a peak of {peak} bytes, but it needs {needed}")
    proved = _bound_each(program)
    if certificate is not None:
        proved = max(proved, _check_certificate(program, certificate))
    if bound is not None and bound > proved:
        raise ProofError(
            f"the bound of {bound} bytes on every order is not proved, but one of {proved} bytes is"
        )
    return OrderClaim(needed, proved)


class _Columns:
    """The columns of a problem as lists, and by operator."""

    def __init__(self, problem: OrderProblem) -> None:
        self.problem = problem
        self.workspace: list[int] = problem.workspace.tolist()
        self.size: list[int] = problem.size.tolist()
        self.given: list[bool] = problem.given.tolist()
        self.wanted: list[bool] = problem.wanted.tolist()
        self.users = [problem.users(storage).tolist() for storage in range(len(self.size))]
        self.before: list[list[int]] = [[] for _ in self.workspace]
        self.after: list[list[int]] = [[] for _ in self.workspace]
        self.touched: list[list[int]] = [[] for _ in self.workspace]
        for first, second in problem.arcs.tolist():
            self.before[second].append(first)
            self.after[first].append(second)
        for storage, users in enumerate(self.users):
            for user in users:
                self.touched[user].append(storage)
        self.pairs: list[list[tuple[int, int]]] = [[] for _ in self.workspace]
        for op, old, new in problem.in_place.tolist():
            if self._can_write_over(op, old, new):
                self.pairs[op].append((old, new))

    def name(self, op: int) -> str:
        """Return the name of an operator for errors."""
        names = self.problem.operators
        return f"operator {op} {quoted(names[op])}" if names else f"operator {op}"

    def _can_write_over(self, op: int, old: int, new: int) -> bool:
        """Return whether a pair can save anything in some order.

        `op` makes the new storage, which is no larger than the old one, and no operator that waits
        for `op` touches the old one.
        """
        if self.wanted[old] or self.given[new] or self.size[new] > self.size[old]:
            return False
        others = set(self.users[new]) - {op}
        last = max(self.users[new][-1], self.users[old][-1])
        later = find_reached(self.after, op, last) if last > op else set()
        return others <= later and later.isdisjoint(self.users[old])


def _read_order(program: _Columns, order: Iterable[int]) -> list[int]:
    """Return a legal order as a list."""
    count = len(program.workspace)
    place: dict[int, int] = {}
    for op in order:
        if isinstance(op, bool) or not isinstance(op, (int, np.integer)):
            raise PlanError(f"an order must be numbers of operators, not {shown(op)}")
        if not 0 <= op < count:
            raise PlanError(f"the order names operator {op}, but there are {count} operators")
        if op in place:
            raise PlanError(f"{program.name(int(op))} is in the order twice")
        place[int(op)] = len(place)
    for op in range(count):
        if op not in place:
            raise PlanError(f"{program.name(op)} is not in the order")
    for op, earlier in enumerate(program.before):
        for other in earlier:
            if place[other] > place[op]:
                raise PlanError(
                    f"{program.name(op)} is before {program.name(other)} in the order, "
                    "but waits for it"
                )
    return list(place)


def _measure(program: _Columns, order: Sequence[int]) -> int:
    """Return the peak of a legal order, from the definition of a step."""
    size = program.size
    left = [len(users) for users in program.users]
    begun = program.given.copy()
    live, _ = _live_at_the_ends(program)
    peak = live
    for op in order:
        for storage in program.touched[op]:
            if not begun[storage]:
                begun[storage] = True
                live += size[storage]
        dying = [pair for pair in program.pairs[op] if left[pair[0]] == 1]
        peak = max(peak, live + program.workspace[op] - _find_saved(dying, size))
        for storage in program.touched[op]:
            left[storage] -= 1
            if not left[storage] and not program.wanted[storage]:
                live -= size[storage]
    return peak


def _live_at_the_ends(program: _Columns) -> tuple[int, int]:
    """Return the bytes that are live before the first operator, and after the last one."""
    first = last = 0
    for size, users, given, wanted in zip(
        program.size, program.users, program.given, program.wanted, strict=True
    ):
        first += size if given and (users or wanted) else 0
        last += size if wanted and (users or given) else 0
    return first, last


def _find_saved(pairs: Sequence[tuple[int, int]], size: Sequence[int]) -> int:
    """Return the most bytes of outputs written over inputs, each of them in at most one pair.

    The sets of outputs that can be matched to inputs are a matroid, so taking the largest output
    first is optimal.
    """
    choices: dict[int, list[int]] = {}
    for old, new in pairs:
        choices.setdefault(new, []).append(old)
    over: dict[int, int] = {}  # by output: the input that it is written over
    taken: dict[int, int] = {}  # the same by input
    for new in sorted(choices, key=lambda each: -size[each]):
        reached: dict[int, int] = {}  # by input: the output that would take it
        todo = [new]
        while todo:
            at = todo.pop()
            fresh = [old for old in choices[at] if old not in reached]
            reached.update(dict.fromkeys(fresh, at))
            free = next((old for old in fresh if old not in taken), None)
            if free is None:
                todo += (taken[old] for old in fresh)
                continue
            while free is not None:  # each output on the path takes the input of the next
                at = reached[free]
                taken[free] = at
                over[at], free = free, over.get(at)
            break
    return sum(size[new] for new in over)


def _bound_each(program: _Columns) -> int:
    """Return the most that is live at either end, or that one operator needs by itself."""
    size = program.size
    return max(
        *_live_at_the_ends(program),
        *(
            sum(size[storage] for storage in touched) + workspace - _find_saved(pairs, size)
            for touched, workspace, pairs in zip(
                program.touched, program.workspace, program.pairs, strict=True
            )
        ),
    )


def _check_certificate(program: _Columns, certificate: OrderBound) -> int:
    """Return the bound that a certificate proves."""
    op = certificate.operator
    if not 0 <= op < len(program.workspace):
        raise ProofError(f"the certificate is about operator {op}, which does not exist")
    after = find_reached(program.after, op)
    value = measure_flow(certificate.flow, _make_network(program, op, after).get, program.name(op))
    _check_cut(program, certificate, value)
    own = sum(program.size[storage] for storage in program.touched[op])
    saved = _find_saved(program.pairs[op], program.size)
    return value + own + program.workspace[op] - saved


def _make_network(program: _Columns, op: int, after: set[int]) -> dict[tuple[int, int], float]:
    """Return the capacities of the network in which a cut is a state that `op` can run from.

    Operators on the side of the source have run. An arc that must not be cut has no limit.
    """
    count = len(program.workspace)
    node = [2 + each for each in range(count)]
    for each in find_reached(program.before, op):
        node[each] = SOURCE
    for each in (op, *after):
        node[each] = SINK
    capacity: dict[tuple[int, int], float] = {}
    for each, earlier in enumerate(program.before):
        for other in earlier:
            capacity[node[each], node[other]] = inf
    for storage, users in enumerate(program.users):
        if op in users:
            continue
        begins = 2 + count + 2 * storage
        ends = begins + 1
        capacity[begins, ends] = program.size[storage]
        for user in users:
            capacity[node[user], begins] = capacity[ends, node[user]] = inf
        if program.given[storage]:
            capacity[SOURCE, begins] = inf
        if program.wanted[storage]:
            capacity[ends, SINK] = inf
    return capacity


def _check_cut(program: _Columns, certificate: OrderBound, value: int) -> None:
    """Check that the operator can run from the state of the certificate, which needs the bound."""
    op, done = certificate.operator, set(certificate.done)
    name = program.name(op)
    if op in done:
        raise ProofError(f"{name} is in the state of its own certificate")
    for each in (op, *certificate.done):
        if not 0 <= each < len(program.workspace):
            raise ProofError(f"the state of the certificate has operator {each}, which is unknown")
        for other in program.before[each]:
            if other not in done:
                raise ProofError(
                    f"{program.name(each)} waits for {program.name(other)}, which is not in the "
                    "state of the certificate"
                )
    beside = set(program.problem.live_while(op, done)) - set(program.touched[op])
    cut = sum(program.size[storage] for storage in beside)
    if cut != value:
        raise ProofError(
            f"in the state of the certificate {cut} bytes are live beside those of {name}, but its "
            f"flow shows {value}"
        )
