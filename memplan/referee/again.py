"""The referee of recomputation: checks a sequence with re-runs, and a bound on what it costs.

It shares no code with the search and uses no native code.

Why a certificate is a proof: take any sequence that fits, at the moment when one operator runs
first. Some operators have run; some of these run again later. What has been made and is still to be
read, by an operator that has not run or by one that runs again, is there, or its maker runs again,
or it is moved back later. What is there fits into the capacity; so the extra cost is at least the
cost of what runs again and is moved back, each once, plus a price times (what is there - capacity),
whatever the price. What is needed and not made again is kept or moved back, whichever costs less.
The least such sum is a minimum cut, and a flow bounds it from below.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from memplan.base.errors import PlanError, ProofError, quoted, shown
from memplan.problem import (
    Choice,
    GivenOrderBound,
    RecomputeBound,
    RecomputeFloor,
    RecomputeLeaf,
    RecomputeProblem,
)
from memplan.referee.cases import check_cases
from memplan.referee.flows import SINK, SOURCE, find_reached, measure_flow
from memplan.referee.moments import check_order_bound

__all__ = ["RecomputeClaim", "verify_recompute"]

_MOST_BITS = 62  # of scale and shift


class RecomputeClaim(NamedTuple):
    """The proved facts about a sequence, and about every sequence.

    Attributes
    ----------
    peak
        The most bytes that the sequence needs at one time; 0 without a sequence.
    extra
        The cost of all runs but the first one of each operator, and of all moves.
    bound
        No sequence within the capacity has a smaller extra cost.
    floor
        No sequence has a smaller peak.
    order_bound
        No sequence within the capacity whose first runs are in the given order has a smaller extra
        cost.
    """

    peak: int
    extra: int
    bound: int
    floor: int
    order_bound: int = 0


def verify_recompute(
    problem: RecomputeProblem,
    runs: Iterable[int] | None,
    capacity: int,
    *,
    peak: int | None = None,
    extra: int | None = None,
    bound: int | None = None,
    certificate: RecomputeBound | None = None,
    order_bound: int | None = None,
    order_certificate: GivenOrderBound | None = None,
    floor: int | None = None,
    floor_certificate: RecomputeFloor | None = None,
) -> RecomputeClaim:
    """Check that a sequence is legal and fits, and that claims about it are true; raise otherwise.

    Parameters
    ----------
    problem
        The operators and storages, and what may run again.
    runs
        The operators in the order in which they run, with moves as `RecomputeProblem` says; `None`
        if only bounds are claimed.
    capacity
        The most bytes that a sequence may need.
    peak, extra
        The claimed peak in bytes, and the claimed cost of re-runs and moves, if any.
    bound
        The claimed lower bound on the extra cost of every sequence that fits, if any.
    certificate
        Why the bound holds. Without a certificate, only a bound of 0 is accepted.
    order_bound, order_certificate
        The same for sequences whose first runs are in the given order.
    floor
        The claimed lower bound on the peak of every sequence, in bytes, if any.
    floor_certificate
        Why the floor holds. Without a certificate, only two floors are accepted: what one operator
        needs by itself, and what is live at either end of the program.

    Raises
    ------
    PlanError
        One sentence about the first error in the sequence, or about a wrong peak or cost.
    ProofError
        One sentence about a wrong certificate, or a bound that does not follow from it.
    """
    program = _Columns(problem)
    needed = cost = 0
    if runs is not None:
        sequence = _read_runs(program, runs)
        needed = _measure(program, sequence)
        cost = sum(program.cost_of(run) for run in sequence) - sum(program.cost)
        if needed > capacity:
            raise PlanError(f"the sequence needs {needed} bytes, but the capacity is {capacity}")
        if peak is not None and peak != needed:
            raise PlanError(f"the sequence claims a peak of {peak} bytes, but it needs {needed}")
        if extra is not None and extra != cost:
            raise PlanError(f"the sequence claims re-runs that cost {extra}, but they cost {cost}")
    proved = 0 if certificate is None else _check_bound(program, certificate, capacity)
    if bound is not None and bound > proved:
        raise ProofError(
            f"that re-runs cost at least {bound} is not proved, but that they cost {proved} is"
        )
    in_order = proved
    if order_certificate is not None:
        in_order = max(proved, check_order_bound(problem, order_certificate, capacity))
    if order_bound is not None and order_bound > in_order:
        raise ProofError(
            f"that re-runs in the given order cost at least {order_bound} is not proved, but that "
            f"they cost {in_order} is"
        )
    least = _find_least(program)
    if floor_certificate is not None:
        least = max(least, _check_floor(program, floor_certificate))
    if floor is not None and floor > least:
        raise ProofError(
            f"that every sequence needs {floor} bytes is not proved, but that it needs {least} is"
        )
    return RecomputeClaim(needed, cost, proved, least, in_order)


class _Columns:
    """The columns of a problem as lists, and by operator."""

    def __init__(self, problem: RecomputeProblem) -> None:
        program = problem.program
        self.names = program.operators
        self.workspace: list[int] = program.workspace.tolist()
        self.size: list[int] = program.size.tolist()
        self.given: list[bool] = program.given.tolist()
        self.wanted: list[bool] = program.wanted.tolist()
        self.cost: list[int] = problem.cost.tolist()
        self.again: list[bool] = problem.again.tolist()
        self.maker: list[int] = problem.maker.tolist()
        self.move: list[int] = problem.move.tolist()
        count = len(self.workspace)
        self.users: list[list[int]] = []
        self.makes: list[list[int]] = [[] for _ in range(count)]
        self.uses: list[list[int]] = [[] for _ in range(count)]  # without what the operator makes
        before: list[set[int]] = [set() for _ in range(count)]
        for first, second in program.arcs.tolist():
            before[second].add(first)
        for storage, maker in enumerate(self.maker):
            users = [user for user in program.users(storage).tolist() if user != maker]
            self.users.append(users)
            for user in users:
                self.uses[user].append(storage)
                if maker >= 0:
                    before[user].add(maker)
            if maker >= 0:
                self.makes[maker].append(storage)
        self.before = [sorted(each) for each in before]
        self.after: list[list[int]] = [[] for _ in range(count)]
        for op, earlier in enumerate(self.before):
            for other in earlier:
                self.after[other].append(op)

    def name(self, op: int) -> str:
        """Return the name of an operator for errors."""
        return f"operator {op} {quoted(self.names[op])}" if self.names else f"operator {op}"

    def may_move(self, storage: int) -> bool:
        """Return whether a storage may be moved out and back."""
        used = self.maker[storage] >= 0 or bool(self.users[storage])
        return used and self.move[storage] >= 0

    def cost_of(self, run: int) -> int:
        """Return what a run costs, of an operator or of a move."""
        count = len(self.cost)
        return self.cost[run] if run < count else self.move[run - count]

    def own(self, op: int) -> int:
        """Return what an operator needs by itself: all that it touches, and its workspace."""
        touched = (*self.makes[op], *self.uses[op])
        return sum(self.size[storage] for storage in touched) + self.workspace[op]

    def kept_always(self, op: int) -> int:
        """Return the bytes of what never leaves, and is not touched by an operator."""
        touched = {*self.makes[op], *self.uses[op]}
        return sum(
            size
            for storage, size in enumerate(self.size)
            if self.never_leaves(storage) and storage not in touched
        )

    def never_leaves(self, storage: int) -> bool:
        """Return whether a storage is given and wanted, and may not be moved."""
        return self.given[storage] and self.wanted[storage] and not self.may_move(storage)

    def live_at_the_ends(self) -> tuple[int, int]:
        """Return the bytes that are live before the first run, and after the last one."""
        first = last = 0
        for storage, size in enumerate(self.size):
            given, wanted = self.given[storage], self.wanted[storage]
            used = self.maker[storage] >= 0 or bool(self.users[storage])
            first += size if given and (used or wanted) else 0
            last += size if wanted and (used or given) else 0
        return first, last


def _read_runs(program: _Columns, runs: Iterable[int]) -> list[int]:
    """Return a legal sequence as a list."""
    count = len(program.workspace)
    sequence: list[int] = []
    first: dict[int, int] = {}
    for op in runs:
        if isinstance(op, bool) or not isinstance(op, (int, np.integer)):
            raise PlanError(f"a sequence must be numbers of operators, not {shown(op)}")
        number = int(op)
        if not 0 <= number < count + len(program.size):
            raise PlanError(f"the sequence names operator {op}, but there are {count} operators")
        if number >= count:
            _check_move(program, number - count, first)
            sequence.append(number)
            continue
        if number in first and not program.again[number]:
            raise PlanError(f"{program.name(number)} is in the sequence twice, but may run once")
        if number not in first:
            for other in program.before[number]:
                if other not in first:
                    raise PlanError(
                        f"{program.name(number)} is before {program.name(other)} in the sequence, "
                        "but waits for it"
                    )
        first.setdefault(number, len(sequence))
        sequence.append(number)
    for op in range(count):
        if op not in first:
            raise PlanError(f"{program.name(op)} is not in the sequence")
    return sequence


def _check_move(program: _Columns, storage: int, done: Container[int]) -> None:
    """Check that a storage may be moved back after some operators have run."""
    maker = program.maker[storage]
    makers = [maker] if maker >= 0 else program.users[storage]
    if not program.may_move(storage):
        raise PlanError(f"the sequence moves storage {storage}, which may not be moved")
    if not program.given[storage] and not any(op in done for op in makers):
        raise PlanError(f"the sequence moves storage {storage} back before it is made")


def _measure(program: _Columns, runs: Sequence[int]) -> int:
    """Return the peak of a legal sequence, copy by copy."""
    change = [0] * (len(runs) + 1)  # of the live bytes, from one run to the next
    made: dict[int, int] = {s: 0 for s, given in enumerate(program.given) if given}
    read: dict[int, int] = {}  # by storage: the last run that uses its latest copy

    def close(storage: int, last: int) -> None:
        change[made[storage]] += program.size[storage]
        change[last + 1] -= program.size[storage]

    count = len(program.workspace)
    workspace = [*program.workspace, *(0 for _ in program.size)]
    for at, op in enumerate(runs):
        for storage in program.uses[op] if op < count else ():
            made.setdefault(storage, at)  # the first user of what several write
            read[storage] = at
        for storage in program.makes[op] if op < count else (op - count,):
            if storage in read:  # what is given may leave before anything reads it
                close(storage, read[storage])
            made[storage] = read[storage] = at
    for storage in made:
        if program.wanted[storage]:
            close(storage, len(runs) - 1)
        elif storage in read:
            close(storage, read[storage])
    peak = max(program.live_at_the_ends())
    live = 0
    for at, op in enumerate(runs):
        live += change[at]
        peak = max(peak, live + workspace[op])
    return peak


def _find_least(program: _Columns) -> int:
    """Return the most that is live at either end, or that one operator needs by itself."""
    alone = (program.own(op) + program.kept_always(op) for op in range(len(program.workspace)))
    return max(*program.live_at_the_ends(), max(alone, default=0))


class _Network:
    """The network in which a cut is a moment: what has run, what is kept, and what runs again.

    Nodes on the side of the source hold. An arc has no limit, a cost, or a storage that is kept if
    the arc is cut. What the operator of the moment touches, and what never leaves, is there in any
    case, and has no arcs.
    """

    def __init__(self, program: _Columns, op: int) -> None:
        count = len(program.workspace)
        self._program = program
        self._node = [2 + each for each in range(count)]
        for each in find_reached(program.before, op):
            self._node[each] = SOURCE
        for each in (op, *find_reached(program.after, op)):
            self._node[each] = SINK
        self._endless: set[tuple[int, int]] = set()
        self._cost: dict[tuple[int, int], int] = {}
        self._kept: dict[tuple[int, int], int] = {}  # storages
        touched = {*program.makes[op], *program.uses[op]}
        self._again = {
            each
            for each in range(count)
            if program.again[each] and not touched.issuperset(program.makes[each])
        }
        for each, earlier in enumerate(program.before):
            self._endless.update((self._node[each], self._node[other]) for other in earlier)
        for each in self._again:
            self._cost[self._node[each], self.leaves(each)] = program.cost[each]
        for storage in range(len(program.size)):
            if storage not in touched and not program.never_leaves(storage):
                self._add_storage(storage)

    def leaves(self, op: int) -> int:
        """Return the node that says that an operator does not run again."""
        return 2 + len(self._node) + op

    def _add_storage(self, storage: int) -> None:
        program, maker = self._program, self._program.maker[storage]
        if maker >= 0 and self._node[maker] == SINK:
            return
        begins = 2 + 2 * len(self._node) + 2 * storage
        over = begins + 1
        if maker >= 0:
            begins = self.leaves(maker) if maker in self._again else self._node[maker]
        elif program.given[storage]:
            begins = SOURCE
        else:
            self._endless.update((self._node[user], begins) for user in program.users[storage])
        self._kept[begins, over] = storage
        for user in program.users[storage]:
            self._endless.add((over, self._node[user]))
            if user in self._again:
                self._endless.add((over, self.leaves(user)))
        if program.wanted[storage]:
            self._endless.add((over, SINK))

    def measure(self, leaf: RecomputeLeaf, certificate: RecomputeBound, name: str) -> int:
        """Return what the flow of a case carries."""
        program, count = self._program, len(self._node)
        decided = {arc for decision in leaf.decisions for arc in self._decide(*decision)}
        moved = {run - count: choice for run, choice in leaf.decisions if run >= count}

        def scaled(cost: int) -> int:
            return cost // certificate.unit << certificate.scale

        paid = sum(scaled(program.move[s]) for s, choice in moved.items() if choice == Choice.AGAIN)

        def keep(storage: int) -> int:
            price = leaf.price * program.size[storage] >> certificate.shift
            if moved.get(storage) == Choice.AGAIN:
                return 0
            if storage in moved or not program.may_move(storage):
                return price
            return min(price, scaled(program.move[storage]))

        def capacity(arc: tuple[int, int]) -> float | None:
            if arc in self._endless or arc in decided:
                return inf
            if arc in self._cost:
                return scaled(self._cost[arc])
            if arc in self._kept:
                return keep(self._kept[arc])
            return paid if arc == (SOURCE, SINK) and moved else None

        return measure_flow(leaf.flow, capacity, name)

    def measure_bytes(self, certificate: RecomputeFloor, name: str) -> int:
        """Return what the flow carries where a byte costs one, and runs and moves nothing."""
        program = self._program

        def capacity(arc: tuple[int, int]) -> float | None:
            if arc in self._endless:
                return inf
            storage = self._kept.get(arc)
            if storage is None:
                return None
            return 0 if program.may_move(storage) else program.size[storage]

        return measure_flow(certificate.flow, capacity, name)

    def _decide(self, op: int, choice: int) -> Iterable[tuple[int, int]]:
        """Return the arcs without a limit that a decision adds."""
        if op >= len(self._node):
            maker = self._program.maker[op - len(self._node)]
            return ((SOURCE, self._node[maker]),) if choice == Choice.AGAIN and maker >= 0 else ()
        if choice == Choice.NOT_AGAIN:
            return ((self._node[op], self.leaves(op)),) if op in self._again else ()
        if choice == Choice.AGAIN:
            return (SOURCE, self._node[op]), (self.leaves(op), SINK)
        if choice == Choice.AFTER:
            return ((self._node[op], SINK),)
        return ((SOURCE, self._node[op]),)


def _check_bound(program: _Columns, certificate: RecomputeBound, capacity: int) -> int:
    """Return the bound on the extra cost that a certificate proves."""
    op = certificate.operator
    _check_operator(program, op)
    for amount, least, most in (
        (certificate.unit, 1, inf),
        (certificate.scale, 0, _MOST_BITS),
        (certificate.shift, 0, _MOST_BITS),
        *((leaf.price, 0, inf) for leaf in certificate.leaves),
    ):
        if not least <= amount <= most:
            raise ProofError(f"the certificate has a unit, scale, shift or price of {amount}")
    for each, cost in enumerate(program.cost):
        if program.again[each] and cost % certificate.unit:
            raise ProofError(
                f"{program.name(each)} costs {cost}, no multiple of the unit {certificate.unit}"
            )
    for storage, cost in enumerate(program.move):
        if program.may_move(storage) and cost % certificate.unit:
            raise ProofError(
                f"moving storage {storage} costs {cost}, no multiple of the unit {certificate.unit}"
            )
    cases = [leaf.decisions for leaf in certificate.leaves]
    check_cases(cases, partial(_find_branches, program))
    network, name = _Network(program, op), program.name(op)
    room = capacity - program.own(op) - program.kept_always(op)
    values = []
    for leaf in certificate.leaves:
        flow = network.measure(leaf, certificate, name)
        values.append(flow - (leaf.price * room >> certificate.shift))
    return max(0, -(-min(values) >> certificate.scale) * certificate.unit)


def _find_branches(
    program: _Columns, decisions: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Return both choices for the one operator, or storage that may move, decided at a node."""
    op, choice = decisions[0]
    moved = op - len(program.workspace)
    if not 0 <= moved < len(program.size):
        _check_operator(program, op)
    elif not program.may_move(moved):
        raise ProofError(f"the certificate moves storage {moved}, which may not be moved")
    for both in ((Choice.NOT_AGAIN, Choice.AGAIN), (Choice.AFTER, Choice.BEFORE)):
        branches = [(op, int(each)) for each in both]
        is_possible = choice in both and (moved < 0 or Choice.AGAIN in both)
        if is_possible and all(decision in branches for decision in decisions):
            return branches
    name = program.name(op) if moved < 0 else f"storage {moved}"
    raise ProofError(f"the cases of the certificate do not agree about {name}")


def _check_floor(program: _Columns, certificate: RecomputeFloor) -> int:
    """Return the bytes that every sequence needs by a certificate."""
    op = certificate.operator
    _check_operator(program, op)
    flow = _Network(program, op).measure_bytes(certificate, program.name(op))
    return flow + program.own(op) + program.kept_always(op)


def _check_operator(program: _Columns, op: int) -> None:
    if not 0 <= op < len(program.workspace):
        raise ProofError(f"the certificate is about operator {op}, which does not exist")
