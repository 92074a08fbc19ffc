"""The orders of other tools, for the same columns.

Each function takes a `OrderLists` and returns an order, or `None` if it gives up. PyTorch's orders
come from its own functions; the others are rewritten from the sources of XLA, onnxruntime and
tflite-tools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any

from memplan_lab.bench.orders.program import OrderLists
from memplan_lab.extras import require

__all__ = ["PEERS", "onnxruntime", "pytorch", "tflite_tools", "xla_list"]

Order = list[int]


def pytorch(program: OrderLists, method: str) -> Order:
    """Return the order of `torch._inductor.memory.topological_sort_<method>`."""
    memory = require("torch._inductor.memory", extra="corpus")
    nodes, inputs, buffers, wanted = _as_scheduled(program)
    sort = getattr(memory, f"topological_sort_{method}")
    more = (inputs, buffers, wanted) if method == "lpmf" else ()
    with _deep_recursion(len(nodes)):
        return [node.mpi_node.index for node in sort(nodes, *more)]


def _as_scheduled(
    program: OrderLists,
) -> tuple[list[_Node], dict[str, _Buffer], dict[str, _Buffer], set[str]]:
    """Return operators, freeable inputs and other buffers by name, and the names of outputs."""
    nodes = [_Node(at) for at in range(len(program.problem))]
    buffers: dict[str, _Buffer] = {}
    inputs: dict[str, _Buffer] = {}
    wanted: set[str] = set()
    for storage, users in enumerate(program.users):
        if not users:
            continue
        size, name = program.size(storage), f"s{storage}"
        made = not program.problem.given[storage]
        readers = [nodes[user] for user in users[made:]]
        numbers = SimpleNamespace(size_alloc=size, size_free=size, succ_nodes=readers)
        (buffers if made else inputs)[name] = buffer = _Buffer(name, numbers)
        if program.problem.wanted[storage]:
            wanted.add(name)
        if made:
            nodes[users[0]].outputs.append(buffer)
        for reader in readers:
            reader.mpi_node.pred_buffers.append(buffer)
    for at, node in enumerate(nodes):
        waits = program.before[at]
        node.mpi_node.size = sum(map(program.size, program.makes[at]))
        node.mpi_node.pred_nodes = [nodes[other] for other in waits]
        node.mpi_node.succ_nodes = [nodes[other] for other in program.behind[at]]
        node.unmet_dependencies = [SimpleNamespace(name=f"o{other}") for other in waits]
    return nodes, inputs, buffers, wanted


class _Buffer:
    """A buffer as PyTorch's scheduler sees it."""

    def __init__(self, name: str, numbers: Any) -> None:
        self.name = name
        self.mpi_buffer = numbers

    def get_name(self) -> str:
        return self.name


class _Node:
    """An operator as PyTorch's scheduler sees it."""

    def __init__(self, index: int) -> None:
        self.outputs: list[_Buffer] = []
        self.mpi_node = SimpleNamespace(index=index, pred_buffers=[])
        self.unmet_dependencies: list[Any] = []

    def get_outputs(self) -> list[_Buffer]:
        return self.outputs

    def get_buffer_names(self) -> list[str]:
        return [f"o{self.mpi_node.index}"]


