"""The origin of results, in words: versions, machines, seeds, commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

__all__ = ["About", "of_sweep"]

_SETTINGS = ("seed", "timeout", "node_limit", "repeat", "sample", "capacities")


@dataclass(frozen=True, slots=True)
class About:
    """The facts about a source of results, by name; none for a benchmark's file."""

    source: str
    facts: Mapping[str, str] = field(default_factory=dict)


def of_sweep(source: str, metadata: Mapping[str, Any]) -> About:
    """Return the facts about a sweep.

    Hosts and dates are left out: a reader does not need them, and equal results must give equal
    text.
    """
    settings = metadata["settings"]
    sessions = metadata["sessions"]
    facts = {
        "settings": ", ".join(
            f"{name} {_join_words(settings[name])}"
            for name in _SETTINGS
            if settings.get(name) is not None
        ),
        "command": _join_different(_command(session["command"]) for session in sessions),
        "versions": _join_different(_versions(session["versions"]) for session in sessions),
        "machine": _join_different(
            _describe_machine(machine)
            for session in sessions
            for machine in (session["machine"], *session["workers"].values())
        ),
    }
    return About(source, {name: text for name, text in facts.items() if text})


def _join_words(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _join_different(texts: Iterable[str]) -> str:
    """Return different texts once each, in their order."""
    return "; ".join(filter(None, dict.fromkeys(texts)))


def _command(words: list[str]) -> str:
    if not words:
        return ""
    program, *rest = words
    return shlex.join([PurePath(program).name, *rest])


def _versions(versions: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items() if text is not None)


def _describe_machine(machine: Mapping[str, Any]) -> str:
    system, *_, architecture = machine["system"].split()  # between is the kernel's release
    processor = f"{machine['cpu']}, {machine['cores']} cores"
    return f"{processor}, {system} on {architecture}, Python {machine['python']}"
