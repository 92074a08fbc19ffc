"""The figures of README and of the first page of docs/: what is said, what is measured, the ratio.

    python lab/tests/figures.py [WORD...] [NAME=VALUE...]

It reads `figures.csv`, runs its commands, and takes the number of a cell of what they print, or one
cell divided by another one: of the line that has the cells in the column `line`. With words, only
rows whose figure or command has one of them. `DATA=FOLDER` says what a name in capitals in a
command stands for; rows with other such names are left out.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("figures.csv")
FRONT = (ROOT / "README.md", ROOT / "docs" / "index.md")

_NUMBER = re.compile(r"([\d,]*\d(?:\.\d+)?)(?: ?(bytes|[kM]B|[KM]iB|[mµ]?s\b|%|[×x]))?")
_UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "KiB": 1 << 10, "MiB": 1 << 20}
_TIMES = {"s": 1, "ms": 1e-3, "µs": 1e-6}
_MODEL = re.compile(r"[\w*]+\.(?:tflite|onnx)")
_ASKED = re.compile(r"\b[A-Z]{4,}\b")
_MOST = 1.5  # a time, or a ratio of times, may be so many times what is said


@dataclass(frozen=True)
class Figure:
    """A row: what is said, and the command that measures it.

    Attributes
    ----------
    said
        As on the page.
    command
        For a shell in the folder of the repository.
    line
        Cells of a line of what it prints.
    cell, under
        Which cell has the number, counted from the first of these; by which other one it is
        divided, if it is.
    in_seconds
        Whether measuring it takes seconds.
    """

    said: str
    command: str
    line: tuple[str, ...]
    cell: int
    under: int | None
    in_seconds: bool = False

    @property
    def unit(self) -> str:
        """The unit of what is said, or nothing."""
        return read_number(self.said)[1]

    @property
    def is_exact(self) -> bool:
        """Whether every machine has to measure the same."""
        return self.unit not in (*_TIMES, "×")

    def ratio(self, measured: float) -> float:
        """Return how far apart both are: 1 if they are equal, else above 1."""
        said = read_number(self.said)[0]
        if self.is_exact:
            digits = re.match(r"[\d,]+(\.\d+)?", self.said)
            assert digits is not None
            step = 0.1 ** (len(digits[1] or ".") - 1) * _UNITS.get(self.unit, 1)
            if abs(measured - said) < step:  # memplan itself rounds down
                return 1.0
        least, most = sorted((said, measured))
        return most / least if least else float("inf")

    def holds(self, measured: float) -> bool:
        """Return whether what is said is true of what was measured."""
        return self.ratio(measured) <= (1 if self.is_exact else _MOST)


def read_number(text: str) -> tuple[float, str]:
    """Return the first number of a text, in bytes, seconds or as it is, and its unit."""
    found = _NUMBER.search(text)
    assert found is not None, text
    unit = (found[2] or "").replace("x", "×")
    scale = {**_UNITS, **_TIMES}.get(unit, 1)
    return float(found[1].replace(",", "")) * scale, unit


def read_figures() -> Iterator[Figure]:
    """Yield the rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            line = tuple(cell.strip() for cell in row["line"].split(","))
            cell, _, under = row["cell"].partition("/")
            in_seconds = row["takes"] == "seconds"
            divisor = int(under) if under else None
            yield Figure(row["figure"], row["command"], line, int(cell), divisor, in_seconds)


def fill_in(command: str, given: Mapping[str, str]) -> str | None:
    """Return a command with its models of wheels and names; `None` if one of them is not here."""
    for name in set(_ASKED.findall(command)):
        if name not in given:
            return None
        command = command.replace(name, given[name])
    for name in _MODEL.findall(command):
        paths = sorted(Path(sys.prefix).glob(f"lib/python*/site-packages/**/{name}"))
        if not paths:
            return None
        command = command.replace(name, " ".join(map(str, paths)))
    return command


@cache
def run(command: str) -> list[list[str]]:
    """Return the lines that a command prints, as cells."""
    done = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr.strip()[-300:]}"
    return [
        [cell.strip() for cell in re.split(r" {2,}|\||[;,:] ", line.strip(" |"))]
        for line in done.stdout.splitlines()
    ]


def measure(figure: Figure, given: Mapping[str, str]) -> float | None:
    """Return what a figure is now, or `None` if its inputs are not here."""
    command = fill_in(figure.command, given)
    if command is None:
        return None
    size = len(figure.line)
    found = [
        cells[at:]
        for cells in run(command)
        for at in range(len(cells) - size)
        if tuple(cells[at : at + size]) == figure.line
    ]
    assert found, f"{command} prints no line {figure.line}"
    value = read_number(found[0][figure.cell - 1])[0]
    if figure.under is not None:
        value /= read_number(found[0][figure.under - 1])[0]
        value *= 100 if figure.unit == "%" else 1
    return value


def main(words: Sequence[str]) -> int:
    """Print a line for each figure; return 1 if one does not hold."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    asked = [word for word in words if "=" not in word]
    wrong = 0
    for figure in read_figures():
        if asked and not any(word in figure.said + figure.command for word in asked):
            continue
        shown, holds = describe(figure, given)
        wrong += not holds
        print(f"{figure.said:<48}  {shown}{'' if holds else '  WRONG'}", flush=True)
    return int(wrong > 0)


def describe(figure: Figure, given: Mapping[str, str]) -> tuple[str, bool]:
    """Return what was measured and its ratio, as text, and whether the figure holds."""
    try:
        measured = measure(figure, given)
    except AssertionError as error:
        return str(error), False
    if measured is None:
        return "what it needs is not here", True
    scale = {**_UNITS, **_TIMES}.get(figure.unit, 1)
    amount = f"{measured / scale:,.5f}".rstrip("0").rstrip(".")
    return f"{amount:>14} {figure.unit:<5}  {figure.ratio(measured):.2f}", figure.holds(measured)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
