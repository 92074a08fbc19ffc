"""The least load of all orders, the least cost of all re-runs, and what waits of streams cost."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan_lab.claims.drawing import Steps
from memplan_lab.claims.placing import Case, Item

__all__ = ["Streams", "least_extra", "least_load"]


def least_load(program: Steps) -> int:
    """Return the least load of all orders, by sets of operators that have run."""
    steps = program.steps
    maker = {each.makes: at for at, each in enumerate(steps)}
    readers = [
        sum(1 << at for at, step in enumerate(steps) if tensor in step.reads)
        for tensor in range(len(program.bytes))
    ]
    needs = [sum(1 << maker[each] for each in step.reads if each in maker) for step in steps]
    loads: dict[int, int] = {0: 0}
    for done in range(1 << len(steps)):
        if done not in loads:
            continue
        for at, step in enumerate(steps):
            if done >> at & 1 or needs[at] & ~done:
                continue
            load = step.scratch
            for tensor, bytes in enumerate(program.bytes):
                is_made = tensor not in maker or done >> maker[tensor] & 1
                is_needed = tensor in program.outputs or readers[tensor] & ~done
                if tensor == step.makes or (is_made and is_needed):
                    load += bytes
            load, then = max(loads[done], load), done | 1 << at
            loads[then] = min(load, loads.get(then, load))
    return loads[(1 << len(steps)) - 1]


def least_extra(program: Steps, capacity: int, costs: Sequence[int]) -> int | None:
    """Return the least cost of operators that run again so that a program fits, or `None`.

    A state is what has run, and what is there; the cheapest path through all states is taken.
    """
    bytes, steps = program.bytes, program.steps
    everything = (1 << len(steps)) - 1
    wanted = sum(1 << each for each in program.outputs)
    weights: dict[int, int] = {}

    def weigh(there: int) -> int:
        if there not in weights:
            weights[there] = sum(each for at, each in enumerate(bytes) if there >> at & 1)
        return weights[there]

    given = (1 << program.inputs) - 1
    if weigh(given) > capacity:
        return None
    needs = [sum(1 << each for each in step.reads) for step in steps]
    best = {(0, given): 0}
    heap = [(0, 0, given)]
    while heap:
        cost, done, there = heapq.heappop(heap)
        if best[done, there] != cost:
            continue
        if done == everything and there & wanted == wanted:
            return cost
        after = [(cost, done, there & ~(1 << at)) for at in range(len(bytes)) if there >> at & 1]
        for at, step in enumerate(steps):
            made = there | 1 << step.makes
            if needs[at] & ~there == 0 and weigh(made) + step.scratch <= capacity:
                again = costs[at] if done >> at & 1 else 0
                after.append((cost + again, done | 1 << at, made))
        for more, *state in after:
            key = (state[0], state[1])
            if more < best.get(key, more + 1):
                best[key] = more
                heapq.heappush(heap, (more, *key))
    return None


@dataclass(frozen=True)
class Streams:
    """Operators on streams: the bytes that each makes, what it reads, and its stream."""

    bytes: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    stream: tuple[int, ...]

    def graph(self) -> Graph:
        """Return the same as memplan takes it."""
        tensors = tuple(Tensor(f"t{at}", bytes) for at, bytes in enumerate(self.bytes))
        operators = tuple(
            Operator(f"o{at}", "X", reads, (at,), stream=stream)
            for at, (reads, stream) in enumerate(zip(self.reads, self.stream, strict=True))
        )
        assert all(each.kind is Kind.INTERMEDIATE for each in tensors)
        return Graph("streams", tensors, operators, (), ())

    def ask(self) -> tuple[Case, dict[tuple[int, int], int]]:
        """Return the tensors in program order, and what waits of each unsafe pair cost."""
        count = len(self.bytes)
        users = [[at, *(to for to in range(count) if at in self.reads[to])] for at in range(count)]
        case = Case(
            tuple(Item(at, max(users[at]) + 1, bytes) for at, bytes in enumerate(self.bytes))
        )
        before = self._reach(())
        free = self._count_free(before)
        penalties = {}
        for late in range(count):
            for early in range(late):
                is_over = case.items[early].end <= case.items[late].start
                if is_over and not all(before[user] >> late & 1 for user in users[early]):
                    waits = self._reach((user, late) for user in users[early])
                    penalties[early, late] = free - self._count_free(waits)
        return case, penalties

    def _reach(self, waits: Iterable[tuple[int, int]]) -> list[int]:
        """Return for each operator which ones run after it, as bits."""
        count = len(self.bytes)
        after = [0] * count
        arcs = {(each, at) for at, reads in enumerate(self.reads) for each in reads} | {*waits}
        for at in range(count):
            same = [to for to in range(at + 1, count) if self.stream[to] == self.stream[at]]
            arcs |= {(at, to) for to in same[:1]}
        for at in reversed(range(count)):
            for one, other in arcs:
                if one == at:
                    after[at] |= 1 << other | after[other]
        return after

    def _count_free(self, after: Sequence[int]) -> int:
        """Return how many pairs of operators may run at the same time."""
        count = len(after)
        return count * (count - 1) // 2 - sum(each.bit_count() for each in after)
