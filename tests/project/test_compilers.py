"""Tests that a compiler is tried with its flags before a test uses it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import compilers
import pytest

ROOT = Path(__file__).parents[2]
ASKED = re.compile(r"which\(\s*(\"[^\"]*\"|[\w.]+)")
OTHERS = {"bash", "chromedriver", "chromium", "cmake", "perf", "setarch", "xxd"}

# What a machine may lack beside the compiler itself, as its driver fails then.
LACKS = ["-fsanitize=address,undefined", "-fsanitize=thread", "-m32", "-lstdc++", "c++"]


@pytest.mark.parametrize("lacks", LACKS)
def test_a_compiler_that_lacks_something_is_not_used(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a compiler that is there, and fails with some flags only."""
    real = compilers.require_compiler("gcc", "clang")
    bare = tmp_path / "bare"
    bare.write_text(
        f'#!/bin/sh\nfor each in "$@"; do [ "$each" = "{lacks}" ] && exit 1; done\n'
        f'exec {shutil.which(real)} "$@"\n'
    )
    bare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    flags = ["-x", "c++"] if lacks == "c++" else [lacks]
    assert compilers.can_build("bare")
    assert not compilers.can_build("bare", *flags)
    assert compilers.list_compilers("bare", "missing", flags=flags) == []
    assert compilers.require_compiler("missing", "bare") == "bare"
    with pytest.raises(pytest.skip.Exception, match=r"tried bare, missing"):
        compilers.require_compiler("bare", "missing", flags=flags)


def test_a_program_that_does_not_run_here_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a compiler for another machine: what it links does not run."""
    other = tmp_path / "other"
    other.write_text('#!/bin/sh\nfor each in "$@"; do out=$each; done\necho none > "$out"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert not compilers.can_build("other")
    assert compilers.can_build("other", "-fsyntax-only")


def test_no_test_takes_a_compiler_untried() -> None:
    """Tests that a program that a test looks for itself is no compiler."""
    folders = (ROOT / "tests", ROOT / "lab" / "tests", ROOT / "examples")
    files = {path for folder in folders for path in folder.rglob("*.py")} - {Path(__file__)}
    assert len(files) > 200
    asked = {path: ASKED.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {path for path in asked if {each.strip('"') for each in asked[path]} - OTHERS} == set()
    assert sum(map(len, asked.values())) > 3
