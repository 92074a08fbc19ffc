"""The artist of `memplan.base.drawing`: what writes and draws each kind of result.

What a kind needs is imported when a result of it shows itself: Rich and matplotlib are large.
"""

from __future__ import annotations

from html import escape
from typing import Any, assert_never

from memplan.base.drawing import Page, Picture, Report

__all__ = ["draw", "write_html", "write_report"]


def write_report(kind: Report, result: Any) -> str:
    """Return the report of the result's command, as text."""
    from memplan.view.reports import render_plain

    if kind == "answer":
        from memplan.view.words.answers import describe_answer

        return render_plain(describe_answer(result))
    if kind == "arranged":
        from memplan.view.words.fitting import describe_arranged

        return render_plain(describe_arranged(result))
    if kind == "comparison":
        from memplan.view.comparison import make_report
        from memplan.view.words.comparisons import comparison

        return render_plain(comparison(make_report(result, ("before", "after"))))
    if kind == "inspection":
        from memplan.view.words.problems import inspection

        return render_plain(inspection(result))
    if kind == "tradeoff":
        from memplan.view.words.tradeoff import describe_tradeoff

        return render_plain(describe_tradeoff(result))
    assert_never(kind)


def write_html(kind: Report | Page, result: Any) -> str:
    """Return what a notebook shows: facts and a small picture, or a report."""
    from memplan.view import notebook

    if kind == "loaded":
        return notebook.of_loaded(result)
    if kind == "plan":
        return notebook.of_plan(result)
    if kind == "planned":
        return notebook.of_planned(result)
    if kind == "problem":
        return notebook.of_problem(result)
    report = escape(write_report(kind, result))
    return f'<pre style="line-height:1.2">{report}</pre>'  # its columns stay apart


def draw(kind: Picture, result: Any, **options: Any) -> Any:
    """Return the figure of a result; the options are those of its `plot`."""
    if kind == "envelope":
        from memplan.view import envelope

        return envelope.draw(result, **options)
    if kind == "plan":
        from memplan.view import plot

        return plot.draw(plan=result, **options)
    if kind == "problem":
        from memplan.view import load_plot

        return load_plot.draw(result, **options)
    assert_never(kind)
