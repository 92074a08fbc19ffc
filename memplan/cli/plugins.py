"""Which command a word names: one of ours, one of another package, or a file to describe."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from memplan.cli import describe
from memplan.errors import MemplanError

__all__ = ["GROUP", "Commands"]

GROUP = "memplan.commands"


class Commands(TyperGroup):
    """Our commands, and those of other packages, which are loaded when they are asked for.

    Other packages declare theirs under the entry points `memplan.commands`. The name of an entry
    point is that of the command. It leads to a function with the parameters of a Typer command, or
    to a `typer.Typer` with several. A file in place of a command is described.
    """

    def list_commands(self, context: Any) -> list[str]:
        """Return all names: ours as they were added, then the others sorted."""
        ours = super().list_commands(context)
        return ours + sorted(
            each.name for each in entry_points(group=GROUP) if each.name not in ours
        )

    def get_command(self, context: Any, name: str) -> Any:
        """Return a command; one of ours goes before another of its name."""
        ours = super().get_command(context, name)
        if ours is not None:
            return ours
        for entry in entry_points(group=GROUP, name=name):
            return _load(entry)
        return None

    def resolve_command(self, context: Any, words: list[str]) -> Any:
        """Return the command that the first word names, and the words for it."""
        name = words[0]
        if self.get_command(context, name) is None:
            if name == "-" or os.path.exists(name):
                return describe.NAME, self.get_command(context, describe.NAME), words
            if os.sep in name or os.path.splitext(name)[1]:
                raise MemplanError(f"{name}: is neither a command nor a file (see memplan --help)")
        return super().resolve_command(context, words)


def _load(entry: EntryPoint) -> Any:
    try:
        found = entry.load()
    except Exception as error:  # whatever the other package raises while it is imported
        found = _refuse(entry, f"{type(error).__name__}: {error}")
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(entry.name)(found)
        found = app
    command: Any = typer.main.get_command(found)
    command.name = entry.name
    command.rich_help_panel = "Of other packages"
    return command


def _refuse(entry: EntryPoint, reason: str) -> Any:
    """Return a command that only says why it is missing, so that the help of the others works."""
    package = entry.dist.name if entry.dist is not None else entry.value

    def command() -> None:
        raise MemplanError(f"the package {package} has no command {entry.name}: {reason[:150]}")

    command.__doc__ = f"(The package {package} cannot be loaded.)"
    return command
