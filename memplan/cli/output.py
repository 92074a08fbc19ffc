"""Where results and messages go, how a run ends, and which files may be written."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn, TextIO

import typer

from memplan.base.errors import FormatError, MemplanError, listed

if TYPE_CHECKING:
    from rich.console import Console

    from memplan.problem.plan import Plan

# These are the exit codes. Click ends with 2 after an error of the command line, as we do.
OK = 0
INFEASIBLE = 1  # proved; also for a plan that does not verify, and for growth beyond a limit
BAD_INPUT = 2
UNKNOWN = 3  # the budget ended without a plan
DEFECT = 70  # memplan has one; EX_SOFTWARE of sysexits.h, so that 1 keeps its meaning
INTERRUPTED = 130  # as shells count: 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM

UNWRITTEN = 74  # the results could not be written, on a full disk, say; EX_IOERR of sysexits.h

JSON_VERSION = 1  # of what `--json` prints; it grows if a field changes its meaning or goes

# The user's names of files that were copied, by copy: messages name what the user named.
names: dict[str, str] = {}

# What a plan is written as, by suffix; see `check_suffix`.
PLANS = {".json": "JSON", ".csv": "a table"}

_WIDTH_OF_FILES = 140
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def console() -> Console:
    """Return standard output as Rich writes to it: no colour in files and pipes."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            exit_on_broken_pipe()

    # A file has no width, and Rich's default of 80 would fold names.
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_FILES
    return Output(width=wide, markup=False, highlight=False, emoji=False, soft_wrap=False)


def line(text: str) -> None:
    """Print one line of a result."""
    try:
        typer.echo(text)
    except BrokenPipeError:  # Click would exit with 1, which means infeasible here
        exit_on_broken_pipe()


def make_json(record: Mapping[str, object]) -> str:
    """Return facts for scripts as one line of JSON, which says the version of its fields."""
    return json.dumps({"version": JSON_VERSION, **record})


def message(text: str) -> None:
    """Say something that is not a result, in one line on standard error."""
    for copy, name in names.items():
        text = text.replace(copy, name)
    try:
        typer.echo(f"memplan: {text}", err=True)
    except OSError:  # a standard error that takes nothing must not change the exit code
        _drop(sys.stderr)


def tell_interrupted(interrupted: bool, status: str) -> None:
    """Say that Ctrl-C ended a search, if it did, and what is known of its answer."""
    if interrupted:
        message(f"interrupted: {status}{'' if status == 'optimal' else ', not proved'}")


def exit_on_broken_pipe() -> NoReturn:
    """End quietly, because the program that read the results has closed its end."""
    _drop(sys.stdout)
    raise SystemExit(BROKEN_PIPE)


def report_unwritten(error: OSError) -> int:
    """Say that the results cannot be written, and return the exit code; raise any other error."""
    if error.errno not in _NO_ROOM:
        raise error
    _drop(sys.stdout)
    reason = (error.strerror or str(error)).lower()
    message(f"the results cannot be written to standard output: {reason}")
    return UNWRITTEN