@contextmanager
def _deep_recursion(operators: int) -> Iterator[None]:
    """Allow a function that calls itself for each operator on a path."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 10 * operators))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def xla_list(program: OrderLists) -> Order:
    """Return the order of XLA's list scheduler (`hlo_memory_scheduler.cc`, `ListScheduler`).

    The next operator is the ready one that frees most bytes, less those that it makes. Ties go to
    the operator with most users, then to the one that was ready last.
    """
    made_by_none = program.problem.given.tolist()
    wanted = program.problem.wanted.tolist()
    uses = [
        len(users) - (not given) + last
        for users, given, last in zip(program.users, made_by_none, wanted, strict=True)
    ]
    made = [sum(map(program.size, storages)) for storages in program.makes]
    missing = [len(others) for others in program.before]
    since: dict[int, int] = {}  # by ready operator: when its priority changed last
    priority: dict[int, tuple[int, int]] = {}
    queue: list[tuple[int, int, int, int]] = []
    clock = 0

    def push(operator: int) -> None:
        nonlocal clock
        freed = sum(program.size(s) for s in program.reads[operator] if uses[s] == 1)
        new = (freed - made[operator], len(program.behind[operator]))
        if priority.get(operator) != new:
            clock += 1
            priority[operator], since[operator] = new, clock
            heappush(queue, (-new[0], -new[1], -clock, operator))

    for operator, count in enumerate(missing):
        if count == 0:
            push(operator)
    order: Order = []
    while queue:
        *_, when, operator = heappop(queue)
        if since.get(operator) != -when:
            continue
        del since[operator]
        order.append(operator)
        last = []
        for storage in program.reads[operator]:
            uses[storage] -= 1
            if uses[storage] == 1:
                last.append(storage)
        for other in program.behind[operator]:
            missing[other] -= 1
            if missing[other] == 0:
                push(other)
        for storage in last:
            for user in program.users[storage]:
                if user in since:
                    push(user)
    return order


def onnxruntime(program: OrderLists) -> Order:
    """Return the order in which onnxruntime runs by default (`GraphViewer`, `ReverseDFSFrom`).

    It is a depth-first search from the operators for which no other waits, the last one first;
    operators run when the search leaves them.
    """
    stack = [(at, False) for at, others in enumerate(program.behind) if not others]
    visited = [False] * len(program.behind)
    order: Order = []
    while stack:
        operator, leaves = stack.pop()
        if leaves:
            order.append(operator)
        elif not visited[operator]:
            visited[operator] = True
            stack.append((operator, True))
            stack.extend((other, False) for other in program.before[operator] if not visited[other])
    return order


_Path = tuple[int, "_Path"] | None
_MOST_SETS = 20_000  # that the recursion may look at


def tflite_tools(program: OrderLists) -> Order | None:
    """Return the best order as the recursion of tflite-tools finds it, or `None` on large graphs.

    For a set of operators that run first, one of them runs last. The peak of the set is the least
    over these choices of the larger of two numbers: the bytes that the last one needs, and the peak
    of the set without it. tflite-tools has sets of tensors; here they are sets of operators,
    because operators may have several outputs.
    """
    count = len(program.before)
    behind = [sum(1 << other for other in others) for others in program.behind]
    users = [sum(1 << user for user in own) for own in program.users]
    size, workspace = program.problem.size.tolist(), program.problem.workspace.tolist()
    given, wanted = program.problem.given.tolist(), program.problem.wanted.tolist()

    def live(storage: int, done: int) -> int:
        begun = given[storage] or users[storage] & done
        needed = wanted[storage] or users[storage] & ~done
        return size[storage] if begun and needed else 0

    # The whole program loses one operator after the other. By set of remaining operators: the live
    # storages, the least peak of the removed operators, and these operators.
    whole = (1 << count) - 1
    level: dict[int, tuple[int, int, _Path]] = {}
    level[whole] = (sum(live(storage, whole) for storage in range(len(size))), 0, None)
    seen = 0
    for _ in range(count):
        below: dict[int, tuple[int, int, _Path]] = {}
        for done, (held, peak, path) in level.items():
            for operator in range(count):
                if not done >> operator & 1 or behind[operator] & done:
                    continue
                rest = done & ~(1 << operator)
                touched = program.touched[operator]
                before = held + sum(live(s, rest) - live(s, done) for s in touched)
                born = sum(size[s] for s in touched if not (given[s] or users[s] & rest))
                found = max(peak, before + born + workspace[operator])
                if rest not in below or found < below[rest][1]:
                    below[rest] = (before, found, (operator, path))
        level = below
        seen += len(level)
        if seen > _MOST_SETS:
            return None
    order: Order = []
    path = level[0][2]
    while path is not None:
        order.append(path[0])
        path = path[1]
    return order


PEERS: Mapping[str, Callable[[OrderLists], Order | None]] = {
    "lpmf": partial(pytorch, method="lpmf"),
    "bfs": partial(pytorch, method="bfs"),
    "dfs": partial(pytorch, method="dfs"),
    "xla": xla_list,
    "onnxruntime": onnxruntime,
    "tflite-tools": tflite_tools,
}
