"""The structs that TFLM keeps in its arena, and how large a compiler makes them on a board.

The fields are those of TFLM's headers and kernels at revision 90b983c of 20 August 2026, each as a
letter: p a pointer or size, e an enumeration, i a number of 4 bytes, f a float, h a number of 2
bytes, b a bool or byte, d a number of 8 bytes; a struct in a struct is in parentheses.
"""

from __future__ import annotations

from typing import Final

from memplan.programs.sources.options import Board
from memplan.runtimes.tflm.operators import TABLE, find_row
from memplan.runtimes.tflm.read.boards import list_kernels
from memplan.runtimes.tflm.read.windows import round_up

__all__ = [
    *("ALLOCATION", "ALLOCATOR", "TENSOR"),
    *("find_kept", "measure_struct"),
]

# In the order in which they are placed: the buffer allocator, the planner and the allocator, of
# which SingleArenaBufferAllocator has two tables of functions.
ALLOCATOR: Final = ("pp" + "ppppp" + "pi", "piippppiipb", "pppppbppp")
TENSOR: Final = {
    "tensor": "(ep)(fi)pppeeb",  # TfLiteTensor
    "evaluated": "ppe",  # TfLiteEvalTensor
    "quantization": "ppi",  # TfLiteAffineQuantization
    "node": "(ppppppi)p",  # NodeAndRegistration
    "subgraph": "pp",  # SubgraphAllocations
    "builder": "pp",  # MicroBuiltinDataAllocator
    "variables": "pii",  # MicroResourceVariables
    "variable": "ppppb",  # one of them
}
ALLOCATION: Final = "ppiiib"  # AllocationInfo, only while the arena is planned


def extend_kept(names: str, more: str) -> dict[str, str]:
    """Return what the reference kernels of these operators keep, with fields behind it."""
    return {name: f"({TABLE[name].keeps}){more}" for name in names.split()}


def find_kept(board: Board, type_: str) -> str | None:
    """Return the fields of what the kernel of an operator keeps; `None` if they are not known."""
    return list_kernels()[board.kernels].keeps.get(type_, find_row(type_).keeps)


def measure_struct(board: Board, fields: str) -> tuple[int, int]:
    """Return the size and the alignment of a struct on a board, in bytes."""
    size, unit, _ = _measure(board, fields, 0)
    return size, unit


def _measure(board: Board, fields: str, at: int) -> tuple[int, int, int]:
    """Measure the fields from a position up to a closing bracket, and return where that is."""
    widths = {
        "p": board.pointer,
        "e": board.enumeration,
        "i": 4,
        "f": 4,
        "h": 2,
        "b": 1,
        "d": 8,
    }
    end, most = 0, 1
    while at < len(fields) and fields[at] != ")":
        if fields[at] == "(":
            size, unit, at = _measure(board, fields, at + 1)
        else:
            size = unit = widths[fields[at]]
        end = round_up(end, unit) + size
        most = max(most, unit)
        at += 1
    return round_up(end, most), most, at
