"""Tests that a C function makes the plan of every size that memplan has."""

from __future__ import annotations

import random
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from compilers import list_compilers, require_compiler

import memplan as mp
from memplan.cli import main
from memplan.envelopes import Envelope
from memplan.errors import MemplanError
from memplan.problem import Buffer, Problem
from memplan.targets.c_sizes import write_sizes_header

MODEL = Path(__file__).parents[2] / "examples" / "models" / "branches.onnx"
pytestmark = pytest.mark.slow

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
LANGUAGES = [("-std=c99", "-x", "c"), ("-std=c++17", "-x", "c++")]
COMPILERS = list_compilers("gcc", "clang")
RUN = """
#include "plan.h"
#include <stdio.h>
int main(void) {{
  uint64_t at[PLAN_BUFFER_COUNT];
  for (unsigned a = {0}; a <= {1}; ++a) {{
    for (unsigned b = {2}; b <= {3}; ++b) {{
      printf("%.0f", (double)plan_plan(a, b, at));
      for (int k = 0; k < PLAN_BUFFER_COUNT; ++k) printf(" %.0f", (double)at[k]);
      puts("");
    }}
  }}
  return plan_plan({1} + 1, {3}, at) == PLAN_NO_SIZE && PLAN_LARGEST <= PLAN_FIXED ? 0 : 1;
}}
"""

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def run_c(
    folder: Path, found: Envelope, compiler: str, language: tuple[str, ...]
) -> list[list[int]]:
    """Return what the function says of every size: the bytes, and the offsets."""
    (folder / "plan.h").write_text(write_sizes_header(found))
    a, b = found.range.axes
    (folder / "run.c").write_text(RUN.format(a[0], a[-1], b[0], b[-1]))
    require_compiler(compiler, flags=language)
    command = [compiler, *STRICT, *language, "run.c", "-o", "run"]
    subprocess.run(command, cwd=folder, check=True)
    out = subprocess.run([folder / "run"], check=True, capture_output=True, text=True).stdout
    return [list(map(int, line.split())) for line in out.splitlines()]


def draw(source: random.Random) -> Problem:
    """Return sizes as polynomials of two dimensions, two numbers of a problem each."""
    rows = []
    for number in range(source.randint(2, 9)):
        start = source.randint(0, 5)
        rows.append(Buffer(f"b{number}", start, start + source.randint(1, 4), 0))
    return Problem(rows)


@needs_compiler
@pytest.mark.parametrize("language", LANGUAGES, ids=["C", "C++"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_function_is_exact_at_every_size(
    tmp_path: Path, compiler: str, language: tuple[str, ...]
) -> None:
    """Tests random programs, whose peaks often need several plans, at each of their sizes."""
    source, layers = random.Random(4), 0
    for _ in range(4):
        lives = draw(source)
        draws = [source.choice((0, 1, 3, 40)) for _ in range(4 * len(lives))]
        terms = np.array(draws).reshape(-1, 4)
        units = [source.choice((1, 4, 16)) for _ in range(len(lives))]

        def program(a: int, b: int) -> Problem:
            sizes = terms @ np.array([1, a, b * (b + 1) // 2, a * b])  # noqa: B023 (used here)
            rows = zip(lives.buffers, sizes.tolist(), units, strict=True)  # noqa: B023
            return Problem(Buffer(b.id, b.start, b.end, size, unit) for b, size, unit in rows)

        found = mp.envelope(program, {"a": range(1, 8), "b": range(9)})
        layers += len(found.layers)
        made = run_c(tmp_path, found, compiler, language)
        for (a, b), (peak, *offsets) in zip(product(range(1, 8), range(9)), made, strict=True):
            plan = found.plan_at(a=a, b=b)
            assert plan.offsets is not None
            assert (peak, offsets) == (plan.peak, plan.offsets.tolist())
    assert layers > 4


@needs_compiler
def test_remainders_have_polynomials_of_their_own(tmp_path: Path) -> None:
    """Tests pictures that are halved and rounded up, and sizes that are left out."""

    def program(a: int, b: int) -> Problem:
        half, quarter = -(-b // 2), -(-b // 4)
        sizes = (3 * b, 16 * half * half, 40 * quarter, half * (half + 1) // 2)
        return Problem(Buffer(str(at), at, at + 2, a * size) for at, size in enumerate(sizes))

    found = mp.envelope(program, {"a": range(1, 9), "b": "1:160"})
    assert "remainder of 4" in found.how
    made = run_c(tmp_path, found, COMPILERS[0], LANGUAGES[0])
    assert [peak for peak, *_ in made] == found.peaks.tolist()
    odd = mp.envelope(program, {"a": "1:40", "b": "1:159:2"})
    steps = run_c(tmp_path, odd, COMPILERS[0], LANGUAGES[0])
    peaks = np.array([peak for peak, *_ in steps], np.float64).reshape(40, 159)
    assert (peaks[:, ::2] == odd.peaks.reshape(40, 80)).all()
    assert (peaks[:, 1::2] == 2.0**64).all()


@needs_compiler
def test_the_command_writes_a_header(tmp_path: Path) -> None:
    """Tests the header of a model."""
    pytest.importorskip("onnx")
    out = tmp_path / "net.h"
    assert main(["envelope", str(MODEL), "--dim", "batch=1:8", "-o", str(out)]) == 0
    text = out.read_text()
    assert "#define NET_LARGEST 1572864u" in text
    assert "static inline uint64_t net_plan(uint64_t dim_batch, uint64_t* offset) {" in text
    subprocess.run([COMPILERS[0], *STRICT, "-fsyntax-only", "-x", "c", out], check=True)


def test_what_no_table_has_is_refused() -> None:
    """Tests sizes that are no polynomials, and buffers that depend on the size."""
    odd = mp.envelope(lambda a: Problem([Buffer("x", 0, 1, 7 * (a % 3) + 1)]), {"a": range(1, 30)})
    with pytest.raises(MemplanError, match="are no polynomials"):
        write_sizes_header(odd)
    empty = mp.envelope(lambda a: Problem([]), {"a": (1, 2)})
    assert empty.peak_at(a=1) == 0
    with pytest.raises(MemplanError, match="no buffer is planned"):
        write_sizes_header(empty)
    other = mp.envelope(lambda a: Problem([Buffer(f"x{a}", 0, 1, 8)]), {"a": (1, 2)})
    with pytest.raises(MemplanError, match="buffers differ between sizes"):
        write_sizes_header(other)
