"""Tests that TFLM's word on a model that it refuses is in every answer, and no file is written."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rounds import rounds
from tflite_models import Writer, chain, constant, floats
from tflite_operators import TYPES, build, cases_of, pairs_of, try_all

from memplan.base.errors import MemplanError
from memplan.base.notes import Code
from memplan.cli import main
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm import measure as tflite_micro
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.tflm.operators import TABLE
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, parse
from memplan.runtimes.tflm.read.refusals import list_refusals
from memplan.runtimes.tflm.write import apply, minimal_arena


def of_one(type_: str, *tensors: TensorInfo, inputs: tuple[int, ...] = (0,)) -> Model:
    """Return a model of one operator, whose last tensor is the result."""
    last = len(tensors) - 1
    step = OperatorInfo(type_, tuple(range(last)), (last,))
    return Model("m", (SubGraph("main", tensors, (step,), inputs, (last,)),))


def accelerated() -> Model:
    """Return what Arm's Vela writes: an operator of its own, with scratch that nothing makes."""
    commands, scratch = constant("commands", "uint8", 32), TensorInfo("scratch", "uint8", (64,))
    return of_one("ethos-u", floats("x", 1, 8), commands, scratch, floats("y", 1, 8))


def hybrid(type_: str = "FULLY_CONNECTED") -> Model:
    """Return an operator on floats with weights of int8, as dynamic-range quantization makes."""
    shape = {"FULLY_CONNECTED": (8, 8), "CONV_2D": (8, 1, 1, 8)}.get(type_, (1, 1, 1, 8))
    given = (1, 8) if type_ == "FULLY_CONNECTED" else (1, 2, 2, 8)
    weights = constant("weights", "int8", *shape)
    return of_one(type_, floats("x", *given), weights, floats("y", *given))


# By kind: a model, and what TFLM says of it (where it is installed).
KINDS = {
    "hybrid": (hybrid(), "Input type: FLOAT32 with filter type: INT8 not supported"),
    "hybrid convolution": (hybrid("CONV_2D"), "Hybrid models are not supported"),
    "hybrid depthwise": (hybrid("DEPTHWISE_CONV_2D"), "Hybrid models are not supported"),
    "operator that it lacks": (chain("RELU", "GELU"), "Didn't find op for builtin opcode 'GELU'"),
    "newer operator": (chain("STABLEHLO_CBRT"), "STABLEHLO_CBRT"),
    "custom": (chain("RELU", "MyOwn"), r"op code CUSTOM \(custom operators: MyOwn\)"),
    "Flex": (chain("FlexErf"), r"op code CUSTOM \(custom operators: FlexErf\)"),
    "Vela": (accelerated(), r"op code CUSTOM \(custom operators: ethos-u\)"),
    "Edge TPU": (chain("edgetpu-custom-op"), r"custom operators: edgetpu-custom-op"),
    "detector": (
        of_one("TFLite_Detection_PostProcess", floats("boxes", 1, 9, 4), floats("y")),
        r"crashes \(SIGSEGV\) \(custom operators: TFLite_Detection_PostProcess\)",
    ),
    "string": (
        of_one(
            "GATHER",
            TensorInfo("x", "string", (4,)),
            constant("at", "int32", 1),
            TensorInfo("y", "string", (1,)),
        ),
        "Node GATHER",
    ),
    "type of a kernel": (
        of_one("NEG", TensorInfo("x", "int8", (4,)), TensorInfo("y", "int8", (4,))),
        r"Type INT8 \(9\) not supported; Node NEG \(number 0\) failed to invoke",
    ),
    "half floats": (
        of_one("ABS", TensorInfo("x", "float16", (4,)), TensorInfo("y", "float16", (4,))),
        "FLOAT16",
    ),
}


def on_disk(folder: Path, model: Model) -> Path:
    """Return the path of a model that has been written."""
    path = folder / "model.tflite"
    path.write_bytes(Writer().write(model))
    return path


