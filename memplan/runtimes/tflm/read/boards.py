"""Boards: how wide pointers are where a model will run, and which kernels run it there.

Both decide how much of TFLM's arena is not tensors: the structs that it keeps for each tensor and
operator, and the scratch that kernels ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from memplan.base.errors import MemplanError, listed, quoted, suggest
from memplan.programs.sources.options import Board
from memplan.programs.sources.registry import find_extension
from memplan.runtimes.tflm.read.kernels import compute_scratch
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, TensorInfo

__all__ = [
    *("Kernels", "Request", "Tensors", "compute_sizes", "find_board"),
    *("list_boards", "list_kernels", "put_on_board"),
]

Tensors = Sequence[TensorInfo | None]
Request = Callable[[str, OperatorInfo, Tensors, TensorInfo], tuple[int, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """A library of kernels, as far as they ask for other memory than TFLM's reference kernels.

    Functions are called with the instructions that are used, the operator, its inputs and its first
    output. The keys are types of operators.
    """

    scratch: Mapping[str, Request]
    # Fields of what a kernel keeps, as letters of `board_structs`.
    keeps: Mapping[str, str] = field(default_factory=dict)
    # The bytes of sums over weights that a kernel keeps for good; none where it is `None`.
    count_sums: Callable[[str, OperatorInfo, Tensors, TensorInfo], int] | None = None
    # Whether convolutions of floats keep a multiplier and a shift for each channel, too.
    scales_floats: bool = True


_ETHOS_U: Final = "ethos-u"  # the operator that Vela makes
_PLAIN: Final = {  # any other chips
    "32-bit": Board("32-bit", 4, 4, "reference"),
    "64-bit": Board("64-bit", 8, 4, "reference"),
}


def list_boards() -> Mapping[str, Board]:
    """Return the boards by name."""
    return {**_extended("BOARDS"), **_PLAIN}


def list_kernels() -> Mapping[str, Kernels]:
    """Return the libraries of kernels by name."""
    return {"reference": Kernels(scratch={}), **_extended("KERNELS")}


def _extended(table: str) -> Mapping[str, Any]:
    """Return a table of the extension for chips; an empty one if that is not installed."""
    extension = find_extension("boards")
    return getattr(extension, table) if extension else {}


def find_board(name: str | Board | None = None, kernels: str | None = None) -> Board:
    """Return a board by its name; without one, any with 32 bits; a board as it is.

    The kernels are by default those that the maker of the chip has for it. Elsewhere than on such
    chips, cmsis-nn and esp-nn are plain C. Kernels that are not for this chip are refused.
    """
    if isinstance(name, Board):
        return name
    board = list_boards().get("32-bit" if name is None else name.lower())
    if board is None:
        raise MemplanError(f"no board has the name {quoted(str(name))}{_advise(str(name))}")
    if kernels is None or kernels == board.kernels:
        return board
    known = [*list_kernels()]
    if kernels not in known:
        raise MemplanError(
            f"no kernels have the name {quoted(kernels)}; known are {listed(known, quote=False)}"
            f"{suggest(kernels, known)}"
        )
    if kernels != "reference" and board.kernels != "reference":
        raise MemplanError(f"{kernels} has no kernels for {board.name}; it has {board.kernels}")
    return replace(board, kernels=kernels, unit="")


def _advise(name: str) -> str:
    """Return the end of a sentence about an unknown board: the one that was meant, or all."""
    word, cores = _squeeze(name), _extended("CHIPS")
    boards = {_squeeze(each): each for each in list_boards()}
    chip = max((each for each in cores if word.startswith(each)), key=len, default=None)
    if chip is not None:
        return f": {chip} has a {cores[chip]}; did you mean {quoted(cores[chip])}?"
    begins = [each for each in boards if word.startswith(each)]
    core = [each for each in boards if word and each == f"cortex{word}"]
    near = core or sorted(begins, key=len)[-1:] or get_close_matches(word, boards, 1, 0.9)
    if near:
        return f"; did you mean {quoted(boards[near[0]])}?"
    chips: dict[str, list[str]] = {}
    for chip, board in cores.items():
        chips.setdefault(board, []).append(chip)
    of_chips = "; ".join(f"{board} for {', '.join(each)}" for board, each in chips.items())
    return f"; known are {', '.join(list_boards())}" + f"; of chips, {of_chips}" * bool(chips)


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
    inputs: Tensors,
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
    request = list_kernels()[board.kernels].scratch.get(operator.type)
    if request is not None:
        try:
            return request(board.unit, operator, inputs, output)
        except (IndexError, ValueError, ZeroDivisionError):  # inputs, axes or options are missing
            return None
    if operator.type == "ADD_N":  # an array of pointers
        return (board.pointer * len(inputs),)
    return compute_scratch(operator.type, inputs, output)
