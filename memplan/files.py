"""Reads and writes files whole: a failed write leaves the old file as it was."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memplan.errors import FormatError, GraphError


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
        raise FormatError(name, f"the file cannot be read: {_reason(error)}") from None
    if b"\0" in data:
        raise FormatError(name, "this is a binary file; a problem or plan is CSV or JSON (UTF-8)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(name, "the file is not UTF-8 text; save it as UTF-8", line=line) from None
    if not text.strip():
        raise FormatError(name, "the file is empty")
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
        raise FormatError(
            os.fspath(path), f"the file cannot be written: {_reason(error)}"
        ) from None
    write_bytes(path, data)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half of it.

    A symbolic link keeps pointing where it did, a file keeps its permissions, and what is not a
    regular file (a pipe, `/dev/stdout`) is written to directly.

    Raises
    ------
    FormatError
        If the file cannot be written; what was there is untouched.
    """
    write_files({os.fspath(path): data})


def write_files(outputs: Mapping[str, bytes]) -> None:
    """Write several files, each as `write_bytes` does, so that all are the new ones or none is.

    Parameters
    ----------
    outputs
        The contents by name.

    Raises
    ------
    FormatError
        If one of them cannot be written; what was there is untouched, but for what is not a
        regular file.
    """
    staged: dict[str, tuple[str, str]] = {}  # by name: the target, and the new file next to it
    kept: dict[str, str] = {}  # by target: another name of the old file, where there is one
    done: list[str] = []  # the targets that are the new files, where there are several
    name = ""
    try:
        for name, data in outputs.items():
            if not _is_special(name):
                target = os.path.realpath(name)
                staged[name] = target, _staged(target, data)
        for name, data in outputs.items():
            if name not in staged:
                with open(name, "wb") as file:
                    file.write(data)
        for name in staged:
            target, new = staged[name]
            if len(staged) > 1 and os.path.exists(target):
                kept[target] = _kept(target)
            os.replace(new, target)
            if len(staged) > 1:
                done.append(target)
    except BaseException as error:
        for target in done:
            if target in kept:
                os.replace(kept[target], target)
            else:
                os.unlink(target)
        if isinstance(error, (OSError, ValueError)):
            raise FormatError(name, f"the file cannot be written: {_reason(error)}") from None
        raise
    finally:
        for leftover in (*(new for _, new in staged.values()), *kept.values()):
            if os.path.lexists(leftover):
                os.unlink(leftover)


def _is_special(name: str) -> bool:
    return os.path.exists(name) and not os.path.isfile(name)


def _beside(target: str) -> str:
    """Return a new name in the same folder, which is on the same disk.

    The name is short even if the target's is long. Files are opened by it with mode "x", so that
    no file of another program is overwritten.
    """
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:32]}.{secrets.token_hex(4)}.tmp")


def _staged(target: str, data: bytes) -> str:
    """Write a file that can replace the target; return its name."""
    temporary = _beside(target)
    file = open(temporary, "xb")  # noqa: SIM115 (closed below, before it takes the target's place)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _kept(target: str) -> str:
    """Give a file a second name, to restore it from if another output fails; return that name."""
    other = _beside(target)
    try:
        os.link(target, other)
    except OSError:  # the file system has no hard links
        shutil.copy2(target, other)
    return other


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]


@contextmanager
def of_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors about a graph name the file that it was read from."""
    try:
        yield
    except GraphError as error:
        raise FormatError(os.fspath(path), str(error)) from None
