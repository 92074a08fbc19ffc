"""What is true of small programs whose operators may run again: the cheapest way to the end.

Nothing of memplan is used but the columns of `RecomputeProblem`. A state is what has run, which
storages are there, and of which there is a copy outside; all are numbers with a bit for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import gcd
from random import Random

import numpy as np
import order_oracle

from memplan.problem import Choice, RecomputeBound, RecomputeFloor, RecomputeLeaf, RecomputeProblem

ENDLESS = 2**200  # more than any sum of amounts


def program(
    workspace: Sequence[int],
    cost: Sequence[int],
    again: Sequence[bool],
    storages: Sequence[tuple[int, Iterable[int], bool, bool, int]],
    arcs: Iterable[tuple[int, int]] = (),
    move: Sequence[int] | None = None,
) -> RecomputeProblem:
    """Return a problem of storages (bytes, users, given, wanted, maker), which may move or not."""
    reads = [(maker, user) for _, users, _, _, maker in storages if maker >= 0 for user in users]
    waits = sorted({*arcs, *((one, other) for one, other in reads if one != other)})
    return RecomputeProblem(
        order_oracle.program(workspace, waits, [each[:4] for each in storages]),
        np.array(cost, dtype=np.int64),
        np.array(again, dtype=np.bool_),
        np.array([maker for *_, maker in storages], dtype=np.int32),
        np.array([-1 for _ in storages] if move is None else move, dtype=np.int64),
    )


def random_program(random: Random, most: int = 7, moves: bool = False) -> RecomputeProblem:
    """Return a program of at most so many operators, with everything that programs can have.

    If it has moves, most of its storages may be moved.
    """
    count = random.randint(1, most)
    size = random.choice(((0, 9), (1, 9), (1, 3), (2**40, 2**40 + 9)))
    prices = random.choice(((0, 9), (1, 9), (1, 1), (1000, 3000)))
    usual = random.choice((0.6, 0.9, 1.0))
    again = [random.random() < usual for _ in range(count)]
    storages: list[tuple[int, list[int], bool, bool, int]] = []
    arcs: list[tuple[int, int]] = []

    def add(users: list[int], given: bool, maker: int) -> None:
        wanted = random.random() < 0.15 or (len(users) == 1 and random.random() < 0.5)
        storages.append((random.randint(*size), sorted(users), given, wanted, maker))

    nested = random.random() < 0.5  # as in a training step: what is made first is read last
    for op in range(count):
        later = range(op + 1, count)
        for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
            readers = random.sample(later, min(len(later), random.choice((0, 1, 1, 2, 2, 3))))
            if nested:
                readers = [each for each in {op + 1, count - 1 - op} if each > op]
            add([op, *(each for each in readers if each < count)], False, op)
    for _ in range(random.choice((0, 0, 1, 2))):
        add(random.sample(range(count), random.randint(0, min(count, 3))), True, -1)
    if count > 1 and random.random() < 0.2:  # several write it, one after the other
        users = sorted(random.sample(range(count), random.randint(2, min(count, 3))))
        arcs += pairwise(users)
        for user in users:
            again[user] = False
        add(users, random.random() < 0.3, -1)
    for _ in range(random.choice((0, 0, 1))):
        arcs += [tuple(sorted(random.sample(range(count), 2)))] if count > 1 else []  # type: ignore[list-item]
    workspace = [random.randint(*size) if random.random() < 0.2 else 0 for _ in range(count)]
    cost = [random.randint(*prices) for _ in range(count)]
    if not moves:
        return program(workspace, cost, again, storages, arcs)
    move = [random.randint(*prices) if random.random() < 0.8 else -1 for _ in storages]
    return program(workspace, cost, again, storages, arcs, move)


class States:
    """The steps of a program: an operator runs, or a storage is dropped, moved out or back.

    If it is in order, first runs are those of the operators as they are numbered.
    """

    def __init__(self, problem: RecomputeProblem, in_order: bool = False) -> None:
        self.in_order = in_order
        columns = problem.program
        self.count = len(columns)
        self.size: list[int] = columns.size.tolist()
        self.users = [columns.users(storage).tolist() for storage in range(len(self.size))]
        self.workspace: list[int] = columns.workspace.tolist()
        self.cost: list[int] = problem.cost.tolist()
        self.again: list[bool] = problem.again.tolist()
        self.maker: list[int] = problem.maker.tolist()
        self.move: list[int] = problem.move.tolist()
        self.before = [0] * self.count
        for first, second in columns.arcs.tolist():
            self.before[second] |= 1 << first
        self.start = self.end = 0
        self.reads = [0] * self.count
        self.makes = [0] * self.count
        self.shared = [0] * self.count  # what several write, and nothing gives
        self.changed = [0] * self.count  # what it may write to, though it is not its maker
        for storage, users in enumerate(self.users):
            given, wanted = columns.given[storage], columns.wanted[storage]
            used = bool(users)
            if given and (used or wanted):
                self.start |= 1 << storage
            if wanted and (used or given):
                self.end |= 1 << storage
            for user in users:
                if self.maker[storage] < 0:
                    self.changed[user] |= 1 << storage
                if self.maker[storage] == user:
                    self.makes[user] |= 1 << storage
                elif self.maker[storage] < 0 and not given:
                    self.shared[user] |= 1 << storage
                else:
                    self.reads[user] |= 1 << storage

    def may_move(self, storage: int) -> bool:
        """Return whether a storage may be moved."""
        return self.move[storage] >= 0 and bool(self.users[storage])

    def bytes(self, there: int) -> int:
        """Return the sum of the storages that are there."""
        return sum(size for storage, size in enumerate(self.size) if there >> storage & 1)

    def runs(self, done: int, there: int, capacity: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the operators that can run now: what is done and there after it, and its cost."""
        for op in range(self.count):
            ran = done >> op & 1
            if (ran and not self.again[op]) or (not ran and self.before[op] & ~done):
                continue
            if self.in_order and not ran and done != (1 << op) - 1:
                continue
            begun = self.shared[op] & sum(
                1 << storage
                for storage, users in enumerate(self.users)
                if any(done >> user & 1 for user in users)
            )
            if (self.reads[op] | begun) & ~there:
                continue
            after = there | self.makes[op] | self.shared[op]
            if self.bytes(after) + self.workspace[op] <= capacity:
                yield op, done | 1 << op, after, self.cost[op] if ran else 0

    def least_extra(self, capacity: int) -> int | None:
        """Return the least extra cost of a sequence that fits, or `None` if none does."""
        first = (0, self.start, 0)
        best = {first: 0}
        todo = [(0, *first)]
        if self.bytes(self.start) > capacity:
            return None
        while todo:
            cost, *state = heappop(todo)
            done, there, out = state
            if best[done, there, out] < cost:
                continue
            if done == (1 << self.count) - 1 and there & self.end == self.end:
                return cost if self.bytes(self.end) <= capacity else None
            found = [
                (cost + more, then, after, out & ~self.changed[op])
                for op, then, after, more in self.runs(done, there, capacity)
            ]
            for storage in range(len(self.size)):
                bit = 1 << storage
                if there & bit:
                    kept = out | bit if self.may_move(storage) else out
                    found.append((cost, done, there & ~bit, kept))
                elif out & bit and self.bytes(there | bit) <= capacity:
                    found.append((cost + self.move[storage], done, there | bit, out))
            for dear, *after in found:
                if dear < best.get(tuple(after), ENDLESS):
                    best[tuple(after)] = dear
                    heappush(todo, (dear, *after))
        return None

    def load(self, runs: Sequence[int]) -> int:
        """Return the peak of a legal sequence, each storage kept as long as it is needed."""
        peak = max(self.bytes(self.start), self.bytes(self.end))
        moved = [0 for _ in self.size]
        touched = [reads | shared for reads, shared in zip(self.reads, self.shared, strict=True)]
        touched += moved
        makes = [*self.makes, *(1 << storage for storage in range(len(self.size)))]
        begins = [one | other for one, other in zip(makes, [*self.shared, *moved], strict=True)]
        workspace = [*self.workspace, *moved]
        for at, op in enumerate(runs):
            there = makes[op] | touched[op]
            for storage in range(len(self.size)):
                bit = 1 << storage
                begun = self.start & bit or any(begins[v] & bit for v in runs[:at])
                rest = [v for v in runs[at + 1 :] if (makes[v] | touched[v]) & bit]
                needed = touched[rest[0]] & bit if rest else self.end & bit
                if begun and needed:
                    there |= bit
            peak = max(peak, self.bytes(there) + workspace[op])
        return peak


