"""How a run of a program of commands ends: one sentence and an exit code, whatever went wrong."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from memplan.base.errors import CapacityError, InfeasibleError, MemplanError, NoPlanError
from memplan.cli import output

__all__ = ["Command", "Group", "add_command", "add_root", "run"]

# The help shows the options of these panels, the most used first; those behind "|" are rare, and
# shown by `--help-all`.
_PANELS = {
    "Machine": "--capacity --alignment --memory --machine --board | --block-limit --penalties "
    "--allow --reads --residency --pin --reserve --minimize",
    "Levers": "--levers --in-place | --max-extra-macs --spill --costs --pure --accept",
    "Programs": "--dim --keep | --where --overlap --often --path --known --read --strict",
    "Output": "--output --json --quiet | --overwrite --shim --name --plan --program --proof "
    "--trace --format --top --progress --runtime --measure",
    "Search": "--timeout | --nodes --threads --seed --solver",
}
_PLACES = {
    name: (panel, place)
    for place, (panel, name) in enumerate(
        (panel, name) for panel, names in _PANELS.items() for name in names.split() if name != "|"
    )
}
_RARE = {name for names in _PANELS.values() for name in names.partition("|")[2].split()}
_MANY = 12  # options of a command whose help leaves out the rare ones
_ALL = "--help-all"
_THREADS = "OPENBLAS_NUM_THREADS"
# Old words still work, in all commands or in one. The last of the new ones takes the value; where
# that ends with "=", "," or ":", the value is written behind it.
_OLD_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "": {
        "--arena-budget": ("--capacity",),
        "--stripes": ("--bands",),
        "--states": ("--nodes",),
        "--kernels": ("--board", ","),
        "--allow-inexact": ("--accept", "inexact"),
        "--allow-refused": ("--accept", "refused"),
        "--read-all": ("--read", "every-size"),
        "--replan": ("--read", "no-offsets"),
        "--fused": ("--read", "fused"),
        "--no-fused": ("--read", "no-fused"),
        "--runtime-order": ("--read", "runtime-order"),
        "--include": ("--read", "include="),
        "--exclude": ("--read", "exclude="),
        "--device": ("--read", "device="),
        "--allocation": ("--read", "allocation="),
        "--limit-factor": ("--read", "limit-factor="),
    },
    "plan": {
        "--together": (),
        "--order": ("--levers", "order"),
        "--recompute": ("--levers", "again"),
        "--bands": ("--levers", "bands"),
        "--stripes": ("--levers", "bands"),
        "--sync": ("--levers", "waits", "--program"),
        "--c-header": ("--output", "header:"),
    },
}
_VALUES = {
    "str": "TEXT",
    "int": "N",
    "int range": "N",
    "float": "NUMBER",
    "float range": "NUMBER",
    "path": "FILE",
}

# The base of Click's errors. Newer releases of Typer bring Click with them and older ones depend on
# it, so there is no one name to import it by.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class _PlainHelp:
    """Help that shows neither types nor ranges, and options in panels."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments, options of its own, and the panels; help is the last of the last."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        found.sort(key=_find_place)  # the sort is stable
        last = next((_panel_of(each) for each in reversed(found) if _panel_of(each)), None)
        rare = [each for each in found if _RARE & {*each.opts}] if len(found) > _MANY else []
        for each in found:
            _hide_type(each)
            _take_plain_values(each)
            each.hidden = each in rare and not ctx.meta.get(_ALL)
            if "--help" in each.opts:
                each.rich_help_panel = last
                if rare:
                    each.help = f"Show this message; {_ALL} shows {len(rare)} options more."
            elif each.param_type_name != "argument":
                each.rich_help_panel = _panel_of(each)
        return found


class Command(_PlainHelp, TyperCommand):
    """A command of a program, which takes each value once, and old names of options too."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; NumPy is imported first."""
        _import_numpy()
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line.

        An option for one value that occurs twice is refused, as one of the values would be lost.
        """
        args = _rename_options(args, str(self.name))
        if _ALL in args:
            ctx.meta[_ALL] = True
            args = ["--help"]
        seen = set()
        for each in self.make_parser(ctx).parse_args(args=list(args))[2]:
            option: Any = each
            if option.param_type_name == "argument" or option.multiple or option.is_flag:
                continue
            if option in seen and not ctx.resilient_parsing:
                raise typer.BadParameter("it is given twice", param_hint=f"'{option.opts[0]}'")
            seen.add(option)
        return super().parse_args(ctx, args)


def _import_numpy() -> None:
    """Import NumPy without the threads of its algebra, one a core, which no command needs."""
    if _THREADS in os.environ:
        import numpy
    else:
        os.environ[_THREADS] = "1"
        import numpy  # noqa: F401

        del os.environ[_THREADS]  # libraries that are imported later may use all cores


class Group(_PlainHelp, TyperGroup):
    """The commands of a program."""


def _rename_options(words: list[str], command: str) -> list[str]:
    """Return a command line with today's names of options in place of old ones."""
    end = words.index("--") if "--" in words else len(words)
    known = _OLD_NAMES[""] | _OLD_NAMES.get(command, {})
    renamed: list[str] = []
    rest = iter(words[:end])
    for word in rest:
        name, equals, value = word.partition("=")
        new = known.get(name)
        if new is None:
            renamed.append(word)
        elif new and new[-1].endswith(("=", ",", ":")):
            renamed += [*new[:-1], new[-1] + (value if equals else next(rest, ""))]
        elif new:
            renamed += [*new[:-1], f"{new[-1]}{equals}{value}"]
    return _join_kernels(renamed) + words[end:]


