"""Fixtures that all tests share."""

from __future__ import annotations

import limits
import pytest
from hypothesis import settings

from memplan.problem import Buffer, Problem

# The machines that run the tests are slow and shared; a test says what is right, not how soon.
settings.register_profile("memplan", deadline=None)
settings.load_profile("memplan")

limits.limit_children()
limits.restore_interrupts()


@pytest.fixture
def five() -> Problem:
    """Return the five buffers of source 000 (Figure 2, section A.3.4) and their capacity."""
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
    """Return the offsets of Figure 2 of source 000."""
    return [8, 8, 4, 4, 0]
