"""Runs programs in processes of their own: native code may crash, and then only these end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["run_child"]


def run_child(
    program: Path, order: Mapping[str, Any], timeout: float
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program that reads JSON from standard input; `None` if it takes too long to answer."""
    try:
        return subprocess.run(
            # Without -P it would import what is in its own folder, or where the user is.
            [sys.executable, "-P", str(program)],
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
