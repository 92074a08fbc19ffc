"""Tests of `memplan plan A B`: programs in turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import refused, told

import memplan as mp
from memplan.cli import main
from memplan.problem import Buffer, Problem

ASKED = ("plan", "one.json", "two.json")


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder of its own, in which are two programs."""
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
    whole = "valid: 2 programs in an arena of 76 bytes; 2 buffers kept, 16 bytes"
    for name, other in (("one", "two"), ("two", "one")):
        alone = f"not checked: {other} alone; give all programs, and the folder of the plans"
        lines = told(capsys, "verify", f"{name}.json", f"plans/{name}.plan.json")
        assert lines[1:] == [whole, alone]
        assert told(capsys, "verify", f"{name}.json", "plans") == [whole, alone]
    for inputs in (("one.json", "two.json"), ("two.json", "one.json")):
        assert told(capsys, "verify", *inputs, "plans") == [whole]


def change(name: str, arena: int | None = None, **offsets: int) -> None:
    """Move buffers of a plan in "plans", in all that its file says of them."""
    path = Path(f"plans/{name}.plan.json")
    plan = json.loads(path.read_text())
    shared = plan["stats"]["shared"]
    for row in (*plan["buffers"], *shared["kept"]):
        row["offset"] = offsets.get(row["id"], row["offset"])
    plan["peak"] = max(row["offset"] + row["size"] for row in plan["buffers"])
    shared["arena"] = arena or max(plan["peak"], shared["arena"])
    path.write_text(json.dumps(plan))


@pytest.mark.parametrize(
    "words",
    [("one.json", "two.json", "plans"), ("one.json", "plans"), ("two.json", "plans"),
     ("one.json", "plans/one.plan.json"), ("two.json", "plans/two.plan.json")],
)  # fmt: skip
def test_what_is_written_over_is_found(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a plan that is right by itself, over the kept result of another program."""
    told(capsys, *ASKED, "--keep", "result", "--keep", "answer", "-o", "plans")
    change("two", b=0, answer=64)
    says = refused(capsys, "verify", *words, code=1)
    assert "both hold address" in says
    assert "but the first must keep its bytes" in says


def test_plans_that_are_not_of_one_arena_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests files that are missing, of another arena, or that contradict each other."""
    told(capsys, *ASKED, "--keep", "result", "--overlap", "one,two", "-o", "plans")
    whole = {path: path.read_text() for path in Path("plans").iterdir()}

    def refuse(code: int = 1, *words: str) -> str:
        said = refused(capsys, "verify", *(words or ("one.json", "plans")), code=code)
        for path, text in whole.items():
            path.write_text(text)
        return said

    Path("plans/two.plan.json").unlink()
    assert "there is no plan of two" in refuse()
    change("two", arena=140)
    assert "its arena has 140 bytes, but that of one has 132" in refuse()
    change("two", arena=131)
    assert "its arena has 131 bytes" in refuse()
    change("one", arena=60)
    change("two", arena=60)
    assert "is not as `memplan plan A B` writes it" in refuse(2)
    change("two", b=0, answer=0)
    assert "two both hold address" in refuse()
    text = whole[Path("plans/one.plan.json")]
    Path("plans/one.plan.json").write_text(text.replace('"overlap": ["two"]', '"overlap": []'))
    assert "it may overlap with one, whose plan does not say so" in refuse()
    changed = json.loads(text)
    changed["stats"]["shared"]["kept"][0]["offset"] += 1
    Path("plans/one.plan.json").write_text(json.dumps(changed))
    assert 'buffer "result" is kept at' in refuse()
    assert "above the capacity 131" in refuse(1, "one.json", "plans", "-c", "131")
    mp.save(Problem([Buffer("other", 0, 2, 60)]), "three.json")
    assert "is none of the programs" in refuse(2, "three.json", "plans")
    assert "is none of the programs" in refuse(2, "one.json", "one.json", "plans")
    assert "3 programs, but plans of 2" in refuse(2, "one.json", "two.json", "one.json", "plans")
    assert "no such file or folder" in refuse(2, "one.json", "two.json", "none")
    Path("empty").mkdir()
    assert "this folder has no plan" in refuse(2, "one.json", "two.json", "empty")
    Path("plans/again.plan.json").write_text(text)
    assert "plans/one.plan.json: it is of one, as is plans/again.plan.json" in refuse()
    Path("plans/again.plan.json").unlink()
    assert "it is of one program" in refuse(2, "one.json", "plans", "--pin", "a=0")
    assert "several programs need the folder" in refuse(
        2, "one.json", "two.json", "plans/one.plan.json"
    )
    Path("plans/three.plan.json").write_text(text.replace('"two"', '"three"'))
    assert "it is not the plan of one of the programs" in refuse()
    mp.save(mp.solve(mp.load("one.json")), "plans/three.plan.json")
    assert "this plan is not of a program that shares its arena" in refuse(2)


def test_a_plan_without_the_others_says_what_is_not_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests the plan of one program that was taken elsewhere."""
    told(capsys, *ASKED, "-o", "plans")
    Path("plans/one.plan.json").rename("one.plan.json")
    lines = told(capsys, "verify", "one.json", "one.plan.json")
    said = "not checked: the arena that it shares with two; there is no ./two.plan.json"
    assert lines[1:] == [said]


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record of programs that may run at the same time."""
    assert main([*ASKED, "--overlap", "one,two", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["together"]["peak"], record["together"]["lower_bound"], record["status"]) == (
        132,
        132,
        "optimal",
    )
    assert [each["overlap"] for each in record["together"]["programs"]] == [["two"], ["one"]]


def test_what_lies_in_several_places_is_verified_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests programs in two memories: `verify` takes the folder, or the file of the answer."""
    memories = ("--memory", "sram=70", "--memory", "psram")
    told(capsys, *ASKED, *memories, "--keep", "result", "-o", "plans")
    names = {path.name for path in Path("plans").iterdir()}
    assert {"answer.json", "one.sram.plan.json", "two.sram.plan.json"} <= names
    for path in ("plans", "plans/answer.json"):
        lines = told(capsys, "verify", "one.json", "two.json", path)
        assert lines[0] == "valid: the answer for 2 programs, with all of its parts"
    whole = Path("plans/answer.json")
    answer = json.loads(whole.read_text())
    (axis,) = answer["axes"]
    whole.write_text(json.dumps(answer | {"axes": [axis | {"found": axis["found"] + 1}]}))
    says = refused(capsys, "verify", "one.json", "two.json", "plans")
    assert "the status is optimal, but axes and plans say feasible" in says
    told(capsys, "plan", "one.json", "-o", "answer.json")  # a plan may have any name
    assert told(capsys, "verify", "one.json", "answer.json")[0].startswith("OK: 2 buffers")
    answer["parts"][0]["plan"]["buffers"][0]["offset"] += 8
    whole.write_text(json.dumps(answer))
    assert main(["verify", "one.json", "two.json", "plans"]) in (1, 2)
    assert "answer.json" in capsys.readouterr().err


def test_what_is_reserved_is_free_in_the_arena(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests plans of programs that leave addresses free, and one that does not."""
    told(capsys, *ASKED, "--reserve", "0:16", "-o", "plans")
    inputs = ("verify", "one.json", "two.json", "plans")
    assert told(capsys, *inputs, "--reserve", "0:16")[0].startswith("valid: ")
    said = refused(capsys, *inputs, "--reserve", "16:20", code=1)
    assert "lies on the reserved bytes [16, 20)" in said
