"""What results say of themselves: the report of the command, as text, and for notebooks."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType

if TYPE_CHECKING:
    from memplan.analysis.compare import Comparison
    from memplan.analysis.inspection import Inspection
    from memplan.pipeline import Arranged, Tradeoff

__all__ = [
    "of_arranged",
    "of_comparison",
    "of_inspection",
    "of_tradeoff",
    "render_html",
    "render_plain",
]

_WIDTH = 140


def render_plain(what: RenderableType) -> str:
    """Return what a file gets of this, without spaces at the ends of lines."""
    file = io.StringIO()
    paper = Console(file=file, width=_WIDTH, markup=False, highlight=False, emoji=False)
    paper.print(what)
    return "".join(f"{each.rstrip()}\n" for each in file.getvalue().splitlines())


def render_html(text: str) -> str:
    """Return a report for a notebook: its columns stay apart."""
    return f'<pre style="line-height:1.2">{escape(text)}</pre>'


def of_arranged(found: Arranged) -> str:
    """Return the report of `memplan fit`."""
    from memplan.view.words.fitting import describe_arranged

    return render_plain(describe_arranged(found))


def of_tradeoff(found: Tradeoff) -> str:
    """Return the report of `memplan tradeoff`."""
    from memplan.view.words.tradeoff import describe_tradeoff

    return render_plain(describe_tradeoff(found))


def of_inspection(found: Inspection) -> str:
    """Return the report of `memplan inspect`."""
    from memplan.view.words.problems import inspection

    return render_plain(inspection(found))


def of_comparison(found: Comparison) -> str:
    """Return the report of `memplan compare`."""
    from memplan.view.comparison import make_report
    from memplan.view.words.comparisons import comparison

    return render_plain(comparison(make_report(found, ("before", "after"))))
