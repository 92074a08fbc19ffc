"""Errors, each with one sentence for a person.

Every error that memplan raises on purpose is a `MemplanError`, so a caller can catch one type and
print `str(error)`. Any other exception is a defect of memplan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

_SHOWN = 60  # characters of a user's text that an error repeats
_LISTED = 5  # texts that a sentence lists
_LETTERS = 150  # of all listed texts together, unless the first is longer


class MemplanError(ValueError):
    """Base of all errors of this package; `str(error)` is one sentence for a person.

    Parameters
    ----------
    message
        The sentence.
    row
        The index of the buffer at fault, if there is one. Readers of files turn it into a line.
    field
        The column at fault, as `memplan.problem.Buffer` calls it.
    """

    def __init__(self, message: str, *, row: int | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.field = field


class ProblemError(MemplanError):
    """A problem that is not well formed; the sentence names the buffer and the field."""


class GraphError(MemplanError):
    """A graph that is not well formed; the sentence names the tensor or the operator."""


class FormatError(MemplanError):
    """A file that cannot be read or written.

    Parameters
    ----------
    path
        The file, as the user named it.
    message
        What is wrong with it.
    line
        The line at fault (the first is 1), where one is known.
    """

    def __init__(self, path: str, message: str, *, line: int | None = None) -> None:
        super().__init__(f"{path}: {message}" if line is None else f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders in benchmarks; the default would pass the whole sentence
        # as `path`.
        return (_format_error, (self.path, self.message, self.line))


class PlanError(MemplanError):
    """A plan, or an order of operators, that breaks its problem or contradicts itself."""


class InfeasibleError(PlanError):
    """It is proved that there is no plan; the sentence says what does not fit."""


class CapacityError(PlanError):
    """What was found needs more than there is, so nothing was written; less is not ruled out."""


class NoPlanError(PlanError):
    """A search ended with neither a plan nor a proof that there is none; more time may find one."""


class ProofError(MemplanError):
    """A proof that is not valid; the sentence says what is wrong with it.

    Parameters
    ----------
    message
        The sentence.
    line
        The line at fault (the first is 1), where one is known.
    """

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class UnsupportedError(MemplanError):
    """A solver was asked for a constraint or an option that it does not have."""


class FamilyError(MemplanError):
    """Traces that are not those of one program at several batch sizes; names the allocation."""


class MissingExtraError(MemplanError):
    """An optional dependency is missing; the sentence names the extra to install."""


def quoted(text: str) -> str:
    """Return a user's text for an error: in quotes, on one line, not too long."""
    head = text[: _SHOWN + 1]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in head)
    return f'"{safe}"' if len(safe) <= _SHOWN else f'"{safe[: _SHOWN - 3]}..."'


def listed(texts: Collection[str], *, quote: bool = True) -> str:
    """List texts in a sentence: the first five, fewer if they are long, and how many more."""
    first: list[str] = []
    for text in islice(texts, _LISTED):
        shown = quoted(text) if quote else text
        if first and sum(map(len, first)) + len(shown) > _LETTERS:
            break
        first.append(shown)
    more = len(texts) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the most similar known name, if any."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {quoted(near[0])}?" if near else ""


def shown(value: object) -> str:
    """Return a user's value for an error; for a container, which may be deep, only its type."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, (bool, int, float)):
        return quoted(repr(value))[1:-1]
    return f"a {type(value).__name__}"


def _format_error(path: str, message: str, line: int | None) -> FormatError:
    return FormatError(path, message, line=line)
