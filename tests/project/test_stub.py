"""Tests of `memplan/_core.pyi`: what the type checker believes of the native module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STUB = Path(__file__).parents[2] / "memplan" / "_core.pyi"


def test_the_stub_is_that_of_the_module(tmp_path: Path) -> None:
    """Tests that the committed stub is what nanobind writes for the module that is built."""
    pytest.importorskip("nanobind")
    made = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "memplan._core", "-o", made]
    subprocess.run(command, check=True, capture_output=True)
    assert STUB.read_text() == made.read_text(), (
        "bindings/ has changed: python -m nanobind.stubgen -m memplan._core -o memplan/_core.pyi"
    )
