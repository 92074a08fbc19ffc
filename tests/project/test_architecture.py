"""Tests that the imports keep to the table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TypeGuard

import pytest
import structure

import memplan

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memplan"
LAB = ROOT / "lab" / "memplan_lab"
ROW = re.compile(r"\| `(\w+)/?` \| [^|]+ \| [\d,]+ \| ([^|]+) \|")


def rules(heading: str) -> dict[str, frozenset[str]]:
    """Return what each room may import, by a table of docs/architecture.md."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    head = f"| {heading} | holds | lines, at most | may import |"
    table = page.partition(head)[2].partition("\n\n")[0]
    found = (ROW.match(line) for line in table.splitlines()[2:])
    rows = [row.groups() for row in found if row]
    assert len(rows) == len(table.splitlines()) - 2, "a row that is not of the form of the others"
    return {room: frozenset(re.findall(r"\w+", may)) for room, may in rows}


MAY_IMPORT = rules("room")
LAB_MAY_IMPORT = rules("room of the laboratory")

HEAVY = (
    *("typer", "rich", "matplotlib", "pyarrow", "psutil", "omnimalloc", "pandas", "polars"),
    *("highspy", "ortools", "lightgbm", "bokeh", "dask", "distributed", "timm", "transformers"),
    *("onnx", "onnxruntime", "tflite", "tflite_micro", "torch", "google.protobuf", "executorch"),
    "tinygrad",
)


def files(package: Path = PACKAGE) -> list[Path]:
    """Return every Python file of a package."""
    return structure.python_files(package)


def room_of(file: Path, package: Path = PACKAGE) -> str:
    """Return the room that a file belongs to: its folder, or its own name."""
    return structure.python_room(package, file)


def rooms_imported(file: Path, package: str = "memplan") -> set[str]:
    """Return the rooms of a package that a file imports."""
    return structure.python_rooms_imported(package, file)


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_room_imports_only_what_it_may(file: Path) -> None:
    """Tests every file against the table."""
    room = room_of(file)
    assert room in MAY_IMPORT, f"{room} has no row in docs/architecture.md"
    public = {*memplan.__all__} if room == "extensions" else set()
    assert rooms_imported(file) - public <= MAY_IMPORT[room] | {room}
    assert not rooms_imported(file, "memplan_lab")


@pytest.mark.parametrize("file", files(LAB), ids=lambda file: str(file.relative_to(LAB)))
def test_a_room_of_the_laboratory_imports_only_what_it_may(file: Path) -> None:
    """Tests every file against the table."""
    room = room_of(file, LAB)
    if room == "__init__":
        assert not list(structure.imported(file, "memplan_lab"))
        return
    assert room in LAB_MAY_IMPORT, f"{room} has no row in docs/architecture.md"
    assert rooms_imported(file, "memplan_lab") <= LAB_MAY_IMPORT[room] | {room}
    assert "memplan" in LAB_MAY_IMPORT[room] or not rooms_imported(file)
    assert room == "cli" or "cli" not in rooms_imported(file)


@pytest.mark.parametrize("table", [MAY_IMPORT, LAB_MAY_IMPORT], ids=["memplan", "laboratory"])
def test_the_tables_go_one_way(table: dict[str, frozenset[str]]) -> None:
    """Tests that a room may import only rooms above it, so that there is no circle."""
    above = {"_core", "_published", "memplan"}
    for room, may in table.items():
        assert may <= above | ({"cli"} if room == "__main__" else set()), room
        above.add(room)


def test_the_tables_allow_nothing_that_is_not_used() -> None:
    """Tests that every import that a row allows is made, but by the command line."""
    for package, table in ((PACKAGE, MAY_IMPORT), (LAB, LAB_MAY_IMPORT)):
        used: dict[str, set[str]] = {room: set() for room in table}
        for file in files(package):
            room = room_of(file, package)
            used.setdefault(room, set()).update(rooms_imported(file, package.name))
            if rooms_imported(file) and package is LAB:
                used[room].add("memplan")
        for room in table.keys() - {"cli", "__init__"}:
            assert table[room] <= used[room], room
        assert used.keys() - {"__init__"} <= table.keys()


def test_rooms_stand_on_few_floors_without_a_circle() -> None:
    """Tests that no rooms import each other, also inside of functions or for the type checker."""
    found = structure.python_structure(PACKAGE)
    assert found.cycles == structure.python_structure(PACKAGE, types=True).cycles == []
    assert (found.rooms <= 20, found.floors <= 8, found.count <= 110) == (True, True, True)


