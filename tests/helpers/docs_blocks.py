"""What a page of docs/ shows, as steps that can be run.

A fenced block is a file if it has a title, a program if it is `python`, and commands with what they
print if it is `console`. A block `text` right behind a program is what that prints. A line
`<!-- not run: why -->` before a block says that it is only to be read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_FENCE = re.compile(r'```(\w*)(?: title="([^"]+)")?')

# Programs of a page share their names, in a process of its own. What libraries print on their own
# goes to standard error, so that the answers stay readable.
_CHILD = """
import contextlib, io, json, os, sys, traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
names = {"__name__": "__main__"}
for line in sys.stdin:
    page, at, code = json.loads(line)
    shown, error = io.StringIO(), ""
    with contextlib.redirect_stdout(shown):
        try:
            exec(compile("\\n" * at + code, page, "exec"), names)
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([shown.getvalue(), error]), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title if it has one, the line that it begins at."""

    language: str
    title: str | None
    line: int
    text: str
    run: bool


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in their order."""
    lines = iter(enumerate(page.splitlines(), 1))
    before = ""
    for number, line in lines:
        fence = _FENCE.fullmatch(line)
        if fence:
            text = []
            for _, inner in lines:
                if inner == "```":
                    break
                text.append(inner)
            else:
                raise ValueError(f"line {number}: this block does not end")
            run = not before.startswith("<!-- not run:")
            yield Block(fence[1], fence[2], number, "".join(f"{each}\n" for each in text), run)
        if line.strip():
            before = line


def matches(expected: str, shown: str) -> bool:
    """Return whether a text is as a page has it, but for blanks.

    `...` stands for any text within a line, and on a line of its own for any lines.
    """
    pattern = ""
    for line in expected.splitlines():
        words = " ".join(line.split())
        if words == "...":
            pattern += "(?:.*\n)*"
        else:
            pattern += ".*".join(map(re.escape, words.split("..."))) + "\n"
    found = "".join(" ".join(line.split()) + "\n" for line in shown.splitlines())
    return re.fullmatch(pattern, found) is not None


def commands(console: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block and what each prints."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        yield command, shown


class Reader:
    """Somebody who does what a page says, in a folder."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.said: str | None = None  # by the last program, until somebody has looked at it
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "COLUMNS": "140"}
        self._python = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._python.communicate()

    def follow(self, block: Block) -> None:
        """Do what a block says; assert that what it shows is what happens."""
        where = f"{self.page}:{block.line}"
        if not block.run:
            return
        if block.title:
            (self.folder / block.title).write_text(block.text)
        elif block.language == "python":
            self.said = self._execute(block)
        elif block.language == "console":
            for command, expected in commands(block.text):
                self._command(command, expected, where)
        elif block.language == "text" and self.said is not None:
            assert matches(block.text, self.said), f"{where}: the program prints\n{self.said}"
            self.said = None

    def _execute(self, block: Block) -> str:
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        print(json.dumps([self.page, block.line, block.text]), file=self._python.stdin, flush=True)
        answer = self._python.stdout.readline()
        assert answer, f"{self.page}:{block.line}: the program ended the process"
        shown, error = json.loads(answer)
        assert not error, error
        return str(shown)

    def _command(self, command: str, expected: str, where: str) -> None:
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"{where}: $ {command}\n{run.stdout}"
        if expected:
            assert matches(expected, run.stdout), f"{where}: $ {command}\n{run.stdout}"
