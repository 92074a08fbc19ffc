"""A report as a folder, which is replaced completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from memplan.base.errors import FormatError
from memplan.view import picture
from memplan_lab.study import html, markdown
from memplan_lab.study.blocks import Chart
from memplan_lab.study.results import Results
from memplan_lab.study.sections import sections

__all__ = ["check", "write"]

TITLE = "A study of static memory planning over open data"
PAGE, MARKDOWN = "report.html", "report.md"
_DPI = 72


def write(results: Results, out: str | os.PathLike[str], command: str = "") -> None:
    """Write `report.html`, `report.md` and its charts into a folder, in place of an older report.

    Parameters
    ----------
    results
        From `read`.
    out
        The folder; made if it is not there.
    command
        The command that makes the report again, if it is known; the page says it.

    Raises
    ------
    FormatError
        As from `check`, or if the folder cannot be written; its old contents stay.
    MissingExtraError
        If matplotlib is not installed.
    """
    check(out)
    picture.check_installed()
    made = sections(results, command)
    charts = [block for _, section in made for block in section.blocks if isinstance(block, Chart)]
    _replace(
        Path(out),
        {
            PAGE: html.page(TITLE, made).encode(),
            MARKDOWN: markdown.page(TITLE, made).encode(),
            **{f"{one.name}.svg": picture.render(one.figure, "svg", _DPI) for one in charts},
        },
    )


def check(out: str | os.PathLike[str]) -> None:
    """Check before the work that `write` can write a folder after it."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise FormatError(str(out), "is a file; name a folder for the report")
    foreign = [file for file in _list_files(folder) if not _is_ours(file)]
    if foreign:
        raise FormatError(
            str(out), f"holds {foreign[0].name}, which is not part of a report; name another folder"
        )
    home = next(each for each in folder.resolve().parents if each.exists())
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        raise FormatError(
            str(out), f"the folder cannot be written: {home} is not a writable folder"
        )


def _list_files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_ours(file: Path) -> bool:
    return file.name in (PAGE, MARKDOWN) or (file.suffix == ".svg" and file.is_file())


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Put a folder with these files in the place of another, in one step that can be undone."""
    target = folder.resolve()
    mark = secrets.token_hex(4)
    fresh, old = (target.with_name(f".{target.name[:32]}.{mark}.{end}") for end in ("new", "old"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        for name, data in contents.items():
            (fresh / name).write_bytes(data)
        if target.exists():
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FormatError(str(folder), f"the folder cannot be written: {reason}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
