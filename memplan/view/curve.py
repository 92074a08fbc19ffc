"""The load over time, drawn with characters."""

from __future__ import annotations

import numpy as np

from memplan.problem.loads import Loads
from memplan.view.units import human

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " ..:::###"  # the same nine levels, for terminals that have no blocks


def load_curve(
    loads: Loads,
    width: int = 78,
    height: int = 8,
    ascii_only: bool = False,
    most: int | None = None,
) -> str:
    """Draw the load over time; `most` is the load at the top, so that two curves have one scale.

    A column shows the greatest load of its time, not the mean: the peak stays, however short. The
    width in characters includes the labels, and the height does not include the time axis.
    """
    top = loads.peak_section
    if top is None:
        return "no buffer holds anything at any time"
    most = loads.peak if most is None else most
    label = human(most)
    margin = len(label) + 2
    columns = max(10, width - margin)
    first, last = int(loads.start[0]), int(loads.end[-1])
    levels = _scale(column_loads(loads, columns), most, height)
    marks, wall, corner, line = (_ASCII, "|", "+", "-") if ascii_only else (_BLOCKS, "│", "└", "─")
    lines = []
    for row in range(height):
        cells = (levels - 8 * (height - 1 - row)).clip(0, 8)
        name = label if row == 0 else ""
        bar = "".join(marks[cell] for cell in cells)
        lines.append(f"{name:>{margin - 2}} {wall}{bar}".rstrip())
    lines.append(f"{'0':>{margin - 2}} {corner}{line * columns}")
    peak_time = int(loads.start[top])
    column = (peak_time - first) * columns // (last - first)
    lines.append(" " * margin + time_axis(str(first), str(peak_time), str(last), column, columns))
    return "\n".join(lines)


def column_loads(loads: Loads, columns: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the greatest load in each of so many equal parts of the time, shape (columns,)."""
    first, last = int(loads.start[0]), int(loads.end[-1])
    # These are Python's integers, because 2^63 times the columns does not fit in 64 bits.
    edges = [first + at * (last - first) // columns for at in range(columns + 1)]
    begin = np.searchsorted(loads.start, edges[:-1], side="right") - 1
    end = np.searchsorted(loads.start, edges[1:], side="left")
    bounds = np.column_stack([begin, np.maximum(end, begin + 1)]).ravel()
    padded = np.append(loads.load, 0)  # `reduceat` takes no index past the end
    return np.maximum.reduceat(padded, bounds)[::2]


def _scale(
    load: np.ndarray[tuple[int], np.dtype[np.int64]], peak: int, height: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Scale to eighths of a row; a load above 0 is at least one of them, so that it is seen."""
    scaled = np.ceil(load / peak * (8 * height)).astype(np.int64)
    return np.where(load > 0, scaled.clip(1), 0)


def time_axis(left: str, peak: str, right: str, column: int, columns: int) -> str:
    """Write `^` under the column of the peak with its time, and the ends where there is room."""
    text = f"{'^':>{column + 1}} {peak}"
    if len(text) > columns:
        text = f"{peak} ^".rjust(column + 1)
    if len(left) < len(text) - len(text.lstrip()):
        text = left + text[len(left) :]
    if len(text) + len(right) < columns:
        text += right.rjust(columns - len(text))
    return text
