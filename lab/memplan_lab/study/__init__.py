"""Studies: results of sweeps and benchmarks -> the papers' figures and tables over open data.

    from memplan_lab import study

    study.write(study.read(["results"]), "study")

All steps are pure functions: rows become tables and charts (`quality`, `curves`, `papers`,
`ablations`, `backtracks`), these become sections, and sections become pages. Drawing needs the
extra `plot`, and reading Parquet the extra `sweep`.
"""

from memplan_lab.study.folder import check, write
from memplan_lab.study.results import Results, Run, read

__all__ = ["Results", "Run", "check", "read", "write"]
