"""How much a file may become while it is read.

A few kilobytes can unpack to gigabytes, or call functions that call functions. What a file holds is
its own matter, but what it is expanded to is bounded here, so that any file of some megabytes is
read or refused within 1 GB and seconds. `Options.limit_factor` (`--limit-factor`) multiplies every
bound, for a file that is trusted and really that large.
"""

from __future__ import annotations

from typing import Final

from memplan.errors import GraphError

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
# The same as Python objects, at the most that each can take.
PARSED_BYTES: Final = 640 << 20
# Operators of an ONNX model with every function in the place of its calls, and their bytes.
INLINED_OPERATORS: Final = 250_000
INLINED_BYTES: Final = 64 << 20
# Calls of functions inside each other: the library inlines them recursively.
CALL_DEPTH: Final = 100
# Sizes in the shapes of all tensors of an ONNX model together.
SHAPE_SIZES: Final = 4_000_000


def check_growth(what: str, amount: int, limit: int, factor: int, unit: str) -> None:
    """Raise if a file would become more than is allowed.

    Parameters
    ----------
    what
        What grows, as the beginning of a sentence.
    amount, limit, unit
        How much it would be, how much is allowed, and of what.
    factor
        What the user allows: a multiple of the limit.

    Raises
    ------
    GraphError
        The sentence names the option that takes the file all the same.
    """
    if amount <= limit * factor:
        return
    most = f"{limit * factor:,} {unit}"
    least = -(-amount // limit)
    if least > MAX_FACTOR:
        raise GraphError(f"{what} would be far more than {most}: the file cannot be read")
    raise GraphError(
        f"{what} would be {amount:,} {unit}, more than {most}; if the file is trusted, raise the "
        f"limits with --limit-factor {least}"
    )
