"""A model as onnxruntime runs it in a session with default settings: its operators are fused.

Onnxruntime writes that program itself, with the operators in the order in which it runs them. It is
for this kind of machine: pictures may be in blocks of channels that are as long as its registers.
"""

from __future__ import annotations

import json
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from memplan.base.errors import FormatError, MemplanError
from memplan.programs.sources.children import run_child

__all__ = ["Fused", "fuse"]

_CHILD: Final = Path(__file__).with_name("fused_child.py")
_TIMEOUT: Final = 120.0  # seconds


class Fused(NamedTuple):
    """A model after the optimizations of onnxruntime."""

    data: bytes  # the file that onnxruntime wrote; all weights are in it
    version: str  # the release that wrote it
    block: int  # how many channels are in a block of the layout NCHWc on this machine; 0 without it


def fuse(path: Path) -> Fused:
    """Return a model as a session with default settings runs it on this machine.

    Onnxruntime has to be installed, and to take the model.
    """
    if find_spec("onnxruntime") is None:
        raise MemplanError("a model with fused operators is written by onnxruntime: install it")
    state = path.stat()
    return _fuse(path.absolute(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _fuse(path: Path, _changed: int, _size: int) -> Fused:
    """Return the same; it is kept for as long as the file stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fused.onnx"
        run = run_child(_CHILD, {"path": str(path), "out": str(out)}, _TIMEOUT)
        found = json.loads(run.stdout) if run is not None and run.returncode == 0 else {}
        if "version" in found and out.exists():
            return Fused(out.read_bytes(), found["version"], found["block"])
    why = " ".join(str(found.get("error", "it gave no answer")).split())
    raise FormatError(str(path), f"onnxruntime does not take the model: {why}")
