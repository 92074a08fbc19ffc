"""Problems in which sharing costs, from a folder of `dsa.json` files, and what plans of them cost.

The files are those of the repository tonibohnlein/dsa-solver, folder `benchmarks`: captured pools
of tiles, and the problems of MiniMalloc lifted to penalties.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import memplan as mp
from memplan.base.errors import FormatError, MemplanError

__all__ = ["CostRow", "Pool", "find_files", "measure_file", "read_pools", "summarise_costs"]


@dataclass(frozen=True)
class Pool:
    """A memory of a file: its buffers, and what pairs of them cost."""

    problem: mp.Problem
    penalties: dict[tuple[str, str], int]


@dataclass(frozen=True)
class CostRow:
    """What the plans of a file cost.

    `plain` is what plans cost that know nothing of penalties; `seconds` is CPU time.
    """

    name: str
    buffers: int
    pairs: int
    status: str
    cost: int
    bound: int
    plain: int
    seconds: float

    @property
    def is_settled(self) -> bool:
        """Whether the least cost is proved, or that nothing fits."""
        return self.status in ("optimal", "infeasible")


def find_files(folder: str, lifted: bool) -> list[Path]:
    """Return the files with penalties of a folder: the captured ones, or the lifted ones."""
    root = Path(folder)
    pattern = "minimalloc-dsa-rp/*.json" if lifted else "pypto*/**/*-soft*.json"
    found = sorted(root.glob(pattern))
    if not found:
        raise MemplanError(
            f"{folder} has no files {pattern}; give the folder benchmarks of dsa-solver"
        )
    return found


def read_pools(path: Path, unequal: bool = False) -> list[Pool]:
    """Return the memories of a file that have buffers."""
    try:
        problem: dict[str, Any] = json.loads(path.read_text())["problem"]
        return [
            _read_pool(problem, pool, unequal)
            for pool in problem["pools"]
            if any(each["allowed_pools"][0] == pool["id"] for each in problem["buffers"])
        ]
    except (KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
        raise FormatError(str(path), f"it is no dsa.json: {error!r}") from None


def _read_pool(problem: dict[str, Any], pool: dict[str, Any], unequal: bool) -> Pool:
    rows = [each for each in problem["buffers"] if each["allowed_pools"][0] == pool["id"]]
    lives = {
        str(each["id"]): (each["live_intervals"][0]["lower"], each["live_intervals"][0]["upper"])
        for each in rows
    }

    def live_together(a: str, b: str) -> bool:
        return bool(lives[a][0] < lives[b][1] and lives[b][0] < lives[a][1])

    apart = {
        tuple(sorted((str(each["first"]), str(each["second"]))))
        for each in problem["constraints"].get("separations", [])
    }
    apart = {pair for pair in apart if all(id in lives for id in pair)}
    penalties: dict[tuple[str, str], int] = {}
    for each in (problem.get("cost_model") or {}).get("reuse_penalties", []):
        a, b = sorted((str(each["first"]), str(each["second"])))
        if a in lives and b in lives and (a, b) not in apart and not live_together(a, b):
            penalties[a, b] = penalties.get((a, b), 0) + each["cost"]
    if unequal:
        penalties = {pair: 1 + at * 7 % 9 for at, pair in enumerate(sorted(penalties))}
    capacity = pool["capacity"]
    if capacity is None:
        capacity = sum(each["size"] + each["alignment"] for each in rows)
    return Pool(
        mp.Problem(
            [
                mp.Buffer(str(each["id"]), *lives[str(each["id"])], each["size"], each["alignment"])
                for each in rows
            ],
            capacity=capacity,
            reserved=[mp.Reserved(each["begin"], each["end"]) for each in pool["reserved_ranges"]],
            conflicts=[(a, b) for a, b in apart if not live_together(a, b)],
        ),
        penalties,
    )


def measure_file(path: Path, nodes: int | None, unequal: bool = False) -> CostRow:
    """Plan all memories of a file; that all fit is asked first."""
    pools = read_pools(path, unequal)
    buffers, pairs = sum(len(each.problem) for each in pools), sum(len(p.penalties) for p in pools)
    begun = time.process_time()
    plans = [mp.solve(each.problem, threads=1) for each in pools]
    if any(plan.status is mp.Status.INFEASIBLE for plan in plans):
        used = time.process_time() - begun
        return CostRow(path.stem, buffers, pairs, "infeasible", 0, 0, 0, used)
    found = [mp.plan_apart(each.problem, each.penalties, nodes=nodes) for each in pools]
    seconds = time.process_time() - begun
    proved = all(each.status is mp.Status.OPTIMAL for each in found)
    return CostRow(
        path.stem,
        buffers,
        pairs,
        "optimal" if proved else "feasible",
        sum(each.cost for each in found),
        sum(each.bound for each in found),
        sum(_cost_of(each, plan) for each, plan in zip(found, plans, strict=True)),
        seconds,
    )


def _cost_of(found: mp.Apart, plan: mp.Plan) -> int:
    """Return what a plan costs that knows nothing of penalties."""
    return sum(found.penalties[pair] for pair in replace(found, plan=plan).met)


def summarise_costs(rows: list[CostRow]) -> Iterator[tuple[str, str]]:
    """Yield facts about all files: a label and a value each."""
    seconds = sorted(row.seconds for row in rows)
    settled = sum(row.is_settled for row in rows)
    yield "settled", f"{settled} of {len(rows)}"
    yield "total", f"{sum(row.cost for row in rows):,}"
    yield "bound", f"{sum(row.bound for row in rows):,}"
    yield "without penalties", f"{sum(row.plain for row in rows):,}"
    median, top = statistics.median(seconds), seconds[-1]
    yield "CPU", f"median {median * 1000:.2f} ms, most {top:.2f} s, sum {sum(seconds):.1f} s"
