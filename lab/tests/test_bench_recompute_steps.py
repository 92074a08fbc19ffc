"""Tests of the laboratory's training steps in less memory: bits, peaks, the command."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from memplan_lab.bench.experiments import training  # noqa: E402
from memplan_lab.cli import main  # noqa: E402

pytestmark = pytest.mark.slow


def tiny_pictures() -> Any:
    """Return two blocks of convolutions with batch norm and dropout."""
    nn = torch.nn

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(
                    nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.2)
                )
                for _ in range(2)
            )

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = x + block(x)
            return x.square().mean()

    model = Network()
    return model, (torch.randn(2, 3, 16, 16),), list(model.blocks)


def test_steps_have_equal_bits_and_need_what_is_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the rows of a small network, as the command prints them."""
    monkeypatch.setattr(training, "STEPS", {"pictures": tiny_pictures})
    threads = torch.get_num_threads()
    asked = ["bench", "training", "--set", "share=80%"]
    assert main([*asked, "--nodes", "300", "--json"]) == 0
    assert torch.get_num_threads() == threads
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    mine = {row["how"]: row for row in rows}
    assert {"eager", "checkpoint", "joint graph", "80%", "as checkpoint"} < set(mine)
    assert mine["eager"]["gradients"] is mine["checkpoint"]["gradients"] is True
    planned = [row for row in mine.values() if row["planned"] is not None]
    assert len(planned) >= 2
    for row in planned:
        assert row["results"] is row["gradients"] is True
        assert row["peak"] <= 1.02 * row["planned"]
        assert row["planned"] <= row["capacity"]
        assert row["bound"] <= row["share"]
        assert row["seconds"] > 0
    (shown,) = training.EXPERIMENT.show(rows, {})
    assert len(shown.lines) == len(rows)


def test_unknown_steps_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a name that is no training step gives one sentence."""
    assert main(["bench", "training", "--case", "vgg"]) == 2
    assert 'training has no case "vgg"' in capsys.readouterr().err
