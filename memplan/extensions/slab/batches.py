"""Runs a model at every size of its inputs, with plans for buckets of sizes, made at first use.

    batch      1     2     3 4     5 6 7 8     9 ... 16     17 ...
    bucket     1     2     4       8           16           32

A bucket uses the plan of its largest size: a smaller one needs fewer bytes at the same places. With
several dimensions, each has buckets: a batch of 3 with 100 tokens runs in the bucket (4, 128).
Kernels that are chosen by the size may make allocations that are not in the plan; these get
ordinary memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from memplan import solve
from memplan.base.errors import FamilyError, MemplanError, listed, quoted
from memplan.extensions.slab.family import Family, Point
from memplan.extensions.slab.slab import Slab, Statistics
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.problem.trace import Trace
from memplan.runtimes.torch.record.recorder import Recording, make_arguments, record

__all__ = ["Batches"]

Planner = Callable[[Problem], Plan]


def _solve_in_a_second(problem: Problem) -> Plan:
    # A call is waiting for the plan, so the search gets only a second.
    return solve(problem, timeout=1.0)


class Batches(AbstractContextManager["Batches"]):
    """Runs a model from slabs at every size; a context manager. Made by `Batches.record`.

    It may be called by many threads at the same time. Plans are kept for the buckets that were
    used last; others are planned again when they are needed again.

    Attributes
    ----------
    family
        The bytes of all allocations as functions of the size, and the `misfits` among them.
    """

    def __init__(
        self,
        recordings: Sequence[tuple[Point, Recording]],
        family: Family,
        axes: Sequence[_Axis],
        *,
        plans: int = 4,
        planner: Planner = _solve_in_a_second,
        slabs: int | None = None,
    ) -> None:
        if plans < 1:
            raise MemplanError(f"plans is {plans}; it must be at least 1")
        self.family = family
        self._recordings = dict(recordings)
        self._model, self._trains = recordings[0][1].model, recordings[0][1].trains
        self._axes = axes
        self._is_of_batches = isinstance(recordings[0][0], int)  # not of named dimensions
        self._plans = plans
        self._planner = planner
        self._slabs = slabs
        self._cache: OrderedDict[Point, _Bucket] = OrderedDict()
        self._leaving: list[_Bucket] = []  # closed during calls, the last of which closes its slabs
        self._past = Statistics()
        self._lock = threading.Lock()

    @classmethod
    def record(
        cls,
        model: Any,
        make_inputs: Callable[..., Any],
        sizes: tuple[int, int] | Mapping[str, Sequence[int]] = (2, 4),
        check: int | Mapping[str, int] = 8,
        *,
        trains: Any = None,
        strict: bool = True,
        plans: int = 4,
        planner: Planner = _solve_in_a_second,
        slabs: int | None = None,
    ) -> Batches:
        """Record a model at a few sizes, from which the others are derived, and at one to check.

        By default the size is the batch. Batch size 1 is recorded too and has a plan of its own,
        since many operators have special kernels for it.

        Parameters
        ----------
        model, trains
            As for `memplan.extensions.slab.record`.
        make_inputs
            Gives example inputs of a batch size, or of a value of each dimension, which are passed
            by name; as `record` takes them.
        sizes, check
            The batch sizes to derive from, and the one to check at. For other dimensions, by name:
            two values of each in which all bytes are linear, three where they grow with the
            square, as those of attention with the tokens; and the value to check at. The model is
            recorded at each combination.
        strict
            Whether an allocation that grows otherwise is an error. If not, it has a planned range
            at the recorded sizes only, and ordinary memory at others.
        plans
            How many buckets are kept at the same time, each with the memory of its slabs.
        planner
            Makes the plan of a bucket; by default within a second.
        slabs
            The most slabs of every bucket; see `Slab`.

        Raises
        ------
        FamilyError
            With `strict`, if the traces are not of one family; the sentence names the module and
            the operator, and the sizes that were seen. If no dimension of the inputs is the batch,
            or one of those named.
        """
        grid: dict[str, tuple[int, ...]] | None = None
        if isinstance(sizes, Mapping):
            grid, points = _list_points(sizes, check)
            names = [*grid]
            inputs: dict[Point, _Inputs] = {
                point: make_arguments(make_inputs(**dict(zip(names, point, strict=True))))
                for point in points
            }
        else:
            names = ["batch size"]
            inputs = {n: make_arguments(make_inputs(n)) for n in _list_batches(sizes, check)}
        axes = [_Axis.find(name, at, inputs) for at, name in enumerate(names)]
        recordings = {
            point: record(model, args, kwargs, trains=trains)
            for point, (args, kwargs) in inputs.items()
        }
        derived: dict[Any, Recording] = {**recordings}
        if not isinstance(sizes, Mapping) and 1 not in (*sizes, check):
            del derived[1]  # its recording is a plan of its own
        family = Family.derive(derived, grid, strict=strict)
        return cls(
            list(recordings.items()), family, axes, plans=plans, planner=planner, slabs=slabs
        )

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the slabs of all buckets; the next call opens new ones.

        Calls that run on other threads end normally, and the last of them in a bucket closes its
        slabs.
        """
        with self._lock:
            self._leaving += self._cache.values()
            self._cache.clear()
            self._close_leaving()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model in a slab of the bucket of its size."""
        tensors = _list_tensors(args, kwargs)
        size = tuple(_choose_bucket(axis.measure(tensors)) for axis in self._axes)
        with self._hold_bucket(size[0] if self._is_of_batches else size) as bucket:
            return bucket.get_runner()(*args, **kwargs)

    def at(self, bucket: Point) -> Trace:
        """Return the trace for the plan of a bucket: the recording, if there is one."""
        recorded = self._recordings.get(bucket)
        return self.family.at(bucket) if recorded is None else recorded

    @property
    def buckets(self) -> tuple[Point, ...]:
        """The buckets that have a plan now, the one that was used last at the end."""
        with self._lock:
            return tuple(self._cache)

    def stats(self) -> Statistics:
        """Return the counts of all calls so far, in all buckets."""
        with self._lock:
            open = (*self._cache.values(), *self._leaving)
            return sum((bucket.stats() for bucket in open), self._past)

    @contextmanager
    def _hold_bucket(self, size: Point) -> Iterator[_Bucket]:
        """Hold a bucket, so that it is not closed during a call."""
        with self._lock:
            bucket = self._cache.get(size)
            if bucket is None:
                bucket = self._cache[size] = _Bucket(lambda: self._open(size))
            self._cache.move_to_end(size)
            bucket.calls += 1
        try:
            yield bucket
        finally:
            with self._lock:
                bucket.calls -= 1
                self._drop_oldest()
                self._close_leaving()

    def _open(self, size: Point) -> tuple[Slab, Callable[..., Any]]:
        trace = self.at(size)
        slab = Slab(self._planner(trace.problem()), trace, slabs=self._slabs)
        with self._lock:  # two bindings at once could lose frames
            return slab, slab.bind(self._model, self._trains)

    def _drop_oldest(self) -> None:
        for size, bucket in list(self._cache.items()):
            if len(self._cache) <= self._plans:
                break
            if bucket.calls == 0:
                self._past += bucket.close()
                del self._cache[size]

    def _close_leaving(self) -> None:
        for bucket in [bucket for bucket in self._leaving if bucket.calls == 0]:
            self._past += bucket.close()
            self._leaving.remove(bucket)


class _Bucket:
    """The slabs of a bucket; its first call makes the plan, and others wait for that."""

    def __init__(self, open: Callable[[], tuple[Slab, Callable[..., Any]]]) -> None:
        self.calls = 0  # the calls that run now
        self._open = open
        self._slab: Slab | None = None
        self._runner: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def get_runner(self) -> Callable[..., Any]:
        with self._lock:
            if self._runner is None:
                self._slab, self._runner = self._open()
            return self._runner

    def stats(self) -> Statistics:
        return Statistics() if self._slab is None else self._slab.stats()

    def close(self) -> Statistics:
        if self._slab is not None:
            self._slab.close()
        return self.stats()


_Inputs = tuple[tuple[Any, ...], dict[str, Any]]


def _list_batches(sizes: Sequence[int], check: int | Mapping[str, int]) -> list[int]:
    """Return the batch sizes to record, and refuse those that check nothing."""
    if isinstance(check, Mapping):
        raise FamilyError("check names dimensions, but sizes does not; name them in both")
    if len({*sizes, check}) != 3 or min(*sizes, check) < 1:
        raise FamilyError(
            f"batch sizes {(*sizes, check)} were asked for; it takes three different ones, of "
            "at least 1"
        )
    return sorted({1, *sizes, check})


def _list_points(
    sizes: Mapping[str, Sequence[int]], check: int | Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the values of each dimension to derive from, and all points to record."""
    grid = {name: tuple(sorted(set(values))) for name, values in sizes.items()}
    if not isinstance(check, Mapping) or set(check) != set(grid) or not grid:
        raise FamilyError(f"check has to name a value of each dimension: {listed(list(grid))}")
    for name, values in grid.items():
        if len(values) < 2 or min(*values, check[name]) < 1 or check[name] in values:
            raise FamilyError(
                f"sizes {values} of {quoted(name)} were asked for, to be checked at "
                f"{check[name]}; it takes two or more, another one to check, and each at least 1"
            )
    return grid, [*product(*grid.values()), tuple(check[name] for name in grid)]


