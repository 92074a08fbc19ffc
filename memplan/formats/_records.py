"""Splits a CSV table into records with their line numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from memplan.errors import FormatError

# The csv module does not tell whether a field was quoted. That matters: in quotes, spaces around
# an id belong to it, and a leading # does not begin a comment.
_FIELD = re.compile(r'[ \t]*(?:"([^"]*(?:""[^"]*)*)"[ \t]*|([^",\r\n]*))(,|\Z)')


def records(
    text: str, name: str, comments: list[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of every record.

    Blank lines are skipped. Lines that begin with `#` are skipped too, and are added to `comments`
    with their numbers. Spaces and tabs around a field are removed, and so are its quotes; inside
    quotes a field keeps everything, including line ends.

    Raises
    ------
    FormatError
        For quotes that are not at the start and the end of a field.
    """
    opened: list[str] = []  # the lines of a record with a quote that is not closed yet
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
    """Return `text` as a field that `records` reads back, with quotes if it needs them."""
    if _SPECIAL.search(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'
