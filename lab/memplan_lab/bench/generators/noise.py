"""Variations of a problem that keep its shape."""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem

_GRAIN = 1 << 20


def with_size_noise(problem: Problem, seed: int, relative: float = 0.05) -> Problem:
    """Return `problem` with every size changed by up to `relative` of itself, either way.

    Real models come in families that differ by such factors; a solver tuned on one member should
    not fail on the next. A size above 0 stays above 0.
    """
    if not 0 <= relative < 1:
        raise ValueError(f"relative is {relative}; give a share of 0 or more and less than 1")
    if problem.has_pins or problem.has_windows:
        raise ValueError("size noise would break pins and windows; give a problem without them")
    rng = np.random.Generator(np.random.PCG64([seed, len(problem)]))
    factor = 1 + relative * (rng.integers(-_GRAIN, _GRAIN, len(problem), endpoint=True) / _GRAIN)
    size = np.minimum(np.rint(problem.size * factor), float(1 << 62)).astype(np.int64)
    return Problem.from_arrays(
        problem.start,
        problem.end,
        np.maximum(size, np.minimum(problem.size, 1)),
        ids=problem.ids,
        alignment=problem.alignment,
        hint=problem.hint,
        gaps=(
            problem.gap_buffer,
            problem.gap_start,
            problem.gap_end,
            problem.gap_lower,
            problem.gap_upper,
        ),
        reserved=problem.reserved,
        conflicts=problem.conflicts,
        groups=problem.groups,
    )
