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

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.programs.sources._limits import PARSED_BYTES, UNPACKED_BYTES, check_growth

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


def read_model(path: Path, limit_factor: int = 1) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the JSON of the one program in an archive, and where its weights lie.

    The second result has a text by the user's name of a weight. It is the same for names of one
    tensor, which modules share. Archives of torch before 2.8 do not say it. An archive that unpacks
    to more than `limit_factor` allows is refused.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            models = list_models(archive.namelist())
            if len(models) != 1:
                raise FormatError(where, _explain_count(models, archive.namelist()))
            text = _unpack(archive, models[0], limit_factor)
            tables = {
                name: _unpack(archive, name, limit_factor)
                for name in _name_tables(models[0])
                if name in archive.namelist()
            }
    except MemplanError:
        raise
    except OSError as error:
        raise FormatError(where, error.strerror or "the archive is damaged") from None
    except _DAMAGED:
        raise FormatError(where, "the archive is damaged, or cut short") from None
    model = _parse(where, models[0], text, limit_factor)
    if not isinstance(model, dict):
        raise FormatError(where, f"{quoted(models[0])} is not an exported program")
    places: dict[str, str] = {}
    for name, table in tables.items():
        places |= _find_places(_parse(where, name, table, limit_factor))
    return model, places


def _name_tables(model: str) -> list[str]:
    """Return the names of the files that say where the weights of a program lie."""
    folder, _, file = model.rpartition("models/")
    name = file.removesuffix(".json")
    return [f"{folder}data/{kind}/{name}_{kind}_config.json" for kind in ("weights", "constants")]


def _parse(where: str, file: str, text: bytes, limit_factor: int) -> Any:
    name = quoted(file)
    check_growth(f"{name}, parsed,", _estimate_parsed(text), PARSED_BYTES, limit_factor, "bytes")
    try:
        return json.loads(text, parse_int=_parse_digits)
    except (ValueError, RecursionError):
        raise FormatError(where, f"{name} is not valid JSON") from None


def _find_places(table: Any) -> dict[str, str]:
    """Return by name of a weight the file of its elements, and which of them are its."""
    rows = table.get("config") if isinstance(table, dict) else None
    found = {}
    for name, row in rows.items() if isinstance(rows, dict) else ():
        meta = row.get("tensor_meta") if isinstance(row, dict) else None
        if isinstance(meta, dict) and isinstance(row.get("path_name"), str):
            device = meta.get("device")
            if isinstance(device, dict) and device.get("type") == "meta":
                continue  # torch writes one file for all weights without elements
            keys = ("dtype", "sizes", "strides", "storage_offset")
            found[name] = json.dumps([row["path_name"], *map(meta.get, keys)], sort_keys=True)
    return found


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
