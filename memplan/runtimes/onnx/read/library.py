"""Calls of the compiled code of the library onnx, in a process of its own.

That code asserts what it expects of a file: a convolution whose kernel is larger than its input,
before a Slice, ends the process. A server that plans files of others must not end with it. The
process starts with the first model and answers until this one ends; it is started again where a
file has ended it.
"""

from __future__ import annotations

import atexit
import marshal
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

from memplan.base.extras import require
from memplan.runtimes.onnx.read import library_child as child

__all__ = ["CrashError", "LibraryError", "infer_node", "infer_shapes", "inline", "start"]

_EXTENSION: Final = "onnx_cpp2py_export"


class LibraryError(Exception):
    """The library says that a model is wrong."""


class CrashError(Exception):
    """The library fails on a model; the text says how, after "the library onnx ".

    `is_slow` says that it did not finish in time.
    """

    def __init__(self, how: str, *, is_slow: bool = False) -> None:
        super().__init__(how)
        self.is_slow = is_slow


def infer_shapes(model: Any, *, strict: bool, follow_data: bool) -> Any:
    """Return a model with the shapes that follow from its inputs.

    A `LibraryError` says that the shapes contradict each other, a `CrashError` that the library
    fails.
    """
    (found,) = _call("infer_shapes", model.SerializeToString(), strict, follow_data)
    return require("onnx", extra="onnx").ModelProto.FromString(found)


def infer_node(
    node: Any,
    opsets: Mapping[str, int],
    types: Mapping[str, Any],
    data: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the types of what an operator without sub-graphs makes; raises as `infer_shapes`.

    Opsets are the versions of the domains; types, and the values that are known, are by name.
    """
    domain = "" if node.domain == "ai.onnx" else node.domain
    onnx = require("onnx", extra="onnx")
    found = _call(
        "infer_node",
        (node.op_type, opsets.get(domain, 1), domain),
        node.SerializeToString(),
        {name: one.SerializeToString() for name, one in types.items()},
        {name: one.SerializeToString() for name, one in data.items()},
        dict(opsets),
        onnx.IR_VERSION,
    )
    names = (name.decode(errors="replace") for name in found[::2])
    return {
        name: onnx.TypeProto.FromString(one) for name, one in zip(names, found[1::2], strict=True)
    }


def inline(model: Any) -> Any:
    """Return a model in which each call of a function of its own is replaced by its operators.

    Raises as `infer_shapes`.
    """
    (found,) = _call("inline", model.SerializeToString())
    return require("onnx", extra="onnx").ModelProto.FromString(found)


def start() -> None:
    """Start the process, so that it is ready when the file has been read."""
    with _state.lock:
        if _state.worker is None:
            _state.worker = _Worker.start()


class _Worker:
    """The process, or this one where there can be no other."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process
        self._is_new = True

    @staticmethod
    def start() -> _Worker:
        path = _find_extension()
        if path is None or not _can_start():
            return _Worker(None)
        command = [sys.executable, "-I", "-S", str(Path(child.__file__)), path]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process alone
        )
        return _Worker(process)

    def ask(self, function: str, given: Sequence[Any]) -> list[bytes]:
        """Return what a function returns; raises as it does, and `EOFError` if the process ends."""
        if self._process is None:
            return _ask_here(function, given)
        try:
            if self._is_new:
                self._read_answer()
                self._is_new = False
            message = marshal.dumps((function, *given))
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # it ended: the end of its answers says so
                self._process.stdin.write(struct.pack("<Q", len(message)) + message)
                self._process.stdin.flush()
            state, parts = self._read_answer()
        except EOFError:
            if not self._is_new:
                raise
            self._process = None  # it does not start on this system
            return self.ask(function, given)
        if state == child.FAILED:
            raise LibraryError(parts[0].decode(errors="replace"))
        return parts

    def _read_answer(self) -> tuple[bytes, list[bytes]]:
        state, (count,) = self._read(1), struct.unpack("<Q", self._read(8))
        return state, [self._read(*struct.unpack("<Q", self._read(8))) for _ in range(count)]

    def _read(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        found = self._process.stdout.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def end(self, *, kill: bool = False) -> int:
        """End the process; return its exit code."""
        if self._process is None:
            return 0
        if kill:
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            return self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class _State:
    """The process that this one has started, if any, and those of processes before a fork."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.worker: _Worker | None = None
        self.others: list[_Worker | None] = []

    def forget(self) -> None:
        """After a fork: the process answers the parent alone."""
        self.lock = Lock()
        self.others.append(self.worker)
        self.worker = None


_state = _State()


def _call(function: str, *given: Any) -> list[bytes]:
    with _state.lock:
        if _state.worker is None:
            _state.worker = _Worker.start()
        try:
            return _state.worker.ask(function, given)
        except LibraryError:
            raise
        except EOFError:
            raise _explain_end(_end()) from None
        except BaseException:  # as Ctrl-C: an answer may be left in the pipe
            _end(kill=True)
            raise


def _end(*, kill: bool = False) -> int:
    worker, _state.worker = _state.worker, None
    return 0 if worker is None else worker.end(kill=kill)


def _explain_end(code: int) -> CrashError:
    if code == -getattr(signal, "SIGXCPU", 0):
        return CrashError("does not finish", is_slow=True)
    return CrashError("needs too much memory" if code == 1 else "fails")


def _ask_here(function: str, given: Sequence[Any]) -> list[bytes]:
    library = require(f"onnx.{_EXTENSION}", extra="onnx")
    try:
        return child.FUNCTIONS[function](library, *given)
    except MemoryError:
        raise CrashError("needs too much memory") from None
    except Exception as error:  # the native library raises types of its own, and bare ones
        raise LibraryError(str(error)) from None


def _find_extension() -> str | None:
    """Return the path of the compiled code, without an import of the library."""
    package = find_spec("onnx")
    places = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec(_EXTENSION, places) if places else None
    return None if spec is None else spec.origin


def _can_start() -> bool:
    """Whether `sys.executable` is an interpreter, which it is not where Python is embedded."""
    name = Path(sys.executable or "").stem.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)
