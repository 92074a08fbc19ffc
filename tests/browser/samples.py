"""What the tests open: pages, and the programs and plans on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from memplan import solve
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, load, of_graph
from memplan.view.facts import find_facts

NASTY = (
    "<img src=x onerror=alert(1)>",
    "</script><script>window.broken=1</script>",
    "\"'><svg/onload=window.broken=2>",
    "<!--<script>window.broken=3",
    "${window.broken=4} {{x}} $title \\u003c &lt;b&gt; %s",
    "javascript:window.broken=5",
    "__proto__",
)


def written(
    path: Path,
    what: Loaded | Problem,
    plans: Mapping[str, Plan] | None = None,
    title: str = "a title",
) -> Path:
    """Write a page; of the plan of `auto` alone, if there are no others."""
    from memplan.view.page import save

    problem, known = what, None
    if isinstance(what, Loaded):
        problem, known = what.problem, find_facts(what)
    assert isinstance(problem, Problem)
    save(problem, plans or {"memplan": solve(problem)}, path, facts=known, title=title)
    return path


def resnet_50() -> Loaded:
    """Return ResNet-50."""
    return load(Path(__file__).parents[2] / "examples" / "structures" / "resnet50.graph.json")


def net(names: tuple[str, ...] = ("a", "b", "c")) -> Loaded:
    """Return a chain of operators, as many as names, that alternate between types and modules."""
    tensors = [Tensor("input", 64 << 10, Kind.INPUT)]
    operators = []
    for at, name in enumerate(names):
        kind = Kind.OUTPUT if at == len(names) - 1 else Kind.INTERMEDIATE
        tensors.append(Tensor(name, (at % 3 + 1) * 32 << 10, kind))
        operators.append(
            Operator(
                f"op {name}",
                ("Conv", "Relu")[at % 2],
                (at,),
                (at + 1,),
                module=f"layer{at % 3}",
                line=f"net.py:{40 + at}",
            )
        )
    graph = Graph("net", tuple(tensors), tuple(operators), inputs=(0,), outputs=(len(names),))
    return of_graph(graph)


def many(count: int) -> tuple[Problem, Plan]:
    """Return a problem with as many buffers, in lanes of 64 to 4096 bytes, and a plan of it."""
    lanes = 240
    rng = np.random.default_rng(9)
    size = 64 * rng.integers(1, 65, lanes)
    lane = np.arange(count) % lanes
    step = np.arange(count) // lanes
    start = 10 * step + rng.integers(0, 4, count)
    end = 10 * step + rng.integers(6, 11, count)
    problem = Problem.from_arrays(start, end, size[lane])
    return problem, Plan.of(problem, (np.cumsum(size) - size)[lane])


def sliver(count: int) -> tuple[Problem, Plan]:
    """Return `many`, and above it two buffers of one moment, far thinner than a pixel."""
    problem, plan = many(count)
    assert plan.offsets is not None
    assert plan.peak is not None
    tall = plan.peak // 4
    start = int(np.quantile(problem.start, 0.4))
    sizes = np.append(problem.size, [tall, tall])
    starts = np.append(problem.start, [start, start])
    ends = np.append(problem.end, [start + 1, start + 1])
    both = Problem.from_arrays(starts, ends, sizes)
    return both, Plan.of(both, np.append(plan.offsets, [plan.peak, plan.peak + tall]))


def centre(problem: Problem, plan: Plan, row: int) -> tuple[float, float]:
    """Return the time and the address in the middle of a buffer."""
    assert plan.offsets is not None
    middle = (problem.start[row] + problem.end[row]) / 2
    return float(middle), float(plan.offsets[row] + problem.size[row] / 2)
