"""Tests of `memplan/_*.pyi`: what the type checker believes of the native modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[2] / "memplan"


@pytest.mark.parametrize("name", ["_core", "_published"])
def test_the_stub_is_that_of_the_module(name: str, tmp_path: Path) -> None:
    """Tests that the committed stub is what nanobind writes for the module that is built."""
    pytest.importorskip("nanobind")
    made = tmp_path / f"{name}.pyi"
    module = f"memplan.{name}"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", module, "-o", made]
    subprocess.run(command, check=True, capture_output=True)
    assert (PACKAGE / made.name).read_text() == made.read_text(), (
        f"bindings/ has changed: python -m nanobind.stubgen -m {module} -o memplan/{name}.pyi"
    )
