"""The items of papers that a command shows, made of the list that the tests run.

A line `<!-- items of DOCUMENT -->` becomes the items of that document which the page does not list
itself, each with its command.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- items of (.+) -->$", re.MULTILINE)
COMMANDS = Path(__file__).parents[2] / "tests" / "docs" / "sources_audit" / "commands.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the items where a page asks for them (an event of MkDocs)."""
    return MARK.sub(lambda mark: _list(mark[1], markdown), markdown)


def shown_items(document: str, page: str) -> dict[str, str]:
    """Return the items of a document that the page does not list itself, each with a command."""
    told, here = set(), False
    for line in page.splitlines():
        if line.startswith("### "):
            here = line.startswith(f"### {document}: ")
        elif here and line.startswith("- "):
            told.add(line.removeprefix("- ").partition(": ")[0])
    found: dict[str, str] = {}
    for each in json.loads(COMMANDS.read_text(encoding="utf-8")):
        if each["document"] == document:
            for item in each["items"]:
                if item not in told:
                    found.setdefault(item, each["command"])
    return found


def _list(document: str, page: str) -> str:
    return "\n".join(f"- {item}: `{by}`" for item, by in shown_items(document, page).items())
