"""Tests of `memplan-lab learn`: from problems to samples, a model and its merit, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memplan.cli import output
from memplan_lab.cli import main

pytestmark = pytest.mark.slow

FEW = ("--family", "synthetic", "--seeds", "1000:1003", "--sizes", "20")
SHORT = ("--steps", "2000")


def test_samples_become_a_model_and_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests collect, train and evaluate, one after the other."""
    pytest.importorskip("lightgbm")
    samples, model, rows = (str(tmp_path / name) for name in ("s.npz", "m.json", "rows.csv"))
    assert main(["learn", "collect", *FEW, *SHORT, "-o", samples]) == output.OK
    assert "major backtracks" in capsys.readouterr().out
    assert main(["learn", "train", samples, samples, "--trees", "3", "-o", model]) == output.OK
    assert "3 trees" in capsys.readouterr().out
    recipe = json.loads(Path(model).read_text())["recipe"]
    part = recipe["samples"]["parts"][0]
    assert (part["families"], part["seeds"], part["sizes"]) == (["synthetic"], "1000:1003", "20")
    unseen = ("--family", "dense", "--seeds", "0:1", "--sizes", "20")
    command = [
        "learn",
        "evaluate",
        "--model",
        model,
        *unseen,
        *SHORT,
        "--markdown",
        "--output",
        rows,
    ]
    assert main(command) == output.OK
    assert "| dense |" in capsys.readouterr().out
    lines = Path(rows).read_text().splitlines()
    assert len(lines) == 1 + 3
    assert lines[1].startswith("dense-20-0@100%,dense,")


def test_the_shipped_model_is_judged_on_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a folder of problems is as good as a family."""
    (tmp_path / "five.csv").write_text("id,lower,upper,size\na,0,2,3\nb,1,3,4\nc,2,4,5\n")
    assert main(["learn", "evaluate", "--data", str(tmp_path), *SHORT]) == output.OK
    assert "five.csv" in capsys.readouterr().out


def test_figures_are_drawn_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the files of figures 15 to 17, with what they must name."""
    pytest.importorskip("matplotlib")
    (tmp_path / "five.csv").write_text("id,lower,upper,size\na,0,2,3\nb,1,3,4\nc,2,40,5\n")
    samples, out = str(tmp_path / "s.npz"), tmp_path / "charts"
    assert main(["learn", "collect", *FEW, *SHORT, "-o", samples]) == output.OK
    capsys.readouterr()
    command = ["learn", "figures", str(tmp_path / "five.csv"), "--samples", samples, "-o", str(out)]
    assert main(command) == output.OK
    assert capsys.readouterr().out.count(".svg") == 3
    drawn = {path.stem: path.read_text() for path in out.iterdir()}
    assert sorted(drawn) == ["figure-15", "figure-16", "figure-17", "figures"]
    assert "learned=published" in drawn["figure-15"]
    assert "tree_returns" in drawn["figure-17"]
    assert main(["report", str(out / "figures.json"), "-o", str(tmp_path / "report")]) == output.OK
    text = (tmp_path / "report" / "report.md").read_text()
    assert "Figure 15, five.csv: backtracks in portions of its time" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("collect", "-o", f"{__file__}/s.npz"), "is a file, not a folder"),
        (("collect", *FEW, "-o", "s.npz", "--seeds", "7"), "FIRST:END"),
        (("collect", *FEW, "-o", "s.npz", "--seeds", "7:7"), "no seed"),
        (("collect", "-o", "s.npz", "--family", "sparse"), "no family"),
        (("collect", "-o", "s.npz", "--data", "none"), "none"),
        (("collect", *FEW, "-o", "s.npz", "--model", "none.json"), "cannot be read"),
        (("train", "none.npz", "-o", "m.json"), "cannot be read"),
        (("train", "wrong.npz", "-o", "m.json"), "learn collect"),
        (("train", "text.npz", "-o", "m.json"), "learn collect"),
        (("train", "text.npz", "-o", "text.npz"), "is the input"),
        (("evaluate", "--model", "none.json"), "cannot be read"),
        (("evaluate", "--model", "text.npz"), "learn train"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests the exit code and the one line of each mistake, and that nothing is written."""
    monkeypatch.chdir(tmp_path)
    np.savez("wrong.npz", level=np.zeros(3))
    Path("text.npz").write_text("features")
    assert main(["learn", *arguments]) == output.BAD_INPUT
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.npz", "wrong.npz"]
