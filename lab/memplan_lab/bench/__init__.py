"""Benchmarks: suites of problems x solvers and peers -> tables and files.

    from memplan_lab import bench

    rows = bench.run(["synthetic"], ["auto", "omnimalloc"], timeout=5.0)
    bench.report.write(rows, "synthetic.csv")

Rich is imported where something is shown, and extras where they are used.
"""

from memplan_lab.bench import generators, report, suites
from memplan_lab.bench.records import Corpus, Record, corpus
from memplan_lab.bench.rows import Outcome, Row
from memplan_lab.bench.runner import run

__all__ = [
    "Corpus",
    "Outcome",
    "Record",
    "Row",
    "corpus",
    "generators",
    "report",
    "run",
    "suites",
]
