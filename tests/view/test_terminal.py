"""Tests of `memplan.view.terminal`: the plan as characters."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from rich.console import Console
from rich.segment import Segment

from memplan.base.errors import PlanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan, Status
from memplan.view import terminal
from memplan_lab.bench import generators


class Ascii(io.StringIO):
    """A file that takes plain ASCII."""

    encoding = "ascii"


def shown(problem: Problem, plan: Plan, width: int = 60, height: int = 6, file=None) -> str:
    """Return the picture as a file gets it, without colours."""
    out = file or io.StringIO()
    Console(file=out, width=width, color_system=None).print(
        terminal.picture(problem, plan, height=height)
    )
    return out.getvalue()


def coloured(problem: Problem, plan: Plan, **changes: object) -> list[list[Segment]]:
    """Return the lines of the picture on a terminal with colours."""
    options = {"color_system": "truecolor", "force_terminal": True, "no_color": False, "width": 52}
    console = Console(file=io.StringIO(), **{**options, **changes})
    return console.render_lines(terminal.picture(problem, plan, height=6), pad=False)


def letters(lines: list[list[Segment]]) -> str:
    """Return lines without their styles."""
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def backgrounds(line: list[Segment]) -> list[str]:
    """Return the runs of one background in a line, as the names of their colours."""
    found = [each.style.bgcolor.name for each in line if each.style and each.style.bgcolor]
    return [name for name, _ in groupby(found)]


@pytest.fixture
def best(five: Problem, five_offsets: list[int]) -> Plan:
    """Return the plan of the five buffers."""
    return Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12)


def test_letters(five: Problem, best: Plan) -> None:
    """Tests every character of a picture without colours."""
    lines = shown(five, best, width=52).splitlines()
    assert [line.rstrip() for line in lines] == [
        "5 buffers   capacity = peak = lower bound 12 bytes",
        "optimal",
        "12 bytes │" + "┄" * 42,
        *["         │" + "E" * 6 + "D" * 12] * 2,
        *["         │" + "C" * 18 + "B" * 24] * 2,
        *["         │" + "A" * 42] * 2,
        "       0 └" + "─" * 42,
        "          ^ 0" + "21".rjust(39),
        "   buffer     size  lifetime  offset",
        "A  b5      4 bytes   [0, 21)       0",
        "B  b4      4 bytes   [9, 21)       4",
        "C  b3      4 bytes    [0, 9)       4",
        "D  b2      4 bytes    [3, 9)       8",
        "E  b1      4 bytes    [0, 3)       8",
    ]


def test_ascii(five: Problem, best: Plan) -> None:
    """Tests that a file without UTF-8 gets the same with other lines."""
    plain = shown(five, best, file=Ascii())
    assert plain.isascii()
    changed = shown(five, best).translate(str.maketrans("│└─┄", "|+--"))
    assert plain == changed


def test_blocks_of_colours(five: Problem, best: Plan) -> None:
    """Tests that a terminal gets two cells a character, neighbours differ, and keys are inside."""
    drawn = [line for line in coloured(five, best) if "│" in letters([line])][1:]
    assert [letters([line]).partition("│")[2].rstrip() for line in drawn] == [
        "",
        "  E" + " " * 8 + "D",
        "",
        " " * 8 + "C" + " " * 20 + "B",
        "",
        " " * 20 + "A",
    ]
    e, d = backgrounds(drawn[0])
    c, b = backgrounds(drawn[2])
    (a,) = backgrounds(drawn[4])
    assert len({e, d, c}) == len({c, b, a}) == 3
    assert backgrounds(drawn[1]) == [e, d]


def test_half_a_line() -> None:
    """Tests borders in the middle of a character: of two buffers, and of one and free memory."""
    problem = Problem([Buffer("a", 0, 2, 1), Buffer("b", 0, 1, 1), Buffer("c", 1, 2, 1)])
    lines = coloured(problem, Plan.of(problem, [0, 1, 3]), width=29)
    drawn = [line for line in lines if "│" in letters([line])][1:]
    assert letters([drawn[1]]).partition("│")[2] == " " * 10 + "▀" * 10  # c on free memory
    assert letters([drawn[4]]).partition("│")[2] == "▀" * 10 + "▄" * 10  # b on a, free memory on a
    both, alone = (segment.style for segment in drawn[4][1:])
    assert both is not None
    assert alone is not None
    assert both.bgcolor is not None
    assert both.bgcolor == alone.color != both.color
    assert alone.bgcolor is None


@pytest.mark.parametrize(
    "changes", [{"color_system": None}, {"color_system": "standard"}, {"no_color": True}]
)
def test_few_colours_are_none(changes: dict[str, object], five: Problem, best: Plan) -> None:
    """Tests that without colours, with 16, and where the user wants none, there are letters."""
    lines = coloured(five, best, **changes)
    assert "EEEEEEDDDDDDDDDDDD" in letters(lines)


def test_levels_are_lines_where_nobody_is() -> None:
    """Tests capacity, peak and bound at their heights, and a capacity that is out of sight."""
    problem = Problem([Buffer("a", 0, 1, 6), Buffer("b", 1, 2, 2), Buffer("c", 1, 2, 4)], 12)
    plan = Plan.of(problem, [0, 0, 4], lower_bound=6)
    lines = shown(problem, plan, width=30).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("12 bytes"))
    facts = " ".join(" ".join(lines[:first]).split())
    assert facts == "3 buffers capacity 12 bytes peak 8 bytes lower bound 6 bytes feasible"
    assert [line.rstrip() for line in lines[first : first + 7]] == [
        "12 bytes │" + "┄" * 20,
        "         │",
        " 8 bytes │" + "┄" * 20,
        " 6 bytes │" + "┄" * 10 + "B" * 10,
        "         │" + "A" * 10 + "B" * 10,
        "         │" + "A" * 10,
        "         │" + "A" * 10 + "C" * 10,
    ]
    beyond = shown(problem.with_capacity(1000), plan)
    assert "capacity 1000 bytes (above the picture)" in beyond
    assert "1000 bytes │" not in beyond


def test_gaps_are_empty() -> None:
    """Tests that a buffer in a gap leaves its addresses, but for the window."""
    row = Buffer("a", 0, 4, 6, gaps=(Gap(1, 2), Gap(3, 4, (0, 3))))
    problem = Problem([row])
    lines = shown(problem, Plan.of(problem, [0]), width=29).splitlines()
    upper, lower = lines[3], lines[8]
    assert upper.partition("│")[2] == "AAAAA     AAAAA     "
    assert lower.partition("│")[2] == "AAAAA     AAAAAAAAAA"


def test_names_are_not_obeyed() -> None:
    """Tests that control characters, markup and right-to-left marks are shown, not done."""
    names = ["\x1b[31mred", "[bold]b[/bold]", "\u202eleft", "line\nfeed", "n" * 500]
    problem = Problem([Buffer(name, 0, 1, 8) for name in names])
    plan = Plan.of(problem, [0, 8, 16, 24, 32])
    for text in (shown(problem, plan), letters(coloured(problem, plan))):
        assert not set("\x1b\u202e") & set(text)
        assert "[bold]b[/bold]" in text
        assert "line\\nfeed" in text
        assert max(map(len, text.splitlines())) <= 60


def test_those_without_a_key_are_marks() -> None:
    """Tests that the legend has the largest, and that others can be told from their neighbours."""
    problem = generators.perfect_packing(50, seed=1)
    plan = Plan.of(problem, np.cumsum(problem.size) - problem.size)
    text = shown(problem, plan, width=80, height=30)
    legend = text.splitlines()[-12:]
    assert [line[0] for line in legend] == list("ABCDEFGHJKLM")
    marks = {mark for line in text.splitlines()[1:-14] for mark in line.partition("│")[2]}
    assert marks - set("ABCDEFGHJKLM ┄")
    assert marks <= set("ABCDEFGHJKLM ┄#+o=:*%")


def test_the_order_of_the_plan_does_not_matter(five: Problem, best: Plan) -> None:
    """Tests that a plan is matched by name."""
    other = five.shuffled(3)
    offsets = [best.offset(id) for id in other.ids]
    ours = Plan.of(other, offsets, status=best.status, lower_bound=best.lower_bound)
    assert shown(five, ours) == shown(five, best)


def test_a_wrong_plan_is_not_called_what_its_file_says(five: Problem, best: Plan) -> None:
    """Tests an overlap, the plan of other sizes, and one above the capacity."""
    claims = {"status": Status.OPTIMAL, "lower_bound": 12}
    wrong = Plan.of(five, [0] * len(five), **claims)
    assert shown(five, wrong, width=100).splitlines()[0].endswith("peak 4 bytes   invalid")
    larger = Problem(replace(each, size=2 * each.size) for each in five.buffers)
    assert shown(larger, best, width=100).splitlines()[0].endswith("   invalid")
    small = five.with_capacity(9)
    assert "3 bytes above the capacity" in shown(small, best, width=140).splitlines()[0]


@pytest.mark.parametrize(
    "problem",
    [
        Problem([]),
        Problem([Buffer("z", start=0, end=1, size=0)]),
        Problem([Buffer("x", start=-(1 << 62), end=1 << 62, size=1 << 61)]),
    ],
    ids=["nothing", "no-bytes", "huge"],
)
def test_odd_problems(problem: Problem) -> None:
    """Tests nothing, no bytes and huge numbers."""
    text = shown(problem, Plan.of(problem, np.zeros(len(problem), dtype=int)))
    assert ("AAAA" in text) == bool(problem.max_load)
    assert ("no buffer holds anything" in text) == (not problem.max_load)


@pytest.mark.parametrize("width", [1, 12, 30])
def test_narrow_terminals(width: int, five: Problem, best: Plan) -> None:
    """Tests that a picture is cut, and nothing fails."""
    assert max(map(len, shown(five, best, width=width).splitlines())) <= max(width, 1)


def test_sixty_thousand_buffers() -> None:
    """Tests that a large plan has all its cells, and the same twice."""
    problem = generators.nn_like(60_000, 0)
    plan = Plan.of(problem, np.cumsum(problem.size) - problem.size)
    text = shown(problem, plan, width=100, height=20)
    assert text == shown(problem, plan, width=100, height=20)
    assert len(text.splitlines()) > 30


def test_no_offsets(five: Problem) -> None:
    """Tests that a plan without offsets is refused."""
    with pytest.raises(PlanError, match="no offsets to draw"):
        terminal.picture(five, Plan.of(five, None, status=Status.UNKNOWN))
