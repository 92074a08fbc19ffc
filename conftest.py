"""Fixtures and marks that the tests of memplan and of its laboratory share."""

from __future__ import annotations

import os
import re
from pathlib import Path

import limits
import pytest
from hypothesis import settings

from memplan.problem import Buffer, Problem
from memplan.problem.plan import Plan, Status

# The machines that run the tests are slow and shared; a test says what is right, not how soon.
# Examples are the same in every run, so that a red test is red again where it is looked at; `pytest
# --hypothesis-profile=random` draws others.
settings.register_profile("memplan", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile("memplan")

# Graphs that rewrites make are right by construction; tests check them nevertheless.
os.environ["MEMPLAN_CHECK_GRAPHS"] = "1"

limits.limit_children()
limits.restore_interrupts()

_WHOLE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(slow|deep)\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer random examples in `make quick`; `make test` tries all of them."""
    if "not slow" in str(config.getoption("markexpr")):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file that is marked as a whole, unread: to import PyTorch takes seconds."""
    left_out = re.findall(r"not (slow|deep)", str(config.getoption("markexpr")))
    if not left_out or collection_path.suffix != ".py":
        return None
    mark = _WHOLE.search(collection_path.read_text(encoding="utf-8"))
    return True if mark and mark[1] in left_out else None


@pytest.fixture
def five() -> Problem:
    """Return the five buffers of MiniMalloc (Figure 2, section A.3.4) and their capacity."""
    return Problem(
        [
            Buffer("b1", start=0, end=3, size=4),
            Buffer("b2", start=3, end=9, size=4),
            Buffer("b3", start=0, end=9, size=4),
            Buffer("b4", start=9, end=21, size=4),
            Buffer("b5", start=0, end=21, size=4),
        ],
        capacity=12,
    )


@pytest.fixture
def five_offsets() -> list[int]:
    """Return the offsets of Figure 2 of MiniMalloc."""
    return [8, 8, 4, 4, 0]


@pytest.fixture
def five_plan(five: Problem, five_offsets: list[int]) -> Plan:
    """Return these offsets as a plan which the solver `s` proved with five nodes."""
    return Plan.of(
        five,
        five_offsets,
        status=Status.OPTIMAL,
        lower_bound=12,
        solver="s",
        stats={"nodes": 5},
    )
