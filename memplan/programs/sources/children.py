"""Runs programs in processes of their own: native code may crash, and then only these end."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["run_child"]

# A program on a machine with other work may take so many times its limit.
_PATIENCE: Final = 10

# Without -P a program would import what is in its own folder, or where the user is. Its limit is
# set before anything is imported; Windows has none.
_START: Final = """
import runpy, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), resource.RLIM_INFINITY))
except (ImportError, ValueError, OSError):
    pass
sys.argv = sys.argv[1:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_child(
    program: Path, order: Mapping[str, Any], timeout: float
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program that reads JSON from standard input; `None` if it takes too long to answer.

    The timeout is in seconds of processor time, rounded up, so that what is found does not depend
    on other work of the machine. A program that waits, or runs on Windows, ends after ten times
    that.
    """
    limit = str(max(1, math.ceil(timeout)))
    try:
        run = subprocess.run(
            [sys.executable, "-P", "-c", _START, str(program), limit],
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=timeout * _PATIENCE,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    too_long = getattr(signal, "SIGXCPU", None)  # Windows has no such signal
    return None if too_long is not None and run.returncode == -too_long else run
