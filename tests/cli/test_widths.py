"""Tests that what the commands print fits any terminal, and that what matters stands out."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from memplan import solvers
from memplan.analysis.compare import compare
from memplan.analysis.explain import explain
from memplan.analysis.inspection import inspect
from memplan.cli import main
from memplan.problem import Buffer, Problem
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Figure, Label, Loaded
from memplan.view.comparison import make_report
from memplan.view.words import comparisons, explanations, plans, problems, tables

WIDTHS = (40, 60, 80, 120, 200)
NAME = "model.encoder.layers.{}.attention.self.query.weight_gradient"
FIGURES = (Figure("TensorFlow Lite Micro", 5 << 20, "measured", ""),)


@pytest.fixture
def model() -> Loaded:
    """Return a program with long names and sizes of seven digits."""
    rows = [Buffer(NAME.format(at), at, at + 3, 1_234_567 + at) for at in range(14)]
    labels = [
        Label((row.id,), "intermediate", f"{row.id}.op (Conv)", (f"{row.id}.next (Add)",), "Conv",
              f"model.encoder.layers.{at}", f"somewhere/in/model.py:{at}")
        for at, row in enumerate(rows)
    ]  # fmt: skip
    return Loaded(Problem(rows), "graph", len(rows), labels=tuple(labels))


def draw(what: RenderableType, width: int, **options: object) -> str:
    """Return what a terminal of this width gets."""
    settings = {"force_terminal": True, "color_system": "standard", "legacy_windows": False}
    file = io.StringIO()
    console = Console(
        file=file, width=width, markup=False, highlight=False, emoji=False, **settings | options
    )
    console.print(what)
    return file.getvalue()


def strip(text: str) -> str:
    """Return a text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def summary(model: Loaded, status: Status = Status.OPTIMAL) -> RenderableType:
    """Return what `memplan plan` shows of a model."""
    problem = model.problem
    plan = solvers.solve(problem)
    placed = plan if status is Status.OPTIMAL else Plan.of(problem, None, status=status)
    return plans.plan_summary(problem, placed, elapsed=0.1, loaded=model, figures=FIGURES)


def peak(model: Loaded) -> RenderableType:
    """Return the table of `memplan plan`."""
    return plans.peak_buffers(model.problem, solvers.solve(model.problem), 10, model.labels)


def fault(model: Loaded) -> RenderableType:
    """Return what `memplan inspect` shows of a capacity of a model."""
    return explanations.explanation(model.problem, explain(model.problem, 3_000_000))


def growth(model: Loaded) -> RenderableType:
    """Return what `memplan compare` shows of a model and a part of it."""
    part = Loaded(model.problem.subset([0, 2, 5]), "json", 3)
    found = compare(part, model)
    return comparisons.comparison(make_report(found, (f"{NAME}.csv", f"{NAME}.json")))