def random_runs(problem: RecomputeProblem, random: Random) -> list[int]:
    """Return a legal sequence, with re-runs and moves here and there."""
    states = States(problem)
    runs: list[int] = []
    done = 0
    while done != (1 << states.count) - 1:
        ready = [op for op in range(states.count) if not states.before[op] & ~done]
        op = random.choice(ready)
        if not done >> op & 1 or (states.again[op] and random.random() < 0.5):
            runs.append(op)
            done |= 1 << op
        storage = random.randrange(len(states.size)) if states.size else -1
        if storage < 0 or not states.may_move(storage) or random.random() < 0.5:
            continue
        maker = states.maker[storage]
        makers = [maker] if maker >= 0 else states.users[storage]
        if states.start >> storage & 1 or any(done >> op & 1 for op in makers):
            runs.append(states.count + storage)
    return runs


def extra_of(problem: RecomputeProblem, runs: Sequence[int]) -> int:
    """Return the cost of all runs beyond the first ones, and of all moves."""
    return (
        sum([*problem.cost.tolist(), *problem.move.tolist()][run] for run in runs) - problem.plain
    )


class _Network:
    """The network of a moment, by a maximum flow along shortest paths."""

    def __init__(self, problem: RecomputeProblem, op: int) -> None:
        self.states = states = States(problem)
        self.problem, self.op = problem, op
        count = states.count
        ancestors = descendants = 0
        for other in reversed(range(op)):
            if any(
                states.before[later] >> other & 1
                for later in range(count)
                if (ancestors | 1 << op) >> later & 1
            ):
                ancestors |= 1 << other
        for other in range(op + 1, count):
            if states.before[other] & (descendants | 1 << op):
                descendants |= 1 << other
        self.node = [
            0 if ancestors >> each & 1 else 1 if each == op or descendants >> each & 1 else 2 + each
            for each in range(count)
        ]
        touched = states.reads[op] | states.makes[op] | states.shared[op]
        given, wanted = problem.program.given, problem.program.wanted
        self.fixed = touched
        for storage in range(len(states.size)):
            if given[storage] and wanted[storage] and not states.may_move(storage):
                self.fixed |= 1 << storage
        self.own = states.bytes(self.fixed) + states.workspace[op]
        self.leaves = {
            each: 2 + count + each
            for each in range(count)
            if states.again[each] and states.makes[each] & ~touched
        }

    def arcs(
        self, price: int, shift: int, unit: int, scale: int, decisions: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], int]:
        """Return the capacities."""
        states, node, count = self.states, self.node, self.states.count
        found: dict[tuple[int, int], int] = {}
        moved = {run - count: choice for run, choice in decisions if run >= count}
        decisions = [decision for decision in decisions if decision[0] < count]
        for each, leaf in self.leaves.items():
            found[node[each], leaf] = (states.cost[each] // unit << scale) if unit else 0
        for storage, users in enumerate(states.users):
            maker = states.maker[storage]
            if self.fixed >> storage & 1 or (maker >= 0 and node[maker] == 1):
                continue
            begins, over = 2 + 2 * count + 2 * storage, 3 + 2 * count + 2 * storage
            if maker >= 0:
                begins = self.leaves.get(maker, node[maker])
            elif self.problem.program.given[storage]:
                begins = 0
            else:
                found.update(((node[user], begins), ENDLESS) for user in users)
            found[begins, over] = price * states.size[storage] >> shift
            if states.may_move(storage):
                most = (states.move[storage] // unit << scale) if unit else 0
                if moved.get(storage) == Choice.AGAIN:
                    most = 0
                elif moved.get(storage) == Choice.NOT_AGAIN:
                    most = ENDLESS
                found[begins, over] = min(found[begins, over], most)
            for user in users:
                if user != maker:
                    found[over, node[user]] = ENDLESS
                    if user in self.leaves:
                        found[over, self.leaves[user]] = ENDLESS
            if self.problem.program.wanted[storage]:
                found[over, 1] = ENDLESS
        for each, before in enumerate(states.before):
            for other in range(count):
                if before >> other & 1:
                    found[node[each], node[other]] = ENDLESS
        for each, choice in decisions:
            if choice == Choice.NOT_AGAIN and each in self.leaves:
                found[node[each], self.leaves[each]] = ENDLESS
            elif choice == Choice.AGAIN:
                found[0, node[each]] = found[2 + count + each, 1] = ENDLESS
            elif choice == Choice.AFTER:
                found[node[each], 1] = ENDLESS
            elif choice == Choice.BEFORE:
                found[0, node[each]] = ENDLESS
        for storage in (storage for storage, choice in moved.items() if choice == Choice.AGAIN):
            if states.maker[storage] >= 0:
                found[0, node[states.maker[storage]]] = ENDLESS
            found[0, 1] = found.get((0, 1), 0) + (states.move[storage] // unit << scale)
        return {arc: most for arc, most in found.items() if arc[0] != arc[1]}


def columns(flow: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Return a flow as a certificate has it."""
    return np.array(flow, dtype=np.int64).reshape(-1, 3)


def certify(problem: RecomputeProblem, op: int, capacity: int, random: Random) -> RecomputeBound:
    """Return a certificate about the moment of one operator, with a few random decisions."""
    network = _Network(problem, op)
    costs = [
        cost for cost, again in zip(problem.cost.tolist(), problem.again, strict=True) if again
    ]
    movable = [s for s in range(len(problem.move)) if network.states.may_move(s)]
    costs += [network.states.move[storage] for storage in movable]
    unit = random.choice((1, gcd(*costs) or 1))
    scale, shift = random.choice(((0, 0), (4, 0), (6, 20), (0, 30)))
    total = sum(costs) // unit << scale
    room = capacity - network.own
    leaves = []

    def best(decisions: list[tuple[int, int]]) -> RecomputeLeaf:
        found = (-1, 0, [(0, 1, 0)][:0])
        biggest = max((total << shift) + 1, 1)
        prices = [
            0,
            *(biggest >> step for step in range(random.randint(0, 2), biggest.bit_length(), 3)),
        ]
        prices += [random.randint(0, biggest) for _ in range(2)]
        for price in prices:
            arcs = network.arcs(price, shift, unit, scale, decisions)
            away = price * room >> shift
            flow, _ = order_oracle.maximum_flow(arcs, max(0, total + 1 + away))
            value = sum(amount for _, end, amount in flow if end == 1) - away
            if value > found[0] and all(amount < 2**63 for *_, amount in flow):
                found = (value, price, flow)
        return RecomputeLeaf(tuple(decisions), found[1], columns(found[2]))

    def grow(decisions: list[tuple[int, int]]) -> None:
        if len(decisions) < 3 and random.random() < 0.5:
            each = random.randrange(len(problem))
            both = random.choice(((0, 1), (0, 1), (2, 3)))
            if movable and random.random() < 0.5:
                each, both = len(problem) + random.choice(movable), (0, 1)
            for choice in both:
                grow([*decisions, (each, choice)])
        else:
            leaves.append(best(decisions))

    grow([])
    return RecomputeBound(op, unit, scale, shift, tuple(leaves))


def certify_floor(problem: RecomputeProblem, op: int) -> RecomputeFloor:
    """Return what an operator needs at least when it runs first, whatever runs again."""
    arcs = _Network(problem, op).arcs(1, 0, 0, 0, ())
    return RecomputeFloor(op, columns(order_oracle.maximum_flow(arcs, ENDLESS)[0]))
