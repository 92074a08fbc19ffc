"""Tests of the search that is drawn, against the MiniMalloc paper and against the solvers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import memplan as mp
from memplan import Buffer, Problem
from memplan.base.errors import MemplanError, UnsupportedError
from memplan.problem import formats
from memplan_lab.bench.suites import five_buffers
from memplan_lab.cli import main
from memplan_lab.study import search_figure, search_tree
from memplan_lab.study.isomorphic import find_isomorphic
from memplan_lab.study.search_tree import Rule

MONOTONE = (Rule.OFFSET_MONOTONICITY, Rule.INDEX_MONOTONICITY)


def random_problems(count: int, most: int) -> list[Problem]:
    """Return problems of up to `most` buffers."""
    rng = random.Random(7)
    problems = []
    for _ in range(count):
        starts = [rng.randint(0, 8) for _ in range(rng.randint(1, most))]
        problems.append(
            Problem(
                [
                    Buffer(f"b{at}", start, start + rng.randint(1, 6), rng.randint(1, 6))
                    for at, start in enumerate(starts)
                ]
            )
        )
    return problems


def pruned_by(rules: list[Rule], *names: str) -> Rule | None:
    """Return which rule prunes the paper's example after these placements, in this order."""
    five = five_buffers()
    (node,) = (
        node
        for node in search_tree.explore(five, 12, rules).walk()
        if tuple(f"{five.ids[row]}({offset})" for row, offset in node.placed) == names
    )
    return node.pruned_by


# The search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [(), MONOTONE[:1], MONOTONE[1:], MONOTONE])
def test_orders_are_those_of_table_1(rules: tuple[Rule, ...]) -> None:
    """Tests that the leaves with the offsets of figure 2 are 8, 4, 3 and 1, the same orders."""
    five = five_buffers()
    rows = {
        tuple(zip(placing.rows, placing.offsets, strict=True))
        for placing in find_isomorphic(five)
        if (placing.offset_monotonic or Rule.OFFSET_MONOTONICITY not in rules)
        and (placing.index_monotonic or Rule.INDEX_MONOTONICITY not in rules)
    }
    offsets = sorted(next(iter(rows)))
    found = search_tree.find_solutions(search_tree.explore(five, 12, rules), five)
    leaves = [placed for placed in found if sorted(placed) == offsets]
    assert set(leaves) == rows
    assert len(leaves) == {(): 8, MONOTONE[:1]: 4, MONOTONE[1:]: 3, MONOTONE: 1}[rules]


def test_prunings_are_those_of_the_paper() -> None:
    """Tests the examples of sections 6.1 to 6.3, each with the rules before it."""
    assert pruned_by([*MONOTONE], "b5(0)", "b4(4)", "b3(4)") is Rule.INDEX_MONOTONICITY
    assert pruned_by([*MONOTONE], "b5(0)", "b3(4)", "b4(4)") is None
    assert pruned_by([*MONOTONE], "b5(0)", "b3(4)", "b2(8)", "b4(4)") is Rule.OFFSET_MONOTONICITY
    sections = [*MONOTONE, Rule.SECTION_INFERENCE]
    assert pruned_by(sections, "b1(0)", "b5(4)") is Rule.SECTION_INFERENCE
    assert pruned_by(sections, "b3(0)", "b1(4)") is None
    assert pruned_by(list(Rule), "b3(0)", "b1(4)") is Rule.DOMINANCE


def test_the_least_peak_is_that_of_the_solver() -> None:
    """Tests the search against `exact`, and that the full tree has a solution there, not below."""
    for problem in random_problems(150, search_tree.MOST_BUFFERS):
        peak = search_tree.find_least_peak(problem)
        assert peak == mp.solve(problem, "exact").peak
        at, below = (search_tree.explore(problem, capacity) for capacity in (peak, peak - 1))
        assert search_tree.find_solutions(at, problem)
        assert not search_tree.find_solutions(below, problem)


