"""Commands of memplan, run in this process or in one of their own, and what is refused."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memplan import cli

FIVE = """id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
"""


def memplan(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `memplan` in this process, which costs no start of an interpreter."""
    words = [str(word) for word in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(cwd or Path.cwd())
        code = cli.main(words)
    return subprocess.CompletedProcess(words, code, *(_written(stream) for stream in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def memplan_process(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `memplan` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "memplan", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def assert_refused(run: subprocess.CompletedProcess[str], *words: str, code: int = 2) -> None:
    """Assert one sentence on standard error with these words, and nothing else anywhere."""
    assert run.returncode == code, run.stderr
    assert run.stdout == ""
    assert run.stderr.startswith("memplan: ")
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr
    for word in words:
        assert word in run.stderr


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """Return the lines that a command prints, with single spaces; nothing goes to messages."""
    assert cli.main(words) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err == ""
    return [" ".join(line.split()) for line in out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """Return the one sentence of a command that prints no result."""
    assert cli.main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line
