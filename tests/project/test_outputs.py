"""Tests that every output has a row in CONTRIBUTING.md, with what runs it and the tests that do so.

The writers are found in the code: what the runtimes offer, what `problem.formats` writes, and each
function that writes a file, or makes the text or bytes that one writes.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest

from memplan.levers.pipeline import Writer

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memplan"
HEAD = "| output | written by | run by | tests |\n"
ROW = re.compile(r"\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|")
CODE = re.compile(r"`([^`]+)`")

SINKS = {"write_text", "write_bytes", "write_files", "Staged", "savefig"}
CONTENT = re.compile(r"(str|bytes|dict\[str, bytes\])|tuple\[bytes, .*")  # a function's return

# Found by these rules, and no writer of an output by itself.
BELOW = {
    *(
        "base.files.write_text",
        "base.files.write_bytes",
        "base.files.write_files",
        "base.files._kept",
        "base.files._reason",
    ),
    # What a `Writer` made.
    *(
        "runtimes.fitting.fit",
        "cli.fit._finish",
        "cli.hand_over._write",
        "cli.arranged.write_arranged",
        "runtimes.choosing.choose_writer",
    ),
    # Files that are deleted again: for child processes, of standard input, and logs.
    *(
        "runtimes.onnx.write.writer.OnnxFile._measure",
        "runtimes.tflm.write.comparing.compare_results",
    ),
    *(
        "runtimes.tflm.write.writer.TfliteMicro.write",
        "runtimes.tflm.write.writer.TfliteMicro._find_given_arena",
        "runtimes.tflm.arena.minimal_arena",
    ),
    *("cli.inputs.keep", "extensions.slab.extension._build"),
    # Words, questions, and doors to the writers.
    *(
        *("cli.question._name_file", "cli.question._save_whole"),
        "runtimes.memories._find_beside",
        "cli.running.run",
        "cli.running._format_usage",
        "cli.memories.put_into",
        "problem.formats.save",
        "problem.formats.render",
    ),
    "problem.formats._write_table",
    *("view.picture.format_of", "view.picture.make_figure", "view.picture.render"),
    *(
        "runtimes.c.header.guard_linkage",
        "runtimes.c.header.list_tensors",
        "runtimes.torch.write.writer.load_graph",
    ),
    *("runtimes.torch.write.again.measured_graph", "extensions.tinygrad.place_by_host"),
    *("runtimes.tflm.write.folding.require_library", "runtimes.tflm.write.planning.plan_file"),
    "runtimes.tflm.write.folding.rewrite",
}

# Where writers are, and modules of which each function is one.
PARTS = ("problem/formats/[a-z]*.py", "runtimes/tflm/write/[a-z]*.py")
DOORS = (
    *("runtimes/c/header.py", "runtimes/c/paths.py", "runtimes/c/sizes.py", "runtimes/c/writer.py"),
    *("runtimes/onnx/write/apply.py", "runtimes/onnx/write/writer.py"),
    *(f"runtimes/torch/write/{name}.py" for name in ("again", "apply", "writer")),
    *("runtimes/choosing.py", "runtimes/memories.py"),
    *("runtimes/tflm/write", "extensions/executorch", "extensions/tinygrad.py"),
)

Row = tuple[str, set[str], str, list[str]]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Return the table: output, writers, what runs them, tests."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition(HEAD)[2].partition("\n\n")[0]
    found = [ROW.fullmatch(line) for line in table.splitlines()[1:]]
    assert found
    assert None not in found, "a row that is not of the form of the others"
    return [
        (row[1], set(CODE.findall(row[2])), row[3], CODE.findall(row[4])) for row in found if row
    ]


def test_every_writer_has_a_row(rows: list[Row]) -> None:
    """Tests that no output is merged without what runs it, and that no row is of what is gone."""
    listed = set().union(*(writers for _, writers, _, _ in rows))
    paths = {name for name in listed if "/" in name}  # what is not in Python
    assert listed - paths == find_writers()
    assert all((ROOT / path).exists() for path in paths)


def test_what_runs_an_output_is_there(rows: list[Row]) -> None:
    """Tests that each output names what runs it, and tests that exist."""
    for output, _, run_by, tests in rows:
        assert run_by.strip(), output
        assert tests, output
        assert [test for test in tests if not has_test(test)] == [], output


def has_test(test: str) -> bool:
    """Return whether there is a test `FILE::NAME`, which may be in a class."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    return any(getattr(each, "name", None) == name for each in ast.walk(tree))


