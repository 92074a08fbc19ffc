"""Measures what every node of a PyTorch program makes and takes, in runs on real tensors.

What schemas and fake tensors say of memory is not all: kernels take scratch, and results share
storages that no schema declares. And on a CPU, times are not those of a roofline: a pooling takes
as long as four convolutions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from typing import Any

from memplan.base.errors import MemplanError, quoted
from memplan.base.extras import require
from memplan.runtimes.torch.measure.run import find_operator, find_worst, name_scope
from memplan.runtimes.torch.record import record

__all__ = ["Result", "RunNode", "measure_nodes"]

torch: Any = require("torch", extra="torch")
_RUNS = 3  # of which the shortest time counts


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor, as it was made."""

    storage: int  # a number of the storage that it is in; views have that of their base
    storage_bytes: int  # the size of the storage
    start: int  # where the elements begin in the storage, in bytes
    bytes: int  # how far they reach from there
    dtype: str  # as in `memplan.programs.graph.Tensor`
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunNode:
    """What a node made."""

    # By position in its result: the tensor, or `None` for what is no tensor. A node that makes no
    # tuple has one position.
    results: tuple[Result | None, ...]
    scratch: int  # bytes that its kernels held at most beyond its results
    seconds: float  # CPU time of the thread that calls them


def measure_nodes(module: Any, inputs: list[Any]) -> dict[str, RunNode]:
    """Run a `torch.fx.GraphModule` node by node, and return what each node made, by its name.

    It has no sub-graphs, all tensors are on the CPU, and nothing may write into the inputs that
    stand for its placeholders. It runs several times, as the first run makes lasting data, and for
    the times. The generator of random numbers is afterwards as it was before.
    """
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise MemplanError(f"a tensor is on {value.device}; only a run on a CPU is measured")
    run = _Run(module)
    try:
        with torch.random.fork_rng(devices=[]):
            trace = record(run.begin, inputs)
            with torch.no_grad():
                for _ in range(_RUNS):
                    run.begin(*inputs)
    except MemplanError:
        raise
    except Exception as error:  # an operator may reject its arguments with any error
        reason = quoted(f"{type(error).__name__}: {error}".split("\n")[0])
        raise MemplanError(f"the program does not run: {reason}") from None
    rows: dict[str, list[int]] = {}
    for row, scope in enumerate(trace.scopes):
        rows.setdefault(find_operator(scope), []).append(row)
    found = {}
    seen: set[int] = set()
    for name, results in run.made.items():
        new = {one.storage: one.storage_bytes for one in results if one is not None}
        kept = sum(size for storage, size in new.items() if storage not in seen)
        seen |= new.keys()
        held = find_worst(trace, rows.get(name, []))[0]
        found[name] = RunNode(results, max(0, held - kept), run.seconds.get(name, 0.0))
    return found


class _Run(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a graph, each node in a scope of its own, and describes the results.

    A storage is known by its address, which another may have later: so an address has a meaning
    only together with the node, whose inputs are there while it runs.
    """

    made: dict[str, tuple[Result | None, ...]]

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.seconds: dict[str, float] = {}  # by node: the shortest time

    def begin(self, *args: Any) -> Any:
        """Run the graph."""
        self.made = {}
        self._numbers = count()
        self._storages: dict[str, dict[int, int]] = {}
        return self.run(*args)

    def run_node(self, n: Any) -> Any:
        with torch.profiler.record_function(name_scope(n.name)):
            result = super().run_node(n)
        if n.op == "call_function":
            self.seconds[n.name] = min(self._spent, self.seconds.get(n.name, self._spent))
        if n.op != "output":
            known: dict[int, int] = {}
            for each in n.all_input_nodes:
                known |= self._storages[each.name]
            tensors = result if isinstance(result, (list, tuple)) else (result,)
            self.made[n.name] = tuple(self._describe(one, known) for one in tensors)
            mine = {one.storage for one in self.made[n.name] if one is not None}
            self._storages[n.name] = {at: number for at, number in known.items() if number in mine}
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        begun = time.thread_time()
        result = super().call_function(target, args, kwargs)
        self._spent = time.thread_time() - begun
        return result

    def _describe(self, value: Any, known: dict[int, int]) -> Result | None:
        """Describe a tensor; its storage is added to those that are known."""
        if not isinstance(value, torch.Tensor):
            return None
        storage = value.untyped_storage()
        if storage._cdata not in known:
            known[storage._cdata] = next(self._numbers)
        steps = zip(value.shape, value.stride(), strict=True)
        reach = 1 + sum((size - 1) * step for size, step in steps) if value.numel() else 0
        return Result(
            known[storage._cdata],
            storage.nbytes(),
            value.storage_offset() * value.itemsize,
            reach * value.itemsize,
            str(value.dtype).removeprefix("torch."),
            tuple(value.shape),
        )
