"""Tests of `memplan-lab bench tinygrad`."""

from __future__ import annotations

import json

import pytest

from memplan.base.errors import MemplanError
from memplan.base.extras import is_installed
from memplan_lab.bench.experiments import tinygrad
from memplan_lab.cli import main

pytestmark = pytest.mark.slow


needs_tinygrad = pytest.mark.skipif(
    not is_installed("tinygrad"), reason="tinygrad is not installed"
)


@needs_tinygrad
def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the bytes of ResNet-50, by both planners and by the bound."""
    monkeypatch.setattr(tinygrad, "MODELS", {"ResNet-50": tinygrad.MODELS["ResNet-50"]})
    assert main(["bench", "tinygrad", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["notes"] == []
    assert row["bound"] == row["bytes"] <= 0.69 * row["host"]


def test_the_table() -> None:
    """Tests a line for each network, and the mean of the ratios."""
    row = {
        "case": "a",
        "buffers": 2,
        "host": 100,
        "bytes": 50,
        "bound": 50,
        "host_ms": 1,
        "ms": 0.5,
    }
    settings = tinygrad.EXPERIMENT.settle({})
    (shown,) = tinygrad.EXPERIMENT.show([row, {**row, "host": 50}], settings)
    one, two, mean = shown.lines
    assert one == ("a", "2", "100", "50", "0.500", "50", "1.00 ms", "0.50 ms")
    assert two[4] == "1.000"
    assert mean == ("mean", "–", "–", "–", "0.750", "–", "–", "–")


@needs_tinygrad
def test_a_network_that_does_not_run() -> None:
    """Tests that the error names the network and says what its process said last."""
    with pytest.raises(MemplanError, match=r"did not run no network: .* code 1: KeyError"):
        tinygrad.plan("no network", check=False)
