"""Runs a model at every batch size, with plans for buckets of sizes, made at their first use.

    batch      1     2     3 4     5 6 7 8     9 ... 16     17 ...
    bucket     1     2     4       8           16           32

A bucket uses the plan of its largest batch size: a smaller batch needs fewer bytes at the same
places. Kernels that are chosen by the batch size may make allocations that are not in the plan;
these get ordinary memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from memplan.errors import FamilyError, MemplanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.runtime.family import Family
from memplan.runtime.torch.recorder import Recording, make_arguments, record
from memplan.runtime.torch.slab import Slab, Statistics
from memplan.solvers import solve
from memplan.trace import Trace

__all__ = ["Batches"]

Planner = Callable[[Problem], Plan]


def _solve_in_a_second(problem: Problem) -> Plan:
    # A call is waiting for the plan, so the search gets only a second.
    return solve(problem, timeout=1.0)


class Batches(AbstractContextManager["Batches"]):
    """Runs a model from slabs at every batch size; a context manager. Made by `Batches.record`.

    It may be called by many threads at the same time. Plans are kept for the buckets that were
    used last; others are planned again when they are needed again.

    Attributes
    ----------
    family
        The sizes of all allocations as functions of the batch size, and the `misfits` among them.
    """

    def __init__(
        self,
        recordings: Sequence[tuple[int, Recording]],
        family: Family,
        axis: _Axis,
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
        self._axis = axis
        self._plans = plans
        self._planner = planner
        self._slabs = slabs
        self._cache: OrderedDict[int, _Bucket] = OrderedDict()
        self._leaving: list[_Bucket] = []  # closed during calls, the last of which closes its slabs
        self._past = Statistics()
        self._lock = threading.Lock()

    @classmethod
    def record(
        cls,
        model: Any,
        make_inputs: Callable[[int], Any],
        sizes: tuple[int, int] = (2, 4),
        check: int = 8,
        *,
        trains: Any = None,
        strict: bool = True,
        plans: int = 4,
        planner: Planner = _solve_in_a_second,
        slabs: int | None = None,
    ) -> Batches:
        """Record a model at three batch sizes: two to derive the others from, one to check these.

        Batch size 1 is recorded too and has a plan of its own, since many operators have special
        kernels for it.

        Parameters
        ----------
        model, trains
            As for `memplan.runtime.torch.record`.
        make_inputs
            Gives example inputs of a batch size, as `record` takes them.
        sizes, check
            The batch sizes to derive from, and the one to check at.
        strict
            Whether an allocation that does not grow as `base + slope * batch` is an error. If not,
            it has a planned range at the recorded batch sizes only, and ordinary memory at others.
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
            the operator, and the sizes that were seen. If no dimension of the inputs is the batch.
        """
        if len({*sizes, check}) != 3 or min(*sizes, check) < 1:
            raise FamilyError(
                f"batch sizes {(*sizes, check)} were asked for; it takes three different ones, of "
                "at least 1"
            )
        inputs = {batch: make_arguments(make_inputs(batch)) for batch in sorted({1, *sizes, check})}
        axis = _Axis.find(inputs)
        recordings = {
            batch: record(model, args, kwargs, trains=trains)
            for batch, (args, kwargs) in inputs.items()
        }
        family = Family.derive({n: recordings[n] for n in (*sizes, check)}, strict=strict)
        return cls(
            list(recordings.items()), family, axis, plans=plans, planner=planner, slabs=slabs
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
        """Run the model in a slab of the bucket of its batch size."""
        with self._hold_bucket(_choose_bucket(self._axis.batch(args, kwargs))) as bucket:
            return bucket.get_runner()(*args, **kwargs)

    def at(self, bucket: int) -> Trace:
        """Return the trace for the plan of a bucket: the recording, if there is one."""
        recorded = self._recordings.get(bucket)
        return self.family.at(bucket) if recorded is None else recorded

    @property
    def buckets(self) -> tuple[int, ...]:
        """The buckets that have a plan now, the one that was used last at the end."""
        with self._lock:
            return tuple(self._cache)

    def stats(self) -> Statistics:
        """Return the counts of all calls so far, in all buckets."""
        with self._lock:
            open = (*self._cache.values(), *self._leaving)
            return sum((bucket.stats() for bucket in open), self._past)

    @contextmanager
    def _hold_bucket(self, size: int) -> Iterator[_Bucket]:
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

    def _open(self, size: int) -> tuple[Slab, Callable[..., Any]]:
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


@dataclass(frozen=True)
class _Axis:
    """Which dimension of which tensor of the inputs is the batch."""

    tensor: int
    dimension: int

    @classmethod
    def find(cls, inputs: dict[int, tuple[tuple[Any, ...], dict[str, Any]]]) -> _Axis:
        """Return the first dimension that is the batch size in all inputs.

        Raises
        ------
        FamilyError
            If there is none.
        """
        shapes = [[tensor.shape for tensor in _list_tensors(*given)] for given in inputs.values()]
        for tensor, same in enumerate(zip(*shapes, strict=False)):
            for dimension, sizes in enumerate(zip(*same, strict=False)):
                if sizes == tuple(inputs):
                    return cls(tensor, dimension)
        raise FamilyError(
            "no tensor that make_inputs makes has a dimension that is the batch size; "
            f"it was asked for batch sizes {', '.join(map(str, inputs))}"
        )

    def batch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Return the batch size of inputs.

        Raises
        ------
        FamilyError
            If they have another structure than the recorded ones.
        """
        tensors = _list_tensors(args, kwargs)
        if self.tensor >= len(tensors) or self.dimension >= tensors[self.tensor].dim():
            raise FamilyError(
                f"the inputs have no dimension {self.dimension} of tensor {self.tensor}, which was "
                "the batch when the model was recorded; pass them as make_inputs does"
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
