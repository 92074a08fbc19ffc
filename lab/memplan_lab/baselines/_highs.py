"""HiGHS in a process of its own, which reads a program and writes bounds and solutions."""

from __future__ import annotations

import io
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError

__all__ = ["Known", "highs"]

_CHILD: Final = Path(__file__).with_name("_highs_child.py")
_TICK: Final = 0.02  # seconds to wait for the next line


class Known(NamedTuple):
    """What HiGHS reports."""

    bound: float | None  # A lower bound on the objective, up to tolerances; `None` if none is known
    nodes: int  # the nodes of its tree so far
    point: list[float] | None  # the first columns of a new solution, or `None`
    status: str | None  # how it ended; only the last line has a status


@contextmanager
def highs(
    program: Mapping[str, npt.NDArray[np.generic]], options: Mapping[str, object]
) -> Iterator[Iterator[Known | None]]:
    """Run HiGHS while the block runs; end it with the block, also after an exception."""
    request = io.BytesIO()
    np.savez(request, allow_pickle=False, **program, options=np.array(json.dumps(options)))
    with tempfile.TemporaryFile() as complaints:
        # -P keeps files in the child's folder from being imported in place of libraries.
        child = subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        try:
            yield _read_lines(child, request.getvalue(), complaints)
        finally:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def _read_lines(
    child: subprocess.Popen[bytes], request: bytes, complaints: IO[bytes]
) -> Iterator[Known | None]:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_exchange, args=(child, request, lines), daemon=True).start()
    known = None
    while known is None or known.status is None:
        try:
            line = lines.get(timeout=_TICK)
        except queue.Empty:
            yield None
            continue
        if not line:
            complaints.seek(0)
            errors = complaints.read().decode(errors="replace").splitlines()
            reason = errors[-1] if errors else "no word"
            raise MemplanError(f"HiGHS ended without an answer: {reason}")
        known = Known(**json.loads(line))
        yield known


def _exchange(
    child: subprocess.Popen[bytes], request: bytes, lines: queue.SimpleQueue[bytes]
) -> None:
    """Pass the program to the child, then every line of it to the queue, and an empty one last."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(request)
        child.stdin.close()
        for line in child.stdout:
            lines.put(line)
    except (OSError, ValueError):  # the process has ended, or was killed
        pass
    lines.put(b"")
