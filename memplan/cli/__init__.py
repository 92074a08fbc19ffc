"""The command line: `memplan plan`, `verify`, `inspect`, `compare`, ...

A command parses, calls the library, and prints. `running` makes one sentence and an exit code of
every error. `plugins` imports the one command that is called, and commands import slow modules
inside of their functions, so that `memplan --version` and a mistyped option answer at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from memplan.cli import running
from memplan.cli.plugins import Commands

__all__ = ["main"]

app = typer.Typer(
    name="memplan",
    cls=Commands,
    help="Plan the memory of a program: place every buffer in one arena, and prove how good the "
    "plan is. `memplan FILE` shows what a file is, and what can be done with it.",
    epilog="`order`, `recompute`, `envelope` and `apply` are short for `plan` with some of its "
    "options, and `bands` for `tradeoff`. Exit codes: 0 done; 1 infeasible, an invalid plan, or "
    "growth beyond a limit; 2 bad input; 3 no plan in time.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
running.add_root(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    The arguments are without the program's name; `None` takes those of the process.
    """
    return running.run(app, "memplan", arguments)