def refusals(notes: object) -> list[str]:
    """Return what notes in JSON say of a runtime that refuses the model."""
    assert isinstance(notes, list)
    return [note["text"] for note in notes if note["code"] == "runtime-refuses"]


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_word_of_tflm_is_in_every_answer(
    kind: str,
    installed: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests every kind of model that it refuses, with TFLM and with its table alone."""
    model, words = KINDS[kind]
    if installed:
        pytest.importorskip("tflite_micro")
    else:
        monkeypatch.setattr(tflite_micro, "find_version", lambda: None)
        if kind == "detector":
            pytest.skip("only TFLM knows that its own kernel crashes")
        words = "it has no kernel for"
    path = on_disk(tmp_path, model)
    assert main(["plan", str(path), "--json"]) == 0
    (text,) = refusals(json.loads(capsys.readouterr().out)["notes"])
    assert re.search(words, text)
    assert text.startswith("TensorFlow Lite Micro")
    out = tmp_path / "out"
    assert main(["apply", str(path), "-o", str(out)]) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not out.exists()


@pytest.mark.slow
def test_every_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests text, JSON, `--strict` and what writes it nevertheless, with one of these models."""
    path, out = on_disk(tmp_path, hybrid()), tmp_path / "out"
    for command in ("plan", "inspect"):
        assert main([command, str(path), "--json"]) == 0
        (text,) = refusals(json.loads(capsys.readouterr().out)["notes"])
        assert main([command, str(path)]) == 0
        assert f"note: {text}" in " ".join(capsys.readouterr().out.split())
        assert main([command, str(path), "--strict"]) == 2
        assert text in capsys.readouterr().err
    for output in ("-o", "--shim"):
        assert main(["apply", str(path), output, str(out)]) == 2
        assert not out.exists()
        assert main(["apply", str(path), output, str(out), "--allow-refused"]) == 0
        assert f"note: {text}" in " ".join(capsys.readouterr().out.split())
        assert out.exists()
        out.unlink()
    assert main(["apply", str(path), "--c-header", str(out)]) == 0  # it is for other runtimes too
    assert "note: TensorFlow Lite Micro" in capsys.readouterr().out


def test_a_model_that_tflm_takes_has_no_note(tmp_path: Path) -> None:
    """Tests that its word counts: what the table doubts is no note if TFLM runs it."""
    pytest.importorskip("tflite_micro")
    path = on_disk(tmp_path, chain("RELU", "TANH"))
    assert apply(path, tmp_path / "out.tflite").notes == ()


def test_its_word_counts_against_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a table that lacks a kernel which the installed TFLM has: nothing is refused."""
    pytest.importorskip("tflite_micro")
    monkeypatch.setitem(TABLE, "TANH", replace(TABLE["TANH"], types=None))
    path = on_disk(tmp_path, chain("RELU", "TANH"))
    assert [each.code for each in tflite.read(path, Options()).notes] == [Code.RUNTIME_REFUSES]
    assert main(["plan", str(path), "--strict"]) == 0
    assert "note" not in capsys.readouterr().out
    assert main(["apply", str(path), "-o", str(tmp_path / "out.tflite"), "--strict"]) == 0


def test_the_smallest_arena_of_a_model_that_it_refuses(tmp_path: Path) -> None:
    """Tests that the reason is TFLM's, and not a guess at operators."""
    pytest.importorskip("tflite_micro")
    with pytest.raises(MemplanError, match="filter type: INT8 not supported; Node FULLY_CONNECTED"):
        minimal_arena(on_disk(tmp_path, hybrid()))


def test_operators_are_named_by_their_places() -> None:
    """Tests the table's sentence: each reason once, with the operators of all sub-graphs."""
    model = chain("GELU", "RELU", "GELU")
    model = replace(model, subgraphs=(*model.subgraphs, chain("POW").subgraphs[0]))
    assert list_refusals(model) == (
        ["no kernel for GELU (#0, #2)", "no kernel for POW (#1.0)"],
        ["t1", "t3", "t1"],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [250, pytest.param(rounds(2_500, 10_000), marks=pytest.mark.deep)]
)
def test_the_table_is_what_tflm_takes(count: int) -> None:
    """Tests operators and types: what the table refuses TFLM refuses; so it is where types matter.

    TFLM also looks at scales and values, of which the table knows nothing.
    """
    pytest.importorskip("tflite_micro")
    cases = [case for dtype in TYPES for case in cases_of(dtype)]
    cases += [case for dtype in TYPES for other in TYPES for case in pairs_of(dtype, other)]
    cases = random.Random(3).sample(cases, min(count, len(cases)))
    files = [build(case) for case in cases]
    refused = 0
    for case, data, (runs, words) in zip(cases, files, try_all(files), strict=True):
        ours, _ = list_refusals(parse(data, "m"))
        refused += bool(ours)
        assert not (ours and runs), (case, ours)
        assert runs or ours or not re.search("type|support", words), (case, words)
    assert refused > count / 4
