"""Tests of the core as one C++ file, and of the adapters that use it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memplan
from memplan import Plan, Problem

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "core" / "tests"
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
CORE = [f"-I{ROOT / 'core' / folder}" for folder in ("include", "src")]
ADAPTERS = [f"-I{ROOT / folder}" for folder in ("examples/adapters", "tests/native/hosts")]
GRID = 64  # what the program of the adapters aligns and rounds to

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILERS, reason="needs g++ or clang++")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with memplan.h and memplan.cpp."""
    folder = tmp_path_factory.mktemp("onefile")
    subprocess.run([sys.executable, ROOT / "core" / "onefile.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Path:
    """Return the object of memplan.cpp, without exceptions and run-time types."""
    command = [COMPILERS[0], *STRICT, "-O1", "-c", "memplan.cpp"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "memplan.o"


def test_one_file_compiles_without_a_warning(folder: Path) -> None:
    """Tests that names do not clash, and that nothing needs exceptions or run-time types."""
    command = [COMPILERS[0], *STRICT, "-fsyntax-only", "memplan.cpp"]
    subprocess.run(command, check=True, cwd=folder)


@pytest.mark.deep
@pytest.mark.parametrize("bits", [64, 32])
def test_clang_finds_no_number_that_is_cut(folder: Path, bits: int) -> None:
    """Tests Clang's warnings, also of 64-bit numbers in 32 bits, where there is a C++ library."""
    flags = ["-std=c++17", f"-m{bits}", "-fsyntax-only"]
    if bits == 32:
        flags += ["-isystem", "/usr/include/x86_64-linux-gnu"]  # asm/ of the kernel, for Debian
    if "clang++" not in COMPILERS:
        pytest.skip("needs clang++")
    (folder / "probe.cpp").write_text("#include <system_error>\n")
    if subprocess.run(["clang++", *flags, "probe.cpp"], check=False, cwd=folder).returncode:
        pytest.skip(f"needs a C++ library of {bits} bits")
    warnings = ["-Wall", "-Wextra", "-Wshorten-64-to-32", "-Werror"]
    subprocess.run(["clang++", *flags, *warnings, "memplan.cpp"], check=True, cwd=folder)


@pytest.mark.deep
def test_one_file_passes_the_tests_of_the_c_api(folder: Path, compiled: Path) -> None:
    """Tests the C API with sentences for errors, though nothing can be thrown."""
    sources = [TESTS / "test_c_api.cpp", TESTS / "test_c_api_header.c"]
    for source, standard in zip(sources, ("c++17", "c99"), strict=True):
        language = ["-x", "c"] if standard == "c99" else []
        command = [COMPILERS[0], f"-std={standard}", *CORE, "-c", *language, source]
        subprocess.run(command, check=True, cwd=folder)
    objects = [folder / f"{source.stem}.o" for source in sources]
    program = folder / "test_c_api"
    command = [COMPILERS[0], *objects, compiled, "-o", program, "-pthread"]
    subprocess.run(command, check=True)
    run = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ", 0 failed" in run.stdout + run.stderr


def test_adapters_compile_as_their_hosts_do(folder: Path) -> None:
    """Tests each adapter against the interface of its host, without exceptions and warnings."""
    flags = [*STRICT, f"-I{folder}", *ADAPTERS, "-fsyntax-only"]
    program = ROOT / "tests" / "native" / "adapters.cpp"
    for compiler in COMPILERS:
        subprocess.run([compiler, *flags, program], check=True)


@pytest.mark.deep
def test_adapters_are_never_worse_than_their_hosts(folder: Path, compiled: Path) -> None:
    """Tests plans of 200 problems of the corpus, and prints how much less memory they need."""
    bench = pytest.importorskip("memplan_lab.bench")
    pytest.importorskip("pyarrow")
    program = folder / "adapters"
    source = ROOT / "tests" / "native" / "adapters.cpp"
    flags = [*STRICT, "-O2", f"-I{folder}", *ADAPTERS]
    subprocess.run([COMPILERS[0], *flags, source, compiled, "-o", program, "-pthread"], check=True)
    problems = [record.problem for record in bench.corpus().sample(200, seed=0)]
    rows = "".join(map(_as_rows, problems))
    run = subprocess.run([program], input=rows, check=True, capture_output=True, text=True)
    lines = run.stdout.splitlines()
    hosts = ("mlir", "iree", "tt_mlir", "onnx2c")
    assert len(lines) == len(hosts) * len(problems)
    sums: dict[str, list[tuple[int, int]]] = {}
    for at, line in enumerate(lines):
        figures, offsets = line.split(" :")
        host, *rules, peak = figures.split()
        assert host == hosts[at % 4]
        problem = problems[at // 4]
        size = problem.size if host in ("mlir", "onnx2c") else -(-problem.size // GRID) * GRID
        rounded = Problem.from_arrays(
            problem.start, problem.end, size, alignment=[GRID] * len(problem)
        )
        plan = Plan.of(rounded, [int(each) for each in offsets.split()])
        memplan.verify(rounded, plan)
        assert plan.peak <= int(peak)
        assert all(int(peak) <= int(rule) for rule in rules), (host, rules, peak)
        for number, rule in enumerate(rules):
            sums.setdefault(f"{host} rule {number + 1}", []).append((int(rule), int(peak)))
    for name, pairs in sums.items():
        less = sum(peak < rule for rule, peak in pairs)
        mean = sum(peak / rule for rule, peak in pairs if rule) / len(pairs)
        print(f"{name}: less in {less} of {len(pairs)}, mean ratio {mean:.4f}")


def _as_rows(problem: Problem) -> str:
    rows = zip(problem.start, problem.end, problem.size, strict=True)
    return f"{len(problem)}\n" + "".join(f"{start} {end} {size}\n" for start, end, size in rows)
