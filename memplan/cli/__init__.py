"""The command line: `memplan plan`, `verify`, `inspect`, `explain`, ... and how each run ends.

A command parses, calls the library, prints. All errors pass through `main`, which makes one
sentence and an exit code of them. What costs time to import is imported inside the commands, so
that `memplan --version` and a mistyped option answer at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from inspect import cleandoc
from typing import Annotated, Any

import typer

from memplan.cli import (
    apply,
    bench,
    bench_contention,
    bench_latency,
    bench_repack,
    compare,
    convert,
    corpus,
    explain,
    inspect,
    learn,
    output,
    plan,
    record,
    report,
    solvers,
    sweep,
    verify,
    verify_proof,
    view,
)
from memplan.errors import MemplanError

__all__ = ["main"]

app = typer.Typer(
    name="memplan",
    help="Plan the memory of a program: place every buffer in one arena, and prove how good it is.",
    epilog="Exit codes: 0 done, 1 infeasible, an invalid plan or growth beyond a limit, "
    "2 bad input, 3 no plan in time.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    *(plan, verify, verify_proof, inspect, compare, explain),
    *(record, convert, apply, view, bench, bench_latency, bench_contention, bench_repack, solvers),
    *(sweep, report),
):
    # Rich keeps the line breaks of a docstring; help is as wide as the terminal.
    paragraphs = cleandoc(module.command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    app.command(module.NAME, help=text)(module.command)

app.add_typer(learn.app, name=learn.NAME)
app.add_typer(corpus.app, name=corpus.NAME)

# The base of Click's errors. Newer releases of Typer bring Click with them and older ones depend on
# it, so there is no one name to import it by.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.line(f"memplan {version('memplan')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(output.BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name; `None` takes those of the process.
    """
    if sys.stdout is None:  # closed by who runs it: nobody wants results
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open to the end)
    for stream in (sys.stdout, sys.stderr):
        # Names of buffers are anybody's text; a terminal that lacks a letter gets its number.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(arguments)
    except MemplanError as error:
        output.message(str(error))
        return output.BAD_INPUT
    except typer.Abort:
        return output.INTERRUPTED
    except _ClickException as error:
        output.message(_usage(error))
        return output.BAD_INPUT
    except MemoryError:
        output.message("there is not enough memory for this")
        return output.BAD_INPUT
    except Exception:
        traceback.print_exc()
        output.message("this is a defect of memplan; please report it with the lines above")
    return output.DEFECT


def _run(arguments: Sequence[str] | None) -> int:
    command: Any = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name="memplan", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        output.broken_pipe()
    except OSError as error:
        return output.unwritten(error)
    return code if isinstance(code, int) else output.OK


def _usage(error: Any) -> str:
    """Make one sentence of a mistake on the command line."""
    text = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "memplan"
    return f"{text[:1].lower()}{text[1:]} (see {path} --help)"
