"""The referee of recomputation: checks a sequence with re-runs, and a bound on what it costs.

It shares no code with the search and uses no native code.

Why a certificate is a proof: take any sequence that fits, at the moment when one operator runs
first. Some operators have run; some of these run again later. What has been made and is still to be
read, by an operator that has not run or by one that runs again, is there, or its maker runs again.
What is there fits into the capacity; so the cost of what runs again is at least its cost plus a
price times (what is there - capacity), whatever the price. The least such sum is a minimum cut, and
a flow bounds it from below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from memplan.errors import PlanError, ProofError, quoted, shown
from memplan.problem import Choice, RecomputeBound, RecomputeFloor, RecomputeLeaf, RecomputeProblem
from memplan.referee.flows import SINK, SOURCE, find_reached, measure_flow

__all__ = ["RecomputeClaim", "verify_recompute"]

_MOST_BITS = 62  # of scale and shift


class RecomputeClaim(NamedTuple):
    """The proved facts about a sequence, and about every sequence.

    Attributes
    ----------
    peak
        The most bytes that the sequence needs at one time; 0 without a sequence.
    extra
        The cost of all runs but the first one of each operator.
    bound
        No sequence within the capacity has a smaller extra cost.
    floor
        No sequence has a smaller peak.
    """

    peak: int
    extra: int
    bound: int
    floor: int


def verify_recompute(
    problem: RecomputeProblem,
    runs: Iterable[int] | None,
    capacity: int,
    *,
    peak: int | None = None,
    extra: int | None = None,
    bound: int | None = None,
    certificate: RecomputeBound | None = None,
    floor: int | None = None,
    floor_certificate: RecomputeFloor | None = None,
) -> RecomputeClaim:
    """Check that a sequence is legal and fits, and that claims about it are true; raise otherwise.

    Parameters
    ----------
    problem
        The operators and storages, and what may run again.
    runs
        The operators in the order in which they run; `None` if only bounds are claimed.
    capacity
        The most bytes that a sequence may need.
    peak, extra
        The claimed peak in bytes, and the claimed cost of re-runs, if any.
    bound
        The claimed lower bound on the cost of re-runs of every sequence that fits, if any.
    certificate
        Why the bound holds. Without a certificate, only a bound of 0 is accepted.
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
        cost = sum(program.cost[op] for op in sequence) - sum(program.cost)
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
    least = _find_least(program)
    if floor_certificate is not None:
        least = max(least, _check_floor(program, floor_certificate))
    if floor is not None and floor > least:
        raise ProofError(
            f"that every sequence needs {floor} bytes is not proved, but that it needs {least} is"
        )
    return RecomputeClaim(needed, cost, proved, least)


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

    def own(self, op: int) -> int:
        """Return what an operator needs by itself: all that it touches, and its workspace."""
        touched = (*self.makes[op], *self.uses[op])
        return sum(self.size[storage] for storage in touched) + self.workspace[op]

    def kept_always(self, op: int) -> int:
        """Return the bytes of what is given and wanted, and not touched by an operator."""
        touched = {*self.makes[op], *self.uses[op]}
        return sum(
            size
            for storage, size in enumerate(self.size)
            if self.given[storage] and self.wanted[storage] and storage not in touched
        )

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
        if not 0 <= number < count:
            raise PlanError(f"the sequence names operator {op}, but there are {count} operators")
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


def _measure(program: _Columns, runs: Sequence[int]) -> int:
    """Return the peak of a legal sequence, copy by copy."""
    change = [0] * (len(runs) + 1)  # of the live bytes, from one run to the next
    made: dict[int, int] = {s: 0 for s, given in enumerate(program.given) if given}
    read: dict[int, int] = {}  # by storage: the last run that uses its latest copy

    def close(storage: int, last: int) -> None:
        change[made[storage]] += program.size[storage]
        change[last + 1] -= program.size[storage]

    for at, op in enumerate(runs):
        for storage in program.uses[op]:
            made.setdefault(storage, at)  # the first user of what several write
            read[storage] = at
        for storage in program.makes[op]:
            if storage in made:
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
        peak = max(peak, live + program.workspace[op])
    return peak


