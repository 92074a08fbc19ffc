"""Tests of the rows that operators need, against the definition of a window."""

from __future__ import annotations

import random

import pytest

from memplan.programs.graph.pictures import Padding, Shifted, Window

ROUNDS = 2_000


def test_a_window_in_the_padding_gets_the_nearest_row() -> None:
    """Tests that a band of windows in the padding alone grows until one reaches the input."""
    window = Window(2, 1, 1, Padding.FREE, before=4)
    assert window.feed((0, 1), 3, 10) == ((0, 1), (0, 4))
    assert window.feed((8, 10), 3, 10) == ((2, 3), (6, 10))
    assert Shifted(3).feed((0, 2), 1, 8) == ((0, 1), (0, 4))
    assert Shifted(3).feed((6, 8), 1, 8) == ((0, 1), (3, 8))


@pytest.mark.parametrize("rule", [Window(1, 3, 1, Padding.FREE, before=1), Shifted(-4)])
def test_windows_that_never_reach_the_input(rule: Window | Shifted) -> None:
    """Tests that a rule of which no row needs an input says so."""
    with pytest.raises(ValueError, match="no row of its result needs one of its input"):
        rule.feed((0, 1), 1, 1)


def test_windows_with_free_padding() -> None:
    """Tests random windows: what is fed is what the windows that are made lie over."""
    draw = random.Random(0)
    for _ in range(ROUNDS):
        window = Window(
            draw.randint(1, 5), draw.randint(1, 6), draw.randint(1, 3), Padding.FREE,
            draw.randint(-2, 9),
        )  # fmt: skip
        size = draw.randint(1, 20)
        result = (size + window.before + draw.randint(0, 9) - window.reach) // window.stride + 1
        spans = [row * window.stride - window.before for row in range(result)]
        inside = [at for at, one in enumerate(spans) if one < size and one + window.reach > 0]
        if not inside:
            continue
        wanted = begin, end = _span(draw, result)
        (first, last), made = window.feed(wanted, size, result)
        assert 0 <= first < last <= size
        assert made == (min(begin, inside[-1]), max(end, inside[0] + 1))
        assert first == max(0, spans[made[0]])
        assert last == min(size, spans[made[1] - 1] + window.reach)


def test_windows_with_the_padding_of_the_runtime() -> None:
    """Tests random windows: a band is the shortest one whose padding leaves them in place."""
    draw = random.Random(0)
    for _ in range(ROUNDS // 10):
        window = Window(draw.randint(1, 5), draw.randint(1, 5), draw.randint(1, 3), Padding.SAME)
        size = draw.randint(1, 24)
        wanted = _span(draw, -(-size // window.stride))
        (first, last), made = window.feed(wanted, size, -(-size // window.stride))
        fits = [
            end - begin
            for begin in range(size)
            for end in range(begin + 1, size + 1)
            if _is_right(window, (begin, end), wanted, size)
        ]
        assert _is_right(window, (first, last), wanted, size)
        assert last - first == min(fits)
        assert made[1] - made[0] == -(-(last - first) // window.stride)


def _span(draw: random.Random, result: int) -> tuple[int, int]:
    begin = draw.randrange(result)
    return begin, draw.randint(begin + 1, result)


def _is_right(window: Window, band: tuple[int, int], wanted: tuple[int, int], size: int) -> bool:
    """Return whether the windows of a band are those of the whole where these are wanted."""
    begin, end = band
    rows = -(-(end - begin) // window.stride)
    pad, shift = window.pad(end - begin), window.pad(size)
    apart = begin - pad + shift
    if apart % window.stride or not apart // window.stride <= wanted[0]:
        return False
    if apart // window.stride + rows < wanted[1]:
        return False
    needs = (wanted[0] * window.stride - shift, (wanted[1] - 1) * window.stride - shift)
    return begin <= max(0, needs[0]) and min(size, needs[1] + window.reach) <= end
