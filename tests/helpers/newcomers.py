"""Plays newcomers: each begins in an empty folder, with a fresh environment, and follows our pages.

`make newcomers`, or `python tests/helpers/newcomers.py [NAME...]`, prints a table: what was
installed and how long that took, how long it took from there to the first plan, and whether all
blocks of the pages say what happens. The wheels that newcomers install are made of the last commit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docs_blocks import Reader, blocks, commands

ROOT = Path(__file__).resolve().parents[2]
FROM_CLONE = 120.0  # seconds to the first plan, the build included
FROM_WHEEL = 15.0  # seconds to the first plan, once the wheel is installed
# What a block has that makes a plan.
PLANS = re.compile(r"memplan (plan|apply)|solve\(|planner\(|Slab\(|build/compiler")


@dataclass(frozen=True)
class Newcomer:
    """Someone with a goal: what pip installs for it, and the pages that lead there.

    `{memplan}` and `{lab}` stand for the wheels. An item of `pip` is one call of pip.
    """

    pip: tuple[tuple[str, ...], ...]
    pages: tuple[str, ...]
    section: str | None = None  # of the first page, if it is not read as a whole


NEWCOMERS = {
    "wheel": Newcomer(
        (("{memplan}[plot,view]", "{lab}[sweep]"),),
        ("README.md", "docs/start.md", "docs/tutorials/first-plan.ipynb"),
    ),
    "embedded": Newcomer(
        (("{memplan}[tflm]",), ("--no-deps", "pyopen-wakeword")),
        ("docs/tutorials/tflite-micro.md",),
    ),
    "pytorch": Newcomer(
        (
            ("{memplan}[torch,plot]", "{lab}", "pandas", "pyyaml"),
            ("--no-deps", "executorch", "flatbuffers", "ruamel.yaml", "tabulate"),
        ),
        (
            "docs/tutorials/pytorch-slab.md",
            "docs/streams.md",
            "docs/tutorials/executorch.md",
        ),
    ),
    "researcher": Newcomer((("{memplan}[plot]", "{lab}[sweep]"),), ("README.md",), "For research"),
}


@dataclass
class Visit:
    """What became of a newcomer; times in seconds."""

    name: str
    limit: float
    install: float = 0.0
    first_plan: float | None = None
    total: float = 0.0
    blocks: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether every block says what happens, and the first plan came in time."""
        return not self.faults and self.first_plan is not None and self.first_plan <= self.limit

    def row(self) -> str:
        """Return the row of the table."""
        plan = "none" if self.first_plan is None else f"{self.first_plan:.1f} s"
        return (
            f"{self.name:<11} {self.install:>8.1f} s {plan:>11} {self.limit:>6.0f} s "
            f"{self.blocks:>7} {self.total:>8.1f} s  {'good' if self.is_good else 'NOT GOOD'}"
        )


HEADING = "newcomer     installed  first plan    limit  blocks  all blocks"


