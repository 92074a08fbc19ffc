"""Checks JSON documents field by field; every error names the file and the place in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from memplan.base.errors import FormatError, quoted
from memplan.problem.columns import MAX_BYTES

__all__ = ["Fields", "dumps", "join", "lines", "shown"]


class _RejectedError(ValueError):
    """An error for JSON that Python's json module accepts and memplan does not."""


class Fields:
    """Parses a document and checks its fields; errors begin with the name of the file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def parse(self, text: str) -> Any:
        """Parse a text; NaN, infinities and duplicate fields are rejected."""
        try:
            return json.loads(text, object_pairs_hook=_make_object, parse_constant=_reject_constant)
        except json.JSONDecodeError as error:
            message = f"the file is not valid JSON: {error.msg} at column {error.colno}"
            raise FormatError(self.name, message, line=error.lineno) from None
        except _RejectedError as error:
            raise self.error(str(error)) from None
        except ValueError:
            raise self.error("the file has a number with thousands of digits") from None
        except RecursionError:
            raise self.error("the file is nested too deeply") from None

    def document(
        self, text: str, kind: str, version: int, fields: Mapping[str, bool]
    ) -> dict[str, Any]:
        """Parse a document and check its kind, its version and its fields."""
        document = self.parse(text)
        head = document.get("memplan") if isinstance(document, dict) else None
        if not isinstance(head, dict) or head.keys() != {"kind", "version"}:
            example = f'"memplan": {{"kind": "{kind}", "version": {version}}}'
            raise self.error(f"the file is JSON, but not of memplan: it does not contain {example}")
        if head["kind"] != kind:
            other = kind == "problem" and head["kind"] == "plan"
            advice = "; give the problem or the model of which it is a plan" if other else ""
            raise self.error(f'the file is of the kind {shown(head["kind"])}, not "{kind}"{advice}')
        found = head["version"]
        if type(found) is not int or found != version:
            raise self.error(
                f"the file has version {shown(found)} of the format; this memplan reads {version}"
            )
        self.check(document, "the document", fields)
        return document  # type: ignore[no-any-return]

    def error(self, message: str) -> FormatError:
        """Return an error about the file."""
        return FormatError(self.name, message)

    def objects(self, value: object, where: str, fields: Mapping[str, bool]) -> list[Any]:
        """Check that `value` is an array of objects with these fields."""
        rows = self.array(value, where)
        required = {field for field, needed in fields.items() if needed}
        for at, row in enumerate(rows):
            if not isinstance(row, dict):
                raise self.error(f"{where}[{at}] is {shown(row)}; it must be an object")
            if not required <= row.keys() <= fields.keys():
                self.check(row, f"{where}[{at}]", fields)
        return rows

    def array(self, value: object, where: str) -> list[Any]:
        """Check that `value` is an array."""
        if not isinstance(value, list):
            raise self.error(f"{where} is {shown(value)}; it must be an array")
        return value

    def scalar(self, value: Any, where: str, kind: type) -> Any:
        """Check that `value` is of a type, or null."""
        if value is not None and type(value) is not kind:
            words = {
                int: "a whole number",
                str: "a string",
                dict: "an object",
                bool: "true or false",
            }
            raise self.error(f"{where} is {shown(value)}; it must be {words[kind]}")
        return value

    def number(self, value: object, where: str, most: int = MAX_BYTES) -> int:
        """Check that `value` is a whole number of at least 0."""
        if type(value) is not int or not 0 <= value <= most:
            limit = f"2^{most.bit_length() - (most == MAX_BYTES)}"
            raise self.error(
                f"{where} is {shown(value)}; it must be a whole number between 0 and {limit}"
            )
        return value

    def check(self, row: dict[str, Any], where: str, fields: Mapping[str, bool]) -> None:
        """Check that an object has the fields that it must have, and none that are unknown."""
        for field in row:
            if field not in fields:
                raise self.error(f"{where} has the unknown field {quoted(field)}")
        for field, needed in fields.items():
            if needed and field not in row:
                raise self.error(f"{where} has no field {quoted(field)}")


def dumps(value: object) -> str:
    """Return a value as JSON on one line; raises `ValueError` for what JSON does not have."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def lines(field: str, rows: Iterable[object]) -> str:
    """Return a field that is an array, with a line for each row."""
    text = ",\n".join(f"    {dumps(row)}" for row in rows)
    return f'"{field}": [\n{text}\n  ]' if text else f'"{field}": []'


def join(parts: Iterable[str]) -> str:
    """Return a document of these fields, with a line for each."""
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def shown(value: object) -> str:
    """Return a value as JSON for an error; of an array or object only its type."""
    if isinstance(value, (list, dict)):
        return "an array" if isinstance(value, list) else "an object"
    return quoted(value) if isinstance(value, str) else json.dumps(value)[:60]


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _RejectedError(f"the file has the field {quoted(twice)} twice in one object")
    return fields


def _reject_constant(word: str) -> float:
    raise _RejectedError(f"the file has {word}, which is not valid JSON")
