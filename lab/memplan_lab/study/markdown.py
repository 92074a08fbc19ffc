"""Sections as Markdown, with the charts in files of the same folder."""

from __future__ import annotations

from collections.abc import Iterable

from memplan_lab.bench.tables import Shown
from memplan_lab.study.blocks import Chart, Section

_SPECIAL = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>|#"})


def page(title: str, sections: Iterable[tuple[str, Section]]) -> str:
    """Return the page; charts are images of the name of the chart, as `.svg`."""
    parts = [f"# {title}\n"]
    for heading, section in sections:
        parts.append(f"## {_plain(heading)}\n")
        parts += [f"{_plain(paragraph)}\n" for paragraph in section.text]
        parts += [_block(block) for block in section.blocks]
    return "\n".join(parts)


def _block(block: Shown | Chart) -> str:
    if isinstance(block, Chart):
        return f"![{_plain(block.caption)}]({block.name}.svg)\n\n*{_plain(block.caption)}*\n"
    headings = [_plain(cell) for cell in block.headings]
    lines = [[_plain(cell) for cell in line] for line in block.lines]
    return f"*{_plain(block.title)}*\n\n{Shown('', headings, lines, block.left).markdown()}"


def _plain(text: str) -> str:
    """Return any text so that Markdown leaves it as it is, on one line."""
    return " ".join(text.split()).translate(_SPECIAL)
