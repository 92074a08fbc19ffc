"""The example of the course text on static memory planning, which is computed here.

Four tensors of 100, 50, 80 and 100 KB: what they need without sharing, in shared buffers (colours
of the interference graph, with costs), and at offsets of one pool.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from memplan.problem import Buffer, Problem
from memplan.problem.interference import find_edges
from memplan.problem.plan import Plan
from memplan.solvers import solve
from memplan.view import interference, load_plot
from memplan_lab.bench.tables import Shown
from memplan_lab.study import charts
from memplan_lab.study.blocks import Chart, Section

TENSORS = (("T1", 0, 10, 100), ("T2", 2, 12, 50), ("T3", 3, 8, 80), ("T4", 10, 15, 100))
_KB = 1000
_ORDERS, _FITS = ("start", "end", "size"), ("first", "best", "worst")
# Sizes are multiples of 10,000 bytes, so that an alignment of 32 to 128 bytes costs nothing.
_ALIGNMENTS = (1_000, 32_000, 64_000, 128_000)


def example(alignment: int = 1) -> Problem:
    """Return the four tensors; sizes in bytes, lifetimes in steps of the text's time."""
    return Problem(
        Buffer(name, start, end, size * _KB, alignment=alignment)
        for name, start, end, size in TENSORS
    )


def section() -> Section:
    """Return what the text computes by hand: naive, shared and planned memory, load, alignment."""
    problem = example()
    naive, planned = _solve(problem, "bump"), _solve(problem, "auto")
    lines = [("a buffer for each tensor", str(len(problem)), _kilobytes(naive.peak))]
    for order, fit in product(_ORDERS, _FITS):
        shared = _solve(problem, f"shared_objects:order={order},fit={fit}")
        assert shared.offsets is not None
        buffers = str(len(np.unique(shared.offsets)))
        lines.append((f"shared buffers, by {order}, {fit} fit", buffers, _kilobytes(shared.peak)))
    lines.append(("offsets in one pool", "1", _kilobytes(planned.peak)))
    aligned = [
        (f"{alignment // 1000}", _kilobytes(_solve(example(alignment), "auto").peak))
        for alignment in _ALIGNMENTS
    ]
    pairs = len(find_edges(problem, len(problem) ** 2))
    bars = {"naive": [(_peak(naive), False)], "planned": [(_peak(planned), False)]}
    return Section(
        (
            f"Four tensors, of which {pairs} pairs interfere; the text leaves out T2 and T4, which "
            "are both live in [10, 12). To share buffers is to colour the interference graph, "
            "where a colour costs the largest size that it holds. Offsets in one pool reach the "
            "load, below which no plan is.",
        ),
        (
            Shown("Memory by strategy.", ("strategy", "buffers", "KB"), lines),
            Chart(
                "course-peak",
                "Peak memory, naive and planned.",
                charts.draw_bars(["peak"], bars, "bytes"),
            ),
            Chart("course-interference", "Interference.", interference.draw(problem)),
            Chart("course-load", "Live memory over time.", load_plot.draw(problem)),
            Shown("What alignment costs.", ("alignment [KB]", "KB"), aligned),
        ),
    )


def _solve(problem: Problem, solver: str) -> Plan:
    return solve(problem, solver, "min_peak")


def _peak(plan: Plan) -> int:
    assert plan.peak is not None
    return plan.peak


def _kilobytes(count: int | None) -> str:
    return f"{(count or 0) / _KB:,.0f}"
