"""Problems in which sharing costs, from a folder of `dsa.json` files, and what plans of them cost.

The files are those of the repository tonibohnlein/dsa-solver, folder `benchmarks`: captured pools
of tiles, and the problems of MiniMalloc lifted to penalties.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import memplan as mp
from memplan.base.errors import FormatError, MemplanError
from memplan.machine.apart import plan_apart
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Setting,
    Settings,
    Table,
    tell,
)


@dataclass(frozen=True)
class Pool:
    """A memory of a file: its buffers, and what pairs of them cost."""

    problem: mp.Problem
    penalties: dict[tuple[str, str], int]


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


def _list_cases(settings: Settings) -> Iterator[Case]:
    if settings["data"] is None:
        raise MemplanError("name the folder benchmarks of dsa-solver by --data")
    for path in find_files(settings["data"], settings["lifted"]):
        yield Case(path.stem, partial(read_pools, path, settings["unequal"]))


def measure(pools: list[Pool], nodes: int | None) -> dict[str, Any]:
    """Plan all memories of a file; that all fit is asked first."""
    size = {
        "buffers": sum(len(each.problem) for each in pools),
        "pairs": sum(len(each.penalties) for each in pools),
    }
    begun = time.process_time()
    plans = [mp.solve(each.problem, threads=1) for each in pools]
    if any(plan.status is mp.Status.INFEASIBLE for plan in plans):
        seconds = time.process_time() - begun
        none = {"status": "infeasible", "cost": 0, "bound": 0, "plain": 0}
        return {**size, **none, "seconds": seconds}
    found = [plan_apart(each.problem, each.penalties, nodes=nodes) for each in pools]
    seconds = time.process_time() - begun
    proved = all(each.status is mp.Status.OPTIMAL for each in found)
    return {
        **size,
        "status": "optimal" if proved else "feasible",
        "cost": sum(each.cost for each in found),
        "bound": sum(each.bound for each in found),
        "plain": sum(_cost_of(each, plan) for each, plan in zip(found, plans, strict=True)),
        "seconds": seconds,
    }


def _cost_of(found: mp.Apart, plan: mp.Plan) -> int:
    """Return what a plan costs that knows nothing of penalties."""
    return sum(found.penalties[pair] for pair in replace(found, plan=plan).met)


DETAILS = Table(
    "Files",
    (
        Column("file", "{case}"),
        Column("cost", "{cost:,}"),
        Column("bound", "{bound:,}"),
        Column("status", "{status}", left=True),
        Column("without penalties", "{plain:,}"),
        Column("pairs", "{pairs:,}"),
        Column("CPU", "{seconds:.2f} s"),
    ),
)

TABLE = Table(
    "All",
    (
        Column("files", tell("{}", len, "cost")),
        Column("settled", tell("{}", sum, lambda row: row["status"] != "feasible")),
        Column("cost", tell("{:,}", sum, "cost")),
        Column("bound", tell("{:,}", sum, "bound")),
        Column("without penalties", tell("{:,}", sum, "plain")),
        Column("median CPU", tell("{:.2f} ms", median, lambda row: 1000 * row["seconds"])),
        Column("most", tell("{:.2f} s", max, "seconds")),
        Column("sum", tell("{:.1f} s", sum, "seconds")),
    ),
    by=(),
)

EXPERIMENT = Experiment(
    "penalties",
    "what plans cost in which sharing costs, for the folder benchmarks of dsa-solver",
    figures={
        "pairs": "pairs of buffers that cost something if they share addresses",
        "status": "optimal, feasible, or infeasible where nothing fits",
        "cost": "of the plan, and its `bound`",
        "plain": "what plans cost that know nothing of penalties",
        "seconds": "CPU time",
    },
    cases=_list_cases,
    arms=lambda settings: [Arm("memplan", partial(measure, nodes=settings["nodes"]))],
    tables=lambda rows, _: [TABLE],
    details=lambda rows, _: [DETAILS],
    takes=("case", "limit", "data", "nodes"),
    own={
        "lifted": Setting(False, "MiniMalloc's problems, lifted to penalties"),
        "unequal": Setting(False, "pairs cost 1 to 9 in turn, and not what files say"),
    },
)
