"""Tests that figures of the front pages have a command, and that those of any machine are true."""

from __future__ import annotations

import re
from pathlib import Path

import figures
import pytest

# Numbers that are no figures: versions, names, and what a row of the page asks for.
_NAMES = {"3.11", "17", "121", "50", "2.0", "500"}
_LEFT_OUT = re.compile(
    r"```.*?```|<!--.*?-->|`[^`]*`|\]\([^)]*\)|<[^>]*>", re.DOTALL
)  # code, what is not shown, and addresses
_NUMBER = re.compile(r"(?<![\w.,/])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")

FIGURES = list(figures.read_figures())


@pytest.mark.parametrize("page", figures.FRONT, ids=lambda page: page.name)
def test_every_figure_has_a_command(page: Path) -> None:
    """Tests that each number in the text of a page is in the table."""
    said = {number for figure in FIGURES for number in _NUMBER.findall(figure.said)}
    shown = set(_NUMBER.findall(_LEFT_OUT.sub(" ", page.read_text())))
    assert shown - said - _NAMES == set()


@pytest.mark.parametrize("page", figures.FRONT, ids=lambda page: page.name)
def test_numbers_are_written_in_one_way(page: Path) -> None:
    """Tests that thousands are divided by commas."""
    assert not re.search(r"\d \d{3}\b", _LEFT_OUT.sub(" ", page.read_text()))


def test_a_figure_is_held_against_what_was_measured() -> None:
    """Tests bytes as they are and rounded, times, and ratios."""

    def ratio(said: str, measured: float) -> float:
        return figures.Figure(said, "", (), 1, None).ratio(measured)

    assert ratio("454,656 bytes", 454_656) == 1
    assert ratio("454,656 bytes", 454_672) > 1
    assert ratio("8.4 MB", 8_429_568) == 1
    assert ratio("8.4 MB", 8_500_000) > 1
    assert ratio("43 %", 43.497) == 1
    assert ratio("10 of 11", 9) > 1
    assert ratio("56 ms", 0.028) == ratio("28 ms", 0.056) == 2
    fast = figures.Figure("477 ×", "", (), 1, None)
    assert fast.holds(700)
    assert not fast.holds(800)


def test_a_cell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests words and tables, a cell under another one, and what is not here."""
    printed = "peak  9,633,792 bytes (9.18 MiB)\n| a | 10% | 1,505,280 | 150,528 |\n"
    command = f"printf '{printed.replace('%', '%%')}'"
    peak = figures.Figure("9.18 MiB", command, ("peak",), 2, None)
    assert figures.measure(peak, {}) == 9_633_792
    assert figures.measure(figures.Figure("10.0", command, ("a", "10%"), 3, 4), {}) == 10
    with pytest.raises(AssertionError, match="prints no line"):
        figures.measure(figures.Figure("1", command, ("b",), 2, None), {})
    assert figures.measure(figures.Figure("1", "cat DATA/x", ("b",), 2, None), {}) is None
    assert figures.measure(figures.Figure("1", "cat no_such.tflite", ("b",), 2, None), {}) is None


@pytest.mark.deep
@pytest.mark.parametrize(
    "figure", [each for each in FIGURES if each.is_exact], ids=lambda f: f.said
)
def test_what_every_machine_measures(figure: figures.Figure) -> None:
    """Tests bytes and counts of commands that need no files of others, nor minutes."""
    if not figure.in_seconds:
        pytest.skip("takes minutes")
    measured = figures.measure(figure, {})
    if measured is None:
        pytest.skip("a model is not installed")
    assert figure.holds(measured), measured
