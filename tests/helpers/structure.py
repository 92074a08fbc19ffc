"""The rooms of the code, counted: what each includes of others, floors and cycles.

As a command (`python tests/helpers/structure.py`), it prints a line for each part of the project;
with `--arrows` also the lines of each room, and what it imports.
A room is a folder, or a file next to the folders. An arrow goes from one room to another
of which it imports something when the program runs. A room that imports none is on floor 1, any
other one above the highest that it imports; rooms that import each other are on one floor.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "src"
PUBLIC = ROOT / "core" / "include" / "memplan"
PUBLISHED = ROOT / "core" / "published"

# Public headers without a file of their name, and the rooms that they speak for.
SPEAKS_FOR = {
    "types": "util",
    "minimalloc_compat": "compat",
    "option": "model",
    "round": "model",
    "policy": "published/telamalloc",
    "published": "published/solvers",
    "c_api_published": "published/c_api",
    "repacker": "repack",
}

Arrows = dict[str, set[str]]


@dataclass(frozen=True)
class Structure:
    """What the rooms of one part of the repository import of each other."""

    arrows: Arrows
    files: int
    sizes: dict[str, int]  # lines by room

    @property
    def lines(self) -> int:
        """The lines of all rooms."""
        return sum(self.sizes.values())

    @property
    def rooms(self) -> int:
        """The number of rooms."""
        return len(self.arrows)

    @property
    def count(self) -> int:
        """The number of arrows between rooms."""
        return sum(len(others) for others in self.arrows.values())

    @property
    def cycles(self) -> list[list[str]]:
        """The sets of rooms that import each other, on whatever way."""
        return find_cycles(self.arrows)

    @property
    def floors(self) -> int:
        """The number of floors."""
        floor_of: dict[str, int] = {}
        reached = {room: reachable(self.arrows, room) for room in self.arrows}

        def floor(room: str) -> int:
            if room not in floor_of:
                below = {each for each in reached[room] if room not in reached[each]}
                floor_of[room] = 1 + max((floor(each) for each in below - {room}), default=0)
            return floor_of[room]

        return max((floor(room) for room in self.arrows), default=0)


def reachable(arrows: Arrows, room: str) -> set[str]:
    """Return the rooms that one or more arrows lead to; the room itself only along a cycle."""
    reached: set[str] = set()
    ahead = list(arrows[room])
    while ahead:
        at = ahead.pop()
        if at not in reached:
            reached.add(at)
            ahead.extend(arrows[at])
    return reached


def find_cycles(arrows: Arrows) -> list[list[str]]:
    """Return the sets of rooms, or of files, that import each other, on whatever way."""
    reached = {room: reachable(arrows, room) for room in arrows}
    together = {
        frozenset(other for other in reached[room] if room in reached[other])
        for room in arrows
        if room in reached[room]
    }
    return sorted(sorted(each) for each in together)


def measure(
    files: Iterable[Path],
    room_of: Callable[[Path], str],
    rooms_imported: Callable[[Path], set[str]],
) -> Structure:
    """Return the structure of these files.

    Parameters
    ----------
    files
        The files to read.
    room_of
        The room that a file belongs to.
    rooms_imported
        The rooms that a file imports; others than those of the files are left out.
    """
    every = list(files)
    arrows: Arrows = defaultdict(set)
    sizes: dict[str, int] = defaultdict(int)
    for file in every:
        arrows[room_of(file)] |= rooms_imported(file)
        sizes[room_of(file)] += len(file.read_text().splitlines())
    inside = {room: (others & set(arrows)) - {room} for room, others in arrows.items()}
    return Structure(inside, len(every), dict(sizes))


# ---- Python


def is_for_types(node: ast.AST) -> bool:
    """Return whether this is `if TYPE_CHECKING:`, which imports nothing when the program runs."""
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


@cache
def imports_of(file: Path, types: bool = False) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of a file, if asked with those that are only for the type checker.

    Each file is parsed once for all that is asked of it.
    """
    tree = ast.parse(file.read_text())
    nodes = ast.walk(tree) if types else running_nodes(tree)
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(file: Path, package: str, types: bool = False) -> Iterator[str]:
    """Yield the dotted names of all modules that a file imports, also inside of functions.

    A name imported from the package itself (`from memplan import plan`) may be that of a module.
    """
    for node in imports_of(file, types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{file.name}: imports are absolute"
            if node.module == package:
                yield from (f"{package}.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def python_files(package: Path) -> list[Path]:
    """Return every Python file of a package."""
    return sorted(package.rglob("*.py"))


def python_room(package: Path, file: Path) -> str:
    """Return the room that a file of a package belongs to: its folder, or its own name."""
    return file.relative_to(package).parts[0].removesuffix(".py")


def python_rooms_imported(package: str, file: Path, types: bool = False) -> set[str]:
    """Return the rooms of a package that a file imports, which need not be one of its own."""
    names = (name.split(".") for name in imported(file, package, types))
    return {parts[1] for parts in names if parts[0] == package and len(parts) > 1}


def python_file_arrows(package: Path) -> Arrows:
    """Return which files of a package import which, also inside of functions, by dotted name."""
    names = {}
    for file in python_files(package):
        dotted = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        names[dotted.removesuffix(".__init__")] = file
    arrows: Arrows = {}
    for name, file in names.items():
        arrows[name] = set()
        for node in imports_of(file):
            if isinstance(node, ast.Import):
                arrows[name].update(alias.name for alias in node.names if alias.name in names)
            elif node.module in names:
                full = (f"{node.module}.{alias.name}" for alias in node.names)
                arrows[name] |= {each if each in names else node.module for each in full}
        arrows[name].discard(package.name)  # the public names, each found where it is
    return arrows


def python_structure(package: Path, types: bool = False) -> Structure:
    """Return the structure of a Python package, if asked with what is only for the type checker."""
    return measure(
        python_files(package),
        lambda file: python_room(package, file),
        lambda file: python_rooms_imported(package.name, file, types),
    )


# ---- C++


def core_files() -> list[Path]:
    """Return every file of the core, with the public headers and without the tests."""
    return sorted(
        file
        for folder in (CORE, PUBLIC, PUBLISHED)
        for file in folder.rglob("*")
        if file.suffix in (".h", ".cpp")
    )


def included(file: Path) -> list[str]:
    """Return the names of all headers that a file includes in quotes."""
    return re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE)


def public_room(name: str) -> str:
    """Return the room that a public header speaks for: that of its name, or of its source."""
    if name in SPEAKS_FOR:
        return SPEAKS_FOR[name]
    sources = [file.relative_to(CORE) for file in CORE.rglob("*.cpp")]
    sources += [file.relative_to(PUBLISHED.parent) for file in PUBLISHED.rglob("*.cpp")]
    folders = {file.parent.as_posix() for file in sources}
    own = {name} & folders or {each for each in folders if each.endswith(f"/{name}")}
    rooms = own or {file.parent.as_posix() for file in sources if file.stem == name}
    assert len(rooms) == 1, f"memplan/{name}.h speaks for one room, not {len(rooms)}: {rooms}"
    return rooms.pop()


def core_room(name: str) -> str:
    """Return the room of a file of the core, by the name under which others include it."""
    folder, _, last = name.rpartition("/")
    if folder == "memplan":
        return public_room(last.removesuffix(".h"))
    return folder or last.partition(".")[0]


def core_room_of(file: Path) -> str:
    """Return the room that a file of the core belongs to."""
    bases = (CORE, PUBLIC.parent, PUBLISHED / "include", PUBLISHED.parent)
    base = next(each for each in bases if file.is_relative_to(each))
    return core_room(file.relative_to(base).as_posix())


def core_structure() -> Structure:
    """Return the structure of the C++ core."""
    return measure(core_files(), core_room_of, lambda file: set(map(core_room, included(file))))


# ---- the command


def show(name: str, structure: Structure) -> None:
    """Print one line of the table, and a line for each cycle."""
    figures = (structure.rooms, structure.floors, structure.count, len(structure.cycles))
    sizes = (structure.files, structure.lines)
    print(f"{name:<18}" + "".join(f"{figure:>8}" for figure in (*figures, *sizes)))
    for cycle in structure.cycles:
        print("    cycle: " + ", ".join(cycle))


def main() -> None:
    """Print the table; with `--arrows` also how large each room is, and what it imports."""
    parts = {"memplan": python_structure(ROOT / "memplan")}
    if (ROOT / "lab" / "memplan_lab").is_dir():
        parts["lab"] = python_structure(ROOT / "lab" / "memplan_lab")
    parts["core"] = core_structure()
    heads = ("rooms", "floors", "arrows", "cycles", "files", "lines")
    print(f"{'':<18}" + "".join(f"{head:>8}" for head in heads))
    for name, structure in parts.items():
        show(name, structure)
    if "--arrows" in sys.argv[1:]:
        for name, structure in parts.items():
            for room, others in sorted(structure.arrows.items()):
                size = structure.sizes[room]
                print(f"{name}: {room} ({size:,}) -> {' '.join(sorted(others)) or '-'}")


if __name__ == "__main__":
    main()
