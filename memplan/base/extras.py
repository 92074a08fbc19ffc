"""Libraries that are not always there, each behind an extra of the package."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Final

from memplan.base.errors import MissingExtraError, listed

__all__ = ["check", "is_installed", "require"]

_LIBRARIES: Final = {
    "executorch": ("executorch",),
    "onnx": ("onnx",),
    "plot": ("matplotlib",),
    "tflm": ("tflite_micro", "flatbuffers"),
    "tinygrad": ("tinygrad",),
    "torch": ("torch",),
    "view": ("bokeh",),
    "xla": ("google.protobuf",),
}


def check(*extras: str) -> None:
    """Refuse work that needs libraries which are not there, before it begins; none is imported.

    The `MissingExtraError` names all that are missing, and the extras to install.
    """
    missing = {
        library: extra
        for extra in extras
        for library in _LIBRARIES[extra]
        if not is_installed(library)
    }
    if missing:
        what = "the library" if len(missing) == 1 else "the libraries"
        needed = ",".join(dict.fromkeys(missing.values()))
        raise MissingExtraError(
            f"this needs {what} {listed(list(missing), quote=False)}: "
            f"pip install 'memplan[{needed}]'"
        )


def is_installed(library: str) -> bool:
    """Return whether a library is there, without importing it."""
    try:
        return find_spec(library) is not None
    except (ModuleNotFoundError, ValueError):  # the package around it is missing
        return False


def require(module: str, *, extra: str, package: str = "memplan") -> Any:
    """Import an optional library; the `MissingExtraError` names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and not module.startswith(error.name.split(".")[0]):
            raise
        raise MissingExtraError(
            f"this needs the library {module.split('.')[0]}: pip install '{package}[{extra}]'"
        ) from None
