"""Runs a program on its streams, from one slab at the offsets of a plan."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from memplan.base.errors import MemplanError
from memplan.extensions.streams.memory import POISON, Memory
from memplan.extensions.streams.operators import Reduce, check_random, make_actions
from memplan.extensions.streams.program import Program
from memplan.extensions.streams.schedule import (
    CudaQueues,
    launch,
    make_steps,
    run_on_threads,
)
from memplan.problem.plan import Plan
from memplan.programs.graph.sync import find_users
from memplan.referee import verify

__all__ = ["StreamRunner"]

_CYCLES = 2_000_000_000  # about a second of a device


def _sleep_on_device(seconds: float) -> None:
    torch.cuda._sleep(int(seconds * _CYCLES))


class StreamRunner:
    """Runs a program on its streams, with its tensors at planned offsets of one slab.

    The slab is made once. Calls from several threads run one after the other, as they share it. On
    a CUDA device this holds for different current streams too, and a call can be captured into a
    CUDA graph after a first one, unless the optimizer is Adam, whose step number would stay.

    Parameters
    ----------
    plan
        A plan of `program.problem`.
    program
        From `capture_inference` or `capture_training`.
    reduce
        Reduces a bucket of gradients in place, among all devices; it gets the bucket as one flat
        tensor, on the stream of the bucket. By default buckets stay as they are, as with one
        device.

    Attributes
    ----------
    copied
        The operators that have no variant that writes into given memory. Their results are made in
        ordinary memory and copied into the slab.

    Raises
    ------
    PlanError
        If the referee rejects the plan: it is of another program, or two tensors share memory that
        the streams may need at the same time.
    UnsupportedError
        If an operator cannot be run, or random numbers are drawn on several streams.
    """

    def __init__(self, plan: Plan, program: Program, *, reduce: Reduce | None = None) -> None:
        verify(program.problem, plan)
        check_random(program)
        offsets = np.array([plan.offset(name) for name in program.problem.ids], dtype=np.int64)
        self._program = program
        self._memory = Memory(program, offsets)
        self._calls = 0
        actions = make_actions(program, self._memory, reduce, lambda: self._calls)
        self._actions = [action.run for action in actions]
        self._steps = make_steps(program.graph)
        self._lock = threading.Lock()
        operators = program.graph.operators
        pairs = zip(operators, actions, strict=True)
        self.copied = tuple(operator.name for operator, action in pairs if action.copied)
        self._queues: CudaQueues | None = None
        if self._memory.device.type == "cuda":
            streams = {operator.stream for operator in operators}
            self._queues = CudaQueues(self._memory.device, streams)

    @property
    def slab_bytes(self) -> int:
        """The size of the slab."""
        return len(self._memory.slab)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Returns
        -------
        object
            What the model returns, in memory of its own; for a training step, the loss.

        Raises
        ------
        MemplanError
            If the inputs have another structure, shape, type or device than the captured ones.
        """
        with self._lock:
            return self._run(args, kwargs, self._run_step)

    def rehearse(self, *args: Any, seed: int = 0, delay: float = 2e-3, **kwargs: Any) -> Any:
        """Run the program as a call does, slowly, in memory that is spoilt wherever it can be.

        Every operator begins after a random time. The slab is full of NaN at the start, and each
        tensor's memory is again when nothing needs it any more; on a device, just before its
        maker runs. The result is that of a call, unless memory is used too early.

        Parameters
        ----------
        args, kwargs
            As for a call.
        seed
            Of the delays.
        delay
            The longest, in seconds; most are short.
        """
        numbers = random.Random(seed)
        late = [delay * numbers.random() ** 3 for _ in self._actions]
        with self._lock, self._take_turn():
            self._memory.slab.fill_(POISON)
            run = self._run_late if self._queues is None else self._run_late_on_device
            return self._run(args, kwargs, run(late))

    def _run(self, args: Any, kwargs: Any, run: Callable[[int], object]) -> Any:
        with self._take_turn():
            self._take(args, kwargs)
            self._calls += 1
            if self._queues is None:
                run_on_threads(self._steps, run)
            else:
                with self._queues:
                    launch(self._steps, run, self._queues)
            return self._give()

    def _take_turn(self) -> AbstractContextManager[None]:
        return nullcontext() if self._queues is None else self._queues.take_turn(self._memory.own)

    def _run_step(self, number: int) -> None:
        self._actions[number]()

    def _run_late(self, late: list[float]) -> Callable[[int], None]:
        """Return what runs a step late, and spoils what is over after it."""
        rows_of, left = self._count_uses()
        lock = threading.Lock()

        def run(number: int) -> None:
            time.sleep(late[number])
            self._actions[number]()
            with lock:
                for row in rows_of[number]:
                    left[row] -= 1
                over = [row for row in rows_of[number] if left[row] == 0]
            for row in over:  # before an operator that waits for this one goes on
                self._memory.rows[row].fill_(POISON)

        return run

    def _run_late_on_device(
        self, late: list[float], sleep: Callable[[float], object] = _sleep_on_device
    ) -> Callable[[int], None]:
        """Return what launches a step late, after spoiling the memory of what it makes.

        The host does not know when the last reader is done, so nothing is spoilt after that.
        """
        rows_of, _ = self._count_uses()
        made: dict[int, int] = {}
        for number, rows in enumerate(rows_of):
            for row in rows:
                made.setdefault(row, number)

        def run(number: int) -> None:
            sleep(late[number])
            for row in rows_of[number]:
                if made[row] == number:
                    self._memory.rows[row].fill_(POISON)
            self._actions[number]()

        return run

    def _count_uses(self) -> tuple[list[list[int]], list[int]]:
        """Return by operator the rows that it needs, and by row how often it is needed."""
        layout = self._program.layout
        users = find_users(layout)
        rows_of: list[list[int]] = [[] for _ in self._actions]
        for row, numbers in enumerate(users):
            for number in numbers:
                rows_of[number].append(row)
        results = set(layout.graph.outputs)
        wanted = [not results.isdisjoint(layout.storages[index].tensors) for index in layout.rows]
        return rows_of, [len(numbers) + after for numbers, after in zip(users, wanted, strict=True)]

    def _take(self, args: Any, kwargs: Any) -> None:
        """Check the inputs, and copy them to where operators read them."""
        origin = self._program.origin
        leaves, structure = tree_flatten((args, kwargs))
        if structure != origin.exported.call_spec.in_spec:
            raise MemplanError(
                "the inputs have another structure than those that the model was captured with; "
                "pass as many, in the same containers"
            )
        signature = origin.exported.graph_signature
        specs = [one for one in signature.input_specs if one.kind.name == "USER_INPUT"]
        for position, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
            index = origin.indices.get(spec.arg.name)
            if index is None:
                if leaf != getattr(spec.arg, "value", leaf):
                    raise MemplanError(
                        f"input {position} is {leaf!r}; the model was captured with "
                        f"{spec.arg.value!r}"
                    )
                continue
            to = self._memory.tensors[index]
            given, wanted = _describe(leaf), _describe(to)
            if given != wanted:
                raise MemplanError(
                    f"input {position} ({spec.arg.name}) is {given}; the model was captured with "
                    f"{wanted}"
                )
            to.copy_(leaf.detach())

    def _give(self) -> Any:
        """Return copies of the results."""
        origin = self._program.origin
        found = []
        for spec in origin.exported.graph_signature.output_specs:
            if spec.kind.name == "LOSS_OUTPUT":
                return self._memory.tensors[origin.indices[spec.arg.name]].clone()
            if spec.kind.name == "USER_OUTPUT":
                index = origin.indices.get(getattr(spec.arg, "name", ""))
                if index is None:
                    found.append(spec.arg.value)
                else:
                    found.append(self._memory.tensors[index].clone())
        return tree_unflatten(found, origin.exported.call_spec.out_spec)


def _describe(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    kind = str(value.dtype).removeprefix("torch.")
    return f"a {kind} tensor of shape {tuple(value.shape)} on {value.device.type}"