def _find_least(program: _Columns) -> int:
    """Return the most that is live at either end, or that one operator needs by itself."""
    alone = (program.own(op) + program.kept_always(op) for op in range(len(program.workspace)))
    return max(*program.live_at_the_ends(), max(alone, default=0))


class _Network:
    """The network in which a cut is a moment: what has run, what is kept, and what runs again.

    Nodes on the side of the source hold. An arc has no limit, a cost, or a storage that is kept if
    the arc is cut. What the operator of the moment touches, and what is given and wanted, is there
    in any case, and has no arcs.
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
        self._bytes: dict[tuple[int, int], int] = {}
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
            always = program.given[storage] and program.wanted[storage]
            if storage not in touched and not always:
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
        self._bytes[begins, over] = program.size[storage]
        for user in program.users[storage]:
            self._endless.add((over, self._node[user]))
            if user in self._again:
                self._endless.add((over, self.leaves(user)))
        if program.wanted[storage]:
            self._endless.add((over, SINK))

    def measure(self, leaf: RecomputeLeaf, certificate: RecomputeBound, name: str) -> int:
        """Return what the flow of a case carries."""
        decided = {arc for decision in leaf.decisions for arc in self._decide(*decision)}
        factor = 1 << certificate.scale

        def capacity(arc: tuple[int, int]) -> float | None:
            if arc in self._endless or arc in decided:
                return inf
            if arc in self._cost:
                return self._cost[arc] // certificate.unit * factor
            if arc in self._bytes:
                return leaf.price * self._bytes[arc] >> certificate.shift
            return None

        return measure_flow(leaf.flow, capacity, name)

    def measure_bytes(self, certificate: RecomputeFloor, name: str) -> int:
        """Return what the flow carries where a byte costs one, and running again nothing."""

        def capacity(arc: tuple[int, int]) -> float | None:
            return inf if arc in self._endless else self._bytes.get(arc)

        return measure_flow(certificate.flow, capacity, name)

    def _decide(self, op: int, choice: int) -> Iterable[tuple[int, int]]:
        """Return the arcs without a limit that a decision adds."""
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
    _check_cases(program, certificate)
    network, name = _Network(program, op), program.name(op)
    room = capacity - program.own(op) - program.kept_always(op)
    values = []
    for leaf in certificate.leaves:
        flow = network.measure(leaf, certificate, name)
        values.append(flow - (leaf.price * room >> certificate.shift))
    return max(0, -(-min(values) >> certificate.scale) * certificate.unit)


def _check_cases(program: _Columns, certificate: RecomputeBound) -> None:
    """Check that the cases are the leaves of a tree in which both branches decide one operator."""
    todo = [(0, [leaf.decisions for leaf in certificate.leaves])]
    while todo:
        depth, paths = todo.pop()
        if len(paths) == 1 and len(paths[0]) == depth:
            continue
        if not paths or any(len(path) <= depth for path in paths):
            raise ProofError("the cases of the certificate are not all that there are")
        op, choice = paths[0][depth]
        _check_operator(program, op)
        for both in ((Choice.NOT_AGAIN, Choice.AGAIN), (Choice.AFTER, Choice.BEFORE)):
            if choice in both:
                parts = [[p for p in paths if p[depth] == (op, each)] for each in both]
                if sum(map(len, parts)) == len(paths):
                    todo += [(depth + 1, part) for part in parts]
                    break
        else:
            raise ProofError(f"the cases of the certificate do not agree about {program.name(op)}")


def _check_floor(program: _Columns, certificate: RecomputeFloor) -> int:
    """Return the bytes that every sequence needs by a certificate."""
    op = certificate.operator
    _check_operator(program, op)
    flow = _Network(program, op).measure_bytes(certificate, program.name(op))
    return flow + program.own(op) + program.kept_always(op)


def _check_operator(program: _Columns, op: int) -> None:
    if not 0 <= op < len(program.workspace):
        raise ProofError(f"the certificate is about operator {op}, which does not exist")
