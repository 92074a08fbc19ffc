"""Tests of boards: which scratch their kernels ask for, and which names are known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tflite_models import WINDOW, constant

from memplan.base.errors import MemplanError
from memplan.extensions.boards import CHIPS
from memplan.programs.sources.options import Board
from memplan.runtimes.tflm.read.boards import compute_sizes, find_board, list_boards
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo

BOARDS = ("cortex-m3", "cortex-m4", "cortex-m55", "esp32", "esp32-s3", "esp32-p4")


def ask(
    type_: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    options: tuple[int, ...] = (),
    dtype: str = "int8",
) -> list[tuple[int, ...] | None]:
    """Return what an operator asks for on each board: its input, weights and output are given."""
    source, weights, made = shapes
    inputs = [TensorInfo("x", dtype, source), constant("w", "int8", *weights)]
    operator = OperatorInfo(type_, (0, 1), (2,), options=dict(zip(WINDOW, options, strict=False)))
    output = TensorInfo("y", dtype, made)
    return [compute_sizes(find_board(name), operator, inputs, output) for name in BOARDS]


@pytest.mark.parametrize(
    ("type_", "shapes", "options", "sizes"),
    [  # as the functions of CMSIS-NN 99f736a and esp-nn d45b843 return them
        (
            "CONV_2D",
            ((1, 49, 10, 1), (64, 10, 4, 1), (1, 25, 5, 64)),
            (0, 2, 2, 0, 0),
            (160, 160, 192, 0, 3472, 328),
        ),
        (
            "CONV_2D",
            ((1, 25, 5, 64), (64, 1, 1, 64), (1, 25, 5, 64)),
            (0, 1, 1, 0, 0),
            (0, 0, 0, 0, 5184, 5152),
        ),
        (
            "CONV_2D",
            ((1, 32, 32, 16), (16, 3, 3, 16), (1, 32, 32, 16)),
            (0, 1, 1, 0, 0),
            (576, 576, 576, 0, 41728, 240),
        ),
        (
            "CONV_2D",
            ((1, 1, 40, 8), (16, 1, 3, 8), (1, 1, 40, 16)),
            (0, 1, 1, 0, 0),
            (96, 96, 32, 0, 2080, 120),
        ),
        (
            "DEPTHWISE_CONV_2D",
            ((1, 25, 5, 64), (1, 3, 3, 64), (1, 25, 5, 64)),
            (0, 1, 1, 0, 0),
            (0, 0, 4464, 0, 12688, 0),
        ),
        (
            "DEPTHWISE_CONV_2D",
            ((1, 5, 1, 32), (1, 5, 1, 32), (1, 1, 1, 32)),
            (1, 1, 1, 0, 0),
            (0, 320, 2480, 0, 672, 0),
        ),
        (
            "DEPTHWISE_CONV_2D",
            ((1, 49, 40, 1), (1, 10, 8, 8), (1, 25, 20, 8)),
            (0, 2, 2, 0, 0),
            (0, 0, 960, 0, 5232, 0),
        ),
        (
            "DEPTHWISE_CONV_2D",
            ((1, 9, 9, 12), (1, 3, 3, 12), (1, 9, 9, 12)),
            (0, 1, 1, 2, 2),
            (0, 0, 0, 0, 4384, 0),
        ),
        ("AVERAGE_POOL_2D", ((1, 25, 5, 64), (1,), (1, 1, 1, 64)), (), (0, 256, 0, 0, 0, 0)),
        ("SOFTMAX", ((1, 12), (1,), (1, 12)), (), (0, 0, 0, 48, 48, 48)),
        ("FULLY_CONNECTED", ((1, 1, 64), (12, 64), (1, 1, 12)), (), (96, 96, 96, 0, 0, 0)),
        ("FULLY_CONNECTED", ((1, 64), (12, 64), (1, 12)), (), (0, 0, 0, 0, 0, 0)),
    ],
)
def test_scratch_is_that_of_the_published_functions(
    type_: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    options: tuple[int, ...],
    sizes: tuple[int, ...],
) -> None:
    """Tests sizes that the compiled functions gave; 20,000 random cases were compared by hand."""
    assert tuple(sum(each or ()) for each in ask(type_, shapes, options)) == sizes


def test_transposed_convolutions_of_cmsis_nn() -> None:
    """Tests one that turns its filter, one that does not, and that a size of 0 is asked for."""
    steps = {"padding": 0, "step_x": 2, "step_y": 2}
    for channels, size, helium, turned in ((24, 864, 896, 864), (8, 240, 240, 0)):
        operator = OperatorInfo("TRANSPOSE_CONV", (0, 1, 2), (3,), options=steps)
        weights = constant("w", "int8", 4, 3, 3, channels)
        inputs = [None, weights, TensorInfo("x", "int8", (1, 1, 2, channels))]
        output = TensorInfo("y", "int8", (1, 2, 4, 4))
        for name, first in (("cortex-m4", size), ("cortex-m55", helium)):
            assert compute_sizes(find_board(name), operator, inputs, output) == (first, turned)


def test_weights_of_4_bits() -> None:
    """Tests that CMSIS-NN takes them as they are, and that esp-nn unpacks them."""
    for type_, shape, sizes in (
        ("CONV_2D", (4, 3, 3, 4), (144, 192, 144, 228)),
        ("DEPTHWISE_CONV_2D", (1, 3, 3, 4), (72, 4464, 36, 36)),
    ):
        inputs = [TensorInfo("x", "int8", (1, 8, 8, 4)), constant("w", "int4", *shape)]
        operator = OperatorInfo(type_, (0, 1), (2,), options=WINDOW)
        output = TensorInfo("y", "int8", (1, 8, 8, 4))
        for name, size in zip(("cortex-m3", "cortex-m55", "esp32", "esp32-p4"), sizes, strict=True):
            assert sum(compute_sizes(find_board(name), operator, inputs, output) or ()) == size


def test_what_is_not_known_is_no_size() -> None:
    """Tests operators without options, or with too few inputs."""
    assert ask("CONV_2D", ((1, 8, 8, 4), (4, 3, 3, 4), (1, 8, 8, 4)))[0] is None
    assert ask("UNIDIRECTIONAL_SEQUENCE_LSTM", ((4, 4), (4, 4), (4, 4)))[0] is None


def test_scratch_of_products_and_of_lstms() -> None:
    """Tests what CMSIS-NN asks for: sums on Helium, and a buffer less for quantized LSTMs."""
    assert ask("BATCH_MATMUL", ((4, 8), (8, 6), (4, 6))) == [(), (), (24,), (), (), ()]
    inputs = [TensorInfo("x", "int8", (1, 3, 4)), *[constant("w", "int8", 8, 4)] * 17]
    inputs += [TensorInfo("h", "int8", (1, 8)), TensorInfo("c", "int16", (1, 8))]
    operator = OperatorInfo("UNIDIRECTIONAL_SEQUENCE_LSTM", tuple(range(20)), (20,))
    output = TensorInfo("y", "int8", (1, 3, 8))
    for name, count in (("cortex-m4", 3), ("cortex-m55", 3), ("esp32", 4), ("32-bit", 4)):
        assert compute_sizes(find_board(name), operator, inputs, output) == (16,) * count


def test_scratch_of_an_accelerator() -> None:
    """Tests the arrays of addresses and sizes that the operator of Vela asks for."""
    inputs, output = [TensorInfo("x", "int8", (4,))] * 4, TensorInfo("y", "int8", (4,))
    operator = OperatorInfo("ethos-u", (0, 1, 2, 3), (4,))
    assert compute_sizes(find_board("cortex-m55"), operator, inputs, output) == (40, 20)


def test_tensors_of_other_types_take_the_reference_way() -> None:
    """Tests float32, for which no library has kernels, and pointers in scratch."""
    shapes = (1, 8, 8, 4), (4, 3, 3, 4), (1, 8, 8, 4)
    assert ask("CONV_2D", shapes, (0, 1, 1, 1, 1), "float32") == [()] * len(BOARDS)
    operator = OperatorInfo("ADD_N", (0, 0, 0), (1,))
    inputs, output = [TensorInfo("x", "float32", (4,))] * 3, TensorInfo("y", "float32", (4,))
    for name, size in (("32-bit", 12), ("64-bit", 24)):
        assert compute_sizes(find_board(name), operator, inputs, output) == (size,)


def test_names_of_boards() -> None:
    """Tests defaults, capitals, kernels of other makers on any 32-bit board, a board itself."""
    board = find_board("Cortex-M4")
    assert (board.pointer, board.enumeration, board.kernels, board.unit) == (
        4,
        1,
        "cmsis-nn",
        "dsp",
    )
    assert find_board(board) is board
    assert find_board() == Board("32-bit", 4, 4, "reference")
    assert str(find_board(None, "esp-nn")) == "32-bit with esp-nn kernels"
    assert find_board("esp32-s3", "reference").unit == ""


@pytest.mark.parametrize(
    ("name", "kernels", "sentence"),
    [
        ("cortex-m99", None, 'no board has the name "cortex-m99"; known are cortex-m0'),
        ("esp32", "xtensa", 'no kernels have the name "xtensa"; known are reference'),
        ("esp32", "cmsis-nn", "cmsis-nn has no kernels for esp32; it has esp-nn"),
    ],
)
def test_unknown_names_are_refused(name: str, kernels: str | None, sentence: str) -> None:
    """Tests a board, kernels, and kernels of another maker."""
    with pytest.raises(MemplanError, match=sentence):
        find_board(name, kernels)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("esp32s3", "esp32-s3"),
        ("ESP32_S3", "esp32-s3"),
        ("esp32s3-devkitc", "esp32-s3"),
        ("cortexm4", "cortex-m4"),
        ("m55", "cortex-m55"),
        ("cortex-m4f", "cortex-m4"),
        ("32bit", "32-bit"),
        ("stm32h7", "cortex-m7"),
        ("STM32H743ZI", "cortex-m7"),
        ("stm32wba52", "cortex-m33"),
        ("stm32wb55", "cortex-m4"),
        ("nrf52840", "cortex-m4"),
        ("nRF5340", "cortex-m33"),
        ("rp2040", "cortex-m0+"),
        ("pico2", "cortex-m33"),
    ],
)
def test_what_was_meant_is_said(name: str, meant: str) -> None:
    """Tests boards without hyphens, boards of a family, cores, and chips by their beginnings."""
    with pytest.raises(MemplanError, match=rf'no board .* did you mean "{re.escape(meant)}"\?$'):
        find_board(name)


def test_chips_are_listed_where_nothing_is_like_a_name() -> None:
    """Tests the table in the refusal, on the page, and that each chip has a board."""
    assert set(CHIPS.values()) <= set(list_boards())
    with pytest.raises(MemplanError) as refused:
        find_board("z80")
    page = (Path(__file__).parents[2] / "docs" / "boards.md").read_text()
    rows = dict(re.findall(r"^  \| `(cortex-[^`]+)` \| (.+) \|$", page, re.M))
    for board in set(CHIPS.values()):
        assert f"{board} for " in str(refused.value)
        words = "".join(each for each in rows[board].lower() if each.isalnum())
        for chip in (each for each, core in CHIPS.items() if core == board):
            assert chip in words or chip.removeprefix("stm32") in words
