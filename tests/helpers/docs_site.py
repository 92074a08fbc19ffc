"""A built site as a folder of pages: what is in it, where its links lead, what it loads."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]

# Elements that make a browser fetch something, and by which attribute.
_LOADS = {
    **dict.fromkeys(("audio", "embed", "iframe", "img", "script", "source", "video"), "src"),
    "object": "data",
}
_LINKED = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
_CSS = re.compile(r"""(?:@import\s*|url\()\s*["']?([^"')]+)""")


@dataclass
class Page(HTMLParser):
    """One page; made by feeding it its text."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    navigation: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is called, where it leads and what it loads."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
            if "md-nav__link" in found.get("class", ""):
                self.navigation.append(found["href"])
        if tag == "link" and _LINKED & set(found.get("rel", "").split()):
            self.loads.append(found["href"])
        if found.get(_LOADS.get(tag, "")):
            self.loads.append(found[_LOADS[tag]])
        self.loads += _CSS.findall(found.get("style", ""))


class Site:
    """All pages of a folder.

    Parameters
    ----------
    folder
        As MkDocs builds it, with a page a file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.pages: dict[Path, Page] = {}
        for path in sorted(self.folder.rglob("*.html")):
            page = self.pages[path] = Page(path)
            page.feed(path.read_text(encoding="utf-8"))

    def faults(self) -> list[str]:
        """Return a sentence for each link to nothing, and for each thing that a network loads."""
        return [
            f"{page.path.relative_to(self.folder)}: {fault}"
            for page in self.pages.values()
            for fault in (*self._dead(page), *self._foreign(page))
        ] + [f"{path.relative_to(self.folder)}: {fault}" for path, fault in self._styles()]

    def unreachable(self) -> set[str]:
        """Return the pages that no navigation leads to, but for that of errors."""
        seen: set[Path] = set()
        ahead = [self.folder / "index.html"]
        while ahead:
            path = ahead.pop()
            if path in seen or path not in self.pages:
                continue
            seen.add(path)
            ahead += [self._target(path, link) for link in self.pages[path].navigation]
        built = {path for path, page in self.pages.items() if page.navigation}  # others are files
        lost = built - seen - {self.folder / "404.html"}
        return {str(path.relative_to(self.folder)) for path in lost}

    def anchors(self, page: str) -> set[str]:
        """Return the names that a page has for its parts."""
        return self.pages[self.folder / page].anchors

    def _target(self, path: Path, link: str) -> Path:
        inner = unquote(urlsplit(link).path)
        if inner.startswith("/"):
            return (self.folder / inner[1:]).resolve()
        return (path.parent / inner).resolve() if inner else path

    def _dead(self, page: Page) -> Iterator[str]:
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if parts.scheme != "https" or "." not in parts.netloc:
                    yield f"{link} is no address of another site"
                continue
            target = self._target(page.path, link)
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{link} leads nowhere"
            elif not self._has(target, unquote(parts.fragment)):
                yield f"{link}: there is no such part"

    def _has(self, target: Path, part: str) -> bool:
        return not part or target not in self.pages or part in self.pages[target].anchors

    def _foreign(self, page: Page) -> Iterator[str]:
        for link in page.loads:
            if urlsplit(link).netloc:
                yield f"{link} is loaded from a network"

    def _styles(self) -> Iterator[tuple[Path, str]]:
        for path in sorted(self.folder.rglob("*.css")):
            for link in _CSS.findall(path.read_text(encoding="utf-8")):
                if urlsplit(link).netloc:
                    yield path, f"{link} is loaded from a network"


def build(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return the site of docs/, or skip the test; once for all workers.

    It is built strictly: what MkDocs warns of is an error (not with `--quiet`, which hides it).
    """
    for module in ("mkdocs", "material", "mkdocstrings_handlers.python", "bokeh"):
        pytest.importorskip(module)
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
            run = subprocess.run(
                [*command, "--site-dir", str(folder)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            assert run.returncode == 0, run.stdout + run.stderr
    return Site(folder)
