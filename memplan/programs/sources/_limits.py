"""Limits on how much a file may expand while it is read.

A few kilobytes can unpack to gigabytes, or call functions that call functions. The size of a file
is not limited, but that of its expansion is, so that any file of some megabytes is read or rejected
within 1 GB and seconds. `Options.limit_factor` (`--read limit-factor=N`) multiplies every limit,
for trusted files that are really that large.
"""

from __future__ import annotations

from typing import Final

from memplan.base.errors import GraphError

__all__ = [
    "CALL_DEPTH",
    "INLINED_BYTES",
    "INLINED_OPERATORS",
    "MAX_FACTOR",
    "PARSED_BYTES",
    "SHAPE_SIZES",
    "UNPACKED_BYTES",
    "check_growth",
]

MAX_FACTOR: Final = 10_000

# A graph of torch.export as text; the largest that torch writes are some ten megabytes.
UNPACKED_BYTES: Final = 128 << 20
# The same as Python objects, each counted at the most that it can take.
PARSED_BYTES: Final = 640 << 20
# Operators of an ONNX model after all functions are inlined, and their bytes.
INLINED_OPERATORS: Final = 250_000
INLINED_BYTES: Final = 64 << 20
# Depth of calls of functions, because the library inlines them recursively.
CALL_DEPTH: Final = 100
# Dimensions in the shapes of all tensors of an ONNX model together.
SHAPE_SIZES: Final = 4_000_000


def check_growth(what: str, amount: int, limit: int, factor: int, unit: str) -> None:
    """Refuse a file that would expand too far, and name the option that allows more.

    `what` grows: it begins the sentence. The user's factor multiplies the limit.
    """
    if amount <= limit * factor:
        return
    most = f"{limit * factor:,} {unit}"
    least = -(-amount // limit)
    if least > MAX_FACTOR:
        raise GraphError(f"{what} would be far more than {most}, so memplan cannot read the file")
    raise GraphError(
        f"{what} would be {amount:,} {unit}, more than {most}; if you trust the file, raise the "
        f"limits with --read limit-factor={least}"
    )
