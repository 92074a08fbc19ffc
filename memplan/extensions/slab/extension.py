"""Builds the allocator on first use, as it is C++ that depends on the installed PyTorch."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

import torch

from memplan.base.errors import MemplanError

__all__ = ["load"]

_NAME = "memplan_slab"
_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-DNDEBUG")


@functools.cache
def load() -> ModuleType:
    """Return the native module, and build it first if it is not in the cache.

    The cache is `TORCH_EXTENSIONS_DIR`, or PyTorch's own folder for extensions. Its keys are hashes
    of all inputs of a build, and a build is added whole or not at all, so that several processes
    may build at the same time. A `MemplanError` says what to do without a C++ compiler, if it
    fails, or if the cache cannot be written.
    """
    library = _find_folder() / f"{_NAME}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not library.exists():
        _build(library)
    spec = importlib.util.spec_from_file_location(_NAME, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _import_paths() -> ModuleType:
    """Return torch's module that knows its own paths.

    A build of torch for CUDA warns when it is imported where a compiler is and no device; the slab
    needs neither.
    """
    logger = logging.getLogger("torch.utils.cpp_extension")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return importlib.import_module("torch.utils.cpp_extension")
    finally:
        logger.setLevel(level)


def _list_sources() -> list[Path]:
    return sorted(_SOURCES.glob("*.cpp"))


def _find_folder() -> Path:
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or _import_paths().get_default_build_root()
    made_of = hashlib.sha256(f"{torch.__version__} {sys.version} {_FLAGS}".encode())
    for file in [*_list_sources(), *sorted(_SOURCES.glob("*.h"))]:
        made_of.update(file.name.encode() + file.read_bytes())
    return Path(root) / f"{_NAME}-{made_of.hexdigest()[:16]}"


def _build(library: Path) -> None:
    compiler = os.environ.get("CXX", "c++")
    if sys.platform != "linux":
        raise MemplanError("the slab of memplan.extensions.slab runs on Linux only")
    if shutil.which(compiler) is None:
        raise MemplanError(
            f"the slab is built on first use, and there is no C++ compiler {compiler}; install "
            "one (apt install g++, dnf install gcc-c++) or name it in CXX"
        )
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=library.parent)
    except OSError as error:
        raise MemplanError(
            f"the slab is built on first use, and {library.parent} cannot be written "
            f"({error.strerror}); name another folder in TORCH_EXTENSIONS_DIR"
        ) from None
    includes = [*_import_paths().include_paths(), sysconfig.get_path("include")]
    abi = int(torch.compiled_with_cxx11_abi())
    with folder as work:
        made = Path(work) / library.name
        command = [
            *(compiler, *_FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
            *(option for path in includes for option in ("-isystem", path)),
            *(str(source) for source in _list_sources()),
            *(f"-L{path}" for path in _import_paths().library_paths()),
            *("-lc10", "-ltorch_cpu", "-o", str(made)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            log = library.parent / "build.log"
            log.write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
            raise MemplanError(
                f"{compiler} could not build the slab, see {log}; it needs C++20 and the headers "
                "of Python (apt install g++ python3-dev)"
            )
        made.replace(library)
