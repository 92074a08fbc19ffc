"""Writes a proof to a temporary file, which replaces the target once the proof is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from memplan.base.errors import FormatError
from memplan.base.files import Staged, writing
from memplan.problem import Problem

__all__ = ["ProofFile", "open_proof"]

_LAST = b"refuted\n"


class ProofFile:
    """The temporary file to which a solver writes a proof; `keep` moves it to the target."""

    def __init__(self, path: str, staged: Staged) -> None:
        self.path = path
        self._staged = staged
        self.temporary = staged.path  # the solver appends lines to this file

    def keep(self) -> bool:
        """Move the proof to its target if it is complete; return whether it is."""
        with open(self.temporary, "rb") as file:
            file.seek(-min(len(_LAST), os.path.getsize(self.temporary)), os.SEEK_END)
            if file.read() != _LAST:
                return False
        with writing(self.path):
            self._staged.replace(os.path.realpath(self.path))
        return True


@contextmanager
def open_proof(path: str | os.PathLike[str], problem: Problem) -> Iterator[ProofFile]:
    """Create a temporary file next to the target, with the head of the proof; delete it at exit."""
    name = os.fspath(path)
    with writing(name):
        target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        raise FormatError(name, "the file cannot be written: it is not a regular file")
    with writing(name):
        staged = Staged(target)
    try:
        with writing(name):
            staged.write(f"memplan-proof 1\nproblem {problem.fingerprint}\n".encode("ascii"))
        yield ProofFile(name, staged)
    finally:
        staged.close()
