"""How results show themselves, although no room that holds results knows what draws them.

Problems, plans and answers write reports, pages of notebooks and pictures of themselves. Only an
artist can do that, who knows all of them: `memplan.view.artist`. It is above the rooms of the
results, so these ask `find_artist` here, and the package itself (`memplan/__init__.py`), which
knows every room, installs it. This is the only place where a lower room reaches a higher one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol

__all__ = ["Artist", "Page", "Picture", "Report", "Reported", "find_artist", "install_artist"]

Report = Literal["answer", "arranged", "comparison", "inspection", "tradeoff"]
"""What has a report of a command."""

Page = Literal["loaded", "plan", "planned", "problem"]
"""What notebooks show as facts beside a small picture."""

Picture = Literal["envelope", "plan", "problem"]
"""What has a figure of matplotlib."""


class Artist(Protocol):
    """What writes and draws results, each by its kind; it may raise `MissingExtraError`."""

    def write_report(self, kind: Report, result: Any) -> str:
        """Return the report of the result's command, as text."""

    def write_html(self, kind: Report | Page, result: Any) -> str:
        """Return what a notebook shows."""

    def draw(self, kind: Picture, result: Any, **options: Any) -> Any:
        """Return a figure of matplotlib; the options are those of the result's `plot`."""


_find: Callable[[], Artist]


def install_artist(find: Callable[[], Artist]) -> None:
    """Let results be drawn by the artist that `find` returns, which imports it when it is asked."""
    global _find
    _find = find


def find_artist() -> Artist:
    """Return the artist that is installed."""
    return _find()


class Reported:
    """A result that shows itself as the report of its command, as text and in notebooks."""

    __slots__ = ()
    _report: ClassVar[Report]

    def __str__(self) -> str:
        return find_artist().write_report(self._report, self)

    def _repr_html_(self) -> str:
        return find_artist().write_html(self._report, self)
