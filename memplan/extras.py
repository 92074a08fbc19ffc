"""Libraries that are not always there, each behind an extra of the package."""

from __future__ import annotations

import importlib
from typing import Any

from memplan.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, extra: str, package: str = "memplan") -> Any:
    """Import an optional library.

    Parameters
    ----------
    module
        Its dotted name, as it is imported.
    extra, package
        What installs it: the extra of the package.

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
            f"this needs the library {module.split('.')[0]}: pip install '{package}[{extra}]'"
        ) from None
