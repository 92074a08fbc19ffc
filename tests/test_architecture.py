"""Tests that the imports keep to the table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "memplan"

# "beside it" in the table: the parts of `problem`, which all rooms below it share.
PARTS = frozenset(
    {
        *("buffer", "conflicts", "_columns", "_intake", "_checks", "_spans", "_dialect"),
        *("_fingerprint", "_groups"),
    }
)
ASKED = PARTS | {"errors", "problem"}
ANSWERED = ASKED | {"plan"}

# For every room what it may import. A part of a room that is a file beside it (`_shrink`) is
# listed as a room of its own.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "notes": frozenset(),
    **{part: PARTS | {"errors"} for part in PARTS},
    "problem": PARTS | {"errors"},
    "plan": ASKED,
    "trace": ASKED,
    "loads": ASKED,
    "verify": ANSWERED,
    "_ground": ASKED,
    "_orders": ASKED | {"_ground"},
    "verify_proof": ASKED | {"_ground", "_orders"},
    "formats": ANSWERED | {"trace"},
    "graph": ASKED | {"_core"},
    "sources": ASKED | {"notes", "trace", "graph", "formats"},
    "yardsticks": ANSWERED | {"trace", "graph", "sources", "runtime"},
    "solvers": ANSWERED | {"_core"},
    "targets": (
        ANSWERED
        | {"notes", "formats", "graph", "sources", "yardsticks", "solvers", "loads", "verify"}
        | {"planning"}
    ),
    "runtime": ANSWERED | {"trace", "formats", "solvers", "verify"},
    "repacker": ANSWERED | {"solvers"},
    "_value_bound": ASKED,
    "_packing": ANSWERED | {"loads", "repacker", "solvers", "_value_bound"},
    "selection": ANSWERED | {"_packing", "repacker", "solvers"},
    "_shrink": ANSWERED | {"loads"},
    "explain": ANSWERED | {"loads", "solvers", "_shrink"},
    "sync": ANSWERED | {"graph", "solvers", "verify"},
    "_quick": ANSWERED | {"solvers", "verify"},
    "planning": ANSWERED | {"notes", "sources", "solvers", "verify", "_quick"},
    "_changed": ASKED | {"graph"},
    "savings": ASKED | {"loads", "graph", "_changed"},
    "inspection": ANSWERED | {"explain", "savings", "solvers", "sources", "_quick", "planning"},
    "_matching": ASKED,
    "_sides": ANSWERED | {"loads", "notes", "solvers", "_matching"},
    "compare": ANSWERED | {"notes", "planning", "sources", "_matching", "_quick", "_sides"},
    "view": (
        ANSWERED
        | {"notes", "trace", "loads", "formats", "graph", "sources", "verify", "explain", "sync"}
        | {"savings", "inspection", "compare", "planning"}
    ),
}
ABOVE_BENCH = frozenset(MAY_IMPORT) - {
    *("_shrink", "_ground", "_orders", "_value_bound", "_packing"),
    *("_quick", "_matching", "_sides", "_changed"),
}
MAY_IMPORT["bench"] = ABOVE_BENCH
MAY_IMPORT["learn"] = ABOVE_BENCH | {"bench"}
MAY_IMPORT["corpus"] = ABOVE_BENCH | {"bench"}
MAY_IMPORT["sweep"] = ABOVE_BENCH | {"bench"}
MAY_IMPORT["study"] = ABOVE_BENCH | {"bench", "learn", "sweep"}
MAY_IMPORT["cli"] = ABOVE_BENCH | {"bench", "learn", "study", "corpus", "sweep"}
MAY_IMPORT["__init__"] = (ABOVE_BENCH | {"_core"}) - {"view"}
MAY_IMPORT["__main__"] = frozenset({"cli"})

# Problems, plans and what files are read as draw themselves in notebooks: what draws is imported by
# the methods that do.
DRAWN_BY = ("problem.py", "plan.py", "planning.py", "sources/loaded.py")

HEAVY = (
    *("typer", "rich", "matplotlib", "pyarrow", "psutil", "omnimalloc", "pandas", "polars"),
    *("highspy", "ortools", "lightgbm", "bokeh", "dask", "distributed", "timm", "transformers"),
    *("onnx", "onnxruntime", "tflite", "tflite_micro", "torch", "google.protobuf", "executorch"),
)


def files() -> list[Path]:
    """Return every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    """Return the room that a file belongs to: its folder, or its own name."""
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def is_for_types(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`, which imports nothing when the program runs."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those that are only for the type checker."""
    for child in ast.iter_child_nodes(node):
        if not is_for_types(child):
            yield child
            yield from running_nodes(child)


def imported(file: Path) -> Iterator[str]:
    """Yield the dotted names of all modules that a file imports, also inside of functions."""
    for node in running_nodes(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            if node.module == "memplan":
                yield from (f"memplan.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def rooms_imported(file: Path) -> set[str]:
    """Return the rooms that a file imports."""
    names = (name.split(".") for name in imported(file))
    return {parts[1] for parts in names if parts[0] == "memplan" and len(parts) > 1}


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_room_imports_only_what_it_may(file: Path) -> None:
    """Tests every file against the table."""
    room = room_of(file)
    assert room in MAY_IMPORT, f"{room} has no row in docs/architecture.md"
    drawn = {"view"} if file.relative_to(PACKAGE).as_posix() in DRAWN_BY else set()
    assert rooms_imported(file) <= MAY_IMPORT[room] | {room} | drawn


@pytest.mark.parametrize("file", DRAWN_BY)
def test_what_draws_is_imported_by_the_methods_that_do(file: str) -> None:
    """Tests that the one exception to the table is never at the top of a file."""
    top = ast.parse((PACKAGE / file).read_text()).body
    modules = [node.module or "" for node in top if isinstance(node, ast.ImportFrom)]
    assert {"memplan.problem", "memplan.buffer"} & set(modules)  # these are the imports
    assert not [module for module in modules if module.startswith("memplan.view")]


def test_the_table_and_the_page_name_the_same_rooms() -> None:
    """Tests that every room of the rules is on the page."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    missing = [room for room in MAY_IMPORT if f"{room}.py" not in page and f"{room}/" not in page]
    assert missing in ([], ["__main__"])


def test_few_files_know_the_native_module() -> None:
    """Tests that `_core` has one door in each room that needs it (and that its version is read)."""
    knows = {file.relative_to(PACKAGE) for file in files() if "_core" in rooms_imported(file)}
    solvers = {Path("solvers/native.py"), Path("solvers/backtracking.py")}
    assert knows == {Path("__init__.py"), Path("graph/steps.py")} | solvers


def test_shows_are_imported_by_those_who_show() -> None:
    """Tests that Typer and Rich are imported by cli, bench and what view writes to terminals."""
    terminal = [PACKAGE / "view" / name for name in ("sync.py", "terminal.py")]
    for file in files():
        tops = {name.split(".")[0] for name in imported(file)}
        if tops & {"typer", "rich"}:
            room = room_of(file)
            words = file.parent == PACKAGE / "view" / "words"
            assert room in ("cli", "bench") or file in terminal or words, file


def test_extras_are_imported_inside_of_functions() -> None:
    """Tests that a missing extra can only hurt who asks for it."""
    extras = {"matplotlib", "pyarrow", "psutil", "omnimalloc", "pandas", "polars"}
    extras |= {"highspy", "ortools", "lightgbm"}
    for file in files():
        for node in ast.parse(file.read_text()).body:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & extras, file


def test_importing_memplan_costs_numpy_and_the_native_module() -> None:
    """Tests that nothing that is for showing, for extras or for files is loaded."""
    unwanted = (*HEAVY, "memplan.cli", "memplan.view", "memplan.bench", "memplan.formats")
    program = f"import sys, memplan; print([m for m in {unwanted} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr


def test_the_core_knows_no_python() -> None:
    """Tests that core/ includes nothing of Python, and nothing of the bindings."""
    sources = [p for end in ("*.h", "*.cpp", "*.c") for p in (ROOT / "core").rglob(end)]
    assert len(sources) > 20
    for source in sources:
        includes = [line for line in source.read_text().splitlines() if line.startswith("#include")]
        for line in includes:
            assert not any(word in line.lower() for word in ("python", "nanobind", "numpy")), source
            assert "bindings" not in line, source


def test_public_headers_include_only_public_headers() -> None:
    """Tests that what is installed is complete by itself."""
    folder = ROOT / "core" / "include" / "memplan"
    for header in folder.glob("*.h"):
        for line in header.read_text().splitlines():
            if line.startswith('#include "'):
                name = line.split('"')[1]
                assert name.startswith("memplan/"), header
                assert (folder.parent / name).is_file(), f"{header} includes {name}"


def test_every_function_of_the_c_header_has_a_test() -> None:
    """Tests that no function of the C interface is declared and never called in `core/tests`."""
    core = ROOT / "core"
    header = (core / "include" / "memplan" / "c_api.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(re.findall(r"\b(memplan_\w+)\(", code))
    tests = "".join(each.read_text() for each in (core / "tests").glob("test_c_api*"))
    assert len(declared) > 25
    assert not {each for each in declared if not re.search(rf"\b{each}\b", tests)}
