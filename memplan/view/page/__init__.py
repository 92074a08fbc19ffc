"""Plans as an interactive page: one HTML file that needs no network and no installation.

Browser tests rely on what follows. `<html data-ready="true">` says that the page is drawn;
`data-theme` is `light` or `dark`. The page has

- `#search`, whose matches `#search-status` counts ("3 matches"), and Enter goes to the next;
- `#colour` (size, kind, operator, module), `#waste`, `#theme`, `#home`, `#zoom-in`, `#zoom-out`,
  and `#plans`, a box for every plan where there are several;
- for every plan `#plan-0`, ... with its figures `#memory-0`, `#load-0`, ...;
- `#verdict`, a sentence about the best plan, whose class is `good`, `open` or `bad`;
- `#notes`, the assumptions and omissions of the reader of the model, where there are any;
- `#moment`, a table of what is live at the chosen moment, and `#buffer`, the chosen buffer with the
  lists `#sits-on`, `#carries` and `#bounds`; `#hover`, the buffer under the pointer;
- `#buffers`, the table of all buffers, in pages.

Rows and links that choose a buffer have its row in `data-row`; links to the peak of a plan have the
plan's number in `data-peak`. `window.memplan` has `select(row)`, `moment(time)`, `search(text)`,
`home()`, and `view()`: the ranges in sight, and what is chosen. A page opens with the peak of the
best plan: that moment, and the buffer that reaches highest then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from memplan.base.errors import MemplanError
from memplan.problem import Asked, problem_of
from memplan.problem.formats import write_text
from memplan.problem.plan import Plan
from memplan.view import picture
from memplan.view.facts import Facts, find_facts
from memplan.view.page.data import check_plans, format_json, payload, write_headline
from memplan.view.page.figures import document, scale, scripts
from memplan.view.page.markup import markup

__all__ = ["Colour", "html", "save"]

Colour = Literal["size", "kind", "operator", "module"]


def save(
    problem: Asked,
    plans: Mapping[str, Plan],
    path: str | os.PathLike[str],
    *,
    facts: Facts | None = None,
    title: str = "",
    colour: Colour | None = None,
) -> None:
    """Write plans as a page: all of it, or the old file stays.

    Parameters
    ----------
    problem, plans, facts, title, colour
        See `html`.
    path
        The file.

    Raises
    ------
    FormatError
        If the file cannot be written.
    MemplanError, PlanError, MissingExtraError
        As `html` does.
    """
    write_text(path, html(problem, plans, facts=facts, title=title, colour=colour))


def html(
    problem: Asked,
    plans: Mapping[str, Plan],
    *,
    facts: Facts | None = None,
    title: str = "",
    colour: Colour | None = None,
) -> str:
    """Return plans of one problem as a page, side by side and with linked axes.

    Each plan has a figure of addresses over time with every buffer (in gaps only what it holds),
    and one of the load below it, with capacity and lower bound. A pixel shows the mean colour of
    the boxes in it, and the tallest moment of its time in full colour. The user can search, point
    at buffers, list what is live at a moment, follow what a buffer sits on, colour by size, kind,
    operator or module, and see what is unused. The same plans give the same text with the same
    release of Bokeh.

    Parameters
    ----------
    problem
        What was asked, with its notes where a file was read; its capacity is drawn, whether the
        plans keep it or not.
    plans
        At least one plan, by the name that the page shows. A plan that does not verify is drawn
        with the referee's error, but without what each buffer sits on.
    facts
        What is known of the buffers; `None` takes it from a `Loaded`, or else only the names.
    title
        Of the page; any text.
    colour
        The colouring at first; `None` is `operator`, and `size` where no operators are known.

    Raises
    ------
    MemplanError
        If there is no plan.
    PlanError
        If a plan has no offsets, or none for some buffer.
    MissingExtraError
        If Bokeh is not installed.
    """
    if not plans:
        raise MemplanError("there is no plan to show; name a plan or a solver")
    facts = facts or find_facts(problem)
    notes = [note.text for note in getattr(problem, "notes", ())]
    problem = problem_of(problem)
    libraries = scripts()  # here, so that a missing Bokeh is an error before the work
    seen = check_plans(problem, plans)
    limits = [problem.max_load, problem.capacity or 0, *(each.peak for each in seen)]
    top = max([1, *limits])
    top = max([top, *(block.upper for block in problem.reserved if block.lower < top)])
    unit = picture.choose_unit(max([1, *(each.peak for each in seen)]))
    # The title may be the name of a file, which may hold bytes that are no text.
    title = (title or "memplan").encode("utf-8", "replace").decode()
    data = payload(problem, seen, facts, unit)
    data |= {"scale": scale(), "colour": colour or "operator"}
    figures = document(problem, len(seen), top, unit)
    headline = write_headline(problem, seen)
    return markup(title, headline, format_json(data), format_json(figures), libraries, notes)
