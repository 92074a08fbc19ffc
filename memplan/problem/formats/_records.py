"""Splits a CSV table into records with their line numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from memplan.base.errors import FormatError

# The csv module does not tell whether a field was quoted. That matters: in quotes, spaces around
# an id belong to it, and a leading # does not begin a comment.
_FIELD = r'[{0}]*(?:"([^"]*(?:""[^"]*)*)"[{0}]*|([^"{1}\r\n]*))({1}|\Z)'

# Spreadsheets of many countries write semicolons, and what is copied from one has tabs.
_SEPARATORS = ",;\t"


def records(
    text: str, name: str, comments: list[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of every record.

    The first record decides what separates fields: a comma, where it has none a semicolon, and
    where it has neither a tab; one with quotes has commas. Blank lines are skipped. Lines that
    begin with `#` are added to `comments` with their numbers. Spaces and tabs around a field are
    removed, and so are its quotes; inside quotes a field keeps everything, including line ends.
    """
    opened: list[str] = []  # the lines of a record with a quote that is not closed yet
    separator = ""
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if not separator and line[0] != "#" and not line.isspace():
            found = (each for each in _SEPARATORS if each in line and '"' not in line)
            separator = next(found, ",")
            blanks = " " if separator == "\t" else " \t"
            field = re.compile(_FIELD.format(blanks, separator))
        if opened or ('"' in line and line[0] != "#"):
            opened.append(line)
            if (line.count('"') + (len(opened) > 1)) % 2 == 0:
                first = number - len(opened) + 1
                yield first, _quoted_fields("".join(opened).rstrip("\r\n"), field, name, first)
                opened.clear()
        elif line[0] == "#":
            comments.append((number, line.rstrip()))
        elif not line.isspace():
            fields = line.rstrip("\r\n").split(separator)
            if " " in line or "\t" in line:
                fields = [each.strip(" \t") for each in fields]
            yield number, fields
    if opened:
        raise FormatError(name, "a quoted field is not closed", line=number - len(opened) + 1)


def _quoted_fields(record: str, field: re.Pattern[str], name: str, line: int) -> list[str]:
    fields: list[str] = []
    at = 0
    while True:
        match = field.match(record, at)
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
