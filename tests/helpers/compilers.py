"""Compilers that are here, each tried with its flags before a test uses it.

A compiler that is installed may lack the runtime of a sanitizer, the C++ library, or libraries of
32 bits; a test asks here for one that has what its flags need.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

__all__ = ["can_build", "list_compilers", "require_compiler"]

_C = "int main(void) { return 0; }\n"
_CPP = "#include <vector>\nint main() { return static_cast<int>(std::vector<int>().size()); }\n"
_MAKES_NO_PROGRAM = {"-c", "-S", "-fsyntax-only", "-shared"}


def list_compilers(*names: str, flags: Sequence[str] = ()) -> list[str]:
    """Return the compilers that work with these flags."""
    return [name for name in names if can_build(name, *flags)]


def require_compiler(*names: str, flags: Sequence[str] = ()) -> str:
    """Return the first compiler that works with these flags; skip the test if none does.

    Parameters
    ----------
    names
        Commands, the best first.
    flags
        All that the test gives them which a machine may lack: standards, sanitizers, libraries.
    """
    for name in names:
        if can_build(name, *flags):
            return name
    what = " ".join(flags) or "plain programs"
    pytest.skip(f"needs a compiler that works with {what}; tried {', '.join(names)}")


@cache
def can_build(compiler: str, *flags: str) -> bool:
    """Return whether a compiler makes a program with these flags, and the program runs.

    One that is named as a compiler of C++ must also find the C++ library. With flags that make no
    program, nothing is run.
    """
    is_cpp = "++" in Path(compiler).name
    with tempfile.TemporaryDirectory() as folder:
        source, program = (
            Path(folder) / name for name in ("probe.cpp" if is_cpp else "probe.c", "probe")
        )
        source.write_text(_CPP if is_cpp else _C)
        command = [compiler, *flags, str(source), "-o", str(program)]
        if not _succeeds(command):
            return False
        return not _MAKES_NO_PROGRAM.isdisjoint(flags) or _succeeds([str(program)])


def _succeeds(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:  # it is not installed, or made for another machine
        return False
