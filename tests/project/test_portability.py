"""Tests that the package does without what only POSIX systems have, and with one interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Programs of their own, which run where their runtime does: on Linux and macOS.
CHILDREN = {"memplan.runtimes.tflm._arena_child"}

# Our dependencies look at the system themselves, so they are loaded before it lacks anything.
_WITHOUT_POSIX = """
import importlib, os, pkgutil, signal, sys
import numpy, rich.console, typer, typer.main, subprocess, tempfile

for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("fork", "getpgid", "getuid", "killpg", "mkfifo", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGKILL", "SIGPIPE", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)

import memplan

children = set(sys.argv[2].split())
for module in pkgutil.walk_packages(memplan.__path__, "memplan."):
    if module.name in children or module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name in sys.modules or error.name.startswith("memplan"):
            raise  # not a library of an extra

from memplan.cli import main

sys.argv[1:] = ["plan", sys.argv[1], "--capacity", "12"]
main()
"""


@pytest.mark.slow
def test_the_package_needs_nothing_of_posix() -> None:
    """Tests imports of all modules, and a plan, where modules and functions are as on Windows."""
    command = [sys.executable, "-c", _WITHOUT_POSIX, str(ROOT / "examples" / "five.csv")]
    run = subprocess.run(
        [*command, " ".join(CHILDREN)], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert "peak          12 bytes" in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_results_can_be_printed_in_any_encoding(encoding: str) -> None:
    """Tests pipes of systems that are not UTF-8: no character may end the program."""
    for words in (
        ["plan", "examples/models/mobile.tflite"],
        ["inspect", "examples/models/residual.graph.json"],
        ["inspect", "examples/five.csv", "--capacity", "11"],
        ["view", "examples/five.csv"],
        ["--help"],
    ):
        run = subprocess.run(
            [sys.executable, "-m", "memplan", *words],
            check=False,
            capture_output=True,
            cwd=ROOT,
            env={"PYTHONIOENCODING": encoding, "PATH": ""},
        )
        assert run.returncode == 0, (words, run.stderr)
        assert run.stdout.decode(encoding)


_IN_A_SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = getattr(interpreters, "exec", None) or interpreters.run_string
if "first" in sys.argv:
    from memplan import solve
for _ in range(2):
    run(interpreters.create(), '''
import memplan
try:
    memplan.solve
except ImportError as error:
    print(error, flush=True)
''')
import memplan
print(memplan.solve([memplan.Buffer("a", 0, 1, 4)]).peak, "bytes")
"""


@pytest.mark.parametrize("order", ["first", "last"])
def test_a_sub_interpreter_is_refused(order: str) -> None:
    """Tests one sentence for each, and that the main interpreter works before and after it."""
    command = [sys.executable, "-c", _IN_A_SUB_INTERPRETER, order]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    *refused, solved = run.stdout.splitlines()
    assert len(refused) == 2
    assert all("interpreter" in sentence for sentence in refused)
    assert solved == "4 bytes"
    assert run.stderr == ""


def test_what_lives_until_the_end_is_no_alarm() -> None:
    """Tests that a plan which the interpreter does not free before it ends prints nothing."""
    program = """
import ctypes, memplan
plan = memplan.solve([memplan.Buffer("a", 0, 1, 4)])
ctypes.pythonapi.Py_IncRef(ctypes.py_object(plan.offsets))
"""
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
