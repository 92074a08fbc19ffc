"""Rows as a picture: run time and success by solver, as MiniMalloc draws them (figures 8 and 10).

If there are many instances of a few sizes, medians are drawn over the number of buffers. If there
is no room for the names of instances, medians are drawn over sizes up to each power of two.
Otherwise instances are drawn one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from memplan.base.errors import MemplanError
from memplan.view import picture
from memplan.view.classes import PALETTE
from memplan_lab.bench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vPXh"  # one more than colours, so that few solvers have the same marker and colour
_INSTANCES = 3  # the average number of instances of a size from which on medians are drawn
_NAMES = 48  # the most names of instances below an axis
_WIDTH, _HEIGHT = 6.4, 6.0  # inches for a suite
_DPI = 110

Group = Sequence[Row]


def save(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Draw rows into a file (`.png`, `.svg` or `.pdf`), or leave the old file as it was."""
    picture.format_of(path)
    picture.write(draw(rows), path, _DPI)


def check_file(path: str | os.PathLike[str]) -> None:
    """Check before hours of work that `save` can write a file afterwards."""
    picture.format_of(path)
    picture.make_figure(1, 1)


def draw(rows: Iterable[Row]) -> Figure:
    """Draw the suites of some rows side by side.

    Times are CPU times on a logarithmic axis. A run without a plan counts like the longest run of
    its suite, which is the time limit if some run reached it. If instances are drawn one by one,
    its mark is hollow.
    """
    suites: dict[str, list[Row]] = {}
    for row in rows:
        if row.cpu_s is not None:
            suites.setdefault(row.suite, []).append(row)
    if not suites:
        raise MemplanError("no run was measured, so there is nothing to draw")
    figure = picture.make_figure(_WIDTH * len(suites), _HEIGHT)
    grid = figure.add_gridspec(2, len(suites))
    for column, (suite, group) in enumerate(suites.items()):
        solvers = list(dict.fromkeys(row.solver for row in group))
        cases = len({row.case for row in group})
        few_sizes = cases >= _INSTANCES * len({row.n for row in group})
        if few_sizes or cases > _NAMES:
            times = figure.add_subplot(grid[0, column])
            if not few_sizes:
                group = [replace(row, n=1 << (row.n - 1).bit_length()) for row in group if row.n]
                times.set_xscale("log", base=2)
            _draw_sizes(times, group, solvers, _median_time(group))
            success = figure.add_subplot(grid[1, column], sharex=times)
            _draw_sizes(success, group, solvers, _success)
            success.set_ylabel("solved [%]")
            success.set_ylim(-4, 104)
            success.set_xlabel("buffers")
            times.tick_params(labelbottom=False)
            times.set_ylabel("median CPU time [s]")
        else:
            times = figure.add_subplot(grid[:, column])
            _draw_instances(times, group, solvers)
            times.set_ylabel("CPU time [s]")
        times.set_yscale("log")
        times.minorticks_off()
        times.set_title(suite)
        times.legend(loc="best", fontsize="small")
    return figure


def _median_time(group: Group) -> Callable[[Group], float]:
    longest = _longest(group)
    return lambda runs: median(_seconds(run, longest) for run in runs)


def _success(runs: Group) -> float:
    return 100 * sum(run.solved for run in runs) / len(runs)


def _longest(group: Group) -> float:
    return max(row.cpu_s or 0.0 for row in group)


def _seconds(run: Row, longest: float) -> float:
    return run.cpu_s if run.solved and run.cpu_s is not None else longest


def _draw_sizes(
    axes: Axes, group: Group, solvers: Sequence[str], value: Callable[[Group], float]
) -> None:
    """Draw a line for each solver: a value of all its runs of a size, over the sizes."""
    from matplotlib.ticker import MaxNLocator

    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    for at, solver in enumerate(solvers):
        by_size: dict[int, list[Row]] = {}
        for row in group:
            if row.solver == solver:
                by_size.setdefault(row.n, []).append(row)
        sizes = sorted(by_size)
        axes.plot(
            sizes,
            [value(by_size[n]) for n in sizes],
            label=solver,
            marker=_marker(at),
            color=_colour(at),
            markersize=4,
            linewidth=1,
            gid=solver,
        )
    axes.grid(alpha=0.3)


def _draw_instances(axes: Axes, group: Group, solvers: Sequence[str]) -> None:
    """Draw a mark for each run, hollow without a plan, over the instances by name."""
    place = {case: at for at, case in enumerate(dict.fromkeys(row.case for row in group))}
    longest = _longest(group)
    for at, solver in enumerate(solvers):
        runs = [row for row in group if row.solver == solver]
        axes.scatter(
            [place[run.case] for run in runs],
            [_seconds(run, longest) for run in runs],
            label=solver,
            marker=_marker(at),
            s=24,
            edgecolors=_colour(at),
            facecolors=[_colour(at) if run.solved else "none" for run in runs],
            gid=solver,
        )
    axes.set_xticks(range(len(place)), list(place), rotation=60, ha="right", fontsize="small")
    axes.grid(alpha=0.3)


def _marker(at: int) -> str:
    return _MARKERS[at % len(_MARKERS)]


def _colour(at: int) -> str:
    return PALETTE[at % len(PALETTE)]
