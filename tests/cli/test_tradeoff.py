"""Tests of `memplan tradeoff`: what is shown, drawn and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import told
from small_programs import chain, training_step

from memplan.cli import main
from memplan.programs.sources.graph_json import write_graph

MODELS = Path(__file__).parents[2] / "examples"
CHAIN = str(MODELS / "structures" / "bert_base.graph.json")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path) -> None:
    """Work in a folder with a training step and a network in pictures."""
    (tmp_path / "step.json").write_text(write_graph(training_step()))
    (tmp_path / "net.json").write_text(write_graph(chain(2, 16, 16, 2)))


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests points with bounds and levers, the floor, and what gains nothing."""
    lines = told(capsys, "tradeoff", "step.json")
    assert lines[0].startswith("It needs 1.17 KiB without more work; the least that was found, 640")
    for line in (
        "1,200 1.17 KiB 100% 0.00% 0.00% 0.00% as it is",
        "1,040 1.01 KiB 87% 5.17% 5.17% 5.17% again 1 run more: f0",
        'floor 640 bytes, of "b3": no order and no re-runs need less',
    ):
        assert line in lines
    assert any(line.startswith("Bands gain nothing: ") for line in lines)
    lines = told(capsys, "tradeoff", "net.json", "--points", "3")
    assert any(" bands " in line and "more multiplications: conv0" in line for line in lines)
    assert any(line.startswith("Running operators again gains nothing, proved") for line in lines)


def test_an_inference_gains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the one line that says so."""
    assert told(capsys, "tradeoff", CHAIN)[0] == (
        "It needs 3.37 MiB, and more work gains nothing: proved for orders and re-runs."
    )


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record of both levers."""
    assert main(["tradeoff", "step.json", "--json", "--points", "4", "--nodes", "500"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["floor"] == {"bytes": 640, "operator": "b3"}
    assert [point["levers"] for point in found["points"]][:2] == [[], ["again"]]
    assert found["points"][1]["runs"].count(0) == 2
    assert found["points"][1]["extra"] == found["points"][1]["bound"]
    assert found["limits"][0] == {
        "capacity": 1200, "bound": 0, "order_bound": 0, "impossible": False,
    }  # fmt: skip
    assert main(["tradeoff", "net.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gains_nothing"]
    bands = found["points"][1]
    assert (bands["levers"], bands["bound"], bands["runs"]) == (["bands"], None, None)
    assert bands["extra_macs"] > 0
    assert bands["regions"]


@pytest.mark.parametrize("name", ["page.html", "picture.svg", "picture.png"])
@pytest.mark.parametrize("program", ["step.json", "net.json"])
def test_it_is_drawn(
    name: str, program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tests a page that needs no network, and pictures with what the colours mean."""
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    told(capsys, "tradeoff", program, "--points", "3", "-o", name)
    drawn = (tmp_path / name).read_bytes()
    lever = b"operators run again" if program == "step.json" else b"bands"
    if name == "picture.png":
        assert drawn.startswith(b"\x89PNG")
        return
    assert lever in drawn
    assert b"no order and no re-runs are here (proved)" in drawn
    if name == "page.html":
        assert b"<script src=" not in drawn
        assert b"<link" not in drawn
        assert b"default-src 'none'" in drawn
        first = drawn
        told(capsys, "tradeoff", program, "--points", "3", "-o", name)
        assert (tmp_path / name).read_bytes() == first
