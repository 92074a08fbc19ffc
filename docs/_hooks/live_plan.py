"""The plan to look around in on the front page, made by `memplan view` when the site is built.

A page asks for it with the line `<!-- live plan -->`. The report is a file of the site of its own,
which the page frames; where the window is narrow, a still drawing leads to it instead, because a
finger could not scroll past the figures, which pan.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

MARK = "<!-- live plan -->"
NETWORK = "examples/structures/resnet50.graph.json"
REPORT = "assets/resnet50.html"
_WHAT = "Memory plan of ResNet-50"


def on_files(files: Any, config: Any) -> Any:
    """Add the report to the site (an event of MkDocs)."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    files.append(File.generated(config, REPORT, content=report(root / NETWORK)))
    return files


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Put the frame where a page asks for it (an event of MkDocs)."""
    if MARK not in markdown:
        return markdown
    root = Path(config.config_file_path).parent
    return markdown.replace(MARK, frame(drawing(root / NETWORK)))


def report(network: Path) -> str:
    """Return the page that `memplan view` writes of a network."""
    import memplan.cli

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            code = memplan.cli.main(["view", str(network), "-o", str(path)])
        if code != 0:
            raise RuntimeError(f"memplan view {network} ended with {code}: {shown.getvalue()}")
        return path.read_text(encoding="utf-8")


def drawing(network: Path) -> str:
    """Return the plan of a network as a small SVG, as notebooks show it, without its tooltips."""
    import memplan

    loaded = memplan.load(network)
    html = memplan.solve(loaded.problem)._repr_html_()
    svg = html[html.index("<svg") : html.index("</svg>") + len("</svg>")]
    return re.sub(r"<title>.*?</title>", "", svg).replace(
        'aria-label="addresses over time"', f'aria-label="{_WHAT}"'
    )


def frame(still: str) -> str:
    """Return the HTML that shows the report; it is one block, without blank lines."""
    return (
        '<figure class="live-plan">'
        f'<iframe src="{REPORT}" title="{_WHAT}" loading="lazy"></iframe>'
        f'<a class="live-plan__still" href="{REPORT}">{still}</a>'
        "</figure>"
    )
