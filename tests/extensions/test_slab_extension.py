"""Tests of memplan.extensions.slab.extension: built once, whole, or refused with a sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from compilers import can_build

pytest.importorskip("torch")

from memplan.base.errors import MemplanError
from memplan.extensions.slab import extension

pytestmark = pytest.mark.slow

MODULE = """
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "memplan_slab", nullptr, -1, nullptr,
                                 nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_memplan_slab() { return PyModule_Create(&definition); }
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a cache of its own, and sources that are built in no time."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "module.cpp").write_text(MODULE)
    monkeypatch.setattr(extension, "_SOURCES", tmp_path / "sources")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache"))
    extension.load.cache_clear()
    yield tmp_path / "cache"
    extension.load.cache_clear()


needs_compiler = pytest.mark.skipif(
    not can_build("c++", *extension._FLAGS) or sys.platform != "linux",
    reason="there is no C++ compiler",
)


@needs_compiler
def test_a_build_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the second process finds what the first has built, and that changes are built."""
    extension.load()
    (library,) = cache.glob("*/*.so")
    extension.load.cache_clear()
    monkeypatch.setenv("CXX", "false")  # every build fails from now on
    extension.load()
    assert list(cache.glob("*/*")) == [library]
    extension.load.cache_clear()
    (extension._SOURCES / "other.h").write_text("// something new\n")
    with pytest.raises(MemplanError, match="false could not build the slab"):
        extension.load()


@needs_compiler
def test_builds_at_the_same_time(cache: Path) -> None:
    """Tests that several builds at once all get a whole library."""

    def build(_: int) -> Any:
        return extension.load.__wrapped__()

    with ThreadPoolExecutor(3) as executor:
        built = list(executor.map(build, range(3)))
    assert [module.__name__ for module in built] == ["memplan_slab"] * 3
    assert len(list(cache.glob("*/*"))) == 1


def test_no_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the sentence names what to install."""
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MemplanError, match=r"no C\+\+ compiler no-such-compiler; install"):
        extension.load()


@needs_compiler
def test_a_build_that_fails(cache: Path) -> None:
    """Tests that the sentence says where the compiler's own words are."""
    (extension._SOURCES / "module.cpp").write_text("#error on purpose\n")
    with pytest.raises(MemplanError, match="could not build the slab") as caught:
        extension.load()
    log = Path(str(caught.value).split("see ")[1].split(";")[0])
    assert "on purpose" in log.read_text()
