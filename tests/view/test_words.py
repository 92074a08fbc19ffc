"""Tests of `memplan.view.words`: what a person reads."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from command_line import FIVE, memplan
from rich.console import Console, RenderableType

from memplan.analysis.explain import Explanation, SectionAtFault
from memplan.analysis.inspection import inspect
from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.problem.loads import Held, Loads
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Label, Loaded
from memplan.view.words import explanations, parts, plans, problems, solvers


def shown(what: RenderableType, encoding: str = "utf-8", width: int = 100) -> str:
    """Return what a file of this encoding gets, without spaces at the ends of lines."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, markup=False, highlight=False, emoji=False).print(what)
    file.seek(0)
    return "\n".join(line.rstrip() for line in file.read().splitlines())


def test_a_plan_in_words(five: Problem, five_offsets: list[int]) -> None:
    """Tests the facts of a plan that reaches its bound."""
    plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12, solver="exact")
    lines = shown(plans.plan_summary(five, plan, elapsed=0.25)).splitlines()
    assert [tuple(line.split(None, 1)) for line in lines if not line.startswith("sum")] == [
        ("buffers", "5"),
        ("capacity", "12 bytes"),
        ("lower", "bound   12 bytes"),
        ("peak", "12 bytes"),
        ("status", "optimal: no plan has a smaller peak"),
        ("gap", "0.00%"),
        ("solver", "exact"),
        ("time", "250 ms"),
    ]
    assert "sum of sizes  20 bytes" in lines


