"""The tasks of a sweep: problems x capacities x repetitions x solvers."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import memplan
from memplan.base.errors import MemplanError, quoted
from memplan.problem import Problem
from memplan.solvers import registry
from memplan_lab.bench import exchange
from memplan_lab.bench.peers import is_omnimalloc
from memplan_lab.bench.processes import Order, make_order
from memplan_lab.bench.rows import Request
from memplan_lab.bench.suites import Case, Options, cases
from memplan_lab.sweep.results import Task

UNLIMITED = "none"
_LEAST_MEMORY = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The settings of a sweep: its tasks, and how each of them runs.

    Attributes
    ----------
    suites
        Names of `memplan_lab.bench.suites.SUITES`, with or without variants behind them.
    solvers
        As `memplan.solve` takes them, with or without options: `telamalloc:learned=on`; or the
        peers `omnimalloc` and `omnimalloc:ALLOCATOR`.
    capacities
        Shares of the least peak that is known, as decimals: "1.1". "none" asks for the smallest
        peak without a capacity. Where no peak is known, they are shares of the problem's own
        capacity, or without one of a lower bound.
    timeout, node_limit
        Seconds and search nodes for a solve; None: no limit of nodes.
    memory
        Bytes that the process of a task may have.
    seed
        Of the solvers, and of the sample.
    repeat
        How often each task is run.
    sample
        Only so many problems, chosen by the seed; None: all.
    data
        A file or folder, for suites that read some.

    Raises
    ------
    MemplanError
        For an unknown solver or option, and for numbers that are out of range.
    """

    suites: Sequence[str]
    solvers: Sequence[str] = ("auto",)
    capacities: Sequence[str] = (UNLIMITED,)
    timeout: float = 60.0
    node_limit: int | None = None
    memory: int = 4 << 30
    seed: int = 0
    repeat: int = 1
    sample: int | None = None
    data: str | None = None

    def __post_init__(self) -> None:
        for field in ("suites", "solvers", "capacities"):
            values = tuple(dict.fromkeys(getattr(self, field)))
            if not values:
                raise MemplanError(f"{field} is empty; name at least one")
            object.__setattr__(self, field, values)
        for solver in self.solvers:
            if not is_omnimalloc(solver):
                name, options = registry.parse(solver)
                registry.check(name, Problem([]), options)
        for text in self.capacities:
            ratio(text)
        if not 0 < self.timeout < math.inf:
            raise MemplanError(f"timeout is {self.timeout}; it must be more than 0 seconds")
        least = {"node_limit": 1, "repeat": 1, "sample": 1, "seed": 0, "memory": _LEAST_MEMORY}
        for field, minimum in least.items():
            value = getattr(self, field)
            if value is not None and value < minimum:
                raise MemplanError(f"{field} is {value}; it must be at least {minimum}")

    def as_json(self) -> dict[str, Any]:
        """Return what `metadata.json` keeps."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    def libraries(self) -> dict[str, str]:
        """Return the libraries that the solvers need other than NumPy, with what installs each."""
        needed = {}
        for solver in self.solvers:
            if is_omnimalloc(solver):
                needed["omnimalloc"] = "memplan-lab[peers]"
            else:
                known = registry.SOLVERS[registry.parse(solver)[0]]
                needed |= dict.fromkeys(known.libraries, known.extra)
        return needed

    def cases(self) -> list[Case]:
        """Return the cases of all suites, or a sample of them, in their order.

        Raises
        ------
        MemplanError
            If there is no such suite, no file where it should read some, or too few for the sample.
        """
        data = None if self.data is None else Path(self.data)
        found = [case for suite in self.suites for case in cases(suite, Options(data=data))]
        if self.sample is None:
            return found
        if self.sample > len(found):
            raise MemplanError(f"a sample of {self.sample} is more than all {len(found)} problems")
        chosen = random.Random(self.seed).sample(range(len(found)), self.sample)
        return [found[at] for at in sorted(chosen)]

    def tasks_of_a_case(self) -> int:
        """Return how many tasks there are for every case."""
        return len(self.solvers) * len(self.capacities) * self.repeat


def ratio(text: str) -> Fraction | None:
    """Return a share of a peak, exactly; None for "none"."""
    if text == UNLIMITED:
        return None
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise MemplanError(f"capacity {quoted(text)} is neither a ratio such as 1.1 nor none")
    return value


@dataclass(frozen=True, slots=True)
class Item:
    """A task with what runs it."""

    task: Task
    # order, problem: For `memplan_lab.bench.processes.Work`; the bytes are shared by all tasks of a
    # problem. No order where the problem could not be made.
    order: Order | None
    problem: Callable[[], bytes]
    error: str = ""  # why not


def items(settings: Settings, cases: Sequence[Case]) -> Iterator[Item]:
    """Yield all tasks, problem by problem, and on each the solvers by turns.

    A problem is made when its turn comes. Solvers take turns on it, so that a slower machine
    affects all of them.
    """
    for case in cases:
        try:
            problem, error = case.make(), ""
        except (ValueError, MemoryError) as failed:  # a bad file, a size that cannot be made
            problem, error = Problem([]), str(failed) or "there is not enough memory to make it"
        yield from _items_of(settings, case, problem, error)


def _items_of(settings: Settings, case: Case, problem: Problem, error: str) -> Iterator[Item]:
    @cache
    def pack() -> bytes:
        return exchange.pack(problem.with_capacity(None))

    base, size = ("", 0) if error else _base(case, problem)
    for text in settings.capacities:
        share = ratio(text)
        capacity = None if share is None or error else int(share * size)
        for repeat in range(settings.repeat):
            for spec in settings.solvers:
                solver, _, options = spec.partition(":")
                task = _add_key(
                    suite=case.suite,
                    instance=case.name,
                    fingerprint="" if error else problem.fingerprint,
                    n=len(problem),
                    max_load=problem.max_load,
                    solver=solver,
                    options=options,
                    objective="min_peak" if share is None else "fit",
                    capacity_ratio=None if share is None else float(share),
                    capacity_base=None if share is None else base,
                    capacity=capacity,
                    timeout=settings.timeout,
                    node_limit=settings.node_limit,
                    seed=settings.seed,
                    repeat=repeat,
                )
                order = None if error else _order(settings, task, spec)
                yield Item(task, order, pack, error)


def _base(case: Case, problem: Problem) -> tuple[str, int]:
    """Return the base of all capacities: its name in `Result.capacity_base`, and bytes."""
    if case.best_peak is not None:
        return "best", case.best_peak
    if problem.capacity is not None:
        return "own", problem.capacity
    return "bound", memplan.lower_bound(problem)


def _add_key(**fields: Any) -> Task:
    """Return a task with its key: a hash of all that decides its result, and of its name.

    The name is in it because shuffled variants of a problem have one fingerprint.
    """
    text = json.dumps([memplan.__version__, fields], sort_keys=True)
    return Task(key=hashlib.sha256(text.encode()).hexdigest()[:32], **fields)


def _order(settings: Settings, task: Task, spec: str) -> Order:
    limits = task.timeout, task.node_limit
    request = Request(spec, task.objective, *limits, threads=1, seed=task.seed, repeat=1)
    return make_order(request, task.n, task.capacity, settings.memory)
