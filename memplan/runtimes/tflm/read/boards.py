"""Boards: how wide pointers are where a model will run, and which kernels run it there.

Both decide how much of TFLM's arena is not tensors: the structs that it keeps for each tensor and
operator, and the scratch that kernels ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from memplan.base.errors import MemplanError, listed, quoted, suggest
from memplan.runtimes.tflm.read import cmsis_nn, esp_nn
from memplan.runtimes.tflm.read.kernels import compute_scratch
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, TensorInfo

__all__ = [
    *("BOARDS", "CHIPS", "KERNELS", "Board"),
    *("compute_sizes", "find_board", "put_on_board"),
]


@dataclass(frozen=True, slots=True)
class Board:
    """A chip, as far as TFLM's arena depends on it."""

    name: str  # as users write it: "cortex-m4"
    pointer: int  # bytes of a pointer
    enumeration: int  # the least bytes of one: compilers for Arm without an operating system take 1
    kernels: str  # "reference", "cmsis-nn" or "esp-nn"
    # The instructions that a library of kernels uses: "" for plain C, "dsp" or "mve" of Arm,
    # "esp32", "esp32-s3" or "esp32-p4".
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} with {self.kernels} kernels"


_ARM: Final = {"": "m0 m0+ m1 m3 m23", "dsp": "m4 m7 m33 m35p", "mve": "m52 m55 m85"}
_ETHOS_U: Final = "ethos-u"  # the operator that Vela makes
_ESPRESSIF: Final = {
    "esp32": "esp32 esp32-s2 esp32-c2 esp32-c3 esp32-c5 esp32-c6 esp32-h2",
    "esp32-s3": "esp32-s3",
    "esp32-p4": "esp32-p4",
}

# By name: each with the kernels that its maker has for it. "32-bit" and "64-bit" are any other.
BOARDS: Final[dict[str, Board]] = {
    **{
        f"cortex-{core}": Board(f"cortex-{core}", 4, 1, "cmsis-nn", unit)
        for unit, cores in _ARM.items()
        for core in cores.split()
    },
    **{
        name: Board(name, 4, 4, "esp-nn", unit)
        for unit, names in _ESPRESSIF.items()
        for name in names.split()
    },
    "32-bit": Board("32-bit", 4, 4, "reference"),
    "64-bit": Board("64-bit", 8, 4, "reference"),
}
KERNELS: Final = ("reference", "cmsis-nn", "esp-nn")

_CHIPS: Final = {
    "cortex-m0": "nrf51 stm32f0",
    "cortex-m0+": "pico rp2040 samd21 saml21 stm32c0 stm32g0 stm32l0 stm32u0",
    "cortex-m3": "stm32f1 stm32f2 stm32l1",
    "cortex-m4": "apollo3 apollo4 mk64 mk66 max78000 nrf52 psoc6 same51 samd51 stm32f3 stm32f4 "
    "stm32g4 stm32l4 stm32wb stm32wl",
    "cortex-m7": "imxrt same70 stm32f7 stm32h7 teensy4",
    "cortex-m33": "efr32mg24 lpc55 mcxn nrf53 nrf54 nrf91 pico2 rp2350 stm32h5 stm32l5 stm32u3 "
    "stm32u5 stm32wba",
    "cortex-m55": "alif apollo5 stm32n6",
    "cortex-m85": "ra8",
}
CHIPS: Final[dict[str, str]] = {
    chip: board for board, chips in _CHIPS.items() for chip in chips.split()
}
"""By the beginning of the name of a chip: the board that is its (larger) core."""


def find_board(name: str | Board | None = None, kernels: str | None = None) -> Board:
    """Return a board by its name; without one, any with 32 bits; a board as it is.

    The kernels are by default those that the maker of the chip has for it. Elsewhere than on such
    chips, cmsis-nn and esp-nn are plain C. Kernels that are not for this chip are refused.
    """
    if isinstance(name, Board):
        return name
    board = BOARDS.get("32-bit" if name is None else name.lower())
    if board is None:
        raise MemplanError(f"no board has the name {quoted(str(name))}{_advise(str(name))}")
    if kernels is None or kernels == board.kernels:
        return board
    if kernels not in KERNELS:
        known = listed([*KERNELS], quote=False)
        raise MemplanError(
            f"no kernels have the name {quoted(kernels)}; known are {known}"
            f"{suggest(kernels, KERNELS)}"
        )
    if kernels != "reference" and board.kernels != "reference":
        raise MemplanError(f"{kernels} has no kernels for {board.name}; it has {board.kernels}")
    return replace(board, kernels=kernels, unit="")


def _advise(name: str) -> str:
    """Return the end of a sentence about an unknown board: the one that was meant, or all."""
    word = _squeeze(name)
    boards = {_squeeze(each): each for each in BOARDS}
    chip = max((each for each in CHIPS if word.startswith(each)), key=len, default=None)
    if chip is not None:
        return f": {chip} has a {CHIPS[chip]}; did you mean {quoted(CHIPS[chip])}?"
    begins = [each for each in boards if word.startswith(each)]
    cores = [each for each in boards if word and each == f"cortex{word}"]
    near = cores or sorted(begins, key=len)[-1:] or get_close_matches(word, boards, 1, 0.9)
    if near:
        return f"; did you mean {quoted(boards[near[0]])}?"
    chips = "; ".join(f"{board} for {', '.join(each.split())}" for board, each in _CHIPS.items())
    return f"; known are {', '.join(BOARDS)}; of chips, {chips}"


def _squeeze(name: str) -> str:
    """Return a name as people may write it: without hyphens, in small letters."""
    return "".join(each for each in name.lower() if each.isalnum() or each == "+")


def put_on_board(model: Model, board: Board | None) -> tuple[Model, tuple[str, ...]]:
    """Return a model whose operators ask for the scratch that they need on a board.

    The second result is the types of operators whose scratch is not known there; none is counted
    for them. Without a board, the model is as it was.
    """
    if board is None:
        return model, ()
    unknown = set()
    subgraphs = []
    for subgraph in model.subgraphs:
        operators = []
        for operator in subgraph.operators:
            sizes = compute_sizes(board, operator, *subgraph.find_ends(operator))
            if sizes is None:
                unknown.add(operator.type)
            operators.append(replace(operator, scratch=sizes or ()))
        subgraphs.append(replace(subgraph, operators=tuple(operators)))
    return replace(model, subgraphs=tuple(subgraphs)), tuple(sorted(unknown))


def compute_sizes(
    board: Board,
    operator: OperatorInfo,
    inputs: Sequence[TensorInfo | None],
    output: TensorInfo | None,
) -> tuple[int, ...] | None:
    """Return the sizes of the scratch buffers that an operator asks for, in its order.

    A size of 0 is asked for too: TFLM keeps a pointer for it. `None` if the sizes are not known.
    """
    if output is None:
        return ()
    if operator.type == _ETHOS_U:  # the addresses and the sizes of its tensors
        tensors = len(operator.inputs) + len(operator.outputs)
        return 8 * tensors, board.pointer * tensors
    library = {"cmsis-nn": cmsis_nn.SCRATCH, "esp-nn": esp_nn.SCRATCH}.get(board.kernels, {})
    request = library.get(operator.type)
    if request is not None:
        try:
            return request(board.unit, operator, inputs, output)
        except (IndexError, ValueError, ZeroDivisionError):  # inputs, axes or options are missing
            return None
    if operator.type == "ADD_N":  # an array of pointers
        return (board.pointer * len(inputs),)
    return compute_scratch(operator.type, inputs, output)