# By part of the project: the beginning of its table of rooms, and what is counted.
PARTS = {
    "memplan": ("| room |", lambda: structure.python_structure(PACKAGE)),
    "laboratory": ("| room of the laboratory |", lambda: structure.python_structure(LAB)),
    "core": ("| floor |", structure.core_structure),
}


@pytest.mark.parametrize("part", PARTS)
def test_rooms_keep_to_their_budgets(part: str) -> None:
    """Tests that a room has at most the lines that the page gives it."""
    head, count = PARTS[part]
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition(f"\n{head}")[2].partition("\n\n")[0]
    rows = re.findall(r"^\|.*?`([\w/]+?)/?` \|.* \| ([\d,]+) \|", table, re.MULTILINE)
    most = {room: int(lines.replace(",", "")) for room, lines in rows}
    sizes = count().sizes
    assert most.keys() == sizes.keys() - ({"__init__"} if part == "laboratory" else set())
    over = [
        f"{room} of {part} has {sizes[room]:,} lines, and docs/architecture.md gives it "
        f"{most[room]:,}: look for what it says twice, for what a room below it has already, and "
        "for what belongs into another room. If what came in is worth its lines, raise the number "
        "in the same commit, whose message says what users get for them."
        for room in most
        if sizes[room] > most[room]
    ]
    assert not over, "\n".join(over)


def test_no_files_import_each_other() -> None:
    """Tests that no file is needed by one that it needs itself, also inside of functions."""
    assert structure.find_cycles(structure.python_file_arrows(PACKAGE)) == []


def test_one_place_installs_what_draws() -> None:
    """Tests that a lower room reaches a higher one only through `memplan.base.drawing`."""
    installs = [file for file in files() if "install_artist" in file.read_text()]
    assert installs == [PACKAGE / "__init__.py", PACKAGE / "base" / "drawing.py"]


def test_modules_of_higher_rooms_are_named_as_text_in_two_tables() -> None:
    """Tests that nothing is imported by its name around the table but public names and formats."""
    names = {}
    for file in files():
        text = (node.value for node in ast.walk(ast.parse(file.read_text())) if is_text(node))
        found = (re.fullmatch(r"memplan\.(\w+)[\w.]*", each) for each in text)
        rooms = {each[1] for each in found if each and each[1] in MAY_IMPORT}
        names[file] = rooms - MAY_IMPORT[room_of(file)] - {room_of(file)}
    tables = {PACKAGE / "__init__.py", PACKAGE / "programs" / "sources" / "registry.py"}
    assert {file for file in names if names[file]} == tables
    assert names[PACKAGE / "programs" / "sources" / "registry.py"] == {"runtimes", "extensions"}


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    """Return whether a node is a text."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# What extensions import beside `memplan` itself (docs/extending.md): of these rooms and modules no
# private names, and the two that run in PyTorch its runtime, chips that of TFLM, and the two of
# searches the native doors.
DOORS = ("base", "problem", "programs", "referee", "levers.writers", "solvers.registry")
OWN_DOORS = {
    "boards": ("runtimes.tflm",),
    "slab": ("runtimes.torch",),
    "streams": ("runtimes.torch",),
    "published": ("solvers.native", "_published"),
    "minimalloc": ("_core",),
}


@pytest.mark.parametrize(
    "file", files(PACKAGE / "extensions"), ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_an_extension_imports_public_names(file: Path) -> None:
    """Tests that no extension needs what may change without notice, nor another extension."""
    own = room_of(file, PACKAGE / "extensions")
    doors = (*DOORS, *OWN_DOORS.get(own, ()), f"extensions.{own}")
    for node in structure.imports_of(file):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "memplan":
            continue
        names = [each.name for each in node.names]
        if node.module == "memplan":
            assert {*names} <= {*memplan.__all__, *OWN_DOORS.get(own, ())}, names
            continue
        module = (node.module or "").removeprefix("memplan.")
        for full in (f"{module}.{name}." for name in names):
            assert any(full.startswith(f"{door}.") for door in doors), full
        assert own in module or not any(part.startswith("_") for part in module.split(".")), module
        assert own in module or not any(name.startswith("_") for name in names), names


def test_few_files_know_the_native_module() -> None:
    """Tests that `_core` has one door in each room that needs it (and that its version is read)."""
    knows = {file.relative_to(PACKAGE) for file in files() if "_core" in rooms_imported(file)}
    solvers = {Path("solvers/native.py")}
    programs = {
        *(Path("programs/graph/steps.py"), Path("levers/rewrite/order.py")),
        Path("levers/rewrite/again/native.py"),
        Path("machine/memories/search.py"),
        Path("extensions/minimalloc.py"),
    }
    assert knows == {Path("__init__.py")} | programs | solvers


def test_only_extensions_know_the_published_searches() -> None:
    """Tests that what is left out with `_published` is asked for inside of a function elsewhere."""
    knows = {file for file in files() if "_published" in rooms_imported(file)}
    folder, other = PACKAGE / "extensions" / "published", PACKAGE / "extensions" / "minimalloc.py"
    assert {file for file in knows if file.parent != folder} == {other}
    top = (node for node in ast.parse(other.read_text()).body if isinstance(node, ast.Import))
    assert not [node for node in top if "_published" in ast.unparse(node)]


def test_shows_are_imported_by_those_who_show() -> None:
    """Tests that Typer and Rich are imported by cli and what view writes to terminals."""
    terminal = [PACKAGE / "view" / name for name in ("reports.py", "sync.py", "terminal.py")]
    for file in files():
        tops = {name.split(".")[0] for name in structure.imported(file, PACKAGE.name)}
        if tops & {"typer", "rich"}:
            room = room_of(file)
            words = file.parent == PACKAGE / "view" / "words"
            assert room == "cli" or file in terminal or words, file


def test_extras_are_imported_inside_of_functions() -> None:
    """Tests that a missing extra only matters to a user who asks for it."""
    extras = {"matplotlib", "pyarrow", "psutil", "omnimalloc", "pandas", "polars"}
    extras |= {"highspy", "ortools", "lightgbm"}
    for file in files() + files(LAB):
        for node in ast.parse(file.read_text()).body:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & extras, file


def test_importing_memplan_costs_numpy_and_the_native_module() -> None:
    """Tests that nothing that is for showing, for extras or for files is loaded."""
    rooms = ("memplan.cli", "memplan.view", "memplan_lab.bench", "memplan.problem.formats")
    unwanted = (*HEAVY, *rooms)
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


def core_floors() -> dict[str, int]:
    """Return the floor of every room of the core, as the page has them."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d) \| `([a-z_/]+)/` \|", page, re.MULTILINE)
    return {room: int(floor) for floor, room in rows}


