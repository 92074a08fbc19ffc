"""Models that a script of the user makes: `script.py:make_model`."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.base.extras import require
from memplan.base.files import read_bytes

__all__ = ["Script", "make_tensor", "parse_target"]

_MOST = 200  # characters of a script's error that a message repeats
_INPUT = re.compile(r"([0-9]{1,18}(?:x[0-9]{1,18})*)(?::([a-z0-9_]+))?", re.ASCII)


def parse_target(text: str) -> tuple[str, str]:
    """Split `script.py:make_model` into the file and the function."""
    path, _, name = text.rpartition(":")
    if not path or not name.isidentifier():
        raise typer.BadParameter(f"{text!r} is not SCRIPT:FUNCTION, such as net.py:make_model")
    return path, name


class Script:
    """A Python file, run as a module of its own; if it raises, the error has the line that did.

    It imports from its folder, as if Python had been started with it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._full = os.path.abspath(path)
        source = read_bytes(path)
        self._module = ModuleType(f"_script_{Path(path).stem}")
        self._module.__file__ = self._full
        sys.modules[self._module.__name__] = self._module  # dataclasses look their module up
        sys.path.insert(0, os.path.dirname(self._full))
        with self.blame("raises"):
            code = compile(source, self._full, "exec", dont_inherit=True)
            exec(code, self._module.__dict__)

    def model(self, name: str) -> tuple[Any, Any, Any]:
        """Call a function of the script; return its model, its inputs, and what it trains.

        The inputs are `None` if the function returns only a model. The last is the module that a
        training step trains, or `None`.
        """
        make = getattr(self._module, name, None)
        if make is None:
            raise FormatError(self.path, f"the script has no {quoted(name)[1:-1]}")
        if not callable(make):
            raise FormatError(self.path, f"{name} is not a function")
        with self.blame(f"{name}() raises"):
            made = make()
        several = isinstance(made, tuple) and len(made) in (2, 3)
        model, inputs, trains = (*made, None)[:3] if several else (made, None, None)
        if not callable(model):
            kind = type(model).__name__
            raise FormatError(
                self.path,
                f"{name}() returns a {kind}; it must return a model, (model, example_inputs), or "
                "(step, example_inputs, model)",
            )
        return model, inputs, trains

    @contextmanager
    def blame(self, what: str) -> Iterator[None]:
        """Raise one sentence for an error that is raised inside, with the line of the script."""
        try:
            yield
        except MemplanError:
            raise
        except (Exception, SystemExit) as error:
            message = f"{what} {_format_reason(error)}"
            raise FormatError(self.path, message, line=self._line(error)) from None

    def _line(self, error: BaseException) -> int | None:
        """Return the last line of the script that was on the way to an error."""
        if isinstance(error, SyntaxError) and error.filename == self._full:
            return error.lineno
        frames = traceback.extract_tb(error.__traceback__)
        own = (each.lineno for each in reversed(frames) if each.filename == self._full)
        return next(own, None)


def _format_reason(error: BaseException) -> str:
    """Return a script's error as a part of a sentence: one line, not too long."""
    name = type(error).__name__
    first = str(error).strip().split("\n")[0]
    cut = first if len(first) <= _MOST else first[: _MOST - 3] + "..."
    safe = "".join(c if c.isprintable() else " " for c in cut)
    return f"{name}: {safe}" if safe else name


def make_tensor(text: str) -> Any:
    """Make an input for a model: `1x3x224x224`, `1x128:int64`.

    Floats are random, always the same; whole numbers are 0, which is an index of anything.
    """
    torch = require("torch", extra="torch")
    match = _INPUT.fullmatch(text.strip())
    dtype = getattr(torch, match[2] or "float32", None) if match else None
    if match is None or not isinstance(dtype, torch.dtype):
        raise typer.BadParameter(
            f"{text!r} is not SHAPE or SHAPE:DTYPE, such as 1x3x224x224 or 1x128:int64",
            param_hint="'--input'",
        )
    shape = [int(side) for side in match[1].split("x")]
    try:
        if dtype.is_floating_point or dtype.is_complex:
            return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
        return torch.zeros(shape, dtype=dtype)
    except RuntimeError as error:
        raise typer.BadParameter(
            f"{text!r}: {_format_reason(error)}", param_hint="'--input'"
        ) from None
