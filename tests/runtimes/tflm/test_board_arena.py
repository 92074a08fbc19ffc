"""Tests that the arena of a board is that of TFLM compiled for 32 bits, to the byte."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tflite_models import for_each_model, model_named
from tflite_written import WRITTEN, written

from memplan.runtimes.tflm.board_arena import compute_arena, find_working
from memplan.runtimes.tflm.board_structs import measure_struct
from memplan.runtimes.tflm.measure import ask
from memplan.runtimes.tflm.read.boards import find_board, list_boards
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, load

# By wake word: head and persistent part, and the least arena that TFLM takes, of builds for 32 bits
# with reference kernels, with CMSIS-NN's plain C, and with the scratch of esp-nn for the ESP32-S3;
# and what firmware for the Cortex-M4 and the Cortex-M55 uses.
MEASURED = {
    "alexa": ((3648, 12620, 16272), (3648, 12652), (17616, 12652), (18228, 24756)),
    "hey_jarvis": ((3424, 12220, 15648), (3904, 12252), (17872, 12252), (17492, 24260)),
    "hey_mycroft": ((4288, 13276, 17568), (4288, 13308), (18256, 13308), (19524, 26052)),
    "okay_nabu": ((3840, 16748, 21648), (3840, 16780), (33520, 16796), (20516, 27364)),
}


@pytest.mark.parametrize("name", MEASURED)
def test_the_arena_is_the_one_that_was_measured(name: str) -> None:
    """Tests head, persistent part and size of wake words against the record in docs/boards.md."""
    path = model_named(f"pymicro_wakeword/{name}.tflite")
    (head, persistent, least), *others, used = MEASURED[name]
    found = compute_arena(path, find_board("32-bit"))
    assert (found.head, found.persistent, found.size) == (head, persistent, least)
    assert (found.used, found.unknown) == (head + persistent, ())
    boards = find_board("32-bit", "cmsis-nn"), find_board("esp32-s3")
    for board, measured in zip(boards, others, strict=True):
        arena = compute_arena(path, board)
        assert (arena.head, arena.persistent) == measured
    arms = [compute_arena(path, find_board(f"cortex-{core}")).used for core in ("m4", "m55")]
    assert tuple(arms) == used


@for_each_model()
def test_structs_of_a_64_bit_machine(path: Path | None) -> None:
    """Tests the persistent part against TFLM's Python package, which has some more fields."""
    pytest.importorskip("tflite_micro")
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    check_against_package(path)


@pytest.mark.parametrize("name", WRITTEN)
def test_structs_of_small_models(tmp_path: Path, name: str) -> None:
    """Tests control flow, pins, and operators that the wheels lack."""
    pytest.importorskip("tflite_micro")
    check_against_package(written(tmp_path, name))


@pytest.mark.parametrize("name", WRITTEN)
def test_every_board_takes_small_models(tmp_path: Path, name: str) -> None:
    """Tests operators with few inputs, without options and of odd shapes on all boards."""
    path = written(tmp_path, name)
    for board in list_boards().values():
        found = compute_arena(path, board)
        assert 0 < found.persistent < found.size
        assert found.used <= found.size


def check_against_package(path: Path) -> None:
    """Fail if the package keeps other bytes than its recording allocator and compression add."""
    answer, found = ask(path), compute_arena(path, find_board("64-bit"))
    if answer is None or answer.refusal or found.unknown:
        pytest.skip("TFLM refuses the model, or a struct is not known")
    assert answer.head == found.head
    model = load(path)
    operators = sum(len(each.operators) for each in model.subgraphs)
    assert 240 <= answer.tail - found.persistent <= 240 + 80 + 16 * operators
    assert any(find_folded(model).values()) or found.used <= answer.head + answer.tail


def test_structs_are_laid_out_as_compilers_do() -> None:
    """Tests alignment, enumerations of Arm, and a struct inside another one."""
    arm, other, wide = find_board("cortex-m4"), find_board("32-bit"), find_board("64-bit")
    assert measure_struct(arm, "eiie") == (16, 4)
    assert measure_struct(arm, "(ep)(fi)pppeeb") == (32, 4)
    assert measure_struct(other, "(ep)(fi)pppeeb") == (40, 4)
    assert measure_struct(wide, "(iip)i") == (24, 8)
    assert measure_struct(wide, "b(d)b") == (24, 8)
    assert measure_struct(arm, "eebb") == (4, 1)
    assert measure_struct(arm, "") == (0, 1)


def small(type_: str, dtype: str = "int8") -> Model:
    """Return a model with one operator of one input and one output."""
    tensors = (TensorInfo("x", dtype, (1, 8), scales=1), TensorInfo("y", dtype, (1, 8), scales=1))
    program = SubGraph("", tensors, (OperatorInfo(type_, (0,), (1,)),), (0,), (1,))
    return Model("m", (program,))


def test_what_is_unknown_is_named() -> None:
    """Tests a custom operator: the rest is counted, and its type is named."""
    known, unknown = (
        compute_arena(small(each), find_board("32-bit")) for each in ("RESHAPE", "my operator")
    )
    assert (known.unknown, unknown.unknown) == ((), ("my operator",))
    assert 0 < unknown.persistent < known.persistent


def test_tables_of_a_softmax() -> None:
    """Tests that one of int16 keeps two tables of 513 numbers of 2 bytes."""
    narrow, wide = (
        compute_arena(small("SOFTMAX", dtype), find_board("32-bit")).persistent
        for dtype in ("int8", "int16")
    )
    assert wide - narrow == 2 * 1040


def test_scales_of_inputs_and_outputs_are_read() -> None:
    """Tests the quantization of a file, and that it takes a struct and its zero points."""
    quantized = load(model_named("pymicro_wakeword/alexa.tflite")).subgraphs[0]
    assert [quantized.tensors[at].scales for at in (*quantized.inputs, *quantized.outputs)] == [
        1,
        1,
    ]
    given = small("RESHAPE")
    plain = replace(given.subgraphs[0].tensors[1], scales=0)
    program = replace(given.subgraphs[0], tensors=(given.subgraphs[0].tensors[0], plain))
    kept = [
        compute_arena(each, find_board("32-bit")).persistent
        for each in (given, replace(given, subgraphs=(program,)))
    ]
    assert kept[0] - kept[1] == 12 + 8


@pytest.mark.parametrize(
    ("name", "touched"),
    [("okay_nabu", 0x720FC), ("alexa", 0x72530), ("hey_jarvis", 0x725D0), ("hey_mycroft", 0x72430)],
)
def test_the_planner_of_tflm_writes_into_a_hole(name: str, touched: int) -> None:
    """Tests where a build for 32 bits faulted, in an arena whose middle was not mapped."""
    path = model_named(f"pymicro_wakeword/{name}.tflite")
    places = find_working(path, find_board("32-bit"), (1 << 20) + (128 << 10))
    assert places[2][1] - 4 == touched
    assert places[0][0] == 0
    assert places[-1][1] == (1 << 20) + (128 << 10)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(places))
