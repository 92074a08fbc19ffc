"""The table of measurements on the site is the one of README.md; there is no second copy.

A page's line `<!-- measurements -->` becomes what stands between the two lines of that name there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

MARK = "<!-- measurements -->"


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Put the table where a page asks for it (an event of MkDocs)."""
    if MARK not in markdown:
        return markdown
    readme = (Path(config.config_file_path).parent / "README.md").read_text(encoding="utf-8")
    _, table, _ = readme.split(MARK)
    return markdown.replace(MARK, table.replace("](docs/", "](").strip())
