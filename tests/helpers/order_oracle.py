"""What is true of small programs: every state in a table, and every order one after the other.

Nothing of memplan is used but the columns of `OrderProblem`. A state is a set of operators, written
as a number whose bit `v` says that operator `v` has run; a table has one entry for each of the 2^n
numbers. The sums read as they are written in docs/algorithms/order.md.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from random import Random

import numpy as np
import numpy.typing as npt

from memplan.problem import OrderBound, OrderProblem

Table = npt.NDArray[np.int64]
NEVER = 2**63 - 1


def program(
    workspace: Sequence[int],
    arcs: Sequence[tuple[int, int]],
    storages: Sequence[tuple[int, Iterable[int], bool, bool]],
    in_place: Sequence[tuple[int, int, int]] = (),
) -> OrderProblem:
    """Return a problem of storages (bytes, users, given, wanted)."""
    users = [sorted(set(each)) for _, each, _, _ in storages]
    return OrderProblem(
        np.array(workspace, dtype=np.int64),
        np.array(arcs, dtype=np.int32).reshape(-1, 2),
        np.array([size for size, _, _, _ in storages], dtype=np.int64),
        np.array([given for _, _, given, _ in storages], dtype=np.bool_),
        np.array([wanted for _, _, _, wanted in storages], dtype=np.bool_),
        np.cumsum([0, *map(len, users)], dtype=np.int64),
        np.array([user for each in users for user in each], dtype=np.int32),
        np.array(in_place, dtype=np.int32).reshape(-1, 3),
    )


def random_program(random: Random, most: int = 12) -> OrderProblem:
    """Return a program of at most so many operators, with everything that programs can have."""
    count = random.choice((random.randint(0, most), random.randint(most // 2, most)))
    later = [range(op + 1, count) for op in range(count)]
    chance = random.choice((0.0, 0.1, 0.3))
    arcs = [(op, other) for op in range(count) for other in later[op] if random.random() < chance]
    arcs += random.sample(arcs, len(arcs) // 4)  # twice
    number = random.randint(0, 2 * count + 1)
    draw_size = _sizes(random, number + 1)
    storages: list[tuple[int, list[int], bool, bool]] = []
    for _ in range(number):
        given, wanted = random.random() < 0.2, random.random() < 0.2
        kind = random.choice(("tensor", "tensor", "tensor", "state", "strange", "unused"))
        users = sorted(random.sample(range(count), random.randint(0, min(count, 4))))
        if kind == "unused":
            users = []
        elif kind == "tensor" and not given:  # those that read it, or a view, wait for its maker
            arcs += [(users[0], user) for user in users[1:]]
        elif kind == "state":  # several write it: all that touch it keep their order
            arcs += pairwise(users)
        storages.append((draw_size(), users, given, wanted))
    touched = [[s for s, each in enumerate(storages) if op in each[1]] for op in range(count)]
    in_place = []
    for op in range(count):
        pairs = [*permutations(touched[op], 2)]
        random.shuffle(pairs)
        made_first = sorted(pairs, key=lambda pair: storages[pair[1]][1][0] != op)
        in_place += [(op, *pair) for pair in made_first[: random.choice((0, 0, 1, 2, 4))]]
    workspace = [draw_size() if random.random() < 0.3 else 0 for _ in range(count)]
    random.shuffle(arcs)
    return program(workspace, arcs, storages, in_place)


def _sizes(random: Random, number: int) -> Callable[[], int]:
    """Return a function that draws sizes of one kind, of which so many fit into 2^62."""
    most = 2**62 // number
    near = 2**53  # above it, a float does not hold every number
    return random.choice(
        (
            lambda: random.randint(0, 9),
            lambda: random.choice((0, 1, 1, 2)),
            lambda: 1 << random.randint(0, 20),
            lambda: near + random.randint(-2, 2),
            lambda: random.randint(most - 9, most),
        )
    )


class States:
    """All states of a program, and what each operator needs in each of them.

    Attributes
    ----------
    ideal
        By state: whether all that its operators wait for has run.
    live
        By state: the bytes that are live between operators.
    held
        By operator, by state: the bytes that are live while the operator runs, without its
        workspace and with nothing in place.
    step
        The same with the workspace, less what the operator writes in place.
    """

    def __init__(self, problem: OrderProblem) -> None:
        self.count = len(problem)
        self.all = np.arange(1 << self.count)
        self.before = [0] * self.count
        for first, second in problem.arcs.tolist():
            self.before[second] |= 1 << first
        self.ideal = np.ones(len(self.all), dtype=np.bool_)
        for op, needed in enumerate(self.before):
            self.ideal &= (self.all >> op & 1 == 0) | (self.all & needed == needed)
        self.size: list[int] = problem.size.tolist()
        self.users = [sum(1 << user for user in problem.users(s).tolist()) for s in self.storages]
        self.given: list[bool] = problem.given.tolist()
        self.wanted: list[bool] = problem.wanted.tolist()
        live = np.zeros(len(self.all), dtype=np.int64)
        for storage in self.storages:
            live[self._is_live(storage)] += self.size[storage]
        self.live: Table = live
        self.held: list[Table] = []
        self.step: list[Table] = []
        for op in range(self.count):
            held = live.copy()
            for storage in self.storages:
                if self.users[storage] >> op & 1:
                    held[~self._is_live(storage)] += self.size[storage]
            self.held.append(held)
            saved = self._save(op, problem.in_place[problem.in_place[:, 0] == op, 1:].tolist())
            self.step.append(held + int(problem.workspace[op]) - saved)

    @property
    def storages(self) -> range:
        """The numbers of the storages."""
        return range(len(self.size))

    def can_run(self, op: int) -> npt.NDArray[np.bool_]:
        """Return by state whether an operator may run next."""
        needed = self.before[op]
        return self.ideal & (self.all >> op & 1 == 0) & (self.all & needed == needed)

    def _is_live(self, storage: int) -> npt.NDArray[np.bool_]:
        users = self.users[storage]
        begun = (self.all & users != 0) | self.given[storage]
        return begun & ((self.all & users != users) | self.wanted[storage])

    @cached_property
    def must_run_before(self) -> list[int]:
        """By operator: all that have run before it in every order."""
        return [int(np.bitwise_and.reduce(self.all[self.can_run(op)])) for op in range(self.count)]

    def _save(self, op: int, pairs: list[list[int]]) -> Table:
        """Return by state what an operator saves by the best choice of in-place pairs."""
        useful = [
            (old, new)
            for old, new in sorted({(old, new) for old, new in pairs})
            if self.size[new] <= self.size[old]
            and not self.wanted[old]
            and not self.given[new]
            and all(
                self.must_run_before[user] >> op & 1
                for user in range(self.count)
                if self.users[new] >> user & 1 and user != op
            )
        ]
        saved: Table = np.zeros(len(self.all), dtype=np.int64)
        for number in range(1, len(useful) + 1):
            for chosen in combinations(useful, number):
                inputs, outputs = {old for old, _ in chosen}, {new for _, new in chosen}
                if len(inputs) == len(outputs) == number:
                    dying = np.ones(len(self.all), dtype=np.bool_)
                    for old in inputs:
                        rest = self.users[old] & ~(1 << op)
                        dying &= self.all & rest == rest
                    bytes = sum(self.size[new] for new in outputs)
                    saved[dying] = np.maximum(saved[dying], bytes)
        return saved

    def least_peak(self) -> int:
        """Return the least peak of any order: the best way to each state, from the first."""
        best = np.full(len(self.all), NEVER)
        best[0] = self.live[0]
        for layer in self._layers():
            for op in range(self.count):
                here = layer[self.can_run(op)[layer]]
                there = here | 1 << op
                best[there] = np.minimum(best[there], np.maximum(best[here], self.step[op][here]))
        return int(best[-1])

    def least_peak_backwards(self) -> int:
        """Return the same, by the best way from each state to the last."""
        rest = np.full(len(self.all), NEVER)
        rest[-1] = self.live[-1]
        for layer in reversed(self._layers()):
            for op in range(self.count):
                here = layer[self.can_run(op)[layer]]
                there = here | 1 << op
                rest[here] = np.minimum(rest[here], np.maximum(self.step[op][here], rest[there]))
        return int(rest[0])

    def _layers(self) -> list[npt.NDArray[np.int64]]:
        """Return the ideals with 0, 1, 2 ... operators."""
        ideals = self.all[self.ideal]
        number = np.array([state.bit_count() for state in ideals.tolist()])
        return [ideals[number == each] for each in range(self.count + 1)]

    def least_step(self, op: int) -> int:
        """Return the least step of one operator in any order."""
        return int(self.step[op][self.can_run(op)].min())

    def least_held(self, op: int) -> int:
        """Return the least bytes that are live while one operator runs, in any order."""
        return int(self.held[op][self.can_run(op)].min())

    def peak(self, order: Sequence[int]) -> int:
        """Return the peak of an order."""
        state, peak = 0, int(self.live[0])
        for op in order:
            peak = max(peak, int(self.step[op][state]))
            state |= 1 << op
        return peak

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Yield every legal order."""
        for order in permutations(range(self.count)):
            place = {op: at for at, op in enumerate(order)}
            if all(
                place[other] < place[op]
                for op, other in product(order, order)
                if self.before[op] >> other & 1
            ):
                yield order


