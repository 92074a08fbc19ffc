"""Training steps of PyTorch in less memory: what they need, how long they take, whether bits agree.

Each step runs on one thread, in turn with the others, so that what else the machine does slows all
of them alike.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Final

from memplan.base.errors import PlanError
from memplan_lab.bench.again.partitioner import partition, run_step
from memplan_lab.bench.tables import DASH
from memplan_lab.extras import require

__all__ = ["HEADINGS", "SHARES", "STEPS", "StepRow", "lines", "measure"]

SHARES: Final = (0.8, 0.6, 0.4)
_BUDGETS: Final = (0.5, 0.2)  # of the partitioner
_NEAR: Final = (1.1, 1.3, 1.6, 2.0)  # times the floor; the first that is found counts


@dataclass(frozen=True)
class StepRow:
    """A training step, done in one way."""

    name: str  # the network
    # "eager", "checkpoint", "partitioner 0.5", "joint graph"; or for steps of memplan, the capacity
    # as a share of what the joint graph needs, or what else it is.
    how: str
    # capacity, planned: In bytes; `None` for what is not planned.
    capacity: int | None = None
    planned: int | None = None
    # The most bytes that a run had allocated, gradients included. `None` if it does not run.
    peak: int | None = None
    seconds: float | None = None  # the median of its CPU time
    # repeated, share, bound: Operators that run again, their part of the costs of a step, and what
    # is proved of it.
    repeated: int | None = None
    share: float | None = None
    bound: float | None = None
    # results, gradients: Whether all results are bit-equal to those of the joint graph, and the
    # loss and all gradients to those of autograd.
    results: bool | None = None
    gradients: bool | None = None


Made = tuple[Any, tuple[Any, ...], Sequence[Any]]  # model, arguments, blocks for `checkpoint`


def _images(depths: tuple[int, int, int, int], batch: int, side: int, bottleneck: bool) -> Made:
    torch: Any = require("torch", extra="corpus")
    from memplan_lab.bench.models import resnet
    from memplan_lab.bench.models.layers import Residual
    from memplan_lab.bench.models.training import Classifier

    model = Classifier(resnet(depths, bottleneck=bottleneck))
    blocks = [each for each in model.network if isinstance(each, Residual)]
    return model, (torch.randn(batch, 3, side, side), torch.randint(1000, (batch,))), blocks


def _bert(layers: int, width: int, batch: int, tokens: int) -> Made:
    torch: Any = require("torch", extra="corpus")
    from memplan_lab.bench.models.tokens import bert
    from memplan_lab.bench.models.training import MaskedWords

    parts = list(bert(layers, width, 4, 4 * width))
    blocks = [torch.nn.Sequential(*parts[at : at + 2]) for at in range(1, len(parts), 2)]
    model = MaskedWords(torch.nn.Sequential(parts[0], *blocks), width)
    hidden = (batch, tokens // 8)
    args = (
        torch.randint(30522, (batch, tokens)),
        torch.randint(tokens, hidden),
        torch.randint(30522, hidden),
    )
    return model, args, blocks


def _gpt(layers: int, width: int, batch: int, tokens: int) -> Made:
    torch: Any = require("torch", extra="corpus")
    from memplan_lab.bench.models.somas import Language

    model = Language(layers, width, 4, share=1, vocabulary=500)
    args = (torch.randint(500, (batch, tokens)), torch.randint(500, (batch, tokens)))
    return model, args, list(model.blocks)


# By name: what makes a model that returns its loss.
STEPS: Mapping[str, Callable[[], Made]] = {
    "resnet18": partial(_images, (2, 2, 2, 2), 8, 160, bottleneck=False),
    "resnet50": partial(_images, (3, 4, 6, 3), 4, 128, bottleneck=True),
    "bert": partial(_bert, 6, 128, 8, 128),
    "gpt": partial(_gpt, 8, 128, 8, 128),
}


def measure(
    name: str,  # one of `STEPS`
    shares: Sequence[float] = SHARES,
    *,
    make: Callable[[], Made] | None = None,  # what makes the model, instead of one of `STEPS`
    seconds: float | None = None,
    states: int | None = None,
    rounds: int = 7,
) -> Iterator[StepRow]:
    """Yield how a network is trained: by PyTorch, by its means to save memory, and by memplan.

    Memplan's capacities are the given shares of what the joint graph needs, one near the floor, and
    what `checkpoint` on every block needs. Those into which nothing is found to fit have no peak.
    """
    torch: Any = require("torch", extra="corpus")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        bench = _Bench(name, (make or STEPS[name])(), {"timeout": seconds, "states": states})
        bench.add_peers()
        bench.add_capacities(shares)
        yield from bench.rows(rounds)
    finally:
        torch.set_num_threads(threads)


class _Bench:
    """Ways to train a network, each with its row so far and a function that does one step."""

    def __init__(self, name: str, made: Made, limits: Mapping[str, Any]) -> None:
        from memplan.runtimes.torch.read.training import training_program

        self._name, self._limits = name, limits
        self._model, self._args, self._blocks = made
        self._model.train()
        self._program = training_program(self._model, self._args)
        self._expected: list[Any] = []  # loss and gradients of autograd
        self._ways: list[tuple[StepRow, Callable[[], Any]]] = []

    def add_peers(self) -> None:
        """Add PyTorch's own ways."""
        run = partial(run_step, model=self._model, args=self._args, loss=lambda result: result)
        self._add("eager", partial(run, self._model))
        self._add("checkpoint", partial(self._run_checkpoint, partial(run, self._model)))
        for budget in _BUDGETS:
            self._add(f"partitioner {budget}", partial(run, partition(self._model, budget)))

    def _run_checkpoint(self, run: Callable[[], Any]) -> Any:
        with _checkpoints(self._blocks):
            return run()

    def _add(self, how: str, run: Callable[[], Any]) -> None:
        row = StepRow(self._name, how)
        try:
            found = _seeded(run)
        except RuntimeError:  # the partitioner cannot cut every graph
            self._ways.append((row, run))
            return
        self._expected = self._expected or found
        equal = _all_equal(found, self._expected)
        self._ways.append((replace(row, peak=self._peak_of(run), gradients=equal), run))

    def add_capacities(self, shares: Sequence[float]) -> None:
        """Add the joint graph, and memplan's steps."""
        torch: Any = require("torch", extra="corpus")
        from memplan.runtimes.torch.write import again

        whole = again.recompute(self._program, "1TiB", **self._limits)
        inputs = whole.inputs(*self._args)
        module = self._program.graph_module

        def joint() -> Any:
            with torch.no_grad():
                return list(module(*inputs))

        peak = self._peak_of(joint)
        self._ways.append((StepRow(self._name, "joint graph", peak=peak), joint))
        by_name = {row.how: row.peak for row, _ in self._ways}
        asked = [(f"{share:.0%}", int(share * peak)) for share in shares]
        for how, capacity in [*asked, ("as checkpoint", by_name["checkpoint"] or 0)]:
            self._add_own(how, capacity, whole.costs, joint)
        for times in _NEAR:
            if self._add_own(
                f"{times} x floor", int(times * whole.found.floor), whole.costs, joint
            ):
                return

    def _add_own(self, how: str, capacity: int, costs: Any, joint: Callable[[], Any]) -> bool:
        """Add a step of memplan; return whether one was found."""
        torch: Any = require("torch", extra="corpus")
        from memplan.runtimes.torch.write import again

        row = StepRow(self._name, how, capacity)
        try:
            step = again.recompute(self._program, capacity, costs=costs, **self._limits)
        except PlanError:
            self._ways.append((row, lambda: None))
            return False

        def run() -> Any:
            self._model.zero_grad(set_to_none=True)
            loss = step(*self._args)
            return [loss, *(each.grad for each in self._model.parameters())]

        with torch.no_grad():
            results = _seeded(lambda: list(step.module(*step.inputs(*self._args))))
        same = _all_equal(results, _seeded(joint))
        del results
        found = step.found
        row = replace(
            row,
            planned=found.peak,
            peak=self._peak_of(run),
            repeated=found.repeated,
            share=found.share,
            bound=found.share_of(found.bound),
            results=same,
            gradients=_all_equal(_seeded(run), self._expected),
        )
        self._ways.append((row, run))
        return True

    def _peak_of(self, run: Callable[[], Any]) -> int:
        from memplan.runtimes.torch.measure.run import find_worst
        from memplan.runtimes.torch.record import record

        trace = record(run, trains=self._model)
        return find_worst(trace, list(range(len(trace))))[0]

    def rows(self, rounds: int) -> Iterator[StepRow]:
        """Yield the rows with their times."""
        times: list[list[float]] = [[] for _ in self._ways]
        for _ in range(rounds):
            for (row, run), mine in zip(self._ways, times, strict=True):
                if row.peak is not None:
                    begun = time.process_time()
                    run()
                    mine.append(time.process_time() - begun)
        for (row, _), mine in zip(self._ways, times, strict=True):
            yield replace(row, seconds=median(mine)) if mine else row


