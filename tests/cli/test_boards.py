"""Tests of `--board` and `--kernels`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import refused, told
from tflite_models import Writer, chain, model_named

from memplan.cli import main

ROOT = Path(__file__).parents[2]
WAKE = "wake.tflite"


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder of its own, in which is a wake word."""
    path = model_named("pymicro_wakeword/okay_nabu.tflite")
    Path(WAKE).write_bytes(path.read_bytes())


def test_the_arena_of_a_board(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the table: each part, and that preparing takes more than is used."""
    lines = told(capsys, "inspect", WAKE, "--board", "32-bit", "--top", "1")
    assert "Arena of TensorFlow Lite Micro on 32-bit with reference kernels" in lines
    assert any(line.startswith("head 3,840 ") for line in lines)
    assert any(line.startswith("persistent 16,748 16,748 ") for line in lines)
    assert any(line.startswith("kTensorArenaSize 21,648 21,648 enough to pre") for line in lines)


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `inspect --json`, in which a plan is of the scratch on the board."""
    assert main(["inspect", WAKE, "--board", "esp32-s3", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    given = record["board"]["given"]
    assert (given["head"], given["scratch"], given["used"]) == (33520, 31328, 50316)
    assert (record["board"]["unit"], given["unknown"]) == ("esp32-s3", [])
    assert record["planned"]["peak"] == record["board"]["planned"]["head"] == 33520


def test_a_capacity_is_held_against_the_arena_of_the_board(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests an arena that is as large as needed, and one that is 16 bytes less."""
    for capacity, code in ((21648, 0), (21632, 1)):
        words = ["plan", WAKE, "--board", "32-bit", "--capacity", str(capacity), "--json"]
        assert main(words) == code
        record = json.loads(capsys.readouterr().out)
        assert record["status"] == ("fits" if code == 0 else "infeasible")


def test_what_is_written_is_for_the_board(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `apply` and `fit`: the arena of the board, as a build for 32 bits takes it."""
    on = ("--board", "esp32-s3")
    lines = told(capsys, "apply", WAKE, "-o", "a.tflite", "--shim", "a.h", "-c", "50320", *on)
    sentence = "are enough for the whole model, computed for esp32-s3 with esp-nn kernels"
    assert any(line.startswith("arena 50,320 ") and sentence in line for line in lines)
    assert "this model and esp32-s3 with esp-nn kernels only" in Path("a.h").read_text()
    reason = "needs 50320 bytes, 16 more than the capacity of 50304"
    said = refused(capsys, "apply", WAKE, "-o", "b.tflite", "-c", "50304", *on, code=1)
    assert reason in said
    assert f"memplan fit {WAKE} 50304B --board esp32-s3 tries" in said
    assert main(["fit", WAKE, "50320", "-o", "c.tflite", "--json", *on]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["arena"], record["how"]) == (50320, "computed for esp32-s3 with esp-nn kernels")
    assert not Path("b.tflite").exists()


def test_programs_share_an_arena_on_a_board(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that scratch of the board is planned, and that its plan is taken for a header."""
    Path("plans").mkdir()
    on, words = ("--board", "esp32-s3"), (WAKE, WAKE, "-o", "plans")
    lines = told(capsys, "plan", *words, *on)
    assert any(line.startswith("arena 33,520 ") for line in lines)
    beside = (
        "TFLM on esp32-s3 with esp-nn kernels keeps beside it 16,796 for wake, 16,796 for wake-2"
    )
    assert f"{beside}: 67,112 bytes in all" in lines
    plan = ("--plan", "plans/wake.plan.json", "--shim", "wake.h")
    assert "is not a plan of wake.tflite" in refused(capsys, "apply", WAKE, *plan)
    told(capsys, "apply", WAKE, *plan, *on)
    assert "_BYTES 33520" in Path("wake.h").read_text()
    told(capsys, "plan", WAKE, WAKE, "-o", "bare")
    lines = told(capsys, "apply", WAKE, "-o", "w.tflite", "--plan", "bare/wake.plan.json")
    assert not any(line.startswith("saved") for line in lines)  # the arena is not its own


def test_a_plan_of_a_board_is_verified_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that it is no plan of the reference kernels, which need other scratch."""
    on = ("--board", "esp32-s3")
    told(capsys, "plan", WAKE, "-o", "wake.plan.json", *on)
    told(capsys, "verify", WAKE, "wake.plan.json", *on)
    assert main(["verify", WAKE, "wake.plan.json"]) != 0


def test_what_is_not_known_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests an operator of which CMSIS-NN's structs are not known, and one without options."""
    Path("m.tflite").write_bytes(Writer().write(chain("BATCH_MATMUL")))
    lines = told(capsys, "inspect", "m.tflite", "--board", "cortex-m4", "--no-runtime")
    assert any("Unknown, and not counted: what BATCH_MATMUL needs there." in line for line in lines)
    Path("m.tflite").write_bytes(Writer().write(chain("TRANSPOSE_CONV")))
    text = " ".join(told(capsys, "inspect", "m.tflite", "--board", "cortex-m4", "--no-runtime"))
    assert "note: the scratch of TRANSPOSE_CONV on cortex-m4 with cmsis-nn kernels is not" in text
    assert main(["plan", "m.tflite", "--board", "cortex-m4", "--strict"]) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("inspect", WAKE, "--board", "z80"), 'no board has the name "z80"'),
        (("plan", WAKE, "--board", "esp32", "--kernels", "cmsis-nn"), "has no kernels for esp32"),
        (("plan", "p.csv", "--kernels", "reference"), "only TFLM's kernels need a board"),
        (
            ("fit", "net.json", "1KiB", "--board", "esp32"),
            "a board is for the file of a TFLite model",
        ),
        (("apply", WAKE, "--board", "esp32", "--path", "all", "--c-header", "x.h"), "--path"),
    ],
)
def test_wrong_boards_are_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests one sentence each: an unknown name, other kernels, another format, several programs."""
    Path("p.csv").write_text("id,lower,upper,size\na,0,1,4\n")
    shutil.copy(ROOT / "examples" / "models" / "residual.graph.json", "net.json")
    assert sentence in refused(capsys, *words)


def test_several_memories_on_a_board(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `plan`, `verify` and `fit`: the scratch of the chip's kernels lies in the memories."""
    on = ("--board", "esp32-s3")
    two = ("--memory", "sram=40KiB", "--memory", "psram=8MiB")
    lines = told(capsys, "plan", WAKE, *two, *on, "-o", "plans")
    assert any("keeps 16796 bytes in one of the memories" in line for line in lines)
    assert main(["verify", WAKE, "plans", *on]) == 0
    assert main(["verify", WAKE, "plans"]) == 1
    capsys.readouterr()
    told(capsys, "fit", WAKE, *two, *on, "-o", "out")
    header = Path("out/wake_memories.h").read_text()
    assert "those of esp32-s3 with esp-nn kernels" in header
    assert "kCount = 66" in header
    need = refused(capsys, "fit", WAKE, "--memory", "a=8KiB", "--memory", "b=8MiB", *on)
    assert 'TFLM keeps 16796 bytes in "a", which has 8192' in need


def test_what_is_unknown_is_never_enough(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests each command with an operator whose structs are not known on a board."""
    Path("m.tflite").write_bytes(Writer().write(chain("BATCH_MATMUL", "RELU", shape=(64, 64))))
    on, written = ("--board", "cortex-m4"), ("--allow-refused", "--pure", "BATCH_MATMUL")
    two = ("--memory", "a=64KiB", "--memory", "b=8MiB")
    unknown = "without what BATCH_MATMUL needs there, which is unknown"
    excepted = "but for what is not known (see the note)"

    def tell(*words: str) -> str:
        return " ".join(told(capsys, *words, *on))

    assert "not enough: more by what is unknown" in tell("inspect", "m.tflite", "--no-runtime")
    text = tell("inspect", "m.tflite", "-c", "64KiB")
    assert f"It fits into 65,536 bytes (64 KiB) of arena, {excepted}." in text
    assert unknown in text
    assert unknown in tell("plan", "m.tflite", WAKE)
    assert unknown in tell("plan", "m.tflite", *two)
    text = tell("apply", "m.tflite", "-o", "w.tflite", "-c", "64KiB", "--allow-refused")
    assert unknown in text
    assert "are enough" not in text
    text = tell("fit", "m.tflite", "64KiB", *written)
    assert excepted in text
    assert "without what is not known of BATCH_MATMUL on cortex-m4 with cmsis-nn kernels" in text
    assert f"a is enough, {excepted}:" in tell("fit", "m.tflite", *two, *written)
    less = ("--memory", "a=24KiB", *two[2:])
    tell("fit", "m.tflite", *less, *written, "-o", "out")
    assert " + what TFLM keeps for BATCH_MATMUL];" in Path("out/m_memories.h").read_text()


def test_a_saving_of_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a wake word: the head gets smaller, but TFLM needs as much to prepare the model."""
    on = ("--board", "32-bit")
    lines = told(capsys, "fit", WAKE, "64KiB", *on)
    rows = [line.split()[:2] for line in lines if line.startswith(("given", "offsets"))]
    assert rows == [["given", "21,648"], ["offsets", "21,648"]]
    assert "saved nothing: its runtime needs no more for the program as it was" in lines
    for more in ((), ("-c", "64KiB"), on, ("-c", "64KiB", *on)):
        lines = told(capsys, "apply", WAKE, "-o", "w.tflite", *more)
        assert "saved nothing: the arena of the file as it was is no larger" in lines
