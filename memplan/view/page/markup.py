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

from memplan.view.units import plural
from memplan.view.verdict import Verdict

__all__ = ["asset", "fill_page", "list_notes", "make_page", "markup"]

_SCRIPTS = (
    *("numbers", "memory", "skyline", "colours", "raster", "names", "boxes"),
    *("plans", "view", "panels", "page"),
)
_OPEN = 3  # notes: a list of more is closed at first
_POLICY = (
    "default-src 'none'; connect-src 'none'; base-uri 'none'; form-action 'none'; "
    "img-src data: blob:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-eval' {hashes}"
)


def markup(
    title: str,
    headline: Verdict,
    data: str,
    figures: str,
    libraries: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """Return the page.

    Title, headline and notes may hold any text; `data` and `figures` are JSON that is safe inside
    of a <script> (`data.format_json`). Libraries are scripts that ours need, in this order.
    """
    return make_page(
        "page",
        _SCRIPTS,
        libraries,
        title=html.escape(title),
        headline=html.escape(headline.text),
        grade=headline.grade,
        notes=list_notes(notes),
        data=data,
        figures=figures,
    )


def make_page(template: str, names: Sequence[str], libraries: Sequence[str], **fields: str) -> str:
    """Return a template with its fields, the style sheet and scripts, and the policy for them.

    The template is what follows the head, which all pages share; its fields take HTML. Names are of
    our scripts, libraries are scripts that ours need, in this order.
    """
    ours = "\n".join(asset(f"{name}.js") for name in names)
    whole = asset("head.html") + asset(f"{template}.html")
    return fill_page(whole, ours, libraries, asset("page.css"), **fields)


def fill_page(
    template: str, script: str, libraries: Sequence[str], style: str, **fields: str
) -> str:
    """Return a page of these texts: the template, our script, those that it needs, the style."""
    # One function, so that nothing of it is a global name but `window.memplan`.
    own = f'(() => {{\n"use strict";\n{script}\n}})();'
    scripts = [_inline(each) for each in (*libraries, own)]
    hashes = " ".join(f"'sha256-{_digest(each)}'" for each in scripts)
    return Template(template).substitute(
        fields,
        policy=_POLICY.format(hashes=hashes),
        style=style,
        scripts="\n".join(f"<script>{each}</script>" for each in scripts),
    )


def list_notes(notes: Sequence[str]) -> str:
    """Return the notes about how the file was read, as a list that can be closed."""
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    opened = " open" if len(notes) <= _OPEN else ""
    count = plural(len(notes), "note")
    return (
        f'<details id="notes"{opened}><summary>{count} about how the file was read</summary>'
        f"<ul>{items}</ul></details>"
    )


def asset(name: str) -> str:
    """Return a script, a style sheet or a part of a page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """Return a script that does not end its element, nor changes on the way through a file."""
    return script.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
