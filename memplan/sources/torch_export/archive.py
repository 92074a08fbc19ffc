"""Exported programs in files, read without torch.

`torch.export.load` unpickles parts of an archive, which runs whatever the archive's author wanted.
All that a plan needs is in its graph, which is JSON: sizes, strides, operators with their
arguments. Weights, samples and custom objects stay unread.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memplan.errors import FormatError

__all__ = ["models_in", "read_model"]

MAX_JSON = 1 << 30  # bytes of a graph; the largest that torch writes are some ten megabytes
_OLD_MODEL = "serialized_exported_program.json"  # the layout before torch 2.8

# What `zipfile` raises for archives that are none, or that it cannot unpack.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
)


def models_in(names: Iterable[str]) -> list[str]:
    """Return which files of an archive are graphs."""
    return [
        name
        for name in names
        if name == _OLD_MODEL or ("models/" in name and name.endswith(".json"))
    ]


def read_model(path: Path) -> Mapping[str, Any]:
    """Return the JSON of the one program in an archive.

    Raises
    ------
    FormatError
        If the file is no archive, is damaged, or has no program or several.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            models = models_in(archive.namelist())
            if len(models) != 1:
                raise FormatError(where, _how_many(models, archive.namelist()))
            if archive.getinfo(models[0]).file_size > MAX_JSON:
                raise FormatError(where, f"{models[0]} is larger than 1 GiB")
            text = archive.read(models[0])
    except FormatError:
        raise
    except OSError as error:
        raise FormatError(where, error.strerror or "the archive is damaged") from None
    except _DAMAGED:
        raise FormatError(where, "the archive is damaged, or cut short") from None
    try:
        model = json.loads(text)
    except (ValueError, RecursionError):
        raise FormatError(where, f"{models[0]} is no JSON") from None
    if not isinstance(model, dict):
        raise FormatError(where, f"{models[0]} is no exported program")
    return model


def _how_many(models: list[str], names: Iterable[str]) -> str:
    if models:
        return f"the archive has {len(models)} programs; save one of them alone"
    if any("aotinductor" in name for name in names):
        return "the archive has compiled code and no graph; save the program with torch.export.save"
    return "the archive has no exported program; save one with torch.export.save"
