"""A policy of our own for the search of telamalloc: the buffers that fail are placed earlier.

`python heaviest_first.py` plans eight problems with the rules of telamalloc and with the policy.
"""

import numpy as np

import memplan as mp
from memplan.extensions.published.policy import Policy, State

BRANCHES = 2  # candidates at a point
GROWTH = 1.2


class HeaviestFirst(Policy):
    """Place the buffer with the largest area times weight; weights grow with failures."""

    def __init__(self, problem: mp.Problem) -> None:
        self.weight = problem.size * (problem.end - problem.start).astype(float)

    def choose(self, state: State) -> int | None:
        """Return the heaviest candidate, or None after two failures."""
        if len(state.failed) >= BRANCHES:
            return None
        return int(state.candidates[np.argmax(self.weight[state.candidates])])

    def go_back(self, state: State) -> int | None:
        """Make what failed heavier, and go back to the last placement at fault."""
        self.weight[state.failed] *= GROWTH
        return None


def make_problem(seed: int) -> mp.Problem:
    """Return 30 random buffers with a capacity of 103 % of the load."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 60, 30)
    end = start + random.integers(1, 20, 30)
    size = random.integers(1, 64, 30)
    problem = mp.Problem.from_arrays(start, end, size)
    return problem.with_capacity(mp.lower_bound(problem) * 103 // 100)


if __name__ == "__main__":
    print("steps by the rules, and by the policy")
    for seed in range(8):
        problem = make_problem(seed)
        steps = []
        for options in ({}, {"policy": HeaviestFirst(problem)}):
            plan = mp.solve(problem, "telamalloc", "fit", nodes=5_000, **options)
            if plan.has_offsets:
                mp.verify(problem, plan)
            steps.append(f"{plan.stats['nodes']:,} ({plan.status})")
        print(*steps, sep=", ")
