"""Access to JSON from an untrusted file: every field is checked before it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from memplan.base.errors import GraphError, quoted

__all__ = ["Json", "get", "get_only", "plain", "slots", "tensors"]

T = TypeVar("T")
Json = Mapping[str, Any]

# By field of an argument: the types that its content may have.
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "as_int": (int,),
    "as_float": (int, float),
    "as_bool": (bool,),
    "as_string": (str,),
}


def get(record: Any, key: str, kind: type[T], where: str) -> T:
    """Return a field of a record; refuse a record without it, or with one of another type."""
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise GraphError(f"{where} has no {quoted(key)} in the format of torch.export")
    return value


def get_only(record: Any, what: str) -> tuple[str, Json]:
    """Return the one field of a union."""
    if isinstance(record, dict) and len(record) == 1:
        role, fields = next(iter(record.items()))
        if isinstance(fields, dict):
            return role, fields
    raise GraphError(f"{what} is not in the format of torch.export")


def tensors(argument: Any, *, bare: bool = False) -> list[str]:
    """Return the names of all tensors in an argument; with `bare`, it may be a tensor's record."""
    if bare and isinstance(argument, dict) and isinstance(argument.get("name"), str):
        return [argument["name"]] if "class_fqn" not in argument else []
    return [name for name in slots(argument) if name is not None]


def slots(argument: Any) -> Iterator[str | None]:
    """Yield the values in an argument in order: the name of a tensor, or `None` for others."""
    if not isinstance(argument, dict):
        return
    for key, content in argument.items():
        if key == "as_tensor":
            yield get(content, "name", str, "a tensor")
        elif key in ("as_tensors", "as_nested_tensors"):
            yield from _names(content)
        elif key in ("as_optional_tensor", "as_optional_tensors"):
            for one in content if isinstance(content, list) else [content]:
                yield from slots(one)
        elif key == "as_string_to_argument" and isinstance(content, dict):
            for one in content.values():
                yield from slots(one)
        elif key in ("as_ints", "as_sym_ints", "as_floats", "as_bools") and isinstance(
            content, list
        ):
            yield from (None for _ in content)
        elif key not in ("as_graph", "as_string", "as_operator"):
            yield None


def plain(argument: Any) -> object:
    """Return an argument that is no tensor: a number, a text, `None`, or a tuple of these.

    What is known only at run time, or is of another kind, is `...`.
    """
    if not isinstance(argument, dict) or len(argument) != 1:
        return ...
    ((key, content),) = argument.items()
    if key == "as_none":
        return None
    if content == []:  # torch writes any list without elements as one of tensors
        return ()
    if key in _PLAIN:
        return content if type(content) in _PLAIN[key] else ...
    if key in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return plain(content)
    each = _PLAIN.get(key.removesuffix("s"))
    if each is not None and isinstance(content, list):
        return tuple(one if type(one) in each else ... for one in content)
    if key in ("as_sym_ints", "as_sym_floats", "as_sym_bools") and isinstance(content, list):
        return tuple(map(plain, content))
    return ...


def _names(content: Any) -> Iterator[str]:
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, list):
            yield from _names(one)
        else:
            yield get(one, "name", str, "a tensor")
