"""Tests what commands refuse to write, or to read: suffixes, sizes, and what has no operators."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import FIVE, refused

import memplan as mp
from memplan import cli
from memplan.problem import formats
from memplan.problem.trace import Trace
from memplan.solvers import planning

MODELS = Path(__file__).parents[2] / "examples" / "models"
MOBILE, ONNX = str(MODELS / "mobile.tflite"), str(MODELS / "branches.onnx")
GRAPH = str(MODELS / "residual.graph.json")
XLA = str(Path(__file__).parents[1] / "data" / "xla_scan.hlo.pb")


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder with a few inputs."""
    Path("five.csv").write_text(FIVE)
    formats.save(mp.solve(formats.load("five.csv")), "plan.csv")


@pytest.mark.parametrize("size", ["0", "0B", "0KiB"])
@pytest.mark.parametrize(
    "words",
    [
        ("fit", MOBILE),
        ("plan", MOBILE, "-c"),
        ("inspect", MOBILE, "-c"),
        ("recompute", GRAPH, "-c"),
        ("apply", MOBILE, "--c-header", "x.h", "-c"),
        ("apply", MOBILE, "--bands", "-o", "x.tflite", "-c"),
    ],
)
def test_no_bytes_are_no_capacity(
    words: tuple[str, ...], size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that nothing is neither asked for its unit nor taken, and no command is named."""
    said = refused(capsys, *words, size)
    assert "at least one byte" in said or "must be between 1 and 2^62" in said
    assert not list(Path.cwd().glob("x.*"))


@pytest.mark.parametrize(
    "words",
    [
        ("order",),
        ("tradeoff",),
        ("recompute", "-c", "1MiB"),
        ("bands",),
        ("plan", "--levers", "order"),
        ("plan", "--levers", "again", "-c", "1MiB"),
        ("plan", "--levers", "waits", "-c", "1MiB"),
        ("apply", "--order", "--c-header", "x.h"),
        ("apply", "--path", "all", "--c-header", "x.h"),
    ],
)
def test_what_has_no_operators_says_what_to_give(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a problem and a recorded run where operators are needed."""
    formats.save(Trace.from_arrays([0, 1], [2, 3], [8, 8], [(), ()]), "run.json")
    for path, thing, other in (
        ("five.csv", "a problem", "give the model that it comes from (.onnx, .tflite, .pt2, or"),
        ("run.json", "a recorded run", "training_program traces (docs/tutorials/half-the-memory"),
        (XLA, "an XLA dump", "give the model that it comes from"),
    ):
        said = refused(capsys, *words, path)
        assert f"{thing} has no operators, " in said
        assert other in said
    for plan in ("plan.csv", "plan.json"):
        formats.save(mp.solve(formats.load("five.csv")), plan)
        assert "; give the problem or the model of which it is" in refused(capsys, *words, plan)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", MOBILE, "64"),
        ("fit", GRAPH, "--memory", "a=64", "--memory", "b=1MiB"),
        ("plan", MOBILE, "--capacity", "64"),
        ("plan", MOBILE, "--block-limit", "64"),
        ("plan", MOBILE, "--memory", "a=64", "--memory", "b=1MiB"),
        ("plan", MOBILE, GRAPH, "-c", "64"),
        ("plan", MOBILE, "--levers", "again", "-c", "64"),
        ("apply", MOBILE, "-o", "x.tflite", "-c", "64"),
        ("apply", MOBILE, "--c-header", "x.h", "-c", "64"),
        ("view", MOBILE, "-c", "64"),
        ("apply", MOBILE, "--bands", "-o", "x.tflite", "-c", "64"),
        ("inspect", MOBILE, "-c", "64"),
        ("recompute", GRAPH, "-c", "64"),
    ],
)
def test_a_forgotten_unit_is_asked_for(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests every place where a size is asked for; with a unit, and if it is exact, it is taken."""
    with monkeypatch.context() as patched:  # it is asked before there is a search
        patched.setattr(planning, "plan_model", None)
        assert "64 has no unit, and one buffer alone has " in refused(capsys, *words)
    for taken in ("64B", "0x40", "262144"):
        given = [each.replace("64", taken) for each in words]
        given[1] = words[1]
        code = cli.main(given)
        assert "has no unit" not in capsys.readouterr().err
        assert code in (0, 1), given
