"""Tests of memplan.base.drawing: results are shown by the artist that is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

import pytest

import memplan as mp
from memplan.base import drawing
from memplan.programs.sources import of_problem

ASKED: list[tuple[str, str, object]] = []


class _Sketcher:
    """An artist that notes what it was asked for."""

    def write_report(self, kind: drawing.Report, result: Any) -> str:
        ASKED.append(("report", kind, result))
        return "words"

    def write_html(self, kind: drawing.Report | drawing.Page, result: Any) -> str:
        ASKED.append(("html", kind, result))
        return "<p>"

    def draw(self, kind: drawing.Picture, result: Any, **options: Any) -> Any:
        ASKED.append(("picture", kind, result))
        return sorted(options)


def test_results_ask_the_artist_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests each way in which results show themselves, with another artist."""
    problem = mp.Problem([mp.Buffer("a", 0, 2, 8)])
    plan, planned, answer = mp.solve(problem), mp.plan_model(problem), mp.plan(problem)
    monkeypatch.setattr(drawing, "_find", _Sketcher)
    ASKED.clear()
    assert str(answer) == "words"
    results: list[tuple[str, Any]] = [("problem", problem), ("plan", plan), ("planned", planned)]
    for _, result in [*results, ("loaded", of_problem(problem)), ("answer", answer)]:
        assert result._repr_html_() == "<p>"
    assert problem.plot() == ["width"]  # type: ignore[comparison-overlap]
    assert plan.plot() == ["classes", "load", "problem", "width"]  # type: ignore[comparison-overlap]
    assert [(way, kind) for way, kind, _ in ASKED] == [
        ("report", "answer"),
        *(("html", kind) for kind in ("problem", "plan", "planned", "loaded", "answer")),
        ("picture", "problem"),
        ("picture", "plan"),
    ]
    assert ASKED[1][2] is problem


def test_every_kind_of_report_has_a_class() -> None:
    """Tests that no kind is left over."""
    for module in ("answer", "ask", "levers.pipeline", "analysis.compare", "analysis.inspection"):
        import_module(f"memplan.{module}")
    kinds = {each._report for each in drawing.Reported.__subclasses__()}
    assert kinds == {*get_args(drawing.Report)}


def test_the_package_installs_the_artist_of_view() -> None:
    """Tests that who imports a room alone is shown results too."""
    from memplan.view import artist

    assert drawing.find_artist() is artist
