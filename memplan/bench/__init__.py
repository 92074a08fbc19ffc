"""Benchmarks: suites of problems x solvers and peers -> tables and files.

    from memplan import bench

    rows = bench.run(["synthetic"], ["auto", "omnimalloc"], timeout=5.0)
    bench.report.write(rows, "synthetic.csv")

Rich is imported where something is shown, and extras where they are used.
"""

from memplan.bench import generators, report, suites
from memplan.bench.records import Corpus, Record, corpus
from memplan.bench.rows import Outcome, Row
from memplan.bench.runner import run

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
