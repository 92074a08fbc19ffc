"""Which command a word names: one of ours, one of another package, or a file to describe."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer

from memplan.base.errors import MemplanError
from memplan.cli import running

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

__all__ = ["GROUP", "Commands"]

GROUP = "memplan.commands"
# Our commands as the help shows them; the module of each has its name.
_PANELS = {
    "Plan": ("fit", "plan", "verify"),
    "Understand": ("inspect", "compare", "tradeoff", "view"),
    "Hand over": ("convert", "record"),
    "Research": ("solvers",),
}
_OURS = {name: panel for panel, names in _PANELS.items() for name in names}
# Shorter words for a command with some of its options; the help of the program names them.
_PRESETS = {
    "apply": ("plan",),
    "envelope": ("plan",),
    "order": ("plan", "--levers", "order"),
    "recompute": ("plan", "--levers", "again"),
    "bands": ("tradeoff", "--levers", "bands"),
    "stripes": ("tradeoff", "--levers", "bands"),
}
# What an option of a preset is called in the command, and what its value begins with.
_OPTIONS = {
    "recompute": {"-o": ("--program", ""), "--output": ("--program", "")},
    "apply": {"-o": ("--output", "model:"), "--output": ("--output", "model:")},
}
_DESCRIBE = "file"  # what `memplan FILE` runs


class Commands(running.Group):
    """Our commands, and those of other packages, which are loaded when they are asked for.

    Other packages declare theirs under the entry points `memplan.commands`. The name of an entry
    point is that of the command. It leads to a function with the parameters of a Typer command, or
    to a `typer.Typer` with several. A file in place of a command is described.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: Any = dict.fromkeys(_OURS)  # what Typer suggests in place of a mistyped name
        self.commands = names

    def list_commands(self, context: Any) -> list[str]:
        """Return all names: ours as the help shows them, then the others sorted."""
        others = {each.name for each in _find_others()} - _OURS.keys()
        return [*_OURS, *sorted(others)]

    def get_command(self, context: Any, name: str) -> Any:
        """Return a command; one of ours goes before another of its name."""
        if name in _OURS or name == _DESCRIBE:
            return _make_ours(name)
        return next((_load(each) for each in _find_others() if each.name == name), None)

    def resolve_command(self, context: Any, words: list[str]) -> Any:
        """Return the command that the first word names, and the words for it."""
        words = _spell_out(words)
        name = words[0]
        if self.get_command(context, name) is None:
            if name == "-" or os.path.exists(name):
                return _DESCRIBE, self.get_command(context, _DESCRIBE), words
            if os.sep in name or os.path.splitext(name)[1]:
                raise MemplanError(f"{name}: is neither a command nor a file (see memplan --help)")
        return super().resolve_command(context, words)


def _spell_out(words: list[str]) -> list[str]:
    """Return a command line without a preset: the command that it stands for, and its options."""
    name, *rest = words
    if name not in _PRESETS:
        return words
    known, spelled = _OPTIONS.get(name, {}), iter(rest)
    words = [*_PRESETS[name]]
    for word in spelled:
        option, begin = known.get(word, (word, ""))
        words.append(option)
        if begin:
            words.append(begin + next(spelled, ""))
    return words


@cache
def _make_ours(name: str) -> Any:
    """Import the module of one of our commands, and no other, and make the command of it."""
    module = import_module(f"memplan.cli.{'describe' if name == _DESCRIBE else name}")
    app = typer.Typer(add_completion=False)
    running.add_command(app, module, _OURS.get(name), hidden=name == _DESCRIBE)
    return typer.main.get_command(app)


def _find_others() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


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