def test_the_page_has_every_room_of_the_core() -> None:
    """Tests that a room of the core has a floor, and that no file lies outside of the rooms."""
    assert set(core_floors()) == set(structure.core_structure().arrows)


def test_no_include_of_the_core_runs_upwards() -> None:
    """Tests that a room includes rooms of lower floors alone, so that none include each other."""
    floors = core_floors()
    arrows = structure.core_structure().arrows
    upwards = [
        f"{room} (floor {floors[room]}) includes {other} (floor {floors[other]})"
        for room, others in arrows.items()
        for other in others
        if floors[other] >= floors[room]
    ]
    assert not upwards


def test_the_core_knows_no_published_search() -> None:
    """Tests that no file of the core includes one, so that none can rely on it."""
    knows = {
        file.relative_to(ROOT / "core").as_posix()
        for file in structure.core_files()
        if not structure.core_room_of(file).startswith("published/")
        and any(
            structure.core_room(name).startswith("published/") for name in structure.included(file)
        )
    }
    assert not knows


def test_public_headers_include_only_public_headers() -> None:
    """Tests that what is installed is complete by itself."""
    core = ROOT / "core" / "include"
    published = ROOT / "core" / "published" / "include"
    for folders in ([core], [published, core]):
        for header in folders[0].glob("memplan/*.h"):
            for name in structure.included(header):
                assert name.startswith("memplan/"), header
                assert any((each / name).is_file() for each in folders), f"{header}: {name}"


def test_every_function_of_the_c_header_has_a_test() -> None:
    """Tests that no function of the C interface is declared and never called in `core/tests`."""
    core = ROOT / "core"
    own, added = core / "include", core / "published" / "include"
    headers = [own / "memplan" / "c_api.h", added / "memplan" / "c_api_published.h"]
    header = "".join(each.read_text() for each in headers)
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(re.findall(r"\b(memplan_\w+)\(", code))
    tests = "".join(each.read_text() for each in (core / "tests").glob("test_*"))
    assert len(declared) > 25
    assert not {each for each in declared if not re.search(rf"\b{each}\b", tests)}