def find_writers() -> set[str]:
    """Return every function and class of the package that makes an output, without `memplan.`."""
    found = {shorten(each) for each in list_offers()}
    for function, called in list_sinks():
        if function in BELOW:
            continue
        makers = {shorten(maker) for maker in map(find_maker, called) if maker}
        found |= makers or {function}
        if not function.startswith("cli."):
            found.add(function)
    return found - BELOW


def shorten(what: type | FunctionType) -> str:
    """Return the dotted name of a function or class, without the package."""
    return f"{what.__module__}.{what.__qualname__}".removeprefix("memplan.")


def list_offers() -> Iterator[type | FunctionType]:
    """Yield the writers and functions of targets, and what formats write."""
    parts = [each for pattern in PARTS for each in PACKAGE.glob(pattern)]
    doors = [PACKAGE / name for name in DOORS]
    for path in {*parts, *doors}:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        is_whole = path in doors  # not parts of one target
        written = [name for name in dir(module) if name.startswith("write_")]
        for name in {*getattr(module, "__all__", ()), *written}:
            what = getattr(module, name)
            if isinstance(what, type) and Writer in what.__mro__:
                yield what
            is_own = isinstance(what, FunctionType) and what.__module__.startswith(module.__name__)
            if is_own and (is_whole or returns_content(what)):
                yield what


def list_sinks() -> Iterator[tuple[str, set[str]]]:
    """Yield each function that writes a file, with the functions of the package that it calls."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        own = {each.name: f"{module}.{each.name}" for each in tree.body if is_function(each)}
        for name, node in iterate_functions(tree):
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
            if any(is_sink(each) for each in calls):
                known = own | list_imports(tree) | list_imports(node)
                yield f"{module}.{name}", {resolve(each.func, known) for each in calls}


def is_function(node: ast.AST) -> bool:
    """Return whether a node defines a function."""
    return isinstance(node, ast.FunctionDef)


def iterate_functions(
    tree: ast.Module | ast.ClassDef, before: str = ""
) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a module and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield before + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from iterate_functions(node, f"{before}{node.name}.")


def is_sink(call: ast.Call) -> bool:
    """Return whether a call puts bytes on a disk."""
    called = ast.unparse(call.func)
    mode = "".join(map(ast.unparse, call.args[1:2]))
    is_new = re.fullmatch(r"open '[wax][bt+]*'", f"{called} {mode}") is not None
    return called.rpartition(".")[2] in SINKS or is_new


def list_imports(tree: ast.AST) -> dict[str, str]:
    """Return what names of the package stand for."""
    return {
        each.asname or each.name: f"{node.module}.{each.name}".removeprefix("memplan.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "memplan"
        for each in node.names
    }


def resolve(called: ast.expr, known: dict[str, str]) -> str:
    """Return the dotted name of what is called, without the package."""
    first, dot, rest = ast.unparse(called).partition(".")
    return known.get(first, "") + dot + rest


@cache
def find_maker(name: str) -> FunctionType | None:
    """Return a function that makes text or bytes; words in errors and in JSON do not count."""
    module, _, last = name.rpartition(".")
    if not re.fullmatch(r"[\w.]+", name) or module in (
        "",
        "base.errors",
        "programs.sources",
        "cli.output",
    ):
        return None
    try:
        what = getattr(importlib.import_module(f"memplan.{module}"), last, None)
    except ImportError:
        return None
    return what if isinstance(what, FunctionType) and returns_content(what) else None


def returns_content(what: FunctionType) -> bool:
    """Return whether a function says that it returns text or bytes."""
    return CONTENT.fullmatch(str(what.__annotations__.get("return"))) is not None


if __name__ == "__main__":
    print("\n".join(sorted(find_writers())))
