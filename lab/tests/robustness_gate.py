"""What `auto` reaches on a sample of the generated suites; as a program it writes the table again.

A limit is a number of nodes, so that the table is the same on any machine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from memplan.problem.plan import Status
from memplan.solvers import solve
from memplan_lab.bench.generators import FAMILIES
from memplan_lab.bench.suites import Case, Options, cases

TABLE = Path(__file__).with_suffix(".csv")
_NODES = 50_000
_NODES_A_BUFFER = 100
_LARGE = ("caches", "alignments", "reserved", "pinned", "groups")  # the hard ones at 10 000
_SMALL = {"perfect": (300, 500), "dense": (60,), "flat-load": (49, 64)}


def sample() -> Iterator[Case]:
    """Yield the cases: each family at 500 and 2 000 buffers, some at 10 000, and small proofs."""
    for family in FAMILIES:
        sizes = (500, 2_000, 10_000) if family in _LARGE else (500, 2_000)
        yield from cases(f"robustness-{family}", Options(sizes=sizes, seeds=1))
    yield from cases("robustness-tight", Options(sizes=(500, 2_000), seeds=1))
    for suite, small in _SMALL.items():
        yield from cases(suite, Options(sizes=small, seeds=2))


def name(case: Case) -> str:
    """Return what the table calls a case."""
    return f"{case.suite}/{case.name}"


def measure(case: Case) -> tuple[int, float]:
    """Return the nodes of the proof, the limit where there is none, and the peak over a bound."""
    problem = case.make().with_capacity(None)
    limit = max(_NODES, _NODES_A_BUFFER * len(problem))
    plan = solve(problem, nodes=limit, threads=1)
    assert plan.peak is not None
    nodes = plan.stats["nodes"] if plan.status is Status.OPTIMAL else limit
    assert isinstance(nodes, int)
    return nodes, plan.peak / max(problem.max_load, case.bound())


def read() -> dict[str, tuple[int, float]]:
    """Return nodes and ratio of each case of the table."""
    with TABLE.open(newline="") as file:
        return {
            row["case"]: (int(row["nodes"]), float(row["ratio"])) for row in csv.DictReader(file)
        }


def main() -> None:
    """Measure the sample, write the table, and print each line that changed."""
    before = read() if TABLE.exists() else {}
    with TABLE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("case", "nodes", "ratio"))
        for case in sample():
            nodes, ratio = measure(case)
            ratio = -(-ratio * 1e6 // 1) / 1e6  # rounded up, so that it holds
            rows.writerow((name(case), nodes, ratio))
            if before.get(name(case)) != (nodes, ratio):
                print(f"{name(case)}: {before.get(name(case), 'new')} -> {nodes} nodes, {ratio}")


if __name__ == "__main__":
    main()
