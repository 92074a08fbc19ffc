"""Pages made of the notebooks in `docs/tutorials`, with the outputs that are stored in them.

`first-plan.ipynb` becomes the page `first-plan.md` beside it; the notebook itself is in the site as
well, to be taken along.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook (an event of MkDocs)."""
    from mkdocs.structure.files import File

    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        uri = PurePosixPath(file.src_uri)
        text = Path(file.abs_src_path).read_text(encoding="utf-8")
        page = markdown(json.loads(text), uri.name)
        files.append(File.generated(config, str(uri.with_suffix(".md")), content=page))
    return files


def markdown(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as Markdown, below its title a link to the notebook itself."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).strip()
        if not source:
            continue
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += [text for each in cell.get("outputs", ()) if (text := _output(each))]
    title, _, rest = "\n\n".join(parts).partition("\n")
    shown = any(cell.get("outputs") for cell in notebook["cells"])
    note = "" if shown else ": run it to see what its cells show"
    return f"{title}\n\nThis page is [a notebook]({name}){note}.\n{rest}\n"


def _output(output: dict[str, Any]) -> str:
    """Return what a cell has shown: HTML, a picture or text, the first that there is."""
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output.get("data", {})
    if "text/html" in data:
        # In one block: a blank line would end the HTML and begin Markdown.
        lines = "".join(data["text/html"]).splitlines()
        return "<div>" + "\n".join(line for line in lines if line.strip()) + "</div>"
    if "image/svg+xml" in data:
        return "<div>" + "".join("".join(data["image/svg+xml"]).splitlines()) + "</div>"
    if "image/png" in data:
        code = "".join("".join(data["image/png"]).split())
        return f'<img alt="Output of the cell above" src="data:image/png;base64,{code}">'
    return _text("".join(data.get("text/plain", "")))


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""
