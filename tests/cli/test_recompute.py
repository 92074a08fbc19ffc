"""Tests of `memplan recompute`, and of re-runs in `plan`, `verify`, `view`, `apply` and `fit`."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import refused, told
from rich.console import Console
from small_programs import training_step

import memplan as mp
from memplan.cli import main
from memplan.levers.rewrite import recompute
from memplan.levers.rewrite.again import search
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.fitting import fit

ROOT = Path(__file__).parents[2]
CHAIN = str(ROOT / "examples" / "structures" / "bert_base.graph.json")
MOBILE = str(ROOT / "examples" / "models" / "mobile.tflite")
FIVE = str(ROOT / "examples" / "five.csv")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path) -> None:
    """Work in a folder of its own, in which is a training step of 1,200 bytes of load."""
    (tmp_path / "step.json").write_text(write_graph(training_step()))


def test_what_runs_again_and_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests loads, the floor, bounds, the table, and the graph that is written."""
    lines = told(capsys, "recompute", "step.json", "-c", "1040", "-o", "again.json")
    for line in (
        "operators 10",
        "load, given order 1,200 bytes (1.17 KiB)",
        "load 1,040 bytes (1.01 KiB), within 1,040 bytes (1.01 KiB)",
        "run again 1 run more, 5.17% more work; proved: no order and no re-runs cost less",
        "bound, any order 5.17% more work",
        "status optimal: no order and no re-runs cost less",
        "f0 1 5.17%",
        "again.json: written",
    ):
        assert line in lines
    assert any(line.startswith("floor 640 bytes, of") for line in lines)
    again = mp.load("again.json")
    assert again.problem.max_load == 1040
    assert again.graph is not None
    assert again.graph.operators[-2].name == "f0 (again)"


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record, and that a limit on the work is taken."""
    assert main(["recompute", "step.json", "-c", "1040", "--states", "500", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["steps"]
    assert (record["load"], record["given_load"], record["repeated"]) == (1040, 1200, 1)
    assert record["extra"] == record["bound"] == pytest.approx(0.0517, abs=1e-4)
    assert record["runs"] == [*range(9), 0, 9]
    assert record["floor"]["bytes"] == 640
    assert not record["gains_nothing"]


def test_times_that_were_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests that they decide what runs again costs."""
    times = [f"{kind}{i},{1 + (kind == 'b')}e-6" for kind in "fb" for i in range(5)]
    (tmp_path / "times.csv").write_text("\n".join(["operator,seconds", *times]))
    lines = told(capsys, "recompute", "step.json", "-c", "1040", "--costs", "times.csv")
    assert "bound, any order 6.67% more work" in lines
    (tmp_path / "times.csv").write_text("operator,seconds\nf9,1\n")
    line = refused(capsys, "recompute", "step.json", "-c", "1040", "--costs", "times.csv")
    assert line == 'memplan: times.csv: the program has no operator "f9"'


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ("f0,1\nf0,2", ':3: operator "f0" has two times'),
        ("f0,-1", 'operator "f0" takes "-1" seconds; it must be a number of at least 0'),
        ("f9,1", 'the program has no operator "f9"'),
        ("f0,1", 'there is no time for operator "f1"'),
        ("f0", ":2: a line must have an operator and its seconds"),
    ],
)
@pytest.mark.parametrize("command", [("recompute", "-c", "1040"), ("tradeoff",)])
def test_times_that_are_none(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: tuple[str, ...],
    times: str,
    sentence: str,
) -> None:
    """Tests one sentence each, which names the file."""
    (tmp_path / "times.csv").write_text(f"operator,seconds\n{times}\n")
    line = refused(capsys, command[0], "step.json", *command[1:], "--costs", "times.csv")
    assert line.startswith("memplan: times.csv")
    assert sentence in line


@pytest.mark.parametrize("command", [("recompute", "-c", "1040"), ("tradeoff",)])
def test_a_cycle_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Tests that the sentence names the operator that waits for itself, and the tensor."""
    record = json.loads(write_graph(training_step()))
    record["operators"][0]["inputs"].append("g0")
    (tmp_path / "cycle.json").write_text(json.dumps(record))
    line = refused(capsys, command[0], "cycle.json", *command[1:])
    assert '"f0"' in line
    assert '"g0"' in line


def test_what_may_not_run_again_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tests a program that fits only if an operator runs again that draws random numbers."""
    graph = training_step()
    random = replace(graph.operators[0], type="Dropout")
    drawn = replace(graph, operators=(random, *graph.operators[1:]), source="onnx")
    with pytest.raises(mp.PlanError) as caught:
        recompute(drawn, 700)
    words = str(caught.value)
    assert "below the floor of 800" in words
    assert '200 bytes of it are "x0", as operator "f0" may not run again: it draws random' in words
    assert "may not run again" not in refused(capsys, "recompute", "step.json", "-c", "600", code=1)
    kept = recompute(drawn, 1040)
    assert kept.runs.count(0) == 1
    costs = {each.name: 1.0 for each in graph.operators}
    assert recompute(drawn, 1040, costs=costs).runs.count(0) == 1


