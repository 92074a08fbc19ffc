"""Allocators that serve `malloc` in a process; the environment in which it starts chooses one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from memplan.base.errors import MemplanError, quoted

# With these settings glibc never returns memory and saves most page faults; a fair competitor.
_TUNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}


@dataclass(frozen=True)
class Allocator:
    """An allocator by a name."""

    name: str  # for the tables
    # A shared library to load before all others, or "" for the C library's own allocator.
    library: str = ""
    # Environment variables that configure it.
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that uses it; this process's `LD_PRELOAD` must not leak."""
        return {"LD_PRELOAD": self.library, **self.variables}


KNOWN: Mapping[str, Allocator] = MappingProxyType(
    {
        "glibc": Allocator("glibc"),
        "glibc-tuned": Allocator("glibc-tuned", variables=MappingProxyType(_TUNED)),
    }
)


def parse(text: str) -> Allocator:
    """Read `glibc`, `glibc-tuned` or `NAME=SPEC`."""
    name, equals, specification = text.partition("=")
    if not equals:
        if name in KNOWN:
            return KNOWN[name]
        raise MemplanError(
            f"allocator {quoted(name)} is not known; name one of {', '.join(KNOWN)}, or write "
            "NAME=LIBRARY, NAME=VARIABLE=VALUE, or both with a space between"
        )
    try:
        words = shlex.split(specification)
    except ValueError as error:
        raise MemplanError(f"allocator {quoted(text)} cannot be read: {error}") from None
    libraries = [word for word in words if "=" not in word]
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    if not name or len(libraries) > 1:
        raise MemplanError(f"allocator {quoted(text)} must have a name and at most one library")
    for library in libraries:
        if not os.path.isfile(library):
            raise MemplanError(f"allocator {quoted(name)}: there is no library {quoted(library)}")
    library = os.path.abspath(libraries[0]) if libraries else ""
    return Allocator(name, library, MappingProxyType(variables))
