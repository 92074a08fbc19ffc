"""Reads and writes whole files: a failed write leaves the old file as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memplan.base.errors import FormatError, GraphError, MemplanError


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file, without a byte order mark; an empty file is refused."""
    name = os.fspath(path)
    data = read_bytes(name)
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


def read_bytes(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return the bytes of a file, or its first `most` bytes."""
    with reading(path), open(path, "rb") as file:
        return file.read(most)


@contextmanager
def reading(path: str | os.PathLike[str], remedy: str = "") -> Iterator[None]:
    """Turn system errors into a sentence: the file cannot be read, why, and what to do."""
    with _rewording(path, "the file cannot be read: ", f"; {remedy}" if remedy else ""):
        yield


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn system errors into a sentence: the file cannot be written, and why."""
    with _rewording(path, "the file cannot be written: "):
        yield


@contextmanager
def _rewording(path: str | os.PathLike[str], before: str, behind: str = "") -> Iterator[None]:
    try:
        yield
    except MemplanError:
        raise
    except (OSError, ValueError) as error:  # a name with a zero byte, and text that is no UTF-8
        raise FormatError(os.fspath(path), f"{before}{_reason(error)}{behind}") from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8, as `write_bytes` does."""
    with writing(path):
        data = text.encode()
    write_bytes(path, data)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file completely, or leave the old file as it was.

    Its folder is made if it is new. A symbolic link keeps its target, a file keeps its permissions,
    and a pipe or device (`/dev/stdout`) is written to directly.

    Raises
    ------
    FormatError
        If the file cannot be written; what was there is untouched.
    """
    write_files({os.fspath(path): data})


def write_files(outputs: Mapping[str, bytes]) -> None:
    """Write all of several files, by name, each as `write_bytes` does, or none of them."""
    staged: dict[str, tuple[str, Staged]] = {}  # by name: the target, and its new file
    kept: dict[str, str] = {}  # by target: another name of the old file, if there was one
    done: list[str] = []  # the targets that have been replaced, if there are several
    name = ""
    try:
        for name, data in outputs.items():
            if not is_special(name):
                target = os.path.realpath(name)
                staged[name] = target, Staged(target)
                staged[name][1].write(data)
        for name, data in outputs.items():
            if name not in staged:
                with open(name, "wb") as file:
                    file.write(data)
        for name in staged:
            target, new = staged[name]
            if len(staged) > 1 and os.path.exists(target):
                kept[target] = _kept(target)
            new.replace(target)
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
        for _, new in staged.values():
            new.close()
        for leftover in kept.values():
            if os.path.lexists(leftover):
                os.unlink(leftover)


class Staged:
    """A new file on the disk of its target, which replaces the target when it is complete.

    The folder is made if it is new. If Linux and the file system allow it, the file has no name
    until then, so that nothing is left if the process is killed. Otherwise it is a hidden file in
    the folder of the target.

    Attributes
    ----------
    path
        A path by which this process can open it.

    Raises
    ------
    OSError
        If no file can be made there.
    """

    def __init__(self, target: str) -> None:
        self._hidden: str | None = None
        self._folder = os.path.dirname(target) or os.curdir
        os.makedirs(self._folder, exist_ok=True)
        found = _open_nameless(self._folder)
        if found is None:
            self._hidden = _beside(target)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            found = os.open(self._hidden, flags, 0o666)
        self._file = found
        self.path = self._hidden or f"/proc/self/fd/{found}"

    def write(self, data: bytes) -> None:
        """Write the whole content, through to the disk."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fsync(self._file)

    def replace(self, target: str) -> None:
        """Give the file the name and the permissions of its target."""
        if os.path.exists(target):
            shutil.copymode(target, self.path)
        if self._hidden is None:
            try:
                self._link(target)
                return
            except FileExistsError:  # only a rename replaces a file
                name = _beside(target)
                self._link(name)
                self._hidden = name
        os.replace(self._hidden, target)
        self._hidden = None

    def close(self) -> None:
        """Release the file; it is gone if it has not replaced its target."""
        os.close(self._file)
        if self._hidden is not None and os.path.lexists(self._hidden):
            os.unlink(self._hidden)

    def _link(self, name: str) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:  # Python follows the link in /proc only where a folder is given too
            os.link(self.path, name, src_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)


def _open_nameless(folder: str) -> int | None:
    """Return a new file without a name, or `None` if the system has no such files."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # many file systems have none; an error of another kind is raised again later
        return None
    if os.path.exists(f"/proc/self/fd/{file}"):
        return file
    os.close(file)
    return None


def is_special(name: str) -> bool:
    """Whether the path is a pipe or a device, or a folder: no file that can be replaced."""
    return os.path.exists(name) and not os.path.isfile(name)


def _beside(target: str) -> str:
    """Return a new name in the same folder, which is on the same disk.

    The name is short even if the target's is long. Files are opened by it with mode "x", so that
    no file of another program is overwritten.
    """
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:32]}.{os.urandom(4).hex()}.tmp")


def _kept(target: str) -> str:
    """Give a file a second name, from which it is restored if another output fails; return it."""
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
    """Add the name of the file to errors about a graph that was read from it."""
    try:
        yield
    except GraphError as error:
        raise FormatError(os.fspath(path), str(error)) from None


@contextmanager
def temporary_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """Make a folder for versions of a file, until the end; errors about them name the file."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        try:
            yield folder
        except FormatError as error:
            if not error.path.startswith(folder + os.sep):
                raise
            raise FormatError(os.fspath(path), error.message, line=error.line) from None
