"""Inputs that are no files on disk: `-`, `/dev/stdin`, `<(command)`.

The first bytes of a file say whether it is a model or a problem, and some commands read their input
twice. An input that can be read only once is kept in a temporary file until the command ends.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import BinaryIO

import typer

from memplan.base.errors import FormatError
from memplan.base.files import reading
from memplan.cli import output

__all__ = ["is_copy", "keep", "keep_each"]

MOST_BYTES = 256 << 20  # only copies have this limit: a file on disk may be larger
_CHUNK = 1 << 20

_streams: dict[str, str] = {}  # by name: the temporary file of this run


def is_copy(path: str) -> bool:
    """Whether a file is the copy of something that could be read only once."""
    return path in _streams.values()


def keep(context: typer.Context, path: str | None) -> str | None:
    """Return a file that can be read again: the one of this path, or a copy until the end.

    An empty name is refused, as it would be the folder of the command.
    """
    if path is not None:
        output.require_name(path, "an input")
    is_stream = path == "-" or (path and os.path.exists(path) and not _is_on_disk(path))
    if path is None or not is_stream:
        return path
    if path not in _streams:
        from tempfile import mkdtemp

        folder = mkdtemp(prefix="memplan-")
        copy = os.path.join(folder, "stdin" if path == "-" else os.path.basename(path))
        try:
            with reading(path), open(copy, "xb") as file:
                _copy(path, file)
        except BaseException:
            shutil.rmtree(folder)
            raise
        context.call_on_close(lambda: _forget(path, folder))
        _streams[path] = copy
        output.names[copy] = path
    return _streams[path]


def keep_each(context: typer.Context, paths: list[str] | None) -> list[str]:
    """Return files that can be read again, as `keep`."""
    return [str(keep(context, path)) for path in paths or ()]


def _is_on_disk(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _copy(path: str, copy: BinaryIO) -> None:
    if path == "-" and sys.stdin is None:
        raise FormatError(path, "standard input is closed")
    with open(0 if path == "-" else path, "rb", buffering=0, closefd=path != "-") as stream:
        left = MOST_BYTES
        while data := stream.read(_CHUNK):
            left -= len(data)
            if left < 0:
                most = f"{MOST_BYTES >> 20} MiB"
                raise FormatError(
                    path, f"the input has more than {most}: save it, and name the file"
                )
            copy.write(data)


def _forget(path: str, folder: str) -> None:
    _streams.pop(path, None)  # `output.names` keeps its name, because messages come last
    shutil.rmtree(folder, ignore_errors=True)
