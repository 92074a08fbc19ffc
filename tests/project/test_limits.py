"""Tests of the limits that keep a test from hanging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import limits
import pytest

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a child without a limit of its own is killed after the patience of all tests."""
    monkeypatch.setattr(limits, "PATIENCE", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(SLEEPER, capture_output=True)
    with pytest.raises(subprocess.TimeoutExpired), subprocess.Popen(SLEEPER) as child:
        child.wait()
    assert child.wait(10) != 0


def test_a_limit_of_its_own_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a test may wait for longer, or not as long."""
    monkeypatch.setattr(limits, "PATIENCE", 0.0)
    done = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, timeout=60)
    assert done.stdout.split() == [b"1"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(SLEEPER, timeout=0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_background_job_is_interrupted() -> None:
    """Tests that SIGINT ends a child of a process that was begun with SIGINT ignored."""
    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    program = (
        "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        f"sys.path.insert(0, {str(Path(limits.__file__).parent)!r}); import limits; "
        "limits.restore_interrupts(); "
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
