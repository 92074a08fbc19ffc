"""An upper bound on the benefit of buffers that fit in a capacity, by Lagrangian relaxation.

At every time, the chosen buffers hold at most the capacity. The relaxation adds up these
constraints, with a price for a byte at each time. The worth of a buffer is its benefit minus the
price of the bytes that it holds. No choice has a greater benefit than the sum of all positive
worths plus the price of the whole capacity. The subgradient method finds prices; the bound is valid
for any prices. The final sum is computed in whole numbers, so rounding cannot make it invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem, spans

__all__ = ["ValueBound", "bound_value"]

_ROUNDS = 300
_PATIENCE = 20  # rounds without a better bound, after which steps are halved
_FINEST = 1 << 40  # parts of a unit of benefit, for prices

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ValueBound:
    """An upper bound on the benefit of a choice.

    Attributes
    ----------
    parts
        The bound, in parts of a unit of benefit.
    worth
        By row, in parts: its benefit minus the price of the bytes that it holds. A choice with a
        row of negative worth, or without one of positive worth, has a bound lower by that worth.
    scale
        How many parts a unit has.
    """

    parts: int
    worth: tuple[int, ...]
    scale: int

    @property
    def value(self) -> int:
        """The bound in units of benefit."""
        return self.parts // self.scale


def bound_value(
    problem: Problem,
    benefit: Sequence[int],
    room: int,
    forced: npt.NDArray[np.bool_],
    reached: int,
    over: Callable[[], bool] = lambda: False,
) -> ValueBound:
    """Bound the benefit of any choice of rows that includes the forced ones.

    Parameters
    ----------
    problem
        All buffers; their gaps are taken into account.
    benefit
        By row, 0 or more.
    room
        Bytes that may be held at one time.
    forced
        By row, shape (n,).
    reached
        The benefit of a known choice, towards which the subgradient method steps.
    over
        A function that returns whether to stop with the best prices so far.
    """
    held = spans.spans(problem)
    times = np.unique(held.start)  # the load can only rise when a span begins
    first = np.searchsorted(times, held.start)
    last = np.searchsorted(times, held.end)
    bytes = (held.upper - held.lower).astype(np.float64)
    unit = max(float(bytes.max(initial=1.0)), 1.0)  # a price is that of so many bytes
    size = bytes / unit
    gain = np.array(benefit, dtype=np.float64)

    def evaluate_worth(price: _Floats) -> _Floats:
        total = np.concatenate([[0.0], np.cumsum(price)])
        paid = np.bincount(held.buffer, size * (total[last] - total[first]), len(gain))
        return gain - paid

    count = len(times)
    best, least = np.zeros(count), float(gain.sum())
    price, step, idle = best, 1.0, 0
    for _ in range(_ROUNDS if count else 0):
        if over():
            break
        worth = evaluate_worth(price)
        chosen = forced | (worth > 0)
        bound = float(worth[chosen].sum() + room / unit * price.sum())
        if bound < least - 1e-9 * abs(least):
            best, least, idle = price, bound, 0
        else:
            idle += 1
            if idle >= _PATIENCE:
                step, idle, price = step / 2, 0, best
                continue
        taken = size * chosen[held.buffer]
        change = np.bincount(first, taken, count + 1) - np.bincount(last, taken, count + 1)
        slack = np.cumsum(change[:-1]) - room / unit
        length = float((slack * slack).sum())
        if length == 0 or bound <= reached:
            break
        price = np.maximum(0.0, price + step * (bound - reached) / length * slack)
    return _round_prices(problem, benefit, room, forced, times, best / unit)


def _round_prices(
    problem: Problem,
    benefit: Sequence[int],
    room: int,
    forced: npt.NDArray[np.bool_],
    times: npt.NDArray[np.int64],
    price: _Floats,
) -> ValueBound:
    held = spans.spans(problem)
    # The price of one byte is small if there is much room, so the parts must be finer.
    scale = _FINEST * max(1, room)
    total = [0]
    for each in price.tolist():
        total.append(total[-1] + int(each * scale))
    worth = [scale * value for value in benefit]
    columns = (held.buffer, held.start, held.end, held.upper - held.lower)
    first = np.searchsorted(times, columns[1]).tolist()
    last = np.searchsorted(times, columns[2]).tolist()
    for row, begin, end, size in zip(
        columns[0].tolist(), first, last, columns[3].tolist(), strict=True
    ):
        worth[row] -= size * (total[end] - total[begin])
    parts = room * total[-1]
    parts += sum(
        each for each, must in zip(worth, forced.tolist(), strict=True) if must or each > 0
    )
    return ValueBound(parts, tuple(worth), scale)
