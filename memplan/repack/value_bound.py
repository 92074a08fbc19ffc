"""How much benefit can lie below a capacity at most: a bound, and what each buffer adds to it.

At every time, what is chosen holds at most the capacity. Of all these conditions one sum is made,
with a price for a byte at each time (Lagrange): a buffer is worth its benefit less the price of
what it holds. No choice is worth more than all buffers that are worth something, and all bytes at
their price. Prices are found by following the subgradient; whatever they are, the bound is valid.
The last sum is made with whole numbers, so that no rounding can break it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem, spans

__all__ = ["ValueBound", "value_bound"]

_ROUNDS = 300
_PATIENCE = 20  # rounds without a better bound, after which steps are halved
_FINEST = 1 << 40  # parts of a unit of benefit, for prices

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ValueBound:
    """No choice is worth more.

    Attributes
    ----------
    parts
        The bound, in parts: `scale` are a unit of benefit.
    worth
        By row, in parts: the benefit less the price of what it holds. To choose a row whose worth
        is negative, or to leave one whose worth is positive, lowers the bound by as much.
    scale
        How many parts a unit has.
    """

    parts: int
    worth: tuple[int, ...]
    scale: int

    @property
    def value(self) -> int:
        """In units of benefit."""
        return self.parts // self.scale


def value_bound(
    problem: Problem,
    benefit: Sequence[int],
    room: int,
    forced: npt.NDArray[np.bool_],
    reached: int,
    over: Callable[[], bool] = lambda: False,
) -> ValueBound:
    """Bound the benefit of any choice of rows that has the forced ones.

    Parameters
    ----------
    problem
        Whose gaps count as what they are.
    benefit
        By row, 0 or more.
    room
        Bytes that may be held at one time.
    forced
        By row, shape (n,).
    reached
        What a choice is known to be worth: prices are sought that come near to it.
    over
        Whether to stop and take the prices that there are.
    """
    held = spans.spans(problem)
    times = np.unique(held.start)  # the load is greatest where something begins
    first = np.searchsorted(times, held.start)
    last = np.searchsorted(times, held.end)
    bytes = (held.upper - held.lower).astype(np.float64)
    unit = max(float(bytes.max(initial=1.0)), 1.0)  # prices are for so many bytes
    size = bytes / unit
    gain = np.array(benefit, dtype=np.float64)

    def worth_at(price: _Floats) -> _Floats:
        total = np.concatenate([[0.0], np.cumsum(price)])
        paid = np.bincount(held.buffer, size * (total[last] - total[first]), len(gain))
        return gain - paid

    count = len(times)
    best, least = np.zeros(count), float(gain.sum())
    price, step, idle = best, 1.0, 0
    for _ in range(_ROUNDS if count else 0):
        if over():
            break
        worth = worth_at(price)
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
    return _exact(problem, benefit, room, forced, times, best / unit)


def _exact(
    problem: Problem,
    benefit: Sequence[int],
    room: int,
    forced: npt.NDArray[np.bool_],
    times: npt.NDArray[np.int64],
    price: _Floats,
) -> ValueBound:
    held = spans.spans(problem)
    # A byte of a large buffer costs little: parts are as fine as the room is wide.
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