@contextmanager
def _checkpoints(blocks: Sequence[Any]) -> Iterator[None]:
    """Let blocks keep only their inputs."""
    checkpoint = require("torch.utils.checkpoint", extra="corpus").checkpoint
    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward


def _seeded(run: Callable[[], Any]) -> list[Any]:
    """Return what a step makes of the same random numbers, copied."""
    torch: Any = require("torch", extra="corpus")
    torch.manual_seed(1)
    return copy.deepcopy([each.detach() for each in run()])


def _all_equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    torch: Any = require("torch", extra="corpus")
    return len(some) == len(others) and all(map(torch.equal, some, others))


HEADINGS = (
    *("network", "how", "planned, MB", "measured, MB", "CPU, s", "again", "more work, %"),
    *("bound, %", "results equal", "gradients equal"),
)


def lines(rows: Sequence[StepRow]) -> Iterator[tuple[str, ...]]:
    """Yield a line of a table for each row."""
    for row in rows:
        yield (
            *(row.name, row.how, _megabytes(row.planned), _megabytes(row.peak)),
            DASH if row.seconds is None else f"{row.seconds:.3f}",
            DASH if row.repeated is None else f"{row.repeated}",
            *(DASH if each is None else f"{each:.2%}"[:-1] for each in (row.share, row.bound)),
            *(_tell(each) for each in (row.results, row.gradients)),
        )


def _megabytes(size: int | None) -> str:
    return DASH if size is None else f"{size / 1e6:.3f}"


def _tell(fact: bool | None) -> str:
    return DASH if fact is None else "yes" if fact else "no"
