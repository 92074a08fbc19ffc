"""Tests of memplan.runtimes.torch.measure.run: what a program allocates, against its plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from memplan.base.errors import FormatError, MemplanError  # noqa: E402
from memplan.cli import main  # noqa: E402
from memplan.programs.sources.options import Options  # noqa: E402
from memplan.runtimes.torch.measure.run import Difference, measure_file, measure_run  # noqa: E402

nn = torch.nn
aten = torch.ops.aten

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Calls(nn.Module):
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """Call it."""
        return self.function(*args)


class Recurrent(nn.Module):
    """An LSTM and a layer behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        """Return a result for every step."""
        return self.head(self.lstm(x)[0])


def saved(tmp_path: Path, model: Any, *args: Any, **options: Any) -> Path:
    """Return the file of a program."""
    torch.export.save(torch.export.export(model.eval(), args, **options), tmp_path / "model.pt2")
    return tmp_path / "model.pt2"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.relu(torch.tanh(x) @ x.t()),
        lambda x: aten.copy(x.neg()[:, :4], x[:, 4:]),
        lambda x: torch.softmax(torch.cat([x, x], 1), -1).sum(0),
        lambda x: x.neg()[:, :4].add_(x[:, 4:]),
        pytest.param(
            lambda x: torch.slice_scatter(x.neg()[:, :4], x[:8, 4:], 0, 0, 8),
            marks=pytest.mark.deep,
        ),
        pytest.param(
            lambda x: torch.select_scatter(x.neg()[4:], x[0], 0, 0), marks=pytest.mark.deep
        ),
        pytest.param(
            lambda x: torch.diagonal_scatter(x.neg()[:, :4], x[0, :4]), marks=pytest.mark.deep
        ),
        pytest.param(
            lambda x: torch.as_strided_scatter(x.neg(), x[:2], (2, 8), (8, 1), 32),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_nothing_beyond_the_plan(function: Any, tmp_path: Path) -> None:
    """Tests that operators without scratch allocate what is planned, to the byte."""
    x = torch.randn(16, 8)
    for found in (
        measure_run(Calls(function), (x,)),
        measure_file(saved(tmp_path, Calls(function), x), Options()),
    ):
        assert found.differences == ()
        assert found.peak == found.load
        assert found.beyond == 0


def test_scratch(tmp_path: Path) -> None:
    """Tests that the peak inside of a kernel is found, and by how much it is beyond the plan."""
    found = measure_file(saved(tmp_path, Recurrent(), torch.randn(2, 7, 16)), Options())
    assert found.during == "lstm.lstm (aten.lstm)"
    first = found.differences[0]
    assert first.operator == found.during
    assert first.real - first.planned == found.beyond > found.load
    # The result of the LSTM is not dense: the layer behind it copies it.
    copied = Difference("head.linear (aten.linear)", 224, 224 + 7 * 2 * 128)
    assert found.differences[1:] == (copied,)


def test_autocast_is_measured_as_the_module_runs() -> None:
    """Tests that the casts of weights are cached in the run, as in the plan."""
    layer = nn.Linear(64, 64)

    def region(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(layer(x)).float()

    class Region(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any) -> Any:
            return region(x)

    found = measure_run(Region(), (torch.randn(1, 64),))
    assert found.load > 2 * 64 * 64
    assert found.peak >= found.load
    with torch.autocast("cpu", dtype=torch.bfloat16):
        program = torch.export.export(nn.Sequential(layer, layer), (torch.randn(1, 64),))
    assert measure_run(program).load > 2 * 64 * 64
    assert measure_run(program).peak >= measure_run(program).load


@pytest.mark.parametrize("batch", [2, 4, 8])
def test_sizes(batch: int, tmp_path: Path) -> None:
    """Tests that arguments are made for the sizes asked."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    shapes = ({0: torch.export.Dim("n", min=2, max=8)},)
    path = saved(tmp_path, model, torch.randn(3, 4), dynamic_shapes=shapes)
    found = measure_file(path, Options(dims={"s31": batch}))
    assert (found.load, found.peak) == (batch * 8 * 4 * 2,) * 2


def test_state_is_left_alone() -> None:
    """Tests that a run does not change the buffers of the program that it is given."""
    model = nn.BatchNorm1d(4).train()
    program = torch.export.export(model, (torch.randn(8, 4),))
    before = {name: value.clone() for name, value in program.state_dict.items()}
    measure_run(program)
    for name, value in program.state_dict.items():
        assert torch.equal(value, before[name])


def test_refused(tmp_path: Path) -> None:
    """Tests that what cannot be run is one sentence."""
    with pytest.raises(MemplanError, match="give args"):
        measure_run(nn.ReLU())
    (tmp_path / "no.pt2").write_bytes(b"PK\x03\x04")
    with pytest.raises(FormatError, match="damaged"):
        measure_file(tmp_path / "no.pt2", Options())
    program = torch.export.export(Calls(lambda x, i: x[i]), (torch.ones(4), torch.ones(1).long()))
    with pytest.raises(MemplanError, match=r"the program does not run: .*Error"):
        measure_run(program, (torch.ones(4), torch.full((1,), 9)))


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that plan and inspect print the run, and --json has all of it."""
    path = str(saved(tmp_path, Recurrent(), torch.randn(2, 7, 16)))
    for command in ("plan", "inspect"):
        assert main([command, path, "--measure"]) == 0
        text = capsys.readouterr().out
        assert "real peak" in text
        assert "during lstm.lstm (aten.lstm)" in text
        assert "note: PyTorch needs more than the sizes that are planned" in text
        assert "operator lstm.lstm (aten.lstm) takes" in " ".join(text.split())
        assert main([command, path, "--measure", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["measured"]
        assert found["peak"] > 10 * found["load"]
        assert found["differences"][0]["operator"] == "lstm.lstm (aten.lstm)"
        assert main([command, path, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["measured"] is None
        assert main([command, path, "--measure", "--include", "inputs"]) == 2
    (tmp_path / "five.csv").write_text("id,lower,upper,size\na,0,1,4\n")
    assert main(["plan", str(tmp_path / "five.csv"), "--measure"]) == 2
    assert "only programs of PyTorch" in capsys.readouterr().err


def test_long_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that five operators are named, and how many more there are."""
    model = nn.Sequential(*(nn.LayerNorm(8) for _ in range(8)))
    assert main(["plan", str(saved(tmp_path, model, torch.randn(4, 8))), "--measure"]) == 0
    text = capsys.readouterr().out
    assert text.count("+32") == 5
    assert "and 3 more operators" in text
