"""Tests of the slab's C++ without PyTorch: many threads, under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from compilers import require_compiler

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "memplan" / "extensions" / "slab" / "native"
SOURCES = [
    ROOT / "tests" / "native" / "slab_stress.cpp",
    *(NATIVE / name for name in ("pool.cpp", "region.cpp", "slab.cpp", "table.cpp")),
]
COMPILER = os.environ.get("CXX", "c++")
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror"

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_slabs_are_safe_between_threads(sanitizer: str, tmp_path: Path) -> None:
    """Tests that the program of checks runs through, with no report of the sanitizer."""
    program = tmp_path / "slab_stress"
    checked = ["-std=c++17", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-pthread"]
    require_compiler(COMPILER, flags=checked)
    built = subprocess.run(
        [
            *(COMPILER, *checked, "-O1", "-g", *WARNINGS.split()),
            *(f"-I{NATIVE}", *map(str, SOURCES), "-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    run = subprocess.run(_steady([str(program)]), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "all right\n"


def _steady(command: list[str]) -> list[str]:
    """Without random addresses, which ThreadSanitizer cannot always deal with."""
    return ["setarch", "-R", *command] if shutil.which("setarch") else command
