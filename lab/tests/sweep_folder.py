"""A folder of results as a sweep leaves it, without the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from memplan_lab.sweep import Result, Settings
from memplan_lab.sweep.dataset import Dataset

SESSION: Mapping[str, object] = {
    "started": "2026-01-01T00:00:00+00:00",
    "command": ["/usr/local/bin/memplan-lab", "sweep", "--suite", "corpus"],
    "scheduler": "local",
    "versions": {"numpy": "2.0", "strange": None},
    "machine": {
        "host": "secret",
        "cpu": "A CPU",
        "cores": 2,
        "system": "Linux 6 x86_64",
        "python": "3.11.1",
    },
    "workers": {},
}
RESULT = Result(
    key="0" * 32,
    suite="corpus",
    instance="net",
    fingerprint="sha256:1",
    n=12,
    max_load=90,
    solver="auto",
    options="",
    objective="min_peak",
    capacity_ratio=None,
    capacity_base=None,
    capacity=None,
    timeout=2.0,
    node_limit=None,
    seed=0,
    repeat=0,
    status="optimal",
    peak=100,
    lower_bound=100,
    nodes=7,
    backtracks=None,
    restarts=0,
    wall_s=0.02,
    cpu_s=0.01,
    runs=3,
    first_cpu_s=0.02,
    solve_s=0.07,
    peak_rss_mib=20.0,
    verified=True,
    error="",
    attempt=1,
    worker="",
    started=datetime(2026, 1, 1, tzinfo=UTC),
)


def write_sweep(folder: Path, *results: Result) -> Path:
    """Write a folder as a sweep leaves it, with these rows; return it."""
    settings = Settings(suites=["corpus"], solvers=["auto"], timeout=2.0)
    with Dataset(folder, settings, len(results)) as dataset:
        dataset.begin(SESSION)
        for at, result in enumerate(results):
            dataset.add(replace(result, key=f"{at:032x}"))
    return folder
