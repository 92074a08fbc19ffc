"""Tests of `memplan bands` and `memplan apply --bands`: what is shown, written and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memplan as mp
from memplan.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
_WINDOW = {"window": {"kernel": 3, "before": 1}}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small int8 network with early feature maps that are large."""
    pytest.importorskip("tflite_micro")
    from memplan_lab.bench.int8_networks import mobilenet_v2

    path = tmp_path_factory.mktemp("bands") / "network.tflite"
    path.write_bytes(mobilenet_v2(64, width=0.35, classes=10))
    return path


def test_the_frontier_is_shown(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the table, and which operators end a region and why."""
    assert main(["bands", str(network), "--top", "4"]) == 0
    shown = capsys.readouterr().out
    assert "load, in bands" in shown
    assert "more work" in shown
    assert "can only be done as a whole" in shown
    assert "it mixes all rows" in shown


def test_the_frontier_as_json(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the same facts for scripts: each program needs less arena and more work."""
    assert main(["bands", str(network), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    arenas = [point["arena"] for point in found["points"]]
    extra = [point["extra"] for point in found["points"]]
    assert len(arenas) > 2
    assert arenas == sorted(set(arenas), reverse=True)
    assert extra == sorted(extra)
    assert found["points"][0]["regions"] == []
    assert found["points"][-1]["load"] < found["points"][0]["load"] * 0.6
    assert {"operator", "why"} == set(found["whole"][0])


@pytest.mark.parametrize("name", ["page.html", "picture.svg", "picture.png"])
def test_the_frontier_is_drawn(network: Path, tmp_path: Path, name: str) -> None:
    """Tests a page that needs no network, and pictures."""
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    assert main(["bands", str(network), "-o", str(tmp_path / name)]) == 0
    drawn = (tmp_path / name).read_bytes()
    assert len(drawn) > 1000
    if name == "page.html":
        assert b"more work" in drawn
        assert b"<script src=" not in drawn
        assert b"<link" not in drawn


def test_bands_are_written(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a file in bands within a budget: what is said of it, and that it is a model again."""
    out = tmp_path / "bands.tflite"
    asked = ["apply", str(network), "--bands", "-o", str(out), "--capacity", "110KiB"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert f"{out}: written" in shown
    assert "outputs the same bits" in shown
    assert "without bands" in shown
    assert main(["plan", str(out), "--no-runtime"]) == 0
    assert "optimal" in capsys.readouterr().out


@pytest.mark.slow
def test_a_budget_that_cannot_be_met(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that nothing is written, and that the error names the least and what holds it up."""
    out = tmp_path / "bands.tflite"
    asked = ["apply", str(network), "--bands", "-o", str(out), "--capacity", "20KiB"]
    assert main(asked) == 1
    said = capsys.readouterr().err
    assert "the smallest arena found has" in said
    assert "more than the capacity of 20480" in said
    assert "hold" in said
    assert not out.exists()


@pytest.mark.slow
def test_bands_as_a_header(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the header of a program in bands, for kernels of the user."""
    out = tmp_path / "net.h"
    assert main(["apply", str(network), "--bands", "--c-header", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "rows kept" in shown
    assert "_steps[" in out.read_text()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["-o", "a.tflite", "--bands", "--alignment", "64"], "leave it out with --levers"),
        (["-o", "a.tflite", "--bands", "--shim", "a.h"], "leave it out with --levers"),
        (["-o", "a.tflite", "--bands", "--c-header", "a.h"], "one file is written"),
        (["-o", "a.tflite", "--max-extra-macs", "10%"], "it needs --levers bands"),
        (["-o", "a.tflite", "--allow-inexact"], "it needs --levers bands"),
        (["-o", "a.tflite", "--bands", "--max-extra-macs", "much"], "is not a share"),
        (["-o", "a.tflite", "--bands", "--max-extra-macs", "-1%"], "is not a share"),
    ],
)
def test_options_that_do_not_fit(
    network: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    asked: list[str],
    sentence: str,
) -> None:
    """Tests that contradictions are refused in one sentence, before the work."""
    assert main(["apply", str(network), *asked]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["bands"], "has no operators, so that only offsets can be chosen"),
        (["apply", "--bands", "-o", "a.tflite"], "five.csv is "),
    ],
)
def test_other_files(command: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a file without operators on pictures is refused in one sentence."""
    assert main([*command, str(EXAMPLES / "five.csv")]) == 2
    assert sentence in capsys.readouterr().err
    assert main(["bands", str(EXAMPLES / "five.csv"), "-o", "a.txt"]) == 2
    assert "the suffix must be .html" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["order", "bands"])
def test_what_is_beside_the_plan_is_listed(
    command: str, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the part of TFLM's arena that no order and no band changes, as `inspect` has it."""
    assert main(["inspect", str(network), "-c", "8MiB", "--nodes", "100", "--json"]) == 0
    arena = json.loads(capsys.readouterr().out)["arena"]
    assert arena["beside"] > 0
    assert main([command, str(network), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["beside"]
    found = found[0] if command == "order" else found
    assert (found["bytes"], found["how"]) == (arena["beside"], arena["how"])
    assert main([command, str(network)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert f"beside the plan {arena['beside']:,} bytes" in words
    other = tmp_path / "model.graph.json"
    other.write_bytes((EXAMPLES / "structures" / "fan.graph.json").read_bytes())
    if command == "order":
        assert main([command, str(other), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["beside"] == []


def test_what_is_beside_the_plan_may_be_unknown(
    network: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that it is never taken for nothing where TFLM cannot be asked."""
    from memplan.runtimes.tflm import arena

    monkeypatch.setattr(arena, "ask", lambda path: None)
    assert main(["order", str(network)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "beside the plan unknown: tflite-micro is not installed" in words


def test_a_capacity_that_a_reader_gets_is_of_the_plan(network: Path) -> None:
    """Tests that `load` says what `plan_model` does not have to say."""
    loaded = mp.load(network, capacity=1 << 23)
    (note,) = (one for one in loaded.notes if one.code == "arena-unmeasured")
    assert "plan_model(path, capacity=8388608)" in note.text
    assert loaded.problem.capacity == 1 << 23
    assert mp.explain(loaded, 1 << 23, nodes=100).capacity == 1 << 23
    planned = mp.plan_model(network, capacity=1 << 23)
    assert all(one.code != "arena-unmeasured" for one in planned.notes)
    assert planned.problem.capacity is not None
    assert planned.problem.capacity < 1 << 23


def write_picture(path: Path, **fields: Any) -> None:
    """Write a graph of two convolutions whose first picture is large, with changed operators."""
    reads = [{"tensor": "x", "rows": _WINDOW, "columns": _WINDOW}]
    second = [{"tensor": "a", "rows": _WINDOW, "columns": "once"}]
    first = {"type": "conv", "inputs": ["x"], "outputs": ["a"], "reads": reads, "macs": 1000}
    tensors = [("x", 32, 1), ("a", 32, 16), ("y", 32, 1)]
    document = {
        "memplan_graph": 1,
        "inputs": ["x"],
        "outputs": ["y"],
        "tensors": [
            {"name": name, "dtype": "int8", "shape": [1, channels, rows, 8]}
            for name, rows, channels in tensors
        ],
        "operators": [
            first | fields,
            {"type": "conv", "inputs": ["a"], "outputs": ["y"], "reads": second, "macs": 1000},
        ],
    }
    path.write_text(json.dumps(document))


def test_a_graph_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the frontier and the header of a graph JSON that says which rows operators need."""
    path, header = tmp_path / "own.json", tmp_path / "own.h"
    write_picture(path)
    assert main(["bands", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["macs"] == 2000
    assert found["points"][0]["load"] > 2 * found["points"][-1]["load"]
    command = ["apply", str(path), "--bands", "--max-extra-macs", "100%", "--name", "own"]
    assert main([*command, "--c-header", str(header)]) == 0
    assert "own_steps[" in header.read_text()


def test_graphs_without_bands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a graph that does not say what rows are needed, one on streams, and one of wholes."""
    path = tmp_path / "own.json"
    write_picture(path, reads=None)
    document = json.loads(path.read_text())
    del document["operators"][1]["reads"]
    path.write_text(json.dumps(document))
    assert main(["bands", str(path)]) == 2
    assert '"reads" of a graph JSON says it' in capsys.readouterr().err
    write_picture(path, stream=1)
    assert main(["bands", str(path)]) == 2
    assert "bands are for programs on one stream" in capsys.readouterr().err
    write_picture(path, reads=None, why_whole="it sorts all rows")
    assert main(["bands", str(path)]) == 0
    assert "it sorts all rows" in capsys.readouterr().out


@pytest.mark.slow
def test_a_program_of_pytorch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a `.pt2` has the frontier that `fx_bands` finds for the program in memory."""
    torch: Any = pytest.importorskip("torch")
    from memplan.runtimes.torch.write import apply as fx_bands

    layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 1, 3)]
    x = torch.randn(1, 3, 48, 32)
    program = torch.export.export(torch.nn.Sequential(*layers).eval(), (x,))
    torch.export.save(program, tmp_path / "net.pt2")
    assert main(["bands", str(tmp_path / "net.pt2"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    frontier = fx_bands.put_in_bands(program).frontier
    assert frontier is not None
    assert len(found["points"]) > 2
    assert [each["load"] for each in found["points"]] == [each.load for each in frontier.points]
    assert found["macs"] == frontier.uncut.macs > 0
