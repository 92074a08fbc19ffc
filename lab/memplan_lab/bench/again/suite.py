"""Programs whose operators may run again: networks of others, and those that are drawn or traced.

Costs are those of the files; those of traced steps come from memplan's roofline.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import numpy as np

from memplan.levers.rewrite.again.columns import again_of
from memplan.levers.rewrite.order import load_program
from memplan.problem import OrderProblem, RecomputeProblem
from memplan.programs.graph import Graph
from memplan.programs.sources import lay_out_again
from memplan_lab.bench.generators.programs import gpt_step, layered
from memplan_lab.bench.orders.suite import moccasin
from memplan_lab.extras import require

__all__ = ["SHARES", "Case", "cases", "put_in_order"]

SHARES: Final = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_LAYERED: Final = (100, 250)  # operators
_LAYERS: Final = (4, 12, 48)  # of a GPT
_TRACED: Final = ("mobilenet_v2", "resnet50", "unet", "bert", "gpt2", "gpt_48_layers")


@dataclass(frozen=True)
class Case:
    """A program."""

    # name, family: Distinct in the suite; and the origin: "moccasin", "layered", "gpt" or "traced".
    name: str
    family: str
    # Its columns. Capacities are shares of what it needs in this order, without any re-runs.
    problem: RecomputeProblem


def cases(
    patterns: Sequence[str] | None = None, data: str | os.PathLike[str] | None = None
) -> Iterator[Case]:
    """Yield the programs with such names, those of files first."""

    def chosen(name: str) -> bool:
        return patterns is None or any(fnmatchcase(name, each) for each in patterns)

    if data is not None:
        for case in moccasin(Path(data)):
            if chosen(name := _shorten(case.name)):
                yield Case(name, case.family, _of_order(case.problem, case.cost))
    for nodes in _LAYERED:
        if chosen(name := f"layered-{nodes}"):
            yield Case(name, "layered", _of_order(layered(nodes, 0), ()))
    for layers in _LAYERS:
        if chosen(name := f"gpt-{layers}"):
            yield Case(name, "gpt", _of_order(*gpt_step(layers)))
    for network in _TRACED:
        if patterns is not None and chosen(name := f"step-{network}"):
            yield Case(name, "traced", _trace(network))


def _shorten(name: str) -> str:
    """Return "vgg16-training" for "moccasin-VGG16 (MLSys)_256_(224, 224, 3)_train_nx"."""
    if network := re.fullmatch(r"moccasin-(\w+) \(.*_(train|test)_nx", name):
        step = "training" if network[2] == "train" else "inference"
        return f"{network[1].lower()}-{step}"
    layers = re.fullmatch(r"(moccasin)-random_(layered)_n(\d+)_.*", name)
    return "-".join(layers.groups()) if layers else name


def _of_order(problem: OrderProblem, cost: Sequence[int]) -> RecomputeProblem:
    """Return the question for operators that make one storage each; all may run again.

    Without costs, each costs 1.
    """
    count = len(problem)
    return RecomputeProblem(
        problem,
        np.array(cost or [1] * count, dtype=np.int64),
        np.ones(count, dtype=np.bool_),
        np.arange(count, dtype=np.int32),
        np.full(count, -1, dtype=np.int64),
    )


def _trace(network: str) -> RecomputeProblem:
    """Return the joint graph of a training step of PyTorch, traced without any memory."""
    require("torch", extra="corpus")
    from memplan.runtimes.torch.read.training import training_program
    from memplan.runtimes.torch.write.writer import load_graph
    from memplan_lab.bench.models.training import STEPS

    graph: Graph = load_graph(training_program(*STEPS[network]()))
    layout = lay_out_again(load_program(graph), in_place=False).layout
    assert layout is not None
    return again_of(layout).problem


def put_in_order(problem: RecomputeProblem, order: Sequence[int]) -> RecomputeProblem:
    """Return the same question with operators numbered as they come in a legal order."""
    program = problem.program
    place = np.empty(len(program), dtype=np.int32)
    place[order] = np.arange(len(program))
    arcs = place[program.arcs]
    storages = np.repeat(np.arange(len(program.size)), np.diff(program.user_begin))
    users = place[program.user]
    maker = np.where(problem.maker < 0, -1, place[problem.maker]).astype(np.int32)
    return RecomputeProblem(
        OrderProblem(
            program.workspace[order],
            arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))],
            program.size,
            program.given,
            program.wanted,
            program.user_begin,
            users[np.lexsort((users, storages))],
            program.in_place,
        ),
        problem.cost[order],
        problem.again[order],
        maker,
        problem.move,
    )