def _drop(stream: TextIO) -> None:
    # The interpreter flushes the stream once more at its end, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def check_output(path: str | None, *inputs: str) -> None:
    """Refuse an output file that could not be written, before the work and not after it.

    It may be in a folder that is made when the file is written, but not be one of the inputs.
    """
    if path is None:
        return
    require_name(path, "an output")
    if any(_same(path, each) for each in inputs):
        raise FormatError(path, "this is the input; choose another file for the output")
    if os.path.isdir(path):
        raise FormatError(path, "this is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        return  # a pipe or a device, such as /dev/stdout, needs no folder that can be written
    _check_room(path, "file")


def require_name(path: str, what: str) -> None:
    """Refuse a file or folder with an empty name, as an unset variable makes it."""
    if not path:
        raise MemplanError(f"the name of {what} is empty, as an unset variable makes it")


def _check_room(path: str, what: str) -> None:
    """Refuse a file or a folder where it can be neither written nor made."""
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise FormatError(path, f"the {what} cannot be written: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise FormatError(path, f"the {what} cannot be written: its folder is read-only")


def check_suffix(path: str | None, kinds: Mapping[str, str]) -> None:
    """Refuse an output file whose name ends like a file of another kind, before the work.

    A name without a suffix, and a pipe or a device, may be of any kind. `kinds` has what each
    suffix stands for, in words; the error has all of them.
    """
    if path is None or (os.path.exists(path) and not os.path.isfile(path)):
        return
    suffix = os.path.splitext(path)[1].lower()
    if suffix and suffix not in kinds:
        words = [
            f"{listed([each for each in kinds if kinds[each] == what], quote=False)} for {what}"
            for what in dict.fromkeys(kinds.values())
        ]
        raise FormatError(path, f"the suffix must be {' or '.join(words)}")


def tell_written(*paths: str | None) -> None:
    """Say which files were written, a line for each; every command that writes files says so here.

    A pipe or a device gets no line, as that may be the standard output.
    """
    for path in paths:
        if path is not None and (os.path.isfile(path) or not os.path.exists(path)):
            line(f"{path}: written")


def check_outputs(outputs: Mapping[str, str | None], *inputs: str) -> None:
    """Refuse output files, by option, as `check_output` does, and one file for two options."""
    known: dict[str, str] = {}
    for option, path in outputs.items():
        check_output(path, *inputs)
        other = option if path is None else known.setdefault(os.path.realpath(path), option)
        if other != option:
            raise typer.BadParameter(f"{other} names the same file", param_hint=f"'{option}'")


def exit_code(plan: Plan, interrupted: bool) -> int:
    """Return the exit code of a search for a plan."""
    if plan.has_offsets:
        return OK
    if interrupted:
        return INTERRUPTED
    return INFEASIBLE if plan.status == "infeasible" else UNKNOWN


def check_folder(path: str | None) -> None:
    """Make sure before the work that several files can go into a folder, which may be new."""
    if path is None:
        return
    require_name(path, "an output")
    is_new = not os.path.exists(path)
    if os.path.splitext(path)[1] if is_new else not os.path.isdir(path):
        raise typer.BadParameter(
            f"{path!r} is no folder; several files go into it", param_hint="'--output'"
        )
    _check_room(os.path.join(path, "file"), "folder")


def refuse_given(options: Mapping[str, bool], why: str) -> None:
    """Refuse the first option that is given, with the sentence `why`."""
    for option, is_given in options.items():
        if is_given:
            raise typer.BadParameter(why, param_hint=f"'{option}'")


def choose_drawing(path: str | None, *inputs: str, solvers: Iterable[str] = ()) -> str | None:
    """Return whether a suffix asks for a page, or for which kind of picture, before the work.

    Libraries that draw it, or read the inputs, have to be there.
    """
    if path is None:
        check_libraries(*inputs, solvers=solvers)
        return None
    from memplan.view import picture

    if path.lower().endswith(".html"):
        form = "html"
    else:
        try:
            form = picture.format_of(path)
        except FormatError:
            message = "the suffix must be .html for a page, or .png, .svg or .pdf for a picture"
            raise FormatError(path, message) from None
    extra = "view" if form == "html" else "plot"
    check_libraries(*inputs, extras=(extra,), solvers=solvers)
    return form


def check_libraries(*inputs: str, extras: Iterable[str] = (), solvers: Iterable[str] = ()) -> None:
    """Refuse what needs libraries that are not there, before the work: all in one sentence.

    Inputs are files that will be read, solvers will be called (one that does not exist is refused
    too), and extras are what else is needed.
    """
    from memplan.base.extras import check
    from memplan.programs.sources import find_extra
    from memplan.solvers import registry

    for solver in solvers:
        registry.check_libraries(registry.parse(solver)[0])
    needed = (find_extra(path) for path in inputs)
    check(*extras, *(each for each in needed if each is not None))


def _same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them does not exist, so that they differ
        return False
