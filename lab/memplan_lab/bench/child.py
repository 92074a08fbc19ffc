"""A process that answers one request: JSON on its standard input, JSON on its last line of output.

Each measurement runs in a process of its own: its memory and its crashes do not affect others, and
it can be killed if it hangs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from memplan.base.errors import MemplanError
from memplan_lab.bench.rows import last_line


class ChildError(MemplanError):
    """A process ended without an answer; the sentence says how."""

    def __init__(self, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


def ask(
    command: Sequence[str],
    request: Mapping[str, Any],
    *,
    timeout: float | None,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Return what a process answers; after `timeout` seconds it and its children are killed."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all that it starts can be killed with it
        env=os.environ | environment,
    )
    try:
        output, errors = child.communicate(json.dumps(request), timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(child)
        raise ChildError(
            f"it was killed after {timeout:.0f} s, long after its timeout", killed=True
        ) from None
    except BaseException:
        _kill(child)
        raise
    if child.returncode != 0:
        raise ChildError(f"{describe_end(child.returncode)}: {last_line(errors)}")
    try:
        answer = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        answer = None
    if not isinstance(answer, dict):
        raise ChildError(f"the process gave no answer; its last line is: {last_line(output)}")
    return answer


def _kill(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def describe_end(code: int) -> str:
    """Return in words how a process ended, by its exit code, or minus the signal."""
    if code >= 0:
        return f"the process ended with code {code}"
    return f"the process crashed with {signal.Signals(-code).name}"
