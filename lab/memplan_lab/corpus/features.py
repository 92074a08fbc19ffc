"""Numbers about the structure of a problem: columns of the corpus in addition to the problem."""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan_lab.bench.records import Feature

__all__ = ["PROFILE", "features"]

PROFILE = 32  # stretches of time in a load profile
_TIGHT = 0.95  # of the greatest load


def features(problem: Problem) -> dict[str, Feature]:
    """Return the features of a problem.

    Returns
    -------
    n
        Buffers.
    sections
        Stretches of time in which the same buffers are live.
    max_load
        The most bytes held at one time.
    largest_alignment
        Of all buffers.
    conflicts
        Pairs that conflict although their lifetimes are disjoint.
    density
        The mean load over the whole time, as a share of the greatest.
    tight_share
        Of the sections, those with at least 95 % of the greatest load.
    sum_over_load
        All sizes together, over the greatest load: what reuse of memory saves.
    load_profile
        The greatest load in each of 32 equal stretches of time, as a share of the greatest.
    """
    loads = Loads(problem)
    peak = max(loads.peak, 1)
    length = (loads.end - loads.start).astype(np.float64)
    return {
        "n": len(problem),
        "sections": len(loads),
        "max_load": loads.peak,
        "largest_alignment": int(problem.alignment.max(initial=1)),
        "conflicts": len(problem.conflicts),
        "density": float((loads.load * length).sum() / max(length.sum(), 1.0) / peak),
        "tight_share": float((loads.load >= _TIGHT * peak).mean()) if len(loads) else 0.0,
        "sum_over_load": float(problem.size.sum() / peak),
        "load_profile": _profile(loads, peak),
    }


def _profile(loads: Loads, peak: int) -> list[float]:
    if not len(loads):
        return [0.0] * PROFILE
    begin, end = int(loads.start[0]), int(loads.end[-1])
    edges = begin + (end - begin) * np.arange(PROFILE + 1) / PROFILE
    first = np.searchsorted(loads.end, edges[:-1], side="right")
    last = np.searchsorted(loads.start, edges[1:], side="left")
    shares = [loads.load[a:b].max() / peak for a, b in zip(first, last, strict=True)]
    rounded: list[float] = np.array(shares, dtype=np.float32).tolist()  # as the file keeps them
    return rounded
