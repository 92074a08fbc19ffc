"""tinygrad with memplan's plans, beside the plans of its own allocator.

Each network runs in a process of its own: to be planned, on tinygrad's device that computes
nothing; to be compared, smaller and on the CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from memplan.base.errors import MemplanError
from memplan_lab.bench.tinygrad.models import CHECKED, MODELS

__all__ = ["CHECKED", "HEADINGS", "MODELS", "check", "lines", "measure"]

HEADINGS: Final = (
    *("network", "buffers", "tinygrad", "memplan", "ratio", "bound"),
    *("CPU of its allocator", "CPU of memplan"),
)
_SECONDS: Final = 900.0  # of one network


def measure(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the bytes of both planners, and their CPU times, for each network."""
    for name in names:
        yield _ask(name, "NULL")


def check(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield for each network whether its outputs have the same bits with both planners."""
    for name in names:
        yield _ask(name, "CPU", "check")


def _ask(name: str, device: str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "memplan_lab.bench.tinygrad.child", name, *more]
    environment = {**os.environ, "DEV": device, "CACHELEVEL": "0"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise MemplanError(f"tinygrad did not run {name}: {last[0]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def lines(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a line for each network, and the mean of their ratios."""
    found = [
        (
            row["name"],
            f"{row['buffers']:,}",
            f"{row['host']:,}",
            f"{row['bytes']:,}",
            f"{row['bytes'] / row['host']:.3f}",
            f"{row['bound']:,}",
            f"{1000 * row['host_seconds']:.2f} ms",
            f"{1000 * row['seconds']:.2f} ms",
        )
        for row in rows
    ]
    mean = sum(row["bytes"] / row["host"] for row in rows) / len(rows)
    return [*found, ("mean", "", "", "", f"{mean:.3f}", "", "", "")]
