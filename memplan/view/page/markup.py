"""The HTML around a page's data and figures: one file that needs nothing else.

A Content-Security-Policy lets the browser use no network, and run no script but those whose hashes
stand in the head, so that text which looks like a script is still only text.
WebGL costs one exception, `unsafe-eval`: the library that Bokeh draws with compiles its functions.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from importlib import resources
from string import Template

__all__ = ["markup"]

_SCRIPTS = ("numbers", "memory", "colours", "raster", "plans", "view", "panels", "page")
_POLICY = (
    "default-src 'none'; connect-src 'none'; base-uri 'none'; form-action 'none'; "
    "img-src data: blob:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-eval' {hashes}"
)


def markup(
    title: str, data: str, figures: str, libraries: Sequence[str], notes: Sequence[str] = ()
) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Any text.
    data, figures
        JSON that may stand in a <script> (`data.as_json`).
    libraries
        Scripts that ours need, in this order.
    notes
        What was assumed or left out when the model was read; any text.
    """
    # One function, so that nothing of it is a global name but `window.memplan`.
    ours = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    scripts = [_inline(each) for each in (*libraries, f'(() => {{\n"use strict";\n{ours}\n}})();')]
    hashes = " ".join(f"'sha256-{_digest(each)}'" for each in scripts)
    return Template(_asset("page.html")).substitute(
        policy=_POLICY.format(hashes=hashes),
        title=html.escape(title),
        notes=_list(notes),
        style=_asset("page.css"),
        data=data,
        figures=figures,
        scripts="\n".join(f"<script>{each}</script>" for each in scripts),
    )


def _list(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return f'<ul id="notes" aria-label="Notes">{items}</ul>' if items else ""


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """Return a script that does not end its element, nor changes on the way through a file."""
    return script.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
