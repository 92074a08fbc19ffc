"""Tests of `memplan FILE`, which says what a file is, and of `--alignment` for every command."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

import memplan as mp
from memplan.base.errors import ProblemError
from memplan.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
FIVE = EXAMPLES / "five.csv"
MOBILE = EXAMPLES / "models" / "mobile.tflite"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, its results and its messages."""
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("five.csv", "five.csv is a problem in CSV with 5 buffers to plan."),
        ("models/mobile.tflite", "is a TensorFlow Lite model with 37 tensors in 13 buffers"),
        ("models/residual.graph.json", "is a graph in memplan's own format with 42 tensors"),
    ],
)
def test_a_file_is_described(file: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the first line, and that each of the commands below it works as it stands."""
    code, out, err = run(capsys, EXAMPLES / file)
    assert (code, err) == (0, "")
    assert first in out
    lines = [line for line in out.splitlines() if line.startswith("  memplan ")]
    assert len(lines) >= 4
    for line in lines:
        if ".html" in line and find_spec("bokeh") is None:
            continue
        assert run(capsys, *shlex.split(line, comments=True)[1:])[0] == 0, line


def test_plans_and_proofs_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests what `memplan plan` writes."""
    assert main(["plan", str(FIVE), "-q", "-o", "a plan.json", "--proof", "p"]) == 0
    code, out, _ = run(capsys, "a plan.json")
    assert code == 0
    assert out.startswith("a plan.json is a plan of 5 buffers with a peak of 12 bytes.\n")
    assert "memplan verify PROBLEM 'a plan.json' " in out
    code, out, _ = run(capsys, "p")
    assert code == 0
    assert "memplan verify PROBLEM PLAN --proof p " in out


def test_a_model_with_open_dimensions_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the format is said before what is missing, and that `--dim` is passed on."""
    pytest.importorskip("onnx")
    model = EXAMPLES / "models" / "branches.onnx"
    code, out, err = run(capsys, model)
    assert (code, out) == (2, f"{model} is an ONNX model.\n")
    assert "--dim batch=8" in err
    code, out, _ = run(capsys, model, "--dim", "batch=2")
    assert code == 0
    assert f"memplan inspect {model} --dim batch=2 " in out


def test_standard_input_is_described(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that `-` is a file here as it is elsewhere."""
    data = FIVE.read_bytes()
    monkeypatch.setattr("memplan.cli.inputs._copy", lambda path, copy: copy.write(data))
    code, out, _ = run(capsys, "-")
    assert code == 0
    assert out.startswith("- is a problem in CSV")
    assert "memplan plan - -o stdin.plan.csv " in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"what is this\n", "this is no table of buffers"),
        (b"GGUF" + bytes(60), "GGUF"),
        (b"", "is empty"),
        (b'{"a": 1}', "is JSON, but not of memplan"),
    ],
)
def test_what_is_not_read_is_named(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that other files are refused with the sentence that every command has for them."""
    path = tmp_path / "x"
    path.write_bytes(content)
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "")
    assert words in err
    assert run(capsys, "plan", path)[2] == err


@pytest.mark.parametrize(
    ("word", "sentence"),
    [("nix.onnx", "nix.onnx: is neither a command nor a file"), ("plam", "no such command 'plam'")],
)
def test_a_mistyped_word(word: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a path that does not exist is not called a command."""
    code, _, err = run(capsys, word)
    assert code == 2
    assert sentence in err


# --alignment -----------------------------------------------------------------------------------


def test_all_commands_align(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that one alignment means the same to every command."""
    words = ("--alignment", 8)
    assert run(capsys, "plan", FIVE, *words, "-q", "-o", "p.csv")[0] == 0
    plan = mp.load_plan("p.csv")
    assert plan.offsets is not None
    assert (plan.peak, set((plan.offsets % 8).tolist())) == (20, {0})
    assert run(capsys, "verify", FIVE, "p.csv", *words)[0] == 0
    found = json.loads(run(capsys, "inspect", FIVE, *words, "--json")[1])
    assert (found["planned"]["peak"], found["lower_bound"]) == (20, 20)
    sides = json.loads(run(capsys, "compare", FIVE, FIVE, *words, "--format", "json")[1])
    assert sides["after"]["peak"] == 20
    assert "20 bytes" in run(capsys, "view", FIVE, *words)[1]
    assert run(capsys, "apply", FIVE, *words, "--c-header", "p.h")[0] == 0
    assert "20" in Path("p.h").read_text()


@pytest.mark.parametrize("more", [(), ("--in-place",)])
def test_a_model_is_aligned_for_its_runtime(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a TFLite file gets offsets that are aligned beyond what TFLM asks."""
    words = ("--alignment", 4096, *more)
    code, _, err = run(capsys, "apply", MOBILE, *words, "-o", "m.tflite", "--shim", "m.h")
    assert (code, err) == (0, "")
    pins = mp.load("m.tflite").problem.pin
    assert (pins >= 0).all()
    assert not (pins % 4096).any()


def test_alignments_are_combined() -> None:
    """Tests that an offset keeps its own alignment, and that errors are named."""
    rows = [mp.Buffer("a", 0, 2, 4, alignment=6), mp.Buffer("b", 0, 2, 4)]
    problem = mp.Problem(rows)
    assert problem.with_alignment(4).alignment.tolist() == [12, 4]
    assert problem.with_alignment(1) == problem
    assert problem.with_alignment(4).fingerprint != problem.fingerprint
    for unit, words in ((0, "alignment is 0"), (1 << 62, "alignment"), (True, "whole number")):
        with pytest.raises(ProblemError, match=words):
            problem.with_alignment(unit)
    with pytest.raises(ProblemError, match="not a multiple of the alignment"):
        problem.with_pins({"b": 3}).with_alignment(2)
