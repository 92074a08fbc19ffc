"""Tests of the core as one C++ file, and of the adapters that use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compilers import list_compilers, require_compiler

import memplan
from memplan import Plan, Problem

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "core" / "tests"
COMPILERS = list_compilers("g++", "clang++", flags=["-std=c++17"])
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
CORE = [f"-I{ROOT / 'core' / folder}" for folder in ("include", "src")]
ADAPTERS = [f"-I{ROOT / folder}" for folder in ("examples/adapters", "tests/native/hosts")]
HOSTS = ("mlir", "iree", "tt_mlir", "onnx2c")
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
    clang = require_compiler("clang++", flags=flags)
    warnings = ["-Wall", "-Wextra", "-Wshorten-64-to-32", "-Werror"]
    subprocess.run([clang, *flags, *warnings, "memplan.cpp"], check=True, cwd=folder)


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
    said = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ", 0 failed" in said.stdout + said.stderr


def test_adapters_compile_as_their_hosts_do(folder: Path) -> None:
    """Tests each adapter against the interface of its host, without exceptions and warnings."""
    flags = [*STRICT, f"-I{folder}", *ADAPTERS, "-fsyntax-only"]
    program = ROOT / "tests" / "native" / "adapters.cpp"
    for compiler in COMPILERS:
        subprocess.run([compiler, *flags, program], check=True)


@pytest.fixture(scope="module")
def adapters(folder: Path, compiled: Path) -> Path:
    """Return the program that runs all adapters on problems."""
    source = ROOT / "tests" / "native" / "adapters.cpp"
    flags = [*STRICT, "-O2", f"-I{folder}", *ADAPTERS]
    command = [COMPILERS[0], *flags, source, compiled, "-o", "adapters", "-pthread"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "adapters"


def run(program: Path, problems: list[Problem], *words: str) -> str:
    """Return what the program says of the problems."""
    rows = ""
    for each in problems:
        columns = zip(each.start, each.end, each.size, strict=True)
        rows += f"{len(each)}\n" + "".join(f"{a} {b} {size}\n" for a, b, size in columns)
    command = [program, *words]
    return subprocess.run(command, input=rows, check=True, capture_output=True, text=True).stdout


def test_what_is_behind_ggml_compiles_without_a_warning(folder: Path) -> None:
    """Tests that it needs no exceptions; core/tests replays lists with it."""
    source = ROOT / "examples" / "ggml" / "memplan_ggml.cpp"
    for compiler in COMPILERS:
        command = [compiler, *STRICT, f"-I{folder}", "-fsyntax-only", source]
        subprocess.run(command, check=True)


@pytest.mark.deep
def test_adapters_are_never_worse_than_their_hosts(adapters: Path) -> None:
    """Tests plans of 200 problems of the corpus, and prints how much less memory they need."""
    bench = pytest.importorskip("memplan_lab.bench")
    pytest.importorskip("pyarrow")
    problems = [record.problem for record in bench.corpus().sample(200, seed=0)]
    lines = run(adapters, problems).splitlines()
    assert len(lines) == len(HOSTS) * len(problems)
    results: dict[str, list[tuple[int, int, int]]] = {}
    for at, line in enumerate(lines):
        figures, offsets = line.split(" :")
        host, *rules, peak, microseconds = figures.split()
        assert host == HOSTS[at % 4]
        problem = problems[at // 4]
        size = problem.size if host in ("mlir", "onnx2c") else -(-problem.size // GRID) * GRID
        grid = [GRID] * len(problem)
        aligned = Problem.from_arrays(problem.start, problem.end, size, alignment=grid)
        plan = Plan.of(aligned, [int(each) for each in offsets.split()])
        memplan.verify(aligned, plan)
        assert plan.peak <= int(peak)
        assert all(int(peak) <= int(rule) for rule in rules), (host, rules, peak)
        for number, rule in enumerate(rules):
            row = (int(rule), int(peak), int(microseconds))
            results.setdefault(f"{host}, rule {number + 1}", []).append(row)
    for name, rows in results.items():
        less = sum(peak < rule for rule, peak, _ in rows)
        ratio = sum(peak / rule for rule, peak, _ in rows) / len(rows)
        cpu = sum(microseconds for _, _, microseconds in rows) / len(rows) / 1000
        print(f"{name}: less in {less} of {len(rows)}, mean {ratio:.4f}, {cpu:.2f} ms of CPU")


@pytest.mark.deep
def test_a_union_of_onnx2c_has_each_tensor_at_its_offset(
    adapters: Path, five: Problem, tmp_path: Path
) -> None:
    """Tests the C of a union, by what a compiler of C says of its members."""
    offsets = run(adapters, [five]).splitlines()[-1].split(" :")[1].split()
    lines = ["#include <stddef.h>", run(adapters, [five], "union")]
    for number, offset in enumerate(offsets):
        place = f"offsetof(union tensor_union_0, tensor_{number})"
        lines.append(f'_Static_assert({place} == {offset}, "");')
    lines.append("int main(void) { return tu0.tensor_0[0]; }")
    (tmp_path / "union.c").write_text("\n".join(lines))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    command = [require_compiler("gcc", "clang", flags=flags), *flags]
    subprocess.run([*command, "union.c"], check=True, cwd=tmp_path)


def _as_rows(problem: Problem) -> str:
    rows = zip(problem.start, problem.end, problem.size, strict=True)
    return f"{len(problem)}\n" + "".join(f"{start} {end} {size}\n" for start, end, size in rows)
