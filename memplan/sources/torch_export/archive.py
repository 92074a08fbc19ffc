"""Reads exported programs in files without torch.

`torch.export.load` unpickles parts of an archive, and that can run any code of the archive's
author. A plan needs only the graph, which is JSON: sizes, strides, operators with their arguments.
Weights, samples and custom objects stay unread.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memplan.errors import FormatError, MemplanError, quoted
from memplan.sources._limits import PARSED_BYTES, UNPACKED_BYTES, check_growth

__all__ = ["list_models", "read_model"]

_MOST_DIGITS = 40  # of a number; an address has half as many
_CHUNK = 1 << 20  # bytes that are unpacked at a time
# Torch stores files, and other tools deflate them. `zipfile` has no limit for other methods.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OLD_MODEL = "serialized_exported_program.json"  # the layout before torch 2.8

# `zipfile` raises these for files that are no archives, or that it cannot unpack.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
)


def list_models(names: Iterable[str]) -> list[str]:
    """Return the names of the files in an archive that are graphs."""
    return [
        name
        for name in names
        if name == _OLD_MODEL or ("models/" in name and name.endswith(".json"))
    ]


def read_model(path: Path, limit_factor: int = 1) -> Mapping[str, Any]:
    """Return the JSON of the one program in an archive.

    Raises
    ------
    FormatError
        If the file is no archive, is damaged, or has no program or several.
    GraphError
        If it unpacks to more than `limit_factor` allows.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            models = list_models(archive.namelist())
            if len(models) != 1:
                raise FormatError(where, _explain_count(models, archive.namelist()))
            text = _unpack(archive, models[0], limit_factor)
    except MemplanError:
        raise
    except OSError as error:
        raise FormatError(where, error.strerror or "the archive is damaged") from None
    except _DAMAGED:
        raise FormatError(where, "the archive is damaged, or cut short") from None
    name = quoted(models[0])
    check_growth(f"{name}, parsed,", _estimate_parsed(text), PARSED_BYTES, limit_factor, "bytes")
    try:
        model = json.loads(text, parse_int=_parse_digits)
    except (ValueError, RecursionError):
        raise FormatError(where, f"{name} is not valid JSON") from None
    if not isinstance(model, dict):
        raise FormatError(where, f"{name} is not an exported program")
    return model


def _unpack(archive: zipfile.ZipFile, name: str, limit_factor: int) -> bytes:
    """Return a file of an archive, unpacked in pieces, as the archive may be hostile."""
    info = archive.getinfo(name)
    if info.compress_type not in _METHODS:
        raise NotImplementedError
    what = f"{quoted(name)}, unpacked,"
    check_growth(what, info.file_size, UNPACKED_BYTES, limit_factor, "bytes")
    text = bytearray()
    with archive.open(info) as file:
        while chunk := file.read(_CHUNK):
            text += chunk
    return bytes(text)


def _parse_digits(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError
    return int(digits)


def _estimate_parsed(text: bytes) -> int:
    """Return the most that the objects of a JSON text can take, without parsing it."""
    counted = ((b"{", 240), (b"[", 96), (b",", 72), (b":", 72))
    objects = sum(text.count(mark) * each for mark, each in counted)
    # Python stores a letter in one byte if all are ASCII, and in up to four otherwise.
    return objects + len(text) * (1 if text.isascii() else 4)


def _explain_count(models: list[str], names: Iterable[str]) -> str:
    if models:
        return f"the archive has {len(models)} programs; save each in a file of its own"
    if any("aotinductor" in name for name in names):
        return "the archive has compiled code and no graph; save the program with torch.export.save"
    return "the archive has no exported program; save one with torch.export.save"
