"""Tests of `memplan plan A B --together`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import refused, told

import memplan as mp
from memplan.cli import main
from memplan.problem import Buffer, Problem

ASKED = ("plan", "one.json", "two.json", "--together")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of its own, in which are two programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    mp.save(Problem([Buffer("a", 0, 2, 60), Buffer("result", 1, 3, 8)]), "one.json")
    mp.save(Problem([Buffer("b", 0, 1, 64), Buffer("answer", 1, 2, 8)]), "two.json")
    Path("plans").mkdir()


def test_an_arena_and_a_plan_for_each_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words, and that `verify` takes each plan for its program."""
    lines = told(capsys, *ASKED, "--keep", "result", "--keep", "two:answer", "-o", "plans")
    for line in (
        "programs 2, in any order",
        "arena 76 bytes; proved: no arena is smaller",
        "by hand 84 bytes: the largest arena, with copies of what is kept",
        "separate 148 bytes: an arena for each program",
        "plans/one.plan.json: written",
    ):
        assert line in lines
    assert any(line.startswith("one 2") and line.endswith("1 buffer, 8 bytes") for line in lines)
    for name in ("one", "two"):
        told(capsys, "verify", f"{name}.json", f"plans/{name}.plan.json")


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record of programs that may run at the same time."""
    assert main([*ASKED, "--overlap", "one,two", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["peak"], record["lower_bound"], record["status"]) == (132, 132, "optimal")
    assert [each["overlap"] for each in record["programs"]] == [["two"], ["one"]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("plan", "one.json", "two.json"), "several programs need --together"),
        (("plan", "one.json", "--together"), "at least two programs"),
        (("plan", "one.json", "--keep", "a"), "it needs --together"),
        ((*ASKED, "--keep", "c"), 'no tensor "c"'),
        ((*ASKED, "--overlap", "one"), "'one' is not A,B"),
        ((*ASKED, "--overlap", "one,one"), "cannot overlap with itself"),
        ((*ASKED, "--order"), "it is of one program"),
        ((*ASKED, "--pin", "a=0"), "it is of one program"),
        ((*ASKED, "--minimize", "-c", "100"), "it is of one program"),
        ((*ASKED, "--solver", "greedy"), "it is of one program"),
        ((*ASKED, "--top", "3"), "it is of one program"),
        ((*ASKED, "--progress"), "it is of one program"),
        ((*ASKED, "--spill", "1GB/s"), "it is of one program"),
        ((*ASKED, "-o", "plan.json"), "is no folder"),
        ((*ASKED, "-c", "60"), "do not fit into one arena of 60 bytes"),
        (("plan", "one.json", "none.json", "--together"), "none.json"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that each wrong question is answered in one sentence, and that nothing is written."""
    code = 1 if "do not fit" in sentence else 2
    assert sentence in refused(capsys, *words, code=code)
    assert not any(Path("plans").iterdir())
