"""Copies and pickles of immutable objects, which are immutable too."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Immutable"]


class Immutable:
    """An object whose copies, also in another process, have read-only arrays and mappings.

    A plain pickle forgets that an array is read-only, and cannot store a read-only mapping.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), {name: _pack(value) for name, value in vars(self).items()})


class _ReadOnly(NamedTuple):
    value: Any


def _restore(kind: type, packed: dict[str, Any]) -> object:
    made: Any = object.__new__(kind)
    made.__dict__.update({name: _unpack(value) for name, value in packed.items()})
    return made


def _pack(value: Any) -> Any:
    """Return a value with read-only arrays and mappings marked, also inside dictionaries."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else _ReadOnly(value)
    if isinstance(value, MappingProxyType):
        return _ReadOnly({key: _pack(each) for key, each in value.items()})
    if type(value) is dict:
        return {key: _pack(each) for key, each in value.items()}
    return value


def _unpack(value: Any) -> Any:
    """Return the packed value, with its marked arrays and mappings read-only."""
    if isinstance(value, _ReadOnly):
        if isinstance(value.value, np.ndarray):
            value.value.flags.writeable = False
            return value.value
        return MappingProxyType(_unpack(value.value))
    if type(value) is dict:
        return {key: _unpack(each) for key, each in value.items()}
    return value