@pytest.mark.parametrize(
    ("status", "bound", "interrupted", "words"),
    [
        (Status.OPTIMAL, 12, False, "optimal: no plan has a smaller peak"),
        (
            Status.FITS,
            8,
            False,
            "fits: it is within the capacity; a smaller peak was not asked for",
        ),
        (Status.FEASIBLE, 8, False, "feasible: the best plan so far"),
        (Status.FEASIBLE, 8, True, "interrupted: feasible, not proved"),
        (Status.INFEASIBLE, 13, False, "infeasible: it is proved that no plan"),
        (Status.UNKNOWN, 8, False, "unknown: the budget ended"),
        (Status.UNKNOWN, 8, True, "interrupted: unknown"),
    ],
)
def test_a_status_says_what_it_means(
    five: Problem,
    five_offsets: list[int],
    status: Status,
    bound: int,
    interrupted: bool,
    words: str,
) -> None:
    """Tests that a status says in words what it proves."""
    placed = five_offsets if status.has_plan else None
    plan = Plan.of(five, placed, status=status, lower_bound=bound)
    assert str(plans.status_text(plan, interrupted)).startswith(words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"--alignment {1 << 62}", f'the alignment of buffer "b1" is {1 << 62:,}'),
        (f"--reserve 0:{1 << 62}", f"a reserved range ends at {1 << 62:,}"),
    ],
)
def test_what_is_too_large_where_no_capacity_was_given(
    options: str, words: str, tmp_path: Path
) -> None:
    """Tests that each command names the number, and speaks of no capacity."""
    (tmp_path / "five.csv").write_text(FIVE)
    for command in ("plan", "view -o a.svg", "inspect", "apply --c-header five.h"):
        if command.startswith("apply") and "reserve" in options:
            continue
        done = memplan(*command.split(), "five.csv", *options.split(), cwd=tmp_path)
        said = " ".join((done.stdout + done.stderr).split())
        assert f"no plan ends within 2^62 bytes, the most that memplan plans; {words}" in said
        assert "the capacity" not in said
        assert "in time" not in said
    done = memplan("inspect", "five.csv", *options.split(), "-c", "4EiB", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert "It does not fit, whatever the capacity: no plan ends within 2^62 bytes" in said
    assert "No capacity helps: no plan ends" in said


def test_who_is_live_at_the_peak_of_a_plan(five: Problem) -> None:
    """Tests that the section is one in which the peak is touched, with what is unused there."""
    plan = Plan.of(five.with_capacity(None), [0, 0, 4, 12, 8])
    assert plan.peak == 16
    lines = shown(plans.peak_buffers(five, plan)).splitlines()
    assert lines[0] == "Live at the peak, time [9, 21)"
    assert lines[1] == "2 buffers hold 8 bytes; 8 bytes unused below it"
    cells = [line.split() for line in lines[4:]]
    assert cells == [
        ["b4", "4", "50.0", "%", "[9,", "21)", "12"],
        ["b5", "4", "50.0", "%", "[0,", "21)", "8"],
    ]


def test_what_is_not_named_is_summed_up(five: Problem, five_offsets: list[int]) -> None:
    """Tests the last line of a table that is cut."""
    plan = Plan.of(five, five_offsets)
    last = shown(plans.peak_buffers(five, plan, most=1)).splitlines()[-1]
    assert last.split() == ["2", "smaller", "8", "66.7", "%"]


def everything() -> Problem:
    """Return a problem with every constraint that there is."""
    return Problem(
        [
            Buffer("a", 0, 9, 64, alignment=32, pin=0),
            Buffer("b", 0, 9, 32, hint=64, gaps=(Gap(2, 4), Gap(5, 6, window=(0, 8)))),
            Buffer("c", 3, 5, 0),
        ],
        capacity=1024,
        reserved=[Reserved(512, 640)],
    )


def inspected(problem: Problem, encoding: str = "utf-8") -> str:
    """Return what `memplan inspect` shows of a problem."""
    found = inspect(Loaded(problem, "json", len(problem)))
    return shown(problems.inspection(found), encoding)


def test_an_inspection_names_every_constraint() -> None:
    """Tests that nothing of what a problem asks is left out."""
    lines = inspected(everything()).splitlines()
    facts = {line[:11].strip(): line[11:] for line in lines[lines.index("buffers    3") :][:7]}
    assert facts == {
        "buffers": "3",
        "size 0": "1 buffer",
        "alignment": "1 buffer, up to 32",
        "pins": "1 buffer",
        "hints": "1 buffer",
        "gaps": "2 in 1 buffer, 1 with a window",
        "reserved": "[512, 640)",
    }


def test_an_inspection_of_nothing_is_short() -> None:
    """Tests that a problem without buffers is no special case for the user."""
    lines = inspected(Problem([])).splitlines()
    assert lines[0] == "No buffer holds anything at any time."
    assert ["naive", "0", "-", "each"] in [line.split()[:4] for line in lines]
    assert lines[-1] == "constraints  none beside lifetimes and sizes"


def test_the_distribution_shows_sizes_that_exist() -> None:
    """Tests that a median is the size of a buffer and not a mean of two, near 2^62 as well."""
    rows = [Buffer(str(size), 0, size + 1, size) for size in (1, 2, 4, 1 << 61)]
    out = inspected(Problem(rows))
    (sizes,) = (line for line in out.splitlines() if line.startswith("size  "))
    assert sizes.split("  ")[0] == "size"
    shown_sizes = [cell.strip() for cell in sizes.split("  ")[1:] if cell.strip()]
    assert shown_sizes == ["1 byte", "1 byte", "2 bytes", *["4 bytes"] * 3, "2 EiB"]


def test_plain_terminals_get_plain_characters(five: Problem) -> None:
    """Tests that an ASCII terminal is sent nothing that it lacks."""
    out = inspected(five, encoding="ascii")
    assert out.isascii()
    assert "#" in out


@pytest.mark.parametrize(("width", "lines"), [(70, False), (200, True)])
def test_lines_of_source_need_room(width: int, lines: bool) -> None:
    """Tests that modules are shown where there are some, and lines where they fit as well."""
    held = [Held(id, 4, 4, 0, 2) for id in "ab"]
    labels = {
        "a": Label(("a",), "intermediate", "conv (Conv)", (), "Conv", "layer1.0", "model.py:41"),
        "b": Label(("b",), "input"),
    }
    out = shown(parts.HeldTable(held, 8, labels=labels), width=width)
    assert "layer1.0" in out
    assert ("model.py:41" in out) is lines
    without = {id: Label((id,), "input") for id in "ab"}
    assert "module" not in shown(parts.HeldTable(held, 8, labels=without), width=width)


def test_names_cannot_command_the_terminal() -> None:
    """Tests that escapes and markup in ids are shown as they are."""
    name = "\x1b[31m[red]:smile:\n"
    out = inspected(Problem([Buffer(name, 0, 1, 8)]))
    assert "\x1b" not in out
    assert r"\x1b[31m[red]:smile:\n" in out


def explained(**changes: object) -> Explanation:
    """Return an explanation with some of it changed."""
    facts: dict[str, object] = {
        "fits": False,
        "capacity": 10,
        "available": 10,
        "max_load": 12,
        "required": 12,
        "sufficient": 12,
    }
    return Explanation(**{**facts, **changes})  # type: ignore[arg-type]


def faults(five: Problem, count: int) -> tuple[SectionAtFault, ...]:
    """Return the same section at fault so many times."""
    buffers = tuple(Loads(five).held(0))
    return tuple(SectionAtFault(t, t + 9, t, t + 3, 12, 2, buffers) for t in range(count))


def test_a_misfit_says_how_much_when_and_who(five: Problem) -> None:
    """Tests the report for one section at fault."""
    found = explained(sections=faults(five, 1), section_count=1)
    assert shown(explanations.explanation(five, found)).splitlines()[:9] == [
        "It does not fit into 10 bytes.",
        "required   12 bytes, proved to be the minimum",
        "available  10 bytes",
        "excess     2 bytes",
        "max load   12 bytes",
        "",
        "Time [0, 9), worst in [0, 3)",
        "3 buffers hold 12 bytes: 2 bytes too many",
        "buffer  bytes   share  lifetime",
    ]


def test_many_sections_at_fault_are_cut(five: Problem) -> None:
    """Tests that the worst are shown with buffers, others with a line, the rest with a number."""
    found = explained(sections=faults(five, 10), section_count=14)
    out = shown(explanations.explanation(five, found))
    assert out.count("too many\nbuffer") == 3
    assert "The load is also too high at 7 other times, and 4 more" in out
    assert out.splitlines()[-1].split() == ["[9,", "18)", "12", "2", "3", "b1", "4"]


def test_what_is_known_of_an_open_question(five: Problem) -> None:
    """Tests that bound and best plan are said where neither settles it."""
    found = explained(fits=None, capacity=13, available=13, required=12, sufficient=14)
    assert shown(explanations.explanation(five, found)).splitlines() == [
        "Unknown: neither a plan nor a proof was found for 13 bytes within the budget.",
        "required    at least 12 bytes, proved",
        "sufficient  14 bytes: a plan was found",
        "available   13 bytes",
        "max load    12 bytes",
    ]


def test_a_fit_says_what_is_spare_and_what_is_reserved(five: Problem) -> None:
    """Tests the report for a problem that fits."""
    found = explained(fits=True, capacity=20, available=17)
    assert shown(explanations.explanation(five, found)).splitlines() == [
        "It fits into 20 bytes.",
        "required   12 bytes, proved to be the minimum",
        "available  17 bytes, and 3 bytes reserved",
        "spare      8 bytes",
        "max load   12 bytes",
    ]


@pytest.mark.parametrize(
    ("subset", "irreducible", "words"),
    [
        (("b1", "b3"), True, "Leave out any one of them and the rest fits"),
        (("b1", "b3"), False, "The budget ended before the subset was reduced"),
        (("b1",), True, "This buffer alone cannot be placed"),
    ],
)
def test_a_subset_says_whether_it_is_irreducible(
    five: Problem, subset: tuple[str, ...], irreducible: bool, words: str
) -> None:
    """Tests the words for the buffers of a proof."""
    found = explained(subset=subset, irreducible=irreducible)
    out = shown(explanations.explanation(five, found))
    assert words in out
    assert ("at most 8 bytes of them are live at one time" in out) is (len(subset) > 1)


def test_solvers_show_what_they_support() -> None:
    """Tests the table of solvers."""
    table = solvers.solver_table([("quick", "first fit", [True, False])], ["pins", "gaps"])
    lines = shown(table).splitlines()
    assert lines[0].split() == ["quick", "first", "fit"]
    assert lines[2].split() == ["constraint", "quick"]
    assert lines[4].split() == ["pins", "yes"]
    assert lines[5].split() == ["gaps", "-"]
