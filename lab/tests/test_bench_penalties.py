"""Tests of `memplan-lab bench penalties`, on files that the test writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memplan_lab.bench import files
from memplan_lab.cli import main


def write(path: Path, capacity: int) -> None:
    """Write three tiles of 8 bytes, of which any two share at a cost."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffers = [
        {
            "id": at,
            "size": 8,
            "alignment": 1,
            "allowed_pools": [0],
            "live_intervals": [{"lower": at, "upper": at + 1}],
        }
        for at in range(3)
    ]
    pairs = [{"first": a, "second": b, "cost": 5 - b} for a, b in ((0, 1), (1, 2), (0, 2))]
    pool = {"id": 0, "capacity": capacity, "reserved_ranges": []}
    problem = {
        "pools": [pool],
        "buffers": buffers,
        "constraints": {"separations": []},
        "cost_model": {"reuse_penalties": pairs},
    }
    path.write_text(json.dumps({"problem": problem}))


def test_costs_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the facts about two files, one of which nothing fits, and of those that are lifted."""
    write(tmp_path / "pypto" / "a-soft.json", 16)
    write(tmp_path / "pypto" / "b-soft.json", 7)
    asked = ["bench", "penalties", "--data", str(tmp_path), "--markdown"]
    assert main([*asked, "--details"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].startswith("| a-soft | 3 | 3 | optimal | ")
    assert lines[5].startswith("| b-soft | 0 | 0 | infeasible | 0 |")
    assert lines[-1].startswith("| 2 | 2 | 3 | 3 | ")
    write(tmp_path / "minimalloc-dsa-rp" / "A.json", 16)
    assert main([*asked, "--set", "lifted", "--set", "unequal"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("| 1 | 1 | ")
    rows = tmp_path / "rows.parquet"
    assert main([*asked, "--json", "-o", str(rows)]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told == files.read(rows)
    assert [row["case"] for row in told] == ["a-soft", "b-soft"]


def test_folders_without_such_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests an empty folder, and a file that is something else."""
    assert main(["bench", "penalties", "--data", str(tmp_path)]) == 2
    assert "has no files" in capsys.readouterr().err
    (tmp_path / "pypto").mkdir()
    (tmp_path / "pypto" / "x-soft.json").write_text("{}")
    assert main(["bench", "penalties", "--data", str(tmp_path)]) == 2
    assert "x-soft.json: it is no dsa.json" in capsys.readouterr().err
