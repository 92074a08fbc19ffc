"""Training steps of PyTorch in less memory: what they need, how long they take, whether bits agree.

Each step runs on one thread, in turn with the others, so that what else the machine does slows all
of them alike.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Final

from memplan.base.errors import PlanError
from memplan_lab.bench.again.partitioner import partition, run_step
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Rows,
    Setting,
    Settings,
    Table,
    read_list,
    read_share,
    tell,
)
from memplan_lab.extras import require

SHARES: Final = (0.8, 0.6, 0.4)
_BUDGETS: Final = (0.5, 0.2)  # of the partitioner
_NEAR: Final = (1.1, 1.3, 1.6, 2.0)  # times the floor; the first that is found counts


@dataclass(frozen=True)
class StepRow:
    """A training step, done in one way; see the figures of `EXPERIMENT`."""

    how: str
    capacity: int | None = None
    planned: int | None = None
    peak: int | None = None
    seconds: float | None = None
    repeated: int | None = None
    share: float | None = None
    bound: float | None = None
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
    made: Made, shares: Sequence[float], seconds: float | None, states: int | None, rounds: int = 7
) -> Iterator[dict[str, Any]]:
    """Yield how a network is trained: by PyTorch, by its means to save memory, and by memplan.

    Memplan's capacities are the given shares of what the joint graph needs, one near the floor, and
    what `checkpoint` on every block needs. Those into which nothing is found to fit have no peak.
    """
    torch: Any = require("torch", extra="corpus")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        bench = _Bench(made, {"timeout": seconds, "states": states})
        bench.add_peers()
        bench.add_capacities(shares)
        yield from map(asdict, bench.rows(rounds))
    finally:
        torch.set_num_threads(threads)


def _seed(make: Callable[[], Made]) -> Made:
    torch: Any = require("torch", extra="corpus")
    torch.manual_seed(0)
    return make()


class _Bench:
    """Ways to train a network, each with its row so far and a function that does one step."""

    def __init__(self, made: Made, limits: Mapping[str, Any]) -> None:
        from memplan.runtimes.torch.read.training import training_program

        self._limits = limits
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
        row = StepRow(how)
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
        self._ways.append((StepRow("joint graph", peak=peak), joint))
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

        row = StepRow(how, capacity)
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


def _tell(facts: list[bool]) -> str:
    return "yes" if all(facts) else "no"


def _per_cent(name: str) -> Callable[[Rows], str]:
    return tell("{:.2f}", max, lambda row: None if row[name] is None else 100 * row[name])


def _megabytes(name: str) -> Callable[[Rows], str]:
    return tell("{:.3f}", max, lambda row: None if row[name] is None else row[name] / 1e6)


TABLE = Table(
    "Training steps",
    (
        Column("network", "{case}"),
        Column("how", "{how}"),
        Column("planned, MB", _megabytes("planned")),
        Column("measured, MB", _megabytes("peak")),
        Column("CPU, s", "{seconds:.3f}"),
        Column("again", "{repeated}"),
        Column("more work, %", _per_cent("share")),
        Column("bound, %", _per_cent("bound")),
        Column("results equal", tell("{}", _tell, "results")),
        Column("gradients equal", tell("{}", _tell, "gradients")),
    ),
)


def _list_arms(settings: Settings) -> Iterator[Arm]:
    limits = {"seconds": settings["timeout"], "states": settings["nodes"]}
    yield Arm("in turns", partial(measure, shares=settings["share"], **limits))


EXPERIMENT = Experiment(
    "training",
    "training steps of PyTorch in less memory, beside its own means to save memory",
    figures={
        "how": "eager, checkpoint, partitioner 0.5, joint graph; or for steps of memplan the "
        "capacity as a share of what the joint graph needs, or what else it is",
        "planned": "bytes, for a `capacity` of so many",
        "peak": "the most bytes that a run had allocated, with gradients; none if it does not run",
        "seconds": "the median of its CPU time, on one thread",
        "repeated": "operators that run again",
        "share": "their part of the costs of a step, and the `bound` that is proved of it",
        "results": "whether all results are bit-equal to those of the joint graph",
        "gradients": "whether loss and gradients are bit-equal to those of autograd",
    },
    cases=lambda _: (Case(name, partial(_seed, make)) for name, make in STEPS.items()),
    arms=_list_arms,
    tables=lambda rows, _: [TABLE],
    takes=("case", "limit", "timeout", "nodes"),
    own={
        "share": Setting(
            SHARES, "capacities, as shares of what the joint graph needs", read_list(read_share)
        )
    },
)
