"""The reference of the command line, made of the program itself, so that it cannot be out of date.

The page `reference/commands.md` says where: its line `<!-- commands -->` becomes a section for each
command with its arguments and options, as `memplan COMMAND --help` knows them. On any page, a line
`<!-- options of SOLVER -->` becomes the table of that solver's options, as `memplan solvers SOLVER`
lists them, `<!-- notes -->` the table of the codes of notes, and `<!-- figures -->` that of the
figures of the front page, of `lab/tests/figures.csv`. `<!-- what does not combine -->` becomes the
table of pairs of levers, scenarios and machines that `memplan.plan` refuses.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "<!-- commands -->"
NOTES = "<!-- notes -->"
FIGURES = "<!-- figures -->"
REASONS = "<!-- what does not combine -->"
OPTIONS = re.compile(r"^<!-- options of (\w+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put commands, options and notes where a page asks for them (an event of MkDocs)."""
    markdown = markdown.replace(NOTES, note_table()) if NOTES in markdown else markdown
    markdown = markdown.replace(FIGURES, figure_table()) if FIGURES in markdown else markdown
    markdown = markdown.replace(REASONS, reason_table()) if REASONS in markdown else markdown
    markdown = OPTIONS.sub(lambda mark: option_table(mark[1]), markdown)
    return markdown.replace(MARK, commands()) if MARK in markdown else markdown


def option_table(solver: str) -> str:
    """Return the table of a solver's options; `exact` has those of `prover` too, not told again."""
    from memplan.solvers import registry

    prover = registry.SOLVERS["prover"].options
    lines = [f"| option of `{solver}` | default | means |", "|---|---|---|"]
    for name, default, says in registry.options_of(solver):
        if solver != "exact" or name not in prover:
            lines.append(f"| `{name}` | {default} | {says} |")
    return "\n".join(lines)


def reason_table() -> str:
    """Return the table of pairs that do not combine, with the reason of each."""
    from memplan.ask import supports

    lines = ["| pair | why it does not combine |", "|---|---|"]
    for pair, reason in supports.REASONS.items():
        lines.append(f"| {' and '.join(sorted(pair, key=supports.IDEAS.index))} | {reason} |")
    return "\n".join(lines)


def figure_table() -> str:
    """Return the table of figures with the command that repeats each."""
    path = Path(__file__).parents[2] / "lab" / "tests" / "figures.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["figure"], row["command"]) for row in csv.DictReader(file)]
    lines = ["| figure | command |", "|---|---|"]
    return "\n".join(lines + [f"| {said} | `{command}` |" for said, command in rows])


def note_table() -> str:
    """Return the table of codes of notes, with what the source says beside each."""
    from memplan.base import notes

    source = Path(notes.__file__).read_text(encoding="utf-8")
    rows = re.findall(r"^    [A-Z_]+ = \"([a-z-]+)\"  # (.+)$", source, re.MULTILINE)
    lines = ["| code | what happened |", "|---|---|"]
    return "\n".join(lines + [f"| `{code}` | {says} |" for code, says in rows])


def commands() -> str:
    """Return a section for each command of both programs, in the order of their help."""
    import typer

    import memplan.cli
    import memplan_lab.cli

    parts: list[str] = []
    for name, app in (("memplan", memplan.cli.app), ("memplan-lab", memplan_lab.cli.app)):
        group = typer.main.get_command(app)
        parts += _sections(group, typer.Context(group, info_name=name), depth=2)
    return "\n\n".join(parts)


def _sections(group: Any, parent: Any, depth: int) -> Iterator[str]:
    for name in group.commands:
        command = group.get_command(None, name)
        if command.hidden:  # docs/cli.md describes it
            continue
        context = type(parent)(command, parent=parent, info_name=name)
        yield _section(command, context, depth)
        if hasattr(command, "commands"):
            yield from _sections(command, context, depth + 1)


def _section(command: Any, context: Any, depth: int) -> str:
    path = context.command_path
    arguments, options = [], []
    context.meta["--help-all"] = True  # rare options too
    for parameter in command.get_params(context):
        if "--help" in parameter.opts:
            continue
        is_argument = parameter.param_type_name == "argument"
        if (record := parameter.get_help_record(context)) is not None:
            (arguments if is_argument else options).append(record)
    heading = f"{'#' * depth} {path} {{ #{path.replace(' ', '-')} }}"
    parts = [heading, *map(_prose, (command.help or "").replace("\f", "").split("\n\n"))]
    if not hasattr(command, "commands"):
        usage = [path, *(["[OPTIONS]"] if options else []), *map(_usage, arguments)]
        parts.append("```text\n" + " ".join(usage) + "\n```")
    if arguments:
        parts.append(_table(("argument", "meaning"), arguments))
    if options:
        parts.append(_table(("option", "effect"), options))
    if command.epilog and not hasattr(command, "commands"):
        parts.append(f"```text\n{command.epilog}\n```")
    return "\n\n".join(parts)


def _usage(argument: tuple[str, str]) -> str:
    name = argument[0].split(" <")[0].strip("[]")
    return name if "required]" in argument[1] else f"[{name}]"


def _table(head: tuple[str, str], records: list[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    for names, help in records:
        cells = (f"`{names}`", _prose(help).replace("|", "\\|"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Return a help text as Markdown on one line; what is bare in it could be read as HTML."""
    return re.sub(r"(?<!`)<([^>`]*)>", r"&lt;\1&gt;", " ".join(text.split()))
