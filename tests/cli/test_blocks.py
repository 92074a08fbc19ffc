"""Tests of `memplan plan --block-limit`, and of `memplan verify` on what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import refused, told

import memplan as mp
from memplan.cli import main
from memplan.problem import Buffer, Problem

ASKED = ("plan", "three.json", "--block-limit", "100")


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder of its own, in which is a problem."""
    mp.save(Problem([Buffer(id, 0, 1, 40) for id in "abc"]), "three.json")
    Path("plans").mkdir()


def test_blocks_and_a_plan_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words, and that `verify` takes the folder with all plans."""
    lines = told(capsys, *ASKED, "-o", "plans")
    for line in (
        "blocks 2, none above 100 bytes; proved: no plan has fewer",
        "in all 120 bytes; proved: no plan has less",
        "1 2 80 bytes 80.0 %",
        "plans/block-2.plan.json: written",
    ):
        assert line in lines
    assert told(capsys, "verify", "three.json", "plans") == [
        "valid: 2 blocks of at most 100 bytes, 120 bytes in all"
    ]


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record, with a pin from the command line."""
    assert main([*ASKED, "--pin", "b=60", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["blocks"]["count"], record["blocks"]["total"], record["status"]) == (
        2,
        140,
        "optimal",
    )
    assert [each["peak"] for each in record["blocks"]["blocks"]] == [100, 40]


def test_a_buffer_above_the_limit_has_a_block_of_its_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests the words, the note, its record, and that `verify` knows which block may be higher."""
    rows = [Buffer("big", 0, 2, 150), *(Buffer(id, 1, 3, 40) for id in "abc")]
    mp.save(Problem(rows), "big.json")
    asked = ("plan", "big.json", "--block-limit", "100")
    lines = told(capsys, *asked, "-o", "plans")
    assert "blocks 3, 1 above 100 bytes; proved: no plan has fewer" in lines
    assert any(line.startswith('note: buffer "big" has 150 bytes, more than') for line in lines)
    assert main([*asked, "--json"]) == 0
    [note] = json.loads(capsys.readouterr().out)["notes"]
    assert (note["code"], note["tensors"]) == ("block-limit", ["big"])
    assert told(capsys, "verify", "big.json", "plans") == [
        "valid: 3 blocks, 1 above 100 bytes, 270 bytes in all"
    ]
    path = Path("plans/block-2.plan.json")
    document = json.loads(path.read_text())
    document["buffers"][1]["offset"], document["peak"] = 80, 120
    path.write_text(json.dumps(document))
    assert "beyond the capacity 100" in refused(capsys, "verify", "big.json", "plans", code=1)


def test_wrong_folders_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a block that is missing, one that is alone, and one of an earlier plan."""
    told(capsys, *ASKED, "-o", "plans")
    one = refused(capsys, "verify", "three.json", "plans/block-1.plan.json")
    assert "is one of 2 blocks" in one
    assert "none of these 1 plans" in refused(capsys, *ASKED[:-1], "200", "-o", "plans")
    path, copy = Path("plans/block-2.plan.json"), Path("plans/again.plan.json")
    copy.write_text(path.read_text())
    assert 'buffer "c" is in' in refused(capsys, "verify", "three.json", "plans", code=1)
    told(capsys, "plan", "three.json", "-o", str(copy))
    said = refused(capsys, "verify", "three.json", "plans")
    assert "again.plan.json: this plan is not of one of several blocks" in said
    copy.unlink()
    path.unlink()
    assert main(["verify", "three.json", "plans"]) == 1
    assert 'buffer "c" is in no block' in capsys.readouterr().err
