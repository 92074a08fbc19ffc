"""What the button of a console copies: its commands, without prompts and what they print."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

_CODE = re.compile(r"<code>((?:(?!</code>).)*?<span class=\"gp\">.*?)</code>", re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Say what is to be copied of a console (an event of MkDocs)."""
    return note_commands(html)


def note_commands(html: str) -> str:
    """Return a page whose consoles have their commands as `data-copy`, which the theme copies."""
    return _CODE.sub(_note, html)


def _note(code: re.Match[str]) -> str:
    text = unescape(re.sub(r"<[^>]*>", "", code[1]))
    commands = "\n".join(re.findall(r"^\$ ((?:.*\\\n)*.*)", text, re.MULTILINE))
    copied = escape(commands).replace("\n", "&#10;")
    return f'<code data-copy="{copied}">{code[1]}</code>'
