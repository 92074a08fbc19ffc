"""Tests by which a foreign file is recognised, and what is said of it then."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memplan.problem import formats
from memplan.problem.dialect import is_header

__all__ = [
    "COMMENTS",
    "ForeignFormat",
    "Matches",
    "has_identifier",
    "holds",
    "is_archive_with",
    "is_ours",
    "is_table",
    "is_text",
    "mentions",
    "starts_with",
]

Matches = Callable[[bytes, Path], bool]


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format of others."""

    matches: Matches  # whether a file with these first bytes at this path is one
    what: str  # what the file is, and why no plan can be made of it
    # What to do, and the lines to type; `{stem}` and `{name}` are those of the file.
    steps: tuple[str, ...]


def starts_with(*magics: bytes) -> Matches:
    """Return a test for the first bytes of a file."""
    return lambda head, path: head.startswith(magics)


def has_identifier(identifier: bytes) -> Matches:
    """Return a test for the identifier of a FlatBuffer, which follows the offset of its root."""
    return lambda head, path: head[4 : 4 + len(identifier)] == identifier


def holds(*names: str) -> Matches:
    """Return a test for a folder with one of these files."""
    return lambda head, path: not head and any((path / name).is_file() for name in names)


def is_archive_with(pattern: str) -> Matches:
    """Return a test for a ZIP archive that has a file whose whole name matches."""
    wanted = re.compile(pattern)

    def matches(head: bytes, path: Path) -> bool:
        if not head.startswith(b"PK\x03\x04"):
            return False
        try:
            with zipfile.ZipFile(path) as archive:
                return any(wanted.fullmatch(name) for name in archive.namelist())
        except Exception:  # a damaged directory raises errors of many types
            return False

    return matches


def is_text(pattern: str) -> Matches:
    """Return a test for text that begins with a pattern, after space and a byte-order mark."""
    wanted = re.compile(rb"(?:\xef\xbb\xbf)?\s*" + pattern.encode())
    return lambda head, path: wanted.match(head) is not None


# Of XML; one comment ends at its first "-->", or the time to match many would explode.
COMMENTS: Final = r"(?:<!--(?:(?!-->)(?s:.))*-->\s*)*"


def is_ours(head: bytes) -> bool:
    """Return whether text may be CSV or JSON of ours, which may have anything in its names."""
    return formats.is_json(_decode(head)) or is_table(head)


def is_table(head: bytes) -> bool:
    """Return whether text begins with the header of a problem in CSV."""
    rows = (line for line in _decode(head).splitlines() if line.strip() and line[0] != "#")
    header = re.split(r"[,;\t]", next(rows, ""))
    return is_header(name.strip(' "') for name in header)


def _decode(head: bytes) -> str:
    return head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def mentions(pattern: str) -> Matches:
    """Return a test for text with a pattern anywhere in its beginning, but for CSV and JSON."""
    wanted = re.compile(pattern.encode(), re.MULTILINE)
    return lambda head, path: (
        b"\0" not in head and wanted.search(head) is not None and not is_ours(head)
    )