def test_the_first_solution_ends_the_search() -> None:
    """Tests that the search with `first` visits what the full one visits until its solution."""
    for problem in random_problems(50, 6):
        peak = search_tree.find_least_peak(problem)
        every = search_tree.explore(problem, peak)
        first = search_tree.explore(problem, peak, first=True)
        solution = search_tree.find_solutions(every, problem)[0]
        assert search_tree.find_solutions(first, problem) == [solution]
        visited = [node.placed for node in every.walk()]
        until = visited[: visited.index(solution) + 1]
        assert [node.placed for node in first.walk()] == until


@pytest.mark.parametrize("left_out", list(Rule))
def test_no_rule_loses_the_least_peak(left_out: Rule) -> None:
    """Tests that the answer does not depend on a rule, at the least peak and one byte below."""
    rules = set(Rule) - {left_out}
    if left_out is Rule.OFFSET_MONOTONICITY:
        rules -= {Rule.DOMINANCE, Rule.SECTION_INFERENCE}
    for problem in random_problems(60, 5):
        peak = search_tree.find_least_peak(problem)
        for capacity, fits in ((peak, True), (peak - 1, False)):
            root = search_tree.explore(problem, capacity, rules)
            assert bool(search_tree.find_solutions(root, problem)) is fits


def test_solutions_are_plans() -> None:
    """Tests that the referee accepts every solution of every search."""
    for problem in random_problems(30, 5):
        peak = search_tree.find_least_peak(problem)
        for rules in ((), MONOTONE, tuple(Rule)):
            for placed in search_tree.find_solutions(
                search_tree.explore(problem, peak, rules), problem
            ):
                offsets = [offset for _, offset in sorted(placed)]
                plan = mp.Plan.of(problem, offsets, status="feasible", lower_bound=0, solver="x")
                mp.verify(problem.with_capacity(peak), plan)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem([]), "the problem has 0 buffers; the search is traced for 1 to 8"),
        (Problem([Buffer(f"{at}", 0, 1, 1) for at in range(9)]), "the problem has 9 buffers"),
        (Problem([Buffer("a", 0, 1, 0)]), "buffers of size 0"),
        (Problem([Buffer("a", 0, 1, 4, alignment=4)]), "the problem has alignments"),
    ],
)
def test_problems_that_are_not_traced(problem: Problem, message: str) -> None:
    """Tests that a constraint which the search does not have is an error."""
    with pytest.raises(UnsupportedError, match=message):
        search_tree.explore(problem, 12)


def test_rules_that_need_another() -> None:
    """Tests that dominance is not used where it would be wrong."""
    with pytest.raises(MemplanError, match="leave out dominance and section-inference too"):
        search_tree.explore(five_buffers(), 12, set(Rule) - {Rule.OFFSET_MONOTONICITY})


@pytest.mark.parametrize(("lattice", "vertices"), [(False, 24), (True, 11)])
def test_one_plan_in_all_orders(lattice: bool, vertices: int) -> None:
    """Tests figures 5 and 6: the 8 orders of table 1 in 1+1+2+4+8+8 nodes, or 11 sets."""
    pytest.importorskip("matplotlib")
    five = five_buffers()
    offsets = [8, 8, 4, 4, 0]
    every = search_tree.explore(five, 12, (), offsets=offsets)
    assert [sorted(placed) for placed in search_tree.find_solutions(every, five)] == (
        [list(enumerate(offsets))] * 8
    )
    figure = search_figure.draw(every, five, lattice=lattice)
    assert len(figure.axes[0].texts) == vertices
    canonical = search_tree.explore(five, 12, MONOTONE, offsets=offsets)
    lattice_of_both = [
        {frozenset(node.placed) for node in root.walk()} for root in (every, canonical)
    ]
    assert lattice_of_both[0] == lattice_of_both[1]
    drawn = segments(search_figure.draw(canonical, five, lattice=True))
    assert drawn["leads to a solution"] == 5


# The picture -------------------------------------------------------------------------------------


def segments(figure: object) -> dict[str, int]:
    """Return how many edges of each kind a picture has."""
    (axes,) = figure.axes  # type: ignore[attr-defined]
    return {lines.get_gid(): len(lines.get_segments()) for lines in axes.collections}


