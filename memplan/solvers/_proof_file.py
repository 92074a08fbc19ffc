"""A proof on its way to disk: beside its place until it is complete, or gone."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memplan.errors import FormatError
from memplan.problem import Problem

__all__ = ["ProofFile", "proof_file"]

_LAST = b"refuted\n"


class ProofFile:
    """Where a solver writes a proof; nothing of it is seen before `keep`.

    Attributes
    ----------
    temporary
        The file to add lines to.
    """

    def __init__(self, path: str, temporary: str) -> None:
        self._path = path
        self.temporary = temporary

    def keep(self) -> bool:
        """Put the proof in its place if it is complete; return whether it is.

        Raises
        ------
        FormatError
            If it cannot be put there.
        """
        with open(self.temporary, "rb") as file:
            file.seek(-min(len(_LAST), os.path.getsize(self.temporary)), os.SEEK_END)
            if file.read() != _LAST:
                return False
        target = os.path.realpath(self._path)
        with _reworded(self._path):
            if os.path.exists(target):
                shutil.copymode(target, self.temporary)
            os.replace(self.temporary, target)
        return True


@contextmanager
def proof_file(path: str | os.PathLike[str], problem: Problem) -> Iterator[ProofFile]:
    """Begin a proof beside its place, with the lines that say what it is about.

    Raises
    ------
    FormatError
        If nothing can be written there.
    """
    name = os.fspath(path)
    with _reworded(name):
        target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        raise FormatError(name, "cannot be written: it is not a regular file")
    folder, base = os.path.split(target)
    # In the same folder, so that it can take the place of the old one at once.
    temporary = os.path.join(folder, f".{base[:32]}.{secrets.token_hex(4)}.tmp")
    try:
        with _reworded(name), open(temporary, "x", encoding="ascii", newline="\n") as file:
            file.write(f"memplan-proof 1\nproblem {problem.fingerprint}\n")
        yield ProofFile(name, temporary)
    finally:
        with suppress(FileNotFoundError):  # it has taken its place
            os.unlink(temporary)


@contextmanager
def _reworded(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise FormatError(path, f"cannot be written: {reason[:1].lower()}{reason[1:]}") from None
