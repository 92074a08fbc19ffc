"""Finds the place in the user's code that an operator comes from, in metadata of frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["line_at", "line_in", "module_path"]

# Tracebacks of Python: File "/home/me/model.py", line 41, in forward
_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d{1,9})', re.MULTILINE)
# Tracebacks of TorchScript: /home/me/model.py(41): forward
# PyTorch as it is installed, or built from its sources; a folder of the user may be called torch.
_FRAMEWORK = re.compile(r"(^|/(site-packages|dist-packages|pytorch)/)torch/")
_SCRIPT_FRAME = re.compile(r"^ *([^\n()]+\.py)\((\d{1,9})\): ", re.MULTILINE)


def line_at(file: str, line: int) -> str:
    """Format a place as `model.py:41`; empty if there is none."""
    name = file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{line}" if name and line > 0 else ""


def line_in(stack: object) -> str:
    """Return the innermost line of a stack that is in the user's code, not the framework's.

    The stack is a text, outermost first as Python writes it, or innermost first as TorchScript
    does. Anything else has no line.
    """
    if not isinstance(stack, str):
        return ""
    frames = _FRAME.findall(stack)[::-1] or _SCRIPT_FRAME.findall(stack)
    own = (frame for frame in frames if not _FRAMEWORK.search(frame[0].replace("\\", "/")))
    file, line = next(own, frames[0] if frames else ("", "0"))
    return line_at(file, int(line))


def module_path(scopes: Iterable[str]) -> str:
    """Return the path of the module in nested scopes, as `layer1.0.conv`.

    A scope may begin with the path to it: "layer1", "layer1.0" and "conv" give the same path.
    """
    path = ""
    for scope in scopes:
        if not path or scope == path or scope.startswith(f"{path}."):
            path = scope
        elif scope:
            path += f".{scope}"
    return path
