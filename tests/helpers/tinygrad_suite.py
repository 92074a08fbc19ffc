"""Runs files of tinygrad's own tests in a process of its own; prints each test's outcome as JSON.

Its arguments are `stock` or `memplan`, for what plans, and the files.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import Any

import pytest

from memplan.extensions.tinygrad import planning


class Outcomes:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the outcome of the call, or of a setup that skips or fails."""
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid] = report.outcome


outcomes = Outcomes()
who, *files = sys.argv[1:]
with planning() if who == "memplan" else nullcontext() as planned:  # before a test imports a name
    pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[outcomes])
print()
print(
    json.dumps(
        {
            "outcomes": outcomes.of,
            "arenas": sum(map(len, planned.calls)) if planned else 0,
            "notes": [str(note) for note in planned.notes] if planned else [],
        }
    )
)