def environment(folder: Path, python: Path | None = None) -> dict[str, str]:
    """Return a newcomer's variables: the environment's programs first, and no cache of ours."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ours = f"{ROOT / '.venv'}{os.sep}"
    path = [each for each in kept["PATH"].split(os.pathsep) if not each.startswith(ours)]
    first = [] if python is None else [str(python.parent)]
    return {**kept, "PATH": os.pathsep.join(first + path), "XDG_CACHE_HOME": str(folder / "cache")}


def clone(folder: Path) -> Path:
    """Clone the repository, as it was committed last."""
    copy = folder / "memplan"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
    return copy


def make_environment(folder: Path) -> Path:
    """Make a virtual environment; return its Python."""
    venv.create(folder / "environment", with_pip=True)
    return folder / "environment" / "bin" / "python"


def build_wheels(folder: Path) -> dict[str, str]:
    """Build both wheels of a clone, as pip does for anyone; return their paths."""
    python, copy = make_environment(folder), clone(folder)
    for package in (copy, copy / "lab"):
        subprocess.run(
            [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, package], check=True
        )
    return {
        "memplan": str(next(folder.glob("memplan-*.whl"))),
        "lab": str(next(folder.glob("memplan_lab-*.whl"))),
    }


def parts(page: str, section: str | None) -> str:
    """Return the text of a page or of one section at its line, or the cells of a notebook."""
    text = (ROOT / page).read_text()
    if page.endswith(".ipynb"):
        cells = [each for each in json.loads(text)["cells"] if each["cell_type"] == "code"]
        return "".join(f"```python\n{''.join(each['source'])}\n```\n" for each in cells)
    if section is None:
        return text
    before, _, rest = text.partition(f"\n## {section}\n")
    assert rest, f"{page} has no section {section}"
    return "\n" * (before.count("\n") + 2) + rest.partition("\n## ")[0] + "\n"


def follow(folder: Path, section: str | None, pages: list[str]) -> Iterator[dict[str, object]]:
    """Do what pages say; yield what happened at each block.

    Pages write files of the same names, so each page has a folder with what is in `folder` first. A
    notebook runs two folders further down, because it names the examples from there. This runs in
    the newcomer's environment.
    """
    for page in pages:
        home = folder.with_name(f"{folder.name}-{Path(page).stem}")
        shutil.copytree(folder, home)
        where = (home / page).parent if page.endswith(".ipynb") else home
        where.mkdir(parents=True, exist_ok=True)
        with Reader(page, where) as reader:
            for block in blocks(parts(page, section)):
                fault = ""
                try:
                    reader.follow(block)
                except AssertionError as error:
                    fault = str(error)
                plans = block.run and not block.title and bool(PLANS.search(block.text))
                yield {"run": block.run, "plans": plans, "fault": fault}


def read_pages(visit: Visit, python: Path, folder: Path, newcomer: Newcomer) -> None:
    """Let a newcomer follow pages in a folder that has the examples of a clone, and no more."""
    home = folder / "work"
    home.mkdir()
    subprocess.run(
        f"git -C '{ROOT}' archive HEAD examples | tar x -C '{home}'", shell=True, check=True
    )
    begin = time.monotonic()
    order = json.dumps([str(home), newcomer.section, newcomer.pages])
    with subprocess.Popen(
        [python, __file__, "--follow", order],
        env=environment(folder, python),
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            happened = json.loads(line)
            visit.blocks += happened["run"]
            if happened["fault"]:
                visit.faults.append(happened["fault"])
            if happened["plans"] and visit.first_plan is None:
                visit.first_plan = time.monotonic() - begin
    if child.returncode:
        visit.faults.append(f"the reader of pages ended with {child.returncode}")
    visit.total = time.monotonic() - begin


def visit_with_wheel(name: str, wheels: dict[str, str], folder: Path) -> Visit:
    """Play a newcomer who installs wheels."""
    visit, newcomer = Visit(name, FROM_WHEEL), NEWCOMERS[name]
    python = make_environment(folder)
    begin = time.monotonic()
    for call in newcomer.pip:
        items = [item.format(**wheels) for item in call]
        subprocess.run([python, "-m", "pip", "install", "-q", *items], check=True)
    visit.install = time.monotonic() - begin
    read_pages(visit, python, folder, newcomer)
    return visit


def visit_clone(folder: Path) -> Visit:
    """Play the newcomer who clones, and types `make demo`."""
    visit = Visit("clone", FROM_CLONE, blocks=1)
    begin = time.monotonic()
    copy = clone(folder)
    with subprocess.Popen(
        ["make", "demo"], cwd=copy, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("peak") and visit.first_plan is None:
                visit.first_plan = time.monotonic() - begin
    if child.returncode:
        visit.faults.append(f"make demo ended with {child.returncode}")
    visit.total = time.monotonic() - begin
    return visit


def visit_compiler(folder: Path) -> Visit:
    """Play the engineer of a compiler, who builds the library and links against it."""
    page = "docs/tutorials/embed-cpp.md"
    visit = Visit("compiler", FROM_CLONE)
    begin = time.monotonic()
    copy = clone(folder)
    install = next(each for each in blocks((ROOT / page).read_text()) if "--install" in each.text)
    for command, _ in commands(install.text):
        subprocess.run(
            ["bash", "-c", command],
            cwd=copy,
            env=environment(folder),
            check=True,
            stdout=sys.stderr,
        )
    visit.install = time.monotonic() - begin
    home = folder / "work"
    home.mkdir()
    (copy / "prefix").rename(home / "prefix")
    reading = time.monotonic()
    for happened in follow(home, None, [page]):
        visit.blocks += bool(happened["run"])
        if happened["fault"]:
            visit.faults.append(str(happened["fault"]))
        if happened["plans"] and visit.first_plan is None:
            visit.first_plan = time.monotonic() - begin
    visit.total = time.monotonic() - reading
    return visit


def main(names: list[str]) -> int:
    """Play newcomers, by name or all; return the exit code."""
    known = ["clone", "compiler", *NEWCOMERS]
    unknown = set(names) - set(known)
    if unknown:
        print(f"no such newcomer: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return 2
    visits = []
    with tempfile.TemporaryDirectory(prefix="newcomers-") as top:
        wheels: dict[str, str] = {}
        print(HEADING, flush=True)
        for name in names or known:
            if name in NEWCOMERS and not wheels:
                wheels = build_wheels(_empty(top, "wheels"))
            folder = _empty(top, name)
            if name == "clone":
                visit = visit_clone(folder)
            elif name == "compiler":
                visit = visit_compiler(folder)
            else:
                visit = visit_with_wheel(name, wheels, folder)
            print(visit.row(), flush=True)
            visits.append(visit)
    for visit in visits:
        for fault in visit.faults:
            print(f"\n{visit.name}: {fault}")
    return 0 if all(visit.is_good for visit in visits) else 1


def _empty(top: str, name: str) -> Path:
    folder = Path(top) / name
    folder.mkdir()
    return folder


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        where, only, which = json.loads(sys.argv[2])
        for event in follow(Path(where), only, which):
            print(json.dumps(event), flush=True)
    else:
        sys.exit(main(sys.argv[1:]))