def certify(problem: OrderProblem, op: int) -> OrderBound:
    """Return the certificate of one operator: a maximum flow, by paths from source to sink."""
    states, count = States(problem), len(problem)
    before = states.must_run_before
    role = [
        0 if before[op] >> u & 1 else 1 if u == op or before[u] >> op & 1 else 2 + u
        for u in range(count)
    ]
    capacity: dict[tuple[int, int], int] = {}

    def connect(start: int, end: int, bytes: int = NEVER) -> None:
        capacity[start, end] = bytes

    for first, second in problem.arcs.tolist():
        connect(role[second], role[first])
    for storage in states.storages:
        users = problem.users(storage).tolist()
        if op in users:
            continue
        begins = 2 + count + 2 * storage
        connect(begins, begins + 1, states.size[storage])
        for user in users:
            connect(role[user], begins)
            connect(begins + 1, role[user])
        if states.given[storage]:
            connect(0, begins)
        if states.wanted[storage]:
            connect(begins + 1, 1)
    flow, reached = maximum_flow(capacity)
    done = tuple(u for u in range(count) if role[u] in reached)
    return OrderBound(op, done, np.array(flow, dtype=np.int64).reshape(-1, 3))


def maximum_flow(
    capacity: Mapping[tuple[int, int], int], most: int = NEVER
) -> tuple[list[tuple[int, int, int]], Container[int]]:
    """Return a maximum flow from node 0 to node 1, or one of at least `most`.

    Returns
    -------
    tuple
        Rows of start, end and amount; and, if it is a maximum, the nodes on the side of node 0 of a
        minimum cut.
    """
    room: dict[int, dict[int, int]] = {0: {}, 1: {}}
    for (start, end), amount in capacity.items():
        room.setdefault(start, {})[end] = room.get(start, {}).get(end, 0) + amount
        room.setdefault(end, {}).setdefault(start, 0)
    before = {start: dict(ends) for start, ends in room.items()}
    came: dict[int, int] = {}
    total = 0
    while total < most:
        came = {0: 0}
        todo = [0]
        for node in todo:
            fresh = [end for end, amount in room[node].items() if amount and end not in came]
            came.update(dict.fromkeys(fresh, node))
            todo += fresh
        if 1 not in came:
            break
        path, node = [], 1
        while node:
            path.append((came[node], node))
            node = came[node]
        amount = min(most - total, *(room[start][end] for start, end in path))
        for start, end in path:
            room[start][end] -= amount
            room[end][start] += amount
        total += amount
    flow = [
        (start, end, before[start][end] - amount)
        for start, ends in room.items()
        for end, amount in ends.items()
        if amount < before[start][end]
    ]
    return flow, came.keys()