SHOWN: dict[str, Callable[[Loaded], RenderableType]] = {
    "plan": summary,
    "peak": peak,
    "inspect": lambda model: problems.inspection(inspect(model, figures=FIGURES)),
    "explain": fault,
    "compare": growth,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("what", SHOWN)
def test_nothing_is_wider_than_the_terminal(model: Loaded, what: str, width: int) -> None:
    """Tests every line in colours and without, and that both say the same."""
    shown = SHOWN[what](model)
    coloured = draw(shown, width)
    assert strip(coloured) == draw(shown, width, no_color=True, color_system=None)
    assert max(map(len, strip(coloured).splitlines())) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("what", ["peak", "inspect", "explain"])
def test_a_name_is_on_one_line(model: Loaded, what: str, width: int) -> None:
    """Tests that each row of a table has its name, shortened in the middle, and its bytes whole."""
    lines = strip(draw(SHOWN[what](model), width)).splitlines()
    rows = [line for line in lines if re.match(r"model\.?.*\d,\d{3},\d{3}", line)]
    assert len(rows) >= 3
    for row in rows:
        name = row.split("  ")[0]
        head, dots, tail = name.partition("…")
        assert len(name) >= 12
        assert any(
            NAME.format(at).startswith(head) and NAME.format(at).endswith(tail) for at in range(14)
        )
        assert dots or name in {NAME.format(at) for at in range(14)}
        assert re.search(r"  1,234,5\d\d\b", row)


@pytest.mark.parametrize("width", WIDTHS)
def test_peak_and_status_stand_out(model: Loaded, width: int) -> None:
    """Tests that both are bold, that colours are legible on any ground, and nothing is dim."""
    text = draw(summary(model), width)
    (line,) = (line for line in text.splitlines() if line.startswith("peak "))
    assert "\x1b[1m" in line
    (line,) = (line for line in text.splitlines() if line.startswith("status "))
    assert "\x1b[1;32moptimal" in line
    infeasible = draw(summary(model, Status.INFEASIBLE), width)
    assert "\x1b[1;91minfeasible" in infeasible
    for shown in SHOWN.values():
        assert not re.search(r"\x1b\[(?:\d+;)*2[;m]", draw(shown(model), width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bars_come_first(model: Loaded, width: int, encoding: str) -> None:
    """Tests a line each for naive, the runtime's own, planned and bound, in their order."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, force_terminal=True, color_system=None).print(summary(model))
    file.seek(0)
    lines = file.read().splitlines()[:4]
    mark = "█" if encoding == "utf-8" else "#"
    assert [line[:3] for line in lines] == ["nai", "Ten", "pla", "bou"]
    assert all(mark in line and line.endswith(" %") for line in lines)
    assert lines[0].count(mark) > lines[1].count(mark) >= lines[2].count(mark) > 0
    assert max(map(len, lines)) <= width
    assert ("17,284,029" in lines[0]) is (width >= 80)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_value_continues_under_itself(model: Loaded, width: int) -> None:
    """Tests that a fact which is longer than its line does not run under the labels."""
    lines = strip(draw(summary(model), width, force_terminal=False)).splitlines()
    starts = {"format", "tensors", "buffers", "sum of", "Tensor", "lower", "peak", "gap", "status"}
    starts |= {"solver", "time"}
    for line in lines:
        assert line.startswith((" " * 20, *starts)), line


def test_files_get_facts_and_no_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests what a pipe gets: no colours, no bars, and the same facts as ever."""
    path = tmp_path / "five.csv"
    path.write_text("id,lower,upper,size\na,0,3,4\nb,1,5,8\n")
    assert main(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.startswith("buffers       2\n")
    for label in ("lower bound   12 bytes", "peak          12 bytes", "status        optimal: "):
        assert f"\n{label}" in out


def test_small_sizes_are_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that below 1 KiB a unit does not repeat the number, and that above it is there."""
    path = tmp_path / "two.csv"
    path.write_text("id,lower,upper,size\na,0,3,4\n")
    main(["plan", str(path)])
    assert "4 bytes" not in capsys.readouterr().out.split("lifetime")[1]
    path.write_text("id,lower,upper,size\na,0,3,4\nb,0,3,4096\n")
    main(["plan", str(path)])
    table = capsys.readouterr().out.split("lifetime")[1]
    assert "4 KiB" in table
    assert "4 bytes" not in table


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcd...ijk"),
        ("abcdefghijk", 4, "abcd"),
        ("名前名前名前", 9, "名...前"),
    ],
)
def test_names_are_shortened_in_the_middle(text: str, width: int, expected: str) -> None:
    """Tests that both ends stay, and that letters of two columns count as two."""
    assert tables.shorten(text, width) == expected


def test_maker_and_users_are_both_kept() -> None:
    """Tests that a shortened "maker -> users" still has its arrow and both ends."""
    assert (
        tables.shorten_pair("first_operator -> second_operator", 24) == "firs...tor -> seco...tor"
    )
    assert tables.shorten_pair("a -> second_operator", 16) == "a -> seco...ator"


def test_the_first_column_outlasts_all_others() -> None:
    """Tests that columns go by rank, and that a terminal of five columns still gets names."""
    made = tables.FittedTable([tables.Column("name"), *map(tables.Column, "abc", (2, 3, 1))])
    made.add_row(tables.Cell("x" * 30, cut=tables.shorten), "1" * 6, "2" * 6, "3" * 6)
    heads = {width: draw(made, width, color_system=None).split("\n")[0] for width in range(5, 60)}
    assert [heads[w].split() for w in (5, 20, 28, 36)] == [
        ["name"], ["name", "b"], ["name", "a", "b"], ["name", "a", "b", "c"],
    ]  # fmt: skip
