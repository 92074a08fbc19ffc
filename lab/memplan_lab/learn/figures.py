"""Figures 15 to 17 of TelaMalloc: portions of a problem, time of a candidate, and features."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memplan.base.files import write_text
from memplan.extensions.published.backtracking import Model, features
from memplan.problem import Problem
from memplan.solvers import solve
from memplan.view import picture
from memplan_lab.learn.samples import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    *("Figures", "Portion", "draw", "importance", "measure", "portions", "read", "seconds_each"),
    "write",
]

_WIDTH, _HEIGHT = 6.4, 3.8  # inches
_TRIES = 50  # of which the median is the time
_COUNTS = (1, 2, 4, 8, 16, 32, 64)  # candidates that are scored at once
_KIND = "figures of learned backtracking"


@dataclass(frozen=True)
class Portion:
    """The buffers that are live in one stretch of time, searched in three ways."""

    # start, end: The stretch, in the problem's steps of time.
    start: int
    end: int
    # By the option `learned`: "off", "on", "published"; a search without a plan counts with its
    # limit of steps at least.
    backtracks: Mapping[str, int]


@dataclass(frozen=True)
class Figures:
    """What figures 15 to 17 show."""

    problem: str  # its name
    portions: Sequence[Portion]  # figure 15
    # Figure 16: processor time of a candidate, by how many are scored at once.
    seconds: Mapping[int, float]
    # Figure 17: by how much the error grows where a feature is shuffled.
    importance: Mapping[str, float]


def measure(name: str, problem: Problem, model: Model, samples: Samples, *, steps: int) -> Figures:
    """Measure what the figures show; see `portions`, `seconds_each` and `importance`."""
    times = dict(zip(_COUNTS, seconds_each(model, _COUNTS), strict=True))
    return Figures(name, portions(problem, model, steps=steps), times, importance(model, samples))


def write(figures: Figures, path: str) -> None:
    """Write what the figures show as JSON; all of it or nothing."""
    write_text(path, json.dumps({"kind": _KIND, **asdict(figures)}, indent=1) + "\n")


def read(content: object) -> Figures | None:
    """Return the figures of a file's JSON, or `None` if it is of another kind."""
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        return None
    return Figures(
        str(content["problem"]),
        [Portion(**portion) for portion in content["portions"]],
        {int(count): float(each) for count, each in content["seconds"].items()},
        {str(name): float(grown) for name, grown in content["importance"].items()},
    )


def portions(
    problem: Problem, model: Model, *, parts: int = 8, steps: int = 20_000
) -> list[Portion]:
    """Return the backtracks in each portion of a problem (figure 15)."""
    first, last = int(problem.start.min()), int(problem.end.max())
    cuts = [first + (last - first) * part // parts for part in range(parts + 1)]
    found: list[Portion] = []
    ways: dict[str, object] = {"off": False, "on": True, "published": model}
    for start, end in pairwise(cuts):
        rows = np.flatnonzero((problem.start < end) & (problem.end > start))
        if len(rows) == 0:
            continue
        part = problem.subset(rows)
        backtracks: dict[str, int] = {}
        for name, learned in ways.items():
            plan = solve(part, "telamalloc", nodes=steps, threads=1, learned=learned)
            count = plan.stats["backtracks"]
            assert isinstance(count, int)
            backtracks[name] = count if plan.offsets is not None else max(count, steps)
        found.append(Portion(start, end, backtracks))
    return found


def seconds_each(model: Model, counts: Sequence[int] = _COUNTS) -> list[float]:
    """Return the processor time of one candidate, where so many are scored at once (figure 16)."""
    forest = model.forest()
    random = np.random.default_rng(0)
    rows = random.random((max(counts), len(features())), dtype=np.float32)
    found: list[float] = []
    for count in counts:
        batch = np.ascontiguousarray(rows[:count])
        tries: list[float] = []
        for _ in range(_TRIES):
            begin = time.perf_counter_ns()
            forest.score(batch)
            tries.append((time.perf_counter_ns() - begin) * 1e-9)
        found.append(median(tries) / count)
    return found


def importance(model: Model, samples: Samples, seed: int = 0) -> dict[str, float]:
    """Return by how much the error (RMSE) grows where a feature is shuffled (figure 17)."""
    forest = model.forest()
    scores = samples.scores()

    def error(rows: npt.NDArray[np.float32]) -> float:
        return float(np.sqrt(np.mean((forest.score(np.ascontiguousarray(rows)) - scores) ** 2)))

    least = error(samples.features)
    random = np.random.default_rng(seed)
    grown: dict[str, float] = {}
    for column, name in enumerate(features()):
        shuffled = samples.features.copy()
        shuffled[:, column] = random.permutation(shuffled[:, column])
        grown[name] = error(shuffled) - least
    return grown


def draw(figures: Figures) -> dict[int, Figure]:
    """Draw the figures; return them by the paper's numbers."""
    ways = ("off", "on", "published")
    return {
        15: _draw_bars(
            {
                f"learned={way}": {
                    f"{each.start}-{each.end}": each.backtracks[way] for each in figures.portions
                }
                for way in ways
            },
            ("portion of the time", "backtracks"),
            log=True,
        ),
        16: _draw_bars(
            {"time": {str(count): each * 1e6 for count, each in figures.seconds.items()}},
            ("candidates scored at once", "time of each [µs]"),
        ),
        17: _draw_bars({"growth": figures.importance}, ("feature shuffled", "growth of RMSE")),
    }


def _draw_bars(
    bars: Mapping[str, Mapping[str, float]], labels: tuple[str, str], *, log: bool = False
) -> Figure:
    """Draw bars, side by side, for each name of a group."""
    figure = picture.make_figure(_WIDTH, _HEIGHT)
    axes = figure.add_subplot()
    width = 0.8 / len(bars)
    middle = 0.4 - width / 2
    for at, (series, values) in enumerate(bars.items()):
        places = [x + at * width for x in range(len(values))]
        axes.bar(places, list(values.values()), width, label=series)
        axes.set_xticks([x + middle for x in range(len(values))], list(values), rotation=30)
    if log:
        axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    if len(bars) > 1:
        axes.legend(fontsize="small")
    return figure
