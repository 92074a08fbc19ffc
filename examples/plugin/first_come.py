"""A solver and a command for memplan, from a package of your own: docs/extending.md explains it."""

from __future__ import annotations

import memplan as mp
from memplan.solvers.registry import PLAIN, Solver
from memplan.solvers.run import Run


def solve(run: Run) -> None:
    """Place each buffer above all that were placed before it and live at the same time."""
    problem = run.problem
    lives = list(zip(problem.start.tolist(), problem.end.tolist(), strict=True))
    offsets: list[int] = []
    for row, (start, end) in enumerate(lives):
        if not run.step():  # the budget of the caller is over
            return
        size, alignment = int(problem.size[row]), int(problem.alignment[row])
        tops = [
            offset + int(problem.size[other])
            for other, offset in enumerate(offsets)
            if lives[other][0] < end and start < lives[other][1]
        ]
        floor = max(tops, default=0) if size else 0
        offsets.append(-(-floor // alignment) * alignment)
    run.offer(offsets, "in the order of the rows")


FIRST_COME = Solver("first_come", "each on top of what came before it", PLAIN, solve=solve)


def count(file: str) -> None:
    """Say how many buffers a problem or model has."""
    print(f"{len(mp.load(file).problem):,} buffers")
