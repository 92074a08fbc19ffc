"""Sections as one HTML page that needs no other files: no scripts, no fonts, no images."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from itertools import starmap
from xml.sax.saxutils import quoteattr

from memplan.view import picture
from memplan_lab.bench.tables import Shown
from memplan_lab.study.blocks import Chart, Section

_DPI = 72
# A figure takes its colours from the page, light or dark; those that tell solvers apart stay.
_INKS = (
    *(("#000000", "currentColor"), ("#1a1a1a", "currentColor")),
    *(("#ffffff", "var(--paper)"), ("#cccccc", "var(--rule)")),
)
_NAMED = re.compile(r'(\bid="|url\(#|href="#)')


def page(title: str, sections: Iterable[tuple[str, Section]]) -> str:
    """Return the page."""
    listed = list(sections)
    style = (files("memplan_lab.study") / "page.css").read_text(encoding="utf-8")
    contents = "".join(
        f'<li><a href="#{_anchor(heading)}">{escape(heading)}</a></li>\n' for heading, _ in listed
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n<nav>\n<ul>\n{contents}</ul>\n</nav>\n"
        f"{''.join(starmap(_section, listed))}</main>\n</body>\n</html>\n"
    )


def _section(heading: str, section: Section) -> str:
    text = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in section.text)
    return (
        f'<section id="{_anchor(heading)}">\n<h2>{escape(heading)}</h2>\n{text}'
        f"{''.join(map(_block, section.blocks))}</section>\n"
    )


def _anchor(heading: str) -> str:
    return re.sub("[^a-z0-9]+", "-", heading.lower()).strip("-")


def _block(block: Shown | Chart) -> str:
    return _chart(block) if isinstance(block, Chart) else _table(block)


def _table(table: Shown) -> str:
    def row(cells: Iterable[str], tag: str, scope: str = "") -> str:
        return "".join(
            f"<{tag}{scope}{' class=left' if at in table.left else ''}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>\n" for cells in table.lines)
    return (
        f'<div class="wide">\n<table>\n<caption>{escape(table.title)}</caption>\n'
        f"<thead><tr>{row(table.headings, 'th', ' scope=col')}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _chart(chart: Chart) -> str:
    label = quoteattr(chart.caption)
    return (
        f"<figure>\n<div class=wide role=img aria-label={label}>\n{inline(chart)}</div>\n"
        f"<figcaption>{escape(chart.caption)}</figcaption>\n</figure>\n"
    )


def inline(chart: Chart) -> str:
    """Return a chart as an element of a page: in the page's colours, with names of its own."""
    text = picture.render(chart.figure, "svg", _DPI).decode()
    text = text[text.index("<svg") :]  # without the declaration and the document type
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for ink, name in _INKS:
        text = text.replace(ink, name)
    return _NAMED.sub(rf"\g<1>{chart.name}-", text)