@dataclass(frozen=True)
class _Axis:
    """Which dimension of which tensor of the inputs is the batch, or another dimension."""

    name: str
    tensor: int
    dimension: int

    @classmethod
    def find(cls, name: str, number: int, inputs: Mapping[Point, _Inputs]) -> _Axis:
        """Return the first dimension that has the value of its size in all inputs."""
        wanted = tuple(point if isinstance(point, int) else point[number] for point in inputs)
        shapes = [[tensor.shape for tensor in _list_tensors(*given)] for given in inputs.values()]
        for tensor, same in enumerate(zip(*shapes, strict=False)):
            for dimension, sizes in enumerate(zip(*same, strict=False)):
                if sizes == wanted:
                    return cls(name, tensor, dimension)
        raise FamilyError(
            f"no tensor that make_inputs makes has a dimension that is the {name}; it was asked "
            f"for {', '.join(map(str, inputs))}"
        )

    def measure(self, tensors: Sequence[Any]) -> int:
        """Return the value of the dimension; the tensors have the recorded structure."""
        if self.tensor >= len(tensors) or self.dimension >= tensors[self.tensor].dim():
            raise FamilyError(
                f"the inputs have no dimension {self.dimension} of tensor {self.tensor}, which was "
                f"the {self.name} when the model was recorded; pass them as make_inputs does"
            )
        return int(tensors[self.tensor].shape[self.dimension])


def _list_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    found = []
    # Sorted by name, so that the order of keywords does not matter.
    for value in (*args, *(kwargs[name] for name in sorted(kwargs))):
        # Every call does this, and nearly all arguments are tensors, so these skip the tree.
        leaves = (value,) if isinstance(value, torch.Tensor) else tree_leaves(value)
        found += [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return found


def _choose_bucket(batch: int) -> int:
    return 1 << max(batch - 1, 0).bit_length()
