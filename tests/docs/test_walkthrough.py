"""Tests that docs/solve-walkthrough.md follows the code: its files, functions and calls."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "solve-walkthrough.md").read_text()
CELLS = re.compile(
    r"^\| `([^`]+)` \| `([^`]+)` \| (?:`([^`]+)`(?: as `([^`]+)`)?)? ?\|", re.MULTILINE
)


class Row(NamedTuple):
    """A row of a table of the page: a function, and where and by which words it is called."""

    file: str
    function: str
    caller: str
    words: str


# Callers that have no row of their own.
FILE_OF = {
    "run_squeaky_wheel": "core/src/solve/begin.cpp",
    "Run::run_engines": "core/src/solve/solve.cpp",
}

ROWS = [Row(*cells) for cells in CELLS.findall(PAGE)]


def closing(text: str, at: int) -> int:
    """Return where the bracket that opens at `at` is closed."""
    pairs = {"(": ")", "{": "}"}
    opens, closes = text[at], pairs[text[at]]
    depth = 0
    for bracket in re.compile(rf"[{opens}{closes}]").finditer(text, at):
        depth += 1 if bracket[0] == opens else -1
        if depth == 0:
            return bracket.start()
    raise AssertionError(f"a {opens} is never closed")


def cpp_bodies(text: str, name: str) -> list[str]:
    """Return the bodies of all functions of this name, which a class may qualify."""
    text = re.sub(r"//[^\n]*", "", text)
    owner, _, bare = name.rpartition("::")
    found = []
    if owner:
        for inside in re.finditer(rf"\b(?:class|struct) (?:\w+::)?{owner}\b[^;{{]*(?={{)", text):
            end = closing(text, inside.end())
            found += cpp_bodies(text[inside.end() : end], bare)
    pattern = rf"\b{owner}(?:<\w+>)?::{bare}(?=\()" if owner else rf"(?<![.>:\w]){bare}(?=\()"
    for match in re.finditer(pattern, text):
        end = closing(text, match.end()) + 1
        behind = re.match(r"(?:\s|const\b|override\b|noexcept\b)*(?=\{)", text[end:])
        if behind:
            begin = end + behind.end()
            found.append(text[begin : closing(text, begin) + 1])
    return found


def bodies(file: str, name: str) -> list[str]:
    """Return the bodies of all functions of this name in a file of the repository."""
    text = (ROOT / file).read_text()
    if not file.endswith(".py"):
        return cpp_bodies(text, name)
    nodes = ast.walk(ast.parse(text))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    return ["\n".join(ast.unparse(line) for line in node.body) for node in functions]


def calls(body: str, words: str) -> bool:
    """Return whether a body has these words as a call, or as what is bound to be called."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", body) is not None


def test_the_page_has_its_tables() -> None:
    """Tests that every row of a table is read, so that none is left unchecked."""
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `", line)]
    assert len(ROWS) == len(rows) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.file}:{row.function}")
def test_every_function_exists(row: Row) -> None:
    """Tests that each file of the page defines the function that its row names."""
    assert bodies(row.file, row.function), f"{row.file} has no {row.function}"


@pytest.mark.parametrize(
    "at", [at for at, row in enumerate(ROWS) if row.caller], ids=lambda at: ROWS[at].function
)
def test_every_function_is_called_where_the_page_says(at: int) -> None:
    """Tests that the body of the caller, the nearest row above with its name, has the call."""
    row = ROWS[at]
    words = row.words or row.function.rpartition("::")[2]
    files = [above.file for above in reversed(ROWS[:at]) if above.function == row.caller]
    file = files[0] if files else FILE_OF[row.caller]
    assert any(calls(body, words) for body in bodies(file, row.caller)), (
        f"{row.caller} in {file} does not call {words}"
    )


def test_every_file_that_the_page_mentions_exists() -> None:
    """Tests the paths outside of the tables."""
    paths = set(re.findall(r"`((?:core|memplan|bindings)/[\w/]+\.\w+)`", PAGE))
    assert len(paths) > 15
    assert not [path for path in paths if not (ROOT / path).is_file()]


def test_a_call_that_is_not_made_is_noticed() -> None:
    """Tests the reader itself: definitions are told from calls, members from functions."""
    code = "void f() { g(1); }\nvoid A<V>::g(int x) const { if (h(x)) { k(); } }\nint h(int);\n"
    assert cpp_bodies(code, "f") == ["{ g(1); }"]
    assert cpp_bodies(code, "A::g") == ["{ if (h(x)) { k(); } }"]
    assert cpp_bodies(code, "h") == []
    assert calls(cpp_bodies(code, "f")[0], "g")
    assert not calls(cpp_bodies(code, "f")[0], "k")