def test_where_nothing_is_gained(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests an inference, what is below the floor, and a problem without operators."""
    lines = told(capsys, "recompute", CHAIN, "-c", "8MiB")
    words = "Running operators again gains nothing here: the program needs its floor without."
    assert words in lines
    assert 'below the floor of 640: operator "b' in refused(
        capsys, "recompute", "step.json", "-c", "600", code=1
    )
    assert main(["recompute", CHAIN, "-c", "1MiB"]) == 1
    assert "gains nothing" in " ".join(capsys.readouterr().out.split())
    assert "a problem has no operators" in refused(capsys, "recompute", FIVE, "-c", "1MiB")


def test_a_plan_stores_its_re_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests plan, verify and view, and a plan whose re-runs are not those of the program."""
    asked = ("plan", "step.json", "--levers", "again", "-c", "1040", "-o", "plan.json")
    lines = told(capsys, *asked)
    for line in (
        "again 1 run more, 5.17% more work; proved: no order and no re-runs cost less",
        "peak 1,040 bytes (1.01 KiB)",
        "floor, any re-runs 640 bytes",
    ):
        assert line in lines
    assert "OK: 12 buffers, peak 1,040 bytes (1.01 KiB)" in told(
        capsys, "verify", "step.json", "plan.json"
    )
    words = ("view", "step.json", "plan.json", "-o", "plan.html")
    pytest.importorskip("bokeh")
    told(capsys, *words)
    assert "x0 (again)" in (tmp_path / "plan.html").read_text()
    text = (tmp_path / "plan.json").read_text()
    assert json.loads(text)["stats"]["order"] == [*range(9), 0, 9]
    for wrong, words in (
        ("0, 9, 8]", "but waits for it"),
        ("8, 9]", "the plan"),
        ("8, 0]", "the order is not one of the 10 operators"),
    ):
        (tmp_path / "false.json").write_text(text.replace("8, 0, 9]", wrong))
        assert main(["verify", "step.json", "false.json"]) != 0
        assert words in capsys.readouterr().err
    assert main(["plan", "step.json", "--levers", "again", "-c", "1040", "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert (step["lever"], step["repeated"]) == ("again", 1)


def test_tensors_are_moved_out_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests what is said, the program that is written, and a plan that stores its moves."""
    words = ("recompute", "step.json", "-c", "1040", "--spill", "40TB/s")
    lines = told(capsys, *words, "-o", "moved.json")
    for line in (
        "run again 1 move out and back, 0.34% more work; proved: no order, no re-runs and no moves "
        "cost less",
        'moved "x0"; at most 200 bytes are outside',
    ):
        assert line in lines
    assert mp.load("moved.json").problem.max_load <= 1040
    assert main([*words, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["steps"]
    assert (record["moved"], record["outside"], record["repeated"]) == (["x0"], 200, 0)
    asked = ("plan", "step.json", "--levers", "again", "--spill", "40TB/s", "-c", "1040")
    told(capsys, *asked, "-o", "plan.json")
    assert "OK: 12 buffers, peak 1000 bytes" in told(capsys, "verify", "step.json", "plan.json")
    text = (tmp_path / "plan.json").read_text()
    assert json.loads(text)["stats"]["order"] == [*range(9), 11, 9]
    for wrong, sentence in (("99", "operator -1"), ("10", "the plan"), ("8, 12", "the plan")):
        (tmp_path / "false.json").write_text(text.replace("8, 11", f"8, {wrong}"))
        assert main(["verify", "step.json", "false.json"]) != 0
        assert sentence in capsys.readouterr().err


def test_a_header_says_what_runs_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests the order of the operators, in which one is twice, and the copy of its result."""
    words = ("apply", "step.json", "--recompute", "-c", "1040", "--c-header", "plan.h")
    lines = told(capsys, *words)
    assert lines[:4] == [
        "plan.h: written",
        "again 1 run more; proved: no re-runs cost less",
        "arena 1,040 bytes (1.01 KiB); 1,200 bytes (1.17 KiB) without more work",
        "work 5.17% more",
    ]
    header = (tmp_path / "plan.h").read_text()
    assert "#define STEP_ARENA_SIZE 1040u" in header
    assert "    8u, /* b1 */\n    0u, /* f0 (again) */\n    9u, /* b0 */\n" in header
    assert '{"x0 (again)", STEP_OFFSET_x0_again' in header


def test_the_order_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that re-runs take the order that was found before, in `plan` and in `fit`."""
    monkeypatch.setattr(search, "reorder", None)
    assert main(["plan", "step.json", "--levers", "order,again", "-c", "1040", "--quiet"]) == 0
    assert fit(mp.load("step.json"), 1040).again is not None


def test_fit_runs_operators_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that it is the lever that fits, and what is said where none does."""
    lines = told(capsys, "fit", "step.json", "1040")
    assert any(
        line.startswith("again 1,040 1.01 KiB +5.2% 1 run more; proved: no re-runs cost less")
        for line in lines
    )
    assert "It fits into 1,040 bytes (1.01 KiB); name an output to write it: -o FILE." in lines
    lines = told(capsys, "fit", "step.json", "600", code=1)
    assert any("none: 600 bytes are below the floor of 640" in line for line in lines)
    fitted = fit(mp.load("step.json"), 1040)
    assert fitted.again is not None
    assert fitted.extra == fitted.again.share
    assert fit(mp.load("step.json"), 1040, max_extra=0.01).again is None
    out = io.StringIO()
    Console(file=out, width=120).print(str(fitted))
    assert "again" in out.getvalue()
