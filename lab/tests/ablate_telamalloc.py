"""Prints the ablation of docs/telamalloc.md: `python lab/tests/ablate_telamalloc.py PERCENT`.

Steps of `telamalloc` with a technique off, and of the strategies of figure 14, on 75 generated
problems at PERCENT of their capacities.
"""

from __future__ import annotations

import sys
from math import exp, log
from typing import Any

import memplan as mp
from memplan_lab.bench import generators

STEPS = 20_000
SWITCHES = ("lowest_position", "phases", "culprits", "hoisting", "bounded", "stuck_rule")


def problems(percent: int) -> list[mp.Problem]:
    """Return the problems, at a share of the capacity that each comes with, or of its load."""
    made = [generators.synthetic(n, seed) for n in range(20, 61, 4) for seed in range(5)]
    made += [generators.perfect_packing(n, seed) for n in (50, 100) for seed in range(3)]
    made += [generators.flat_load(n, seed) for n in (35, 49, 64) for seed in range(3)]
    made += [generators.dense(60, seed) for seed in range(5)]
    return [p.with_capacity((p.capacity or mp.lower_bound(p)) * percent // 100) for p in made]


def count(plan: mp.Plan, name: str) -> int:
    """Return a number of the statistics of a plan."""
    found = plan.stats[name]
    assert isinstance(found, int)
    return found


def main(percent: int) -> None:
    """Print a row for each switch and each strategy."""
    runs: dict[str, dict[str, Any]] = {"all on": {}}
    runs |= {f"{switch} off": {switch: False} for switch in SWITCHES}
    runs |= {f"select={rule}": {"select": rule} for rule in ("size", "area", "lifetime", "lowest")}
    given = problems(percent)
    base: list[mp.Plan] = []
    print(f"| at {percent} % | solved of {len(given)} | steps | backtracks |\n|---|---|---|---|")
    for name, options in runs.items():
        plans = [mp.solve(p, "telamalloc", "fit", nodes=STEPS, **options) for p in given]
        base = base or plans
        pairs = zip(plans, base, strict=True)
        both = [(p, q) for p, q in pairs if p.has_offsets and q.has_offsets]
        steps = [log(count(p, "nodes") / count(q, "nodes")) for p, q in both]
        ratio = exp(sum(steps) / max(1, len(steps)))
        solved = sum(p.has_offsets for p in plans)
        backtracks = sum(count(p, "backtracks") for p in plans)
        print(f"| {name} | {solved} | {ratio:.2f} | {backtracks:,} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
