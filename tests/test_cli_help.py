"""Tests what `--help` shows of each command, and that its examples are true."""

from __future__ import annotations

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

MODELS = Path(__file__).parent.parent / "examples" / "models"
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


PANELS = ("Arguments", "Options", "Constraints", "Output", "Search", "Input")


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_two_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the examples of a command are of this command, and in its help."""
    examples = import_module(f"memplan.cli.{name}").EXAMPLES
    _, _, end = read_help(name, capsys).partition("Examples:")
    shown = [line.strip() for line in end.strip().splitlines()]
    assert shown == list(examples)
    assert len(examples) == 2
    assert all(each.startswith(f"memplan {name}") for each in examples)


def test_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests every example, in a folder with such files; those of `record` are only parsed."""
    monkeypatch.chdir(tmp_path)
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