@pytest.mark.parametrize("lattice", [False, True])
def test_every_edge_is_drawn(lattice: bool) -> None:
    """Tests that the tree has an edge for each partial solution, marked with its rule."""
    pytest.importorskip("matplotlib")
    five = five_buffers()
    root = search_tree.explore(five, 12)
    nodes = list(root.walk())
    figure = search_figure.draw(root, five, lattice=lattice)
    drawn = segments(figure)
    assert sum(drawn.values()) == len(nodes) - 1
    for rule in Rule:
        assert drawn.get(rule, 0) == sum(node.pruned_by is rule for node in nodes)
    texts = [text.get_text() for text in figure.axes[0].texts]
    if lattice:
        assert len(texts) == len({frozenset(node.placed) for node in nodes})
        assert "b1(8)\nb2(8)\nb3(4)\nb4(4)\nb5(0)" in texts
    else:
        assert len(texts) == len(nodes)
        assert {"start", "b5(0)", "b3(8)"} <= set(texts)


def test_orders_of_one_placement_are_one_vertex_of_the_lattice() -> None:
    """Tests that without rules all orders of a set of placements meet."""
    pytest.importorskip("matplotlib")
    two = Problem([Buffer("a", 0, 1, 4), Buffer("b", 1, 2, 4)])
    root = search_tree.explore(two, 4, ())
    tree, lattice = (search_figure.draw(root, two, lattice=each) for each in (False, True))
    assert len(tree.axes[0].texts) == 5
    assert len(lattice.axes[0].texts) == 4
    assert segments(lattice) == {"leads to a solution": 4}


def test_a_picture_that_is_too_large_is_refused() -> None:
    """Tests that the error says what to do."""
    pytest.importorskip("matplotlib")
    six = Problem([Buffer(f"b{at}", 0, 1, 1) for at in range(6)])
    root = search_tree.explore(six, 6, ())
    with pytest.raises(MemplanError, match=r"1,957 partial solutions.* stop at the first solution"):
        search_figure.draw(root, six)


# The command -------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests counts and picture; without a capacity the least peak is used."""
    pytest.importorskip("matplotlib")
    formats.save(five_buffers(), tmp_path / "five.csv")
    picture = tmp_path / "tree.svg"
    assert main(["trace", str(tmp_path / "five.csv"), "--figure", str(picture)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "capacity: 12 bytes",
        "partial solutions: 74",
        "solutions: 6",
        "pruned by index-monotonicity: 15",
        "pruned by dominance: 23",
    ]
    text = picture.read_text()
    assert "dominance (23)" in text
    assert "b5(0)" in text


def test_the_command_of_one_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan restricts the search, and that it must be one of the problem."""
    five = tmp_path / "five.csv"
    formats.save(five_buffers(), five)
    plan = tmp_path / "plan.csv"
    lines = ["b1,0,3,4,8", "b2,3,9,4,8", "b3,0,9,4,4", "b4,9,21,4,4", "b5,0,21,4,0"]
    plan.write_text("\n".join(["id,lower,upper,size,offset", *lines, ""]))
    without = ("dominance", "section-inference")
    words = ["trace", str(five), "--plan", str(plan), *(f"--without={each}" for each in without)]
    assert main(words) == 0
    assert "solutions: 1" in capsys.readouterr().out.splitlines()
    plan.write_text("\n".join(["id,lower,upper,size,offset", *lines[:-1], "b5,0,21,4,1", ""]))
    assert main(words) == 2
    assert "overlap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "tree.txt"], "the suffix of a picture must be"),
        (["--lattice"], "name a file with --figure"),
        (["--without", "luck"], "luck"),
        (["--without", "capacity"], "raise --capacity"),
        (["--without", "offset-monotonicity"], "leave out dominance and section-inference too"),
    ],
)
def test_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Tests that a mistake is one sentence."""
    pytest.importorskip("matplotlib")
    formats.save(five_buffers(), tmp_path / "five.csv")
    assert main(["trace", str(tmp_path / "five.csv"), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
