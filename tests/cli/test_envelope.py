"""Tests of `memplan envelope`, and of `memplan plan` for several sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("onnx")
from command_line import refused, told
from tflite_models import Writer, floats

import memplan as mp
from memplan.cli import main
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph
from memplan.scenarios.envelope import envelope

MODEL = str(Path(__file__).parents[2] / "examples" / "models" / "branches.onnx")


@pytest.mark.parametrize("command", ["envelope", "plan"])
def test_a_table_of_sizes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words for three sizes, by both commands."""
    lines = told(capsys, command, MODEL, "--dim", "batch=1,2,4")
    for line in (
        "sizes 3: batch 1, 2, 4",
        "largest 786,432 bytes (768 KiB), at batch=4",
        "status proved: at every size, no plan needs less",
        "batch=2 393,216 384 KiB",
    ):
        assert line in lines


def test_the_facts_for_scripts_are_those_of_plans(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests all peaks of a range with a condition, and the plan for all sizes."""
    asked = (MODEL, "--dim", "batch=1:100:3", "--where", "batch<=50", "--json")
    assert main(["envelope", *asked, "-o", "all.json"]) == 0
    record = json.loads(capsys.readouterr().out)
    sizes = list(range(1, 50, 3))
    assert record["sizes"] == {"batch": sizes}
    assert record["peaks"] == record["bounds"] == [196608 * batch for batch in sizes]
    assert (record["status"], record["open"]) == ("optimal", 0)
    assert record["one_plan"]["peak"] == mp.load_plan("all.json").peak == 196608 * 49


def test_text_json_and_files_say_the_same_premise(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a file of which some sizes are read, and the option to read all of them."""
    tensors = (floats("in", 1, 9, open_axes=(0,)), floats("mid", 1, 9), floats("out", 1, 9))
    steps = (OperatorInfo("RELU", (0,), (1,)), OperatorInfo("TANH", (1,), (2,)))
    model = Writer().write(Model("m", (SubGraph("", tensors, steps, (0,), (2,)),)))
    Path("m.tflite").write_bytes(model)
    asked = ("envelope", "m.tflite", "--dim", "batch=1:90")
    premise = "at the 74 sizes that were not read, buffers and bytes are as these polynomials say"
    lines = told(capsys, *asked, "-o", "all.json")
    assert f"premise {premise}" in "\n".join(lines)
    assert (
        "status proved if sizes are these polynomials: at every size, no plan needs less" in lines
    )
    assert json.loads(Path("all.json").read_text())["stats"]["premise"] == premise
    assert main([*asked, "--json", "-o", "all.h"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["premise"]) == ("feasible", premise)
    assert record["one_plan"]["status"] == "feasible"
    words = " ".join(Path("all.h").read_text().replace(" * ", " ").split())
    assert "(proved to be the least if the premise holds)" in words
    assert f"Premise: {premise}; the program was not read there." in words
    assert main([*asked, "--read-all", "--json", "-o", "all.h"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["premise"]) == ("optimal", None)
    words = " ".join(Path("all.h").read_text().replace(" * ", " ").split())
    assert "(proved to be the least)" in words
    assert "remise" not in words


def test_the_plan_for_all_sizes_is_legal_at_each() -> None:
    """Tests what the command writes against the referee of plans."""
    assert main(["plan", MODEL, "--dim", "batch=1:9", "-q", "-o", "all.csv"]) == 0
    plan = mp.load_plan("all.csv")
    for batch in (1, 5, 9):
        problem = mp.load(MODEL, dims={"batch": batch}).problem
        mp.verify(problem, mp.Plan.of(problem, [plan.offset(id) for id in problem.ids]))


def test_pictures_of_one_and_two_dimensions() -> None:
    """Tests that a picture is written, and drawn for more dimensions from Python."""
    pytest.importorskip("matplotlib")
    assert main(["envelope", MODEL, "--dim", "batch=1:100", "-o", "peak.svg"]) == 0
    assert Path("peak.svg").read_text().startswith("<?xml")

    def program(a: int, b: int, c: int) -> mp.Problem:
        return mp.Problem([mp.Buffer("x", 0, 1, a * b + c)])

    figure = envelope(program, {"a": "1:3", "b": "1:9", "c": (1, 2)}).plot(width=90)
    lines = [line.get_label() for line in figure.axes[0].lines]
    assert lines == ["a = 1", "a = 2", "a = 3", "one plan"]


def test_a_picture_has_no_line_between_sizes_that_were_asked_for() -> None:
    """Tests that steps are points, and that whole numbers in a row are a line."""
    pytest.importorskip("matplotlib")

    def program(a: int) -> mp.Problem:
        return mp.Problem([mp.Buffer("x", 0, 1, -(-a // 2))])

    for sizes, line in (("2:20:2", "none"), ("2:20", "-"), ("1:3,9", "none")):
        drawn = envelope(program, {"a": sizes}).plot().axes[0].lines[0]
        assert drawn.get_linestyle().lower() == line.lower()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--dim", "batch=4:1"), '"batch=4:1" is empty'),
        (("--dim", "batch=1:4", "--dim", "batch=2"), "'batch' is given twice; give all"),
        (("--dim", "batch"), "'batch' is not NAME=N"),
        (("--dim", "batsch=1:4"), "batsch"),
        (("--dim", "batch=1:4", "--where", "batch<1"), 'no size of the range keeps to "batch<1"'),
        (("--dim", "batch=1:4", "-o", "x.txt"), "the suffix must be .json or .csv"),
    ],
)
def test_wrong_words_are_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests one sentence for each mistake."""
    assert sentence in refused(capsys, "envelope", MODEL, *words)


def test_commands_for_one_size_name_this_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a range where one size is meant."""
    said = refused(capsys, "inspect", MODEL, "--dim", "batch=1,2")
    assert "'batch=1,2' is not NAME=N; `memplan plan` shows several sizes" in said


@pytest.mark.parametrize("option", ["--measure", "--proof=x"])
def test_plan_refuses_what_is_of_one_size(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests options that several sizes do not have."""
    said = refused(capsys, "plan", MODEL, "--dim", "batch=1,2", option)
    name = option.partition("=")[0]
    assert f"'{name}': it is of one program as it is, of one size" in said
