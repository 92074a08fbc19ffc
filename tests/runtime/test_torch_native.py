"""Tests of the slab's C++ without PyTorch: many threads, under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "memplan" / "runtime" / "torch" / "native"
SOURCES = [
    ROOT / "tests" / "native" / "slab_stress.cpp",
    *(NATIVE / name for name in ("pool.cpp", "region.cpp", "slab.cpp", "table.cpp")),
]
COMPILER = os.environ.get("CXX", "c++")
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror"

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C++ compiler"),
]


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_slabs_are_safe_between_threads(sanitizer: str, tmp_path: Path) -> None:
    """Tests that the program of checks runs through, with no report of the sanitizer."""
    program = tmp_path / "slab_stress"
    built = subprocess.run(
        [
            *(COMPILER, "-std=c++17", "-O1", "-g", f"-fsanitize={sanitizer}"),
            *("-fno-sanitize-recover=all", *WARNINGS.split(), "-pthread"),
            *(f"-I{NATIVE}", *map(str, SOURCES), "-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot find" in built.stderr:
        pytest.skip(f"there is no runtime library for -fsanitize={sanitizer}")
    assert built.returncode == 0, built.stderr
    run = subprocess.run(_steady([str(program)]), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "all right\n"


def _steady(command: list[str]) -> list[str]:
    """Without random addresses, which ThreadSanitizer cannot always deal with."""
    return ["setarch", "-R", *command] if shutil.which("setarch") else command
