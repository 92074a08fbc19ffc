"""What the theme leaves out for people who use a screen reader, and tables whose words stay whole.

A browser breaks a line after every hyphen, and between a figure and its unit. In the cells of
tables, which are narrow, that takes names of options and figures apart.
"""

from __future__ import annotations

import re
from typing import Any

_LONGEST = 44  # letters that stay on one line; more would make a column wider than a phone
_UNIT = r"(?:×|%|[nµm]?s|min|h|bytes?|[KMGkm]i?B|buffers|nodes)(?![\w/])"
_FIGURE = rf"[−+~≤≥]?\d[\d.,]*(?:[ \u00a0\u202f]\d{{3}}(?!\d))*(?: of \d[\d,]*|[ \u00a0]{_UNIT})?"
_HYPHENATED = r"[^\s<>|]*-[^\s<>|]+"
_WHOLE = re.compile(rf"{_HYPHENATED}|(?<![\w.-]){_FIGURE}")
_PRE = re.compile(r"(<pre\b.*?</pre>)", re.DOTALL)
_CELL = re.compile(r"(<t([dh])\b[^>]*>)(.*?)(</t\2>)", re.DOTALL)
_CODE = re.compile(r"(<code\b[^>]*>)(.*?)(</code>)", re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Keep words and figures in cells whole (an event of MkDocs)."""
    return keep_whole(html)


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, which the theme leaves without a name (an event of MkDocs)."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def keep_whole(html: str) -> str:
    """Return a page in which no line ends inside a short name of code.

    In the cells of its tables, none ends inside another hyphenated word or a figure either.
    """
    parts = _PRE.split(html)
    for at in range(0, len(parts), 2):  # the others are blocks of code
        text = _CODE.sub(lambda code: code[1] + _in_name(code[2]) + code[3], parts[at])
        parts[at] = _CELL.sub(lambda cell: cell[1] + _in_cell(cell[3]) + cell[4], text)
    return "".join(parts)


def _in_name(html: str) -> str:
    is_name = "-" in html and " " not in html and len(html) <= _LONGEST
    return f'<span class="whole">{html}</span>' if is_name else html


def _in_cell(html: str) -> str:
    parts = _CODE.split(html)
    # Of every four parts, the first is outside of code, and the others are code with its tags.
    for at in range(0, len(parts), 4):
        parts[at] = _in_text(parts[at])
    for at in range(2, len(parts), 4):
        parts[at] = _in_code(parts[at])
    return "".join(parts)


def _in_code(html: str) -> str:
    if html.startswith('<span class="whole">'):
        return html
    if len(re.sub(r"<[^>]*>", "", html)) <= _LONGEST:
        return f'<span class="whole">{html}</span>'
    return _in_text(html)


def _in_text(html: str) -> str:
    pieces = re.split(r"(<[^>]*>)", html)
    for at in range(0, len(pieces), 2):  # the others are tags
        pieces[at] = _WHOLE.sub(_mark, pieces[at])
    return "".join(pieces)


def _mark(found: re.Match[str]) -> str:
    text = found[0]
    breaks = re.search(r"[-\s\u00a0\u202f]", text) is not None
    return f'<span class="whole">{text}</span>' if breaks and len(text) <= _LONGEST else text
