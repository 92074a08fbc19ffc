"""Writes a proof to a temporary file, which replaces the target once the proof is complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memplan.errors import FormatError
from memplan.problem import Problem

__all__ = ["ProofFile", "open_proof"]

_LAST = b"refuted\n"


class ProofFile:
    """The temporary file to which a solver writes a proof; `keep` moves it to the target.

    Attributes
    ----------
    temporary
        The path of the file that the solver appends lines to.
    """

    def __init__(self, path: str, temporary: str) -> None:
        self._path = path
        self.temporary = temporary

    def keep(self) -> bool:
        """Move the proof to its target if it is complete; return whether it is.

        Raises
        ------
        FormatError
            If it cannot be moved there.
        """
        with open(self.temporary, "rb") as file:
            file.seek(-min(len(_LAST), os.path.getsize(self.temporary)), os.SEEK_END)
            if file.read() != _LAST:
                return False
        target = os.path.realpath(self._path)
        with _as_format_error(self._path):
            if os.path.exists(target):
                shutil.copymode(target, self.temporary)
            os.replace(self.temporary, target)
        return True


@contextmanager
def open_proof(path: str | os.PathLike[str], problem: Problem) -> Iterator[ProofFile]:
    """Create a temporary file next to the target, with the head of the proof; delete it at exit.

    Raises
    ------
    FormatError
        If nothing can be written there.
    """
    name = os.fspath(path)
    with _as_format_error(name):
        target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        raise FormatError(name, "the file cannot be written: it is not a regular file")
    folder, base = os.path.split(target)
    # It must be in the same folder, so that the replacement is atomic.
    temporary = os.path.join(folder, f".{base[:32]}.{secrets.token_hex(4)}.tmp")
    try:
        with _as_format_error(name), open(temporary, "x", encoding="ascii", newline="\n") as file:
            file.write(f"memplan-proof 1\nproblem {problem.fingerprint}\n")
        yield ProofFile(name, temporary)
    finally:
        with suppress(FileNotFoundError):  # `keep` has moved it
            os.unlink(temporary)


@contextmanager
def _as_format_error(path: str) -> Iterator[None]:
    """Turn an error of the file system into one sentence about the file at `path`."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise FormatError(
            path, f"the file cannot be written: {reason[:1].lower()}{reason[1:]}"
        ) from None