def _join_kernels(words: list[str]) -> list[str]:
    """Let the kernels that an old option named stand behind the name of the board."""
    at = [number for number, word in enumerate(words) if word.partition("=")[0] == "--board"]
    at = [number for number in at if "=" in words[number] or number + 1 < len(words)]
    values = [
        words[each].partition("=")[2] if "=" in words[each] else words[each + 1] for each in at
    ]
    if len(values) != 2 or sum(each.startswith(",") for each in values) != 1:
        return words
    for each in at[::-1]:
        words = words[:each] + words[each + (1 if "=" in words[each] else 2) :]
    return [*words, "--board", "".join(sorted(values, key=lambda each: each.startswith(",")))]


def _panel_of(option: Any) -> str | None:
    return _PLACES.get(option.opts[0], (None, 0))[0]


def _find_place(parameter: Any) -> int:
    if parameter.param_type_name == "argument":
        return -2
    return (
        len(_PLACES) if "--help" in parameter.opts else _PLACES.get(parameter.opts[0], ("", -1))[1]
    )


def _hide_type(parameter: Any) -> None:
    """Let the help show a name for a value, and nothing for a flag or beside an argument."""
    show_type = getattr(parameter, "display_type_rich", None)
    if show_type is None or "display_type_rich" in vars(parameter):
        return  # older releases of Typer show less by themselves; or this is done
    is_bare = parameter.param_type_name == "argument" or parameter.is_flag

    def show(ctx: Any) -> str | None:
        if is_bare:
            return None
        text = str(show_type(ctx)).strip("<>")
        return _VALUES.get(text, text)

    parameter.display_type_rich = show
    parameter._get_number_range_help_str = lambda: None


def _take_plain_values(parameter: Any) -> None:
    """Let a parameter take values that need no conversion as they are.

    For others Typer imports pydantic, which takes as long as a quarter of `memplan plan`.
    """
    convert = getattr(parameter, "get_runtime_param", None)  # older releases have no pydantic
    if convert is not None and "get_runtime_param" not in vars(parameter):
        parameter.get_runtime_param = lambda: _PlainValues(convert)


class _PlainValues:
    """Converts the value of an option as Typer does, and asks Typer only where it has to."""

    def __init__(self, convert: Callable[[], Any]) -> None:
        self._convert = convert

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a value of the type that the command declares."""
        declared, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if value is None:
            return () if param.multiple or param.nargs < 0 else None
        if isinstance(value, str) and not param.multiple:
            if info.parser is not None:
                return info.parser(value)
            if declared is str:
                return value
        elif declared == list[str] or (isinstance(declared, type) and isinstance(value, declared)):
            return value
        return self._convert().coerce(value, param, ctx)


def add_command(
    app: typer.Typer, module: Any, panel: str | None = None, *, hidden: bool = False
) -> None:
    """Add the `command` of a module under its `NAME`; its docstring is the help.

    `EXAMPLES` of the module are command lines that the help ends with. The help of the program
    shows the commands of one panel together, and no hidden ones.
    """
    # Rich keeps the line breaks of a docstring; help is as wide as the terminal.
    paragraphs = cleandoc(module.command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    examples = "\n".join(f"  {line}" for line in getattr(module, "EXAMPLES", ()))
    add = app.command(
        module.NAME,
        cls=Command,
        help=text,
        epilog=f"Examples:\n{examples}".replace("[", "\\[") if examples else None,
        rich_help_panel=panel,
        hidden=hidden,
    )
    add(_spread_options(module.command))


def _spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes all options of a group in place of a parameter of that class."""
    given = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        each.name: each.annotation
        for each in given.parameters.values()
        if is_dataclass(each.annotation)
    }
    if not groups:
        return command
    parts = {name: _list_options(group) for name, group in groups.items()}
    every = []
    for each in given.parameters.values():
        every += parts.get(each.name) or [each.replace(kind=Parameter.KEYWORD_ONLY)]

    def spread(**words: Any) -> None:
        for name, group in groups.items():
            words[name] = group(**{each.name: words.pop(each.name) for each in parts[name]})
        command(**words)

    made: Any = spread
    made.__signature__ = given.replace(parameters=every)
    made.__annotations__ = {each.name: each.annotation for each in every}
    return spread


def _list_options(group: Any) -> list[Parameter]:
    """Return the fields of a class that are options, as parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hint)
        for each in fields(group)
        if get_origin(hint := hints[each.name]) is Annotated
    ]


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
    """Run one command of a program; return its exit code.

    The arguments are without the program's name; `None` takes those of the process.
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
        return _find_code(error)
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


def _find_code(error: MemplanError) -> int:
    """Return the exit code of an error: what is proved, what is not known, and a user's mistake."""
    if isinstance(error, (InfeasibleError, CapacityError)):
        return output.INFEASIBLE
    return output.UNKNOWN if isinstance(error, NoPlanError) else output.BAD_INPUT


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
    text = re.sub(r" \(Possible options?: (.*)\)$", r"; did you mean \1?", text)
    text = text.replace(". Did you mean", "; did you mean")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program
    return f"{text[:1].lower()}{text[1:]} (see {path} --help)"
