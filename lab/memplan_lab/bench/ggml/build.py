"""llama.cpp from the package index, with memplan behind its graph allocator, built in a folder.

The sources are those that the package `llama-cpp-python` ships. Two lines are added to its file
`ggml-alloc.c`, each behind a function that is found by its name.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from memplan.base.errors import MemplanError
from memplan_lab.extras import require

__all__ = ["build", "patch"]

_PACKAGE: Final = "llama-cpp-python"
_ROOT: Final = Path(__file__).resolve().parents[4]
# By function: the header that is included behind it.
_HEADERS: Final = {
    "ggml_dyn_tallocr_free_bytes": "ggml_blocks.h",
    "ggml_gallocr_alloc_graph_impl": "ggml_graph.h",
}


def build(folder: Path, sdist: Path | None = None, jobs: int = 1) -> tuple[Path, str]:
    """Build the program `run` (run.cpp), and return it with the version of the package."""
    if not (_ROOT / "examples" / "ggml").is_dir():
        raise MemplanError("this needs a clone of memplan, with the folder examples/ggml in it")
    require("gguf", extra="ggml")  # which writes networks, before the minutes that a build takes
    if shutil.which("cmake") is None:
        raise MemplanError("this needs CMake and a C++ compiler: pip install cmake")
    archive = sdist or _download(folder)
    sources = _unpack(archive, folder / "llama")
    file = sources / "ggml" / "src" / "ggml-alloc.c"
    text = file.read_text("utf-8")
    if "ggml_blocks.h" not in text:
        file.write_text(patch(text), "utf-8")
    onefile = folder / "onefile"
    _call([sys.executable, _ROOT / "core" / "onefile.py", onefile])
    made = folder / "build"
    ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
    given = {
        "CMAKE_BUILD_TYPE": "Release",
        "LLAMA": sources,
        "ONEFILE": onefile,
        "ADAPTER": _ROOT / "examples" / "ggml",
    }
    defined = [word for name, value in given.items() for word in ("-D", f"{name}={value}")]
    _call(["cmake", *ninja, "-S", Path(__file__).parent, "-B", made, *defined])
    _call(["cmake", "--build", made, "--target", "run", "--parallel", str(jobs)])
    return made / "run", archive.name.removesuffix(".tar.gz").replace("_", "-")


def patch(text: str) -> str:
    """Return the text of `ggml-alloc.c` with the two headers included."""
    for function, header in _HEADERS.items():
        body = re.compile(rf"^\w[^\n;]*\b{function}\([^;{{]*\)\s*\{{\n.*?^\}}\n", re.M | re.S)
        found = body.search(text)
        if found is None:
            raise MemplanError(f"ggml-alloc.c has no function {function}: another version of ggml?")
        text = f'{text[: found.end()]}\n#include "{header}"\n{text[found.end() :]}'
    return text


def _download(folder: Path) -> Path:
    pattern = "llama_cpp_python-*.tar.gz"
    if not list(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        _call([*pip, "--no-binary", _PACKAGE, "--dest", folder, _PACKAGE])
    return max(folder.glob(pattern))


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack what is built of llama.cpp, and return its folder."""
    if not folder.is_dir():
        inside = re.compile(
            r"[^/]+/vendor/llama\.cpp/(CMakeLists|LICENSE|(cmake|ggml|include|src|vendor)/)"
        )
        try:
            with tarfile.open(archive) as file:
                chosen = [each for each in file if inside.match(each.name)]
                file.extractall(folder, chosen, filter="data")
        except (OSError, tarfile.TarError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise MemplanError(f"{archive} cannot be unpacked: {error}") from None
    sources = list(folder.glob("*/vendor/llama.cpp"))
    if not sources:
        raise MemplanError(f"{archive} has no sources of llama.cpp in vendor/llama.cpp")
    return sources[0]


def _call(command: list[object]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise MemplanError(f"{words[0]} failed: " + " / ".join(last))
