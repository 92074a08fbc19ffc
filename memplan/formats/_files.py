"""Text from and to disk: all of a file, or nothing."""

from __future__ import annotations

import os
import secrets
import shutil

from memplan.errors import FormatError


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises
    ------
    FormatError
        If the file cannot be read, is empty, or is not text.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise FormatError(name, f"cannot be read: {_reason(error)}") from None
    if b"\0" in data:
        raise FormatError(name, "is a binary file; a problem or plan is CSV or JSON, as UTF-8 text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(name, "is not UTF-8 text; save it as UTF-8", line=line) from None
    if not text.strip():
        raise FormatError(name, "is empty")
    return text


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8, as `write_bytes` does.

    Raises
    ------
    FormatError
        If the file cannot be written; what was there is untouched.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(os.fspath(path), f"cannot be written: {_reason(error)}") from None
    write_bytes(path, data)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half of it.

    A symbolic link keeps pointing where it did, a file keeps its permissions, and what is not a
    regular file (a pipe, `/dev/stdout`) is written to as it is.

    Raises
    ------
    FormatError
        If the file cannot be written; what was there is untouched.
    """
    name = os.fspath(path)
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            with open(name, "wb") as file:
                file.write(data)
        else:
            _replace(os.path.realpath(name), data)
    except (OSError, ValueError) as error:
        raise FormatError(name, f"cannot be written: {_reason(error)}") from None


def _replace(target: str, data: bytes) -> None:
    folder, base = os.path.split(target)
    # In the same folder, so that it is on the same disk and can take the target's place at once.
    # The name is short whatever the target's is, and opened with "x": it is ours alone.
    temporary = os.path.join(folder, f".{base[:32]}.{secrets.token_hex(4)}.tmp")
    file = open(temporary, "xb")  # noqa: SIM115 (closed below, before it takes the target's place)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]
