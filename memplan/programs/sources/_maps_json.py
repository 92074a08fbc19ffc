"""Maps of rows as JSON: a word, or an object whose one field has what the map says.

"each"    {"window": {"kernel": 3, "stride": 2, "before": 1}}    {"told": {"rule": "each"}}
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Final, get_type_hints

from memplan.problem.formats._fields import Fields, shown
from memplan.programs.graph.pictures import (
    LONGEST_STEP,
    Blocks,
    Each,
    Even,
    Joined,
    Map,
    Once,
    Padding,
    Resized,
    Shifted,
    Spread,
    Told,
    Transposed,
    Window,
)

__all__ = ["KINDS", "format_map", "read_map"]

KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Blocks, Each, Even, Joined, Once, Resized, Shifted, Spread, Told, Transposed, Window),
    )
}
_MOST: Final = 1 << 62
# By field: the least and the most that a number may be. Rows before an input may be cut off.
_RANGES: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(("kernel", "reach", "dilation", "up", "down"), (1, _MOST)),
    "stride": (1, LONGEST_STEP),
    **dict.fromkeys(("before", "extra"), (-_MOST, _MOST)),
}


def format_map(rule: Map) -> object:
    """Return a map as JSON, without what has its default."""
    row: dict[str, object] = {}
    for field in fields(rule):  # type: ignore[arg-type]
        value = getattr(rule, field.name)
        if value != field.default:
            is_map = type(value).__name__.lower() in KINDS
            row[field.name] = format_map(value) if is_map else value
    name = type(rule).__name__.lower()
    return {name: row} if row else name


def read_map(reader: Fields, value: object, where: str) -> Map:
    """Return the map of a JSON value; errors have the place in the document."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, row),) = value.items()
    else:
        name, row = value, {}
    if type(name) is not str or name not in KINDS:
        raise reader.error(
            f"{where} is {shown(name)}; it must be one of {', '.join(KINDS)}, or an object whose "
            "one field is one of them"
        )
    where = f"{where}.{name}" if value is not name else where
    if not isinstance(row, dict):
        raise reader.error(f"{where} is {shown(row)}; it must be an object")
    kind, hints = KINDS[name], get_type_hints(KINDS[name])
    given = {key: one for key, one in row.items() if one is not None}  # null is the default
    reader.check(given, where, {one.name: one.default is MISSING for one in fields(kind)})
    made: Map = kind(
        **{key: _read(reader, one, f"{where}.{key}", hints[key]) for key, one in given.items()}
    )
    return made


def _read(reader: Fields, value: object, where: str, kind: Any) -> object:
    """Return what a field of a map has."""
    if kind is Map:
        rule = read_map(reader, value, where)
        if isinstance(rule, Told):
            raise reader.error(f"{where} is told twice which rows to make")
        return rule
    if kind is Padding:
        if type(value) is not str or value not in list(Padding):
            names = ", ".join(Padding)
            raise reader.error(f"{where} is {shown(value)}; it must be one of {names}")
        return Padding(value)
    if kind is bool:
        return reader.scalar(value, where, bool)
    least, most = _RANGES.get(where.rpartition(".")[2], (0, _MOST))
    if type(value) is not int or not least <= value <= most:
        ends = f"{least} and {most}".replace(str(_MOST), "2^62")
        raise reader.error(f"{where} is {shown(value)}; it must be a whole number between {ends}")
    return value
