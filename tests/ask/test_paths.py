"""Tests plans of the paths of a program as a scenario of `memplan.plan`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, told
from strategies_graph import chain

import memplan as mp
from memplan.answer import Part
from memplan.base.errors import InfeasibleError, MemplanError, PlanError
from memplan.problem.plan import Plan
from memplan.programs.sources import of_graph
from memplan.programs.sources.graph_json import write_graph
from memplan.scenarios.paths import PathPlan, PathPlans, plan_paths


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("levers", [(), ("in place",), ("order",), ("order", "in place")])
def test_the_answer_has_the_plans_of_all_paths(levers: tuple[str, ...], given: bool) -> None:
    """Tests parts, the axis and its bound against the engine, also behind levers."""
    program = of_graph(chain(2, given=given))
    found = mp.plan(program, levers=levers, paths=[])
    found.verify()
    engine = plan_paths(program)
    assert found.axes[0].bound <= (found.axes[0].found or 0) <= engine.peak
    assert len(found.parts) == 1 + len(engine.paths)
    assert {part.name for part in found.parts[1:]} == {each.name for each in engine.paths}
    if not levers:
        assert found.axes[0].found == engine.peak
        assert {part.plan.peak for part in found.parts[1:]} == {each.peak for each in engine.paths}
    with pytest.raises(MemplanError, match="no form as JSON"):
        mp.save_answer(found, "never.json")


def test_paths_that_are_named() -> None:
    """Tests one path, with which a run may be on none, and a choice that is not there."""
    program = of_graph(chain(1))
    found = mp.plan(program, paths=[{"if0": "small"}])
    assert [part.name for part in found.parts[1:]] == ["if0=small"]
    assert found.find(PathPlans).complete is False
    assert found.axes[0].found == found.parts[0].plan.peak
    with pytest.raises(MemplanError, match="if7"):
        mp.plan(program, paths=[{"if7": "small"}])
    with pytest.raises(MemplanError, match="known is about paths"):
        mp.plan(program, known=["if0"])


def test_a_capacity_is_of_all_paths() -> None:
    """Tests that what is too little is proved, and what is enough is not refused."""
    program = of_graph(chain(1))
    most = mp.plan(program, paths=[]).axes[0].found or 0
    assert mp.plan(program, paths=[], capacity=int(most)).axes[0].found == most
    with pytest.raises(InfeasibleError, match="one of the paths needs at least"):
        mp.plan(program, paths=[], capacity=300)


@pytest.mark.parametrize(
    "more",
    [
        {"machine": mp.Machine((mp.Memory("a", 600), mp.Memory("b")))},
        {"machine": mp.Machine(block=600)},
        {"sizes": {"n": [1, 2]}},
    ],
)
def test_what_does_not_combine_says_why(more: dict[str, Any]) -> None:
    """Tests the rows of the table."""
    program: Any = of_graph(chain(1))
    if "sizes" in more:
        program = lambda n: of_graph(chain(1))  # noqa: E731
    with pytest.raises(MemplanError, match=r"paths .*are of one arena"):
        mp.plan(program, paths=[], **more)


def test_a_buffer_that_moves_is_found() -> None:
    """Tests a plan of a path in which lies elsewhere what is there before the path is known."""
    found = plan_paths(of_graph(chain(1, given=False)))
    found.verify()
    path = found.paths[0]
    problem, plan = path.planned.problem, path.planned.plan
    assert path.step >= 0
    moved = Plan.of(problem, [plan.offset(id) + 4096 for id in problem.ids])
    wrong = PathPlan(path.choices, path.step, replace(path.planned, plan=moved))
    with pytest.raises(PlanError, match="is needed before path"):
        replace(found, paths=(wrong,)).verify()


def test_the_command_prints_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests words, JSON, a header, and a file that holds one plan only."""
    monkeypatch.chdir(tmp_path)
    Path("net.json").write_text(write_graph(chain(1)))
    words = " ".join(told(capsys, "plan", "net.json", "--path", "all"))
    assert "500 bytes are enough for all of them" in words
    (line,) = told(capsys, "plan", "net.json", "--path", "all", "--levers", "order", "--json")
    record = json.loads(line)
    assert record["paths"]["peak"] == record["axes"][0]["found"] == 500
    told(capsys, "plan", "net.json", "--path", "all", "-o", "net.h")
    assert "go into a header" in refused(
        capsys, "plan", "net.json", "--path", "all", "-o", "net.plan.json"
    )
    assert "do not keep to it" in refused(
        capsys, "plan", "net.json", "--path", "all", "--reserve", "0:8"
    )


def test_parts_of_paths_are_parts() -> None:
    """Tests that a part of a path is found by its name."""
    found = mp.plan(of_graph(chain(1)), paths=[])
    part = next(each for each in found if each.name == "if0=large")
    assert isinstance(part, Part)
    assert part.plan.peak == 500
