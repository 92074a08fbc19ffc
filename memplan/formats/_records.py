"""A table in CSV, cut into records; every record knows its line."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from memplan.errors import FormatError

# The csv module would do, but it does not say whether a field was quoted, and that decides
# whether spaces around an id are part of it and whether a leading # is a comment.
_FIELD = re.compile(r'[ \t]*(?:"([^"]*(?:""[^"]*)*)"[ \t]*|([^",\r\n]*))(,|\Z)')


def records(
    text: str, name: str, comments: list[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of every record.

    Blank lines are skipped, and so are lines that begin with `#`, which go to `comments` with
    their numbers. Fields lose spaces and tabs around them, and quotes as CSV has them; in quotes
    a field keeps everything, line ends too.

    Raises
    ------
    FormatError
        For quotes that do not open and close a field.
    """
    opened: list[str] = []  # lines of a record whose quotes are not closed yet
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if opened or ('"' in line and line[0] != "#"):
            opened.append(line)
            if (line.count('"') + (len(opened) > 1)) % 2 == 0:
                first = number - len(opened) + 1
                yield first, _quoted_fields("".join(opened).rstrip("\r\n"), name, first)
                opened.clear()
        elif line[0] == "#":
            comments.append((number, line.rstrip()))
        elif not line.isspace():
            fields = line.rstrip("\r\n").split(",")
            if " " in line or "\t" in line:
                fields = [field.strip(" \t") for field in fields]
            yield number, fields
    if opened:
        raise FormatError(name, "a quote is opened and never closed", line=number - len(opened) + 1)


def _quoted_fields(record: str, name: str, line: int) -> list[str]:
    fields: list[str] = []
    at = 0
    while True:
        match = _FIELD.match(record, at)
        if match is None:
            raise FormatError(
                name, f"field {len(fields) + 1} has text before or after its quotes", line=line
            )
        inside, plain, separator = match.groups()
        fields.append(plain.strip(" \t") if inside is None else inside.replace('""', '"'))
        at = match.end()
        if not separator:
            return fields


_SPECIAL = re.compile(r'[",\r\n]|\A[ \t#]|[ \t]\Z')


def cell(text: str) -> str:
    """Return `text` as a field that `records` reads back, quoted where it has to be."""
    if _SPECIAL.search(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'
