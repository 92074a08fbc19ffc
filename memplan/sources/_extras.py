"""What all sources share: optional libraries, and errors that name the file."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memplan.errors import FormatError, GraphError, MissingExtraError

__all__ = ["of_file", "require"]


def require(module: str, *, extra: str) -> Any:
    """Import an optional library.

    Raises
    ------
    MissingExtraError
        If it is not there; the sentence names the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and not module.startswith(error.name.split(".")[0]):
            raise
        raise MissingExtraError(
            f"this needs the library {module.split('.')[0]}: pip install 'memplan[{extra}]'"
        ) from None


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Let errors about a graph name the file that it was read from."""
    try:
        yield
    except GraphError as error:
        raise FormatError(str(path), str(error)) from None
