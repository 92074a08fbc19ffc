"""Writes the core behind the C API as two files: memplan.h and memplan.cpp.

As a command (`python core/onefile.py FOLDER`, or `make onefile`). memplan.h is the header of the C
API. memplan.cpp has the standard headers, then our headers, each behind those that it includes, and
then the sources of the rooms that the C API reaches. Names in anonymous namespaces are unique in
the core, so that nothing has to be renamed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CORE = Path(__file__).parent
SOURCES = CORE / "src"
PUBLIC = CORE / "include"
C_API = PUBLIC / "memplan" / "c_api.h"
NOTICE = """\
/* memplan {version}, a static memory planner: {what}
 * Written by core/onefile.py from the sources of memplan. SPDX-License-Identifier: Apache-2.0 */
"""
BUILD = """\
// c++ -std=c++17 -O2 -ffp-contract=off -ffunction-sections -fdata-sections -pthread -c memplan.cpp
"""

_INCLUDE = re.compile(r'^ *#include ([<"])([^">]+)[">]', re.MULTILINE)


def write_onefile(folder: Path) -> tuple[Path, Path]:
    """Write memplan.h and memplan.cpp into a folder, which is made if it is not there."""
    text = (CORE.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.findall(r"project\(memplan VERSION ([\d.]+)", text)[0]
    folder.mkdir(parents=True, exist_ok=True)
    header, source = folder / "memplan.h", folder / "memplan.cpp"
    notice = NOTICE.format(version=version, what="its C API.")
    header.write_text(notice + C_API.read_text(encoding="utf-8"), encoding="utf-8")
    notice = NOTICE.format(version=version, what="what is behind memplan.h.")
    source.write_text(notice + BUILD + "".join(_parts()), encoding="utf-8")
    return header, source


def _parts() -> Iterator[str]:
    sources = _reached()
    headers = _headers_of(sources)
    headers.remove(C_API)
    texts = {path: _own_text(path) for path in [*headers, *sources]}
    standard = {name for _, names in texts.values() for name in names}
    yield '#include "memplan.h"\n\n'
    yield from (f"#include <{name}>\n" for name in sorted(standard))
    for path, (text, _) in texts.items():
        yield f"\n// ---- {path.relative_to(CORE).as_posix()}\n{text}"


def _reached() -> list[Path]:
    """Return the sources of all rooms that the C API includes headers of, on whatever way."""
    rooms = [SOURCES / "c_api"]
    for room in rooms:
        headers = _headers_of([*room.glob("*.cpp"), *room.glob("*.h")])
        rooms += sorted({home for header in headers for home in _homes(header)}.difference(rooms))
    return sorted(path for room in rooms for path in room.glob("*.cpp"))


@cache
def _homes(header: Path) -> set[Path]:
    """Return the room of a header, or the rooms that implement a public one, by their names."""
    if SOURCES in header.parents:
        return {header.parent}
    return {
        path.parent
        for path in SOURCES.rglob("*.cpp")
        if header.stem in (path.stem, path.parent.name) and header in _includes(path)
    }


def _headers_of(paths: list[Path]) -> list[Path]:
    """Return all our headers that files include, each behind those that it includes itself."""
    found: dict[Path, None] = {}

    def visit(path: Path) -> None:
        for header in _includes(path):
            if header not in found:
                visit(header)
                found[header] = None

    for path in sorted(paths):
        visit(path)
    return list(found)


@cache
def _includes(path: Path) -> list[Path]:
    """Return our headers that a file includes."""
    names = [name for _, name in _INCLUDE.findall(path.read_text(encoding="utf-8"))]
    found = (folder / name for name in names for folder in (SOURCES, PUBLIC))
    return [header for header in found if header.is_file()]


def _own_text(path: Path) -> tuple[str, list[str]]:
    """Return the text without its includes, and the names of its standard headers."""
    lines, standard, depth = [], [], 0
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        depth += line.startswith("#if") - line.startswith("#endif")
        include = _INCLUDE.match(line)
        if include and (include[1] == '"' or depth == 0):
            standard += [include[2]] if include[1] == "<" else []
        elif line.strip() != "#pragma once":
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "".join(lines)).lstrip("\n"), standard


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python core/onefile.py FOLDER")
    for written in write_onefile(Path(sys.argv[1])):
        print(f"{written}: {written.stat().st_size:,} bytes")
