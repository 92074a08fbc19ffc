"""How a run of a program of commands ends: one sentence and an exit code, whatever went wrong."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from inspect import cleandoc
from typing import Annotated, Any

import typer

from memplan.cli import output
from memplan.errors import MemplanError

__all__ = ["add_command", "add_root", "run"]

# The base of Click's errors. Newer releases of Typer bring Click with them and older ones depend on
# it, so there is no one name to import it by.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def add_command(
    app: typer.Typer, module: Any, panel: str | None = None, *, hidden: bool = False
) -> None:
    """Add the `command` of a module under its `NAME`; its docstring is the help.

    The help of the program shows the commands of one panel together, and no hidden ones.
    """
    # Rich keeps the line breaks of a docstring; help is as wide as the terminal.
    paragraphs = cleandoc(module.command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    add = app.command(module.NAME, help=text, rich_help_panel=panel, hidden=hidden)
    add(module.command)


def add_root(app: typer.Typer) -> None:
    """Let a program show its version, and its help where no command is given."""
    app.callback(invoke_without_command=True)(_root)


def _show_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        program = str(context.find_root().info_name)  # a program has the name of its package
        output.line(f"{program} {version(program)}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(output.BAD_INPUT)


def run(app: typer.Typer, program: str, arguments: Sequence[str] | None) -> int:
    """Run one command; return its exit code.

    Parameters
    ----------
    app
        The commands.
    program
        Its name, for messages.
    arguments
        Without the program's name; `None` takes those of the process.
    """
    if sys.stdout is None:  # the caller closed it and wants no results
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open to the end)
    for stream in (sys.stdout, sys.stderr):
        # Names of buffers may hold any text; a terminal that lacks a letter gets its number.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _finish(app, program, arguments)
    except MemplanError as error:
        output.message(str(error))
        return output.BAD_INPUT
    except typer.Abort:
        return output.INTERRUPTED
    except _ClickException as error:
        output.message(_format_usage(error, program))
        return output.BAD_INPUT
    except MemoryError:
        output.message("there is not enough memory for this")
        return output.BAD_INPUT
    except Exception:
        traceback.print_exc()
        output.message("this is a defect of memplan; please report it with the lines above")
    return output.DEFECT


def _finish(app: typer.Typer, program: str, arguments: Sequence[str] | None) -> int:
    command: Any = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        output.exit_on_broken_pipe()
    except OSError as error:
        return output.report_unwritten(error)
    return code if isinstance(code, int) else output.OK


def _format_usage(error: Any, program: str) -> str:
    """Return a mistake on the command line as one sentence."""
    text = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program
    return f"{text[:1].lower()}{text[1:]} (see {path} --help)"
