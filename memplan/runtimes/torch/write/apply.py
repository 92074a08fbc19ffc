"""Lets a PyTorch program compute its first large tensors one band of rows at a time.

program = torch.export.export(model, inputs)
found = memplan.runtimes.torch.write.put_in_bands(program, max_extra=0.1)
print(found.given_peak, found.peak, found.extra)
"""

from __future__ import annotations

from typing import Any

from memplan.levers.pipeline import Arranged, arrange
from memplan.levers.rewrite.bands import MAX_EXTRA
from memplan.runtimes.torch.write.writer import FxProgram

__all__ = ["put_in_bands"]


def put_in_bands(
    program: Any, *, max_extra: float = MAX_EXTRA, capacity: int | None = None
) -> Arranged:
    """Let a program compute its large pictures in bands, where this needs less memory.

    The program itself is changed. Its results may differ in the last bits, as PyTorch's kernels
    choose how they add up by the size of a picture.

    Parameters
    ----------
    program
        As of `memplan.runtimes.torch.write.reorder`, before `to_edge` if it is for
        ExecuTorch. Operators that write into their inputs, as `ReLU(inplace=True)` does, are done
        as a whole: `run_decompositions()` makes others of them.
    max_extra
        The most work that may be added, as a share of the multiplications of the program.
    capacity
        Bytes that are enough: the least work within them is chosen. Without it, the least memory.

    Returns
    -------
    Arranged
        Its peaks are loads of what the operators make; weights and inputs belong to the caller.

    Raises
    ------
    GraphError
        If nodes do not say what they make, and as `memplan.runtimes.torch.read.graph_of`.
    MemplanError
        If no bands are within the budget, or torch is not installed.
    """
    writer = FxProgram.of(program)
    found = arrange(writer, bands=True, max_extra=max_extra, capacity=capacity).require_whole()
    found.require_fit(max_extra)
    return writer.change(found)


stripe = put_in_bands  # the old name
