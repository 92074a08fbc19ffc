"""Tests the words of the command line: help, examples, old names, and what is mistyped."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import memplan.cli
from memplan.cli import main

MODELS = Path(__file__).parents[2] / "examples" / "models"
GROUP: Any = typer.main.get_command(memplan.cli.app)
# The order in which the examples are run: a plan is made before it is looked at.
NAMES = sorted(GROUP.commands, key=lambda name: name != "plan")


def read_help(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the help of a command, or of the program."""
    assert main([*name.split(), "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_has_words_for_people(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that no type of Python and no range is shown, and that help for help is the last."""
    monkeypatch.setenv("COLUMNS", "120")
    text = read_help(name, capsys)
    assert not re.search(r"<[a-z |]+>|[0-9x]<=|x>=|\bTEXT\b", text)
    panels = re.findall(r"╭─ (\w+) ", text)
    assert panels == [each for each in PANELS if each in panels] or not name
    last = [line for line in text.splitlines() if re.match(r"│ [ *]*-", line)][-1]
    assert "--help" in last or not name


PANELS = (
    *("Arguments", "Options", "Machine", "Levers", "Programs"),
    *("Output", "Search"),
)


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_two_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the examples of a command are of this command, and in its help."""
    examples = import_module(f"memplan.cli.{name}").EXAMPLES
    _, _, end = read_help(name, capsys).partition("Examples:")
    shown = [line.strip() for line in end.strip().splitlines()]
    assert shown == list(examples)
    assert len(examples) == 2
    assert all(each.startswith(f"memplan {name}") for each in examples)


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests every example, in a folder with such files; those of `record` are only parsed."""
    pytest.importorskip("onnx")
    for name in ("model.tflite", "old.tflite", "new.tflite"):
        shutil.copy(MODELS / "mobile.tflite", name)
    shutil.copy(MODELS / "branches.onnx", "model.onnx")
    for name in ("problem.csv", "old.csv", "new.csv"):
        shutil.copy(MODELS.parent / "five.csv", name)
    for name in NAMES:
        for line in import_module(f"memplan.cli.{name}").EXAMPLES:
            words = shlex.split(line)[1:]
            if name == "record":
                GROUP.get_command(None, name).make_context(name, words[1:])
            else:
                assert main(words) == 0, capsys.readouterr().err


@pytest.fixture
def five() -> str:
    """Return a problem in a folder of its own."""
    shutil.copy(MODELS.parent / "five.csv", "five.csv")
    return "five.csv"


def test_what_may_be_repeated_still_may(five: str) -> None:
    """Tests options for several values, and flags."""
    assert main(["plan", five, "--pin", "b1=0", "--pin", "b4=0", "--minimize", "--minimize"]) == 0


def test_old_names_still_work(five: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests names that the help no longer shows, also with a value behind "=" and after "--"."""
    assert main(["stripes", str(MODELS / "mobile.tflite"), "--top", "1"]) == 0
    old = capsys.readouterr().out
    assert main(["bands", str(MODELS / "mobile.tflite"), "--top", "1"]) == 0
    assert capsys.readouterr().out == old
    for words in (["--arena-budget", "11"], ["--arena-budget=11"], ["--capacity", "11"]):
        assert main(["apply", five, "--c-header", "five.h", *words]) == 1
        assert "more than the capacity of 11" in capsys.readouterr().err
    assert main(["apply", five, "--stripes", "--bands", "--c-header", "a.h"]) == 2
    assert "no operators" in capsys.readouterr().err
    graph, found = str(MODELS / "residual.graph.json"), []
    for words in (["--order"], ["--levers", "order"], [five, "--together"], [five]):
        assert main(["plan", graph, *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert (found[0]["steps"], found[2]["axes"]) == (found[1]["steps"], found[3]["axes"])
    assert main(["plan", "--", "--stripes"]) == 2
    assert "--stripes: the file cannot be read" in capsys.readouterr().err


def test_convert_takes_its_output_in_both_ways(five: str) -> None:
    """Tests that the option writes what the argument does."""
    assert main(["convert", five, "a.json"]) == 0
    assert main(["convert", five, "-o", "b.json"]) == 0
    assert Path("a.json").read_text() == Path("b.json").read_text()


@pytest.mark.parametrize("name", ["plan", "inspect", "verify", "view", "compare"])
def test_commands_read_with_the_same_options(name: str) -> None:
    """Tests that all commands that look at an input have every option for reading it."""
    taken = {option for each in GROUP.get_command(None, name).params for option in each.opts}
    assert taken >= {
        "--dim", "--read", "--in-place", "--strict", "--alignment", "--runtime",
    }  # fmt: skip


def test_options_for_reading_have_an_effect(five: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what one declaration gives to a command reaches the reader."""
    pytest.importorskip("onnx")
    model = str(MODELS / "branches.onnx")
    command = ["order", model, "--no-runtime", "--json", "--dim"]
    loads = []
    for batch in ("batch=1", "batch=8"):
        assert main([*command, batch]) == 0
        loads.append(json.loads(capsys.readouterr().out)["steps"][0]["given_load"])
    assert loads[1] > 4 * loads[0]
    assert main([*command, "batch=1", "--alignment", "4096"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["given_load"] % 4096 == 0
    for command in (["compare", five, five], ["order", five], ["view", five], ["verify", five]):
        more = ["five.plan.csv"] * (command[0] == "verify")
        assert main([*command, *more, "--include", "inputs"]) == 2
        assert "does not distinguish kinds of tensors" in capsys.readouterr().err


def test_the_command_line_stays_small(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the number of commands, a help of one screen, and functions that fit one."""
    ours = [name for name in NAMES if getattr(GROUP.get_command(None, name), "callback", None)]
    assert len(ours) <= 11
    monkeypatch.setenv("COLUMNS", "100")
    for name in ours:
        assert len(read_help(name, capsys).splitlines()) <= 60, name
    for file in Path(memplan.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{file.name}: {node.name}"


def test_rare_options_are_shown_by_help_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the help of `plan` names the way to the others, which has every option."""
    short = read_help("plan", capsys)
    assert "--help-all shows" in " ".join(short.split())
    assert main(["plan", "--help-all"]) == 0
    long = capsys.readouterr().out
    assert "--penalties" not in short
    assert all(each.opts[0] in long for each in GROUP.get_command(None, "plan").params[2:])
    assert read_help("plan", capsys) == short
