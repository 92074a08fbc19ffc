"""Tests that a C function makes the plan of every size that memplan has."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from compilers import list_compilers, require_compiler

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.cli import main
from memplan.problem import Buffer, Problem
from memplan.problem.plan import Plan
from memplan.runtimes.c.sizes import write_sizes_header
from memplan.scenarios.envelope import Envelope, Pieces, envelope

MODEL = Path(__file__).parents[3] / "examples" / "models" / "branches.onnx"
pytestmark = pytest.mark.slow

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
LANGUAGES = [("-std=c99", "-x", "c"), ("-std=c++17", "-x", "c++")]
COMPILERS = list_compilers("gcc", "clang", flags=["-std=c99", *STRICT])
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

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang with C99")


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

        found = envelope(program, {"a": range(1, 8), "b": range(9)})
        layers += len(found.layers)
        made = run_c(tmp_path, found, compiler, language)
        for (a, b), (peak, *offsets) in zip(product(range(1, 8), range(9)), made, strict=True):
            plan = found.plan_at(a=a, b=b)
            assert plan.offsets is not None
            assert (peak, offsets) == (plan.peak, plan.offsets.tolist())
    assert layers > 4


EDGES: dict[str, Callable[[int], list[Buffer]]] = {
    "one": lambda a: [Buffer("a", 0, 1, a)],
    "a byte": lambda a: [Buffer("a", 0, 1, 1)],
    "no bytes": lambda a: [Buffer("a", 0, 2, 0), Buffer("b", 1, 3, 0)],
    "beyond 32 bits": lambda a: [Buffer("a", 0, 2, a << 40), Buffer("b", 1, 3, a << 41)],
    "the largest": lambda a: [Buffer("a", 0, 2, a << 58), Buffer("b", 1, 3, a << 57)],
    "far times": lambda a: [Buffer("a", -(1 << 62), 1 << 62, a), Buffer("b", 0, 1, 5)],
    "alignments": lambda a: [
        *(Buffer("a", 0, 2, a, 64), Buffer("b", 1, 3, 2 * a, 3), Buffer("c", 0, 3, 5, 4096))
    ],
    "names": lambda a: [
        Buffer(name, at, at + 2, at * a)
        for at, name in enumerate(("int", "at", "end", "*/", "??/", "%s", "漢字", "a\nb", "COUNT"))
    ],
    "more than a byte has numbers": lambda a: [
        Buffer(f"b{at}", at % 7, at % 7 + 1 + at % 5, 1 + at % 3 + a * (at % 4))
        for at in range(300)
    ],
}


@needs_compiler
@pytest.mark.parametrize("language", LANGUAGES, ids=["C", "C++"])
@pytest.mark.parametrize("name", EDGES)
def test_edges(tmp_path: Path, name: str, language: tuple[str, ...]) -> None:
    """Tests programs and names at the edges of what there is."""
    found = envelope(lambda a, b: Problem(EDGES[name](a)), {"a": range(1, 8), "b": [1]})
    made = run_c(tmp_path, found, COMPILERS[0], language)
    assert [peak for peak, *_ in made] == found.peaks.reshape(-1).tolist()
    for a, (_, *offsets) in enumerate(made, 1):
        mp.verify(Problem(EDGES[name](a)), Plan.of(Problem(EDGES[name](a)), offsets))


@needs_compiler
def test_remainders_have_polynomials_of_their_own(tmp_path: Path) -> None:
    """Tests pictures that are halved and rounded up, and sizes that are left out."""

    def program(a: int, b: int) -> Problem:
        half, quarter = -(-b // 2), -(-b // 4)
        sizes = (3 * b, 16 * half * half, 40 * quarter, half * (half + 1) // 2)
        return Problem(Buffer(str(at), at, at + 2, a * size) for at, size in enumerate(sizes))

    found = envelope(program, {"a": range(1, 9), "b": "1:160"})
    assert "remainder of 4" in found.how
    made = run_c(tmp_path, found, COMPILERS[0], LANGUAGES[0])
    assert [peak for peak, *_ in made] == found.peaks.tolist()
    odd = envelope(program, {"a": "1:40", "b": "1:159:2"})
    steps = run_c(tmp_path, odd, COMPILERS[0], LANGUAGES[0])
    peaks = np.array([peak for peak, *_ in steps], np.float64).reshape(40, 159)
    assert (peaks[:, ::2] == odd.peaks.reshape(40, 80)).all()
    assert (peaks[:, 1::2] == 2.0**64).all()


@dataclass(frozen=True)
class Case:
    """A program with a range of sizes, which is stated a second time by plain Python."""

    program: Callable[..., Problem]
    dims: dict[str, str]
    where: list[str]
    values: dict[str, set[int]]

    def contains(self, point: tuple[int, ...]) -> bool:
        """Return whether a size was asked for."""
        names = dict(zip(self.values, point, strict=True))
        inside = all(names[name] in values for name, values in self.values.items())
        return inside and all(eval(text, {}, names) for text in self.where)

    def list_sizes(self, source: random.Random) -> list[tuple[int, ...]]:
        """Return every size in the hull of the range, and some around it and far from it."""
        hulls = [range(min(each), max(each) + 1) for each in self.values.values()]
        far = [-1, 0, 1, 1 << 31, (1 << 32) + 1, (1 << 63) - 1, -1 << 63]
        edges = [[*far, hull[0] - 1, hull[-1] + 1, hull[-1] + (1 << 32)] for hull in hulls]
        found = {*product(*hulls)}
        for point in source.choices(sorted(found), k=20):
            for axis, values in enumerate(edges):
                found |= {(*point[:axis], value, *point[axis + 1 :]) for value in values}
        return sorted(found)


def draw_values(source: random.Random, longest: int) -> tuple[str, set[int]]:
    """Return values of a dimension as text, and as numbers."""
    texts: list[str] = []
    values: set[int] = set()
    for _ in range(source.choice((1, 1, 2, 3))):
        first = source.randint(0, longest)
        last, step = first + source.randint(0, longest), source.choice((1, 2, 3, 8, 32))
        some = source.choice(((first,), (first, last), (first, last, step), (first, last, step)))
        texts.append(":".join(map(str, some)))
        values |= {*range(first, (*some, first)[1] + 1, (*some, 1, 1)[2])}
    return ",".join(texts), values


def draw_case(source: random.Random) -> Case:
    """Return a program of one to three dimensions whose windows move in steps."""
    names = ["a", "b", "c"][: source.choice((1, 2, 2, 3))]
    longest = {1: 100, 2: 14, 3: 5}[len(names)]
    drawn = {name: draw_values(source, longest) for name in names}
    one, other = source.choice(names), source.choice(names)
    number = source.randint(1, longest**2)
    conditions = [
        f"{one}*{other}<={number}",
        f"{one} + 3 * {other} < {number}",
        f"{one}//3*2>={other}//5-{number}",
        f"2<={one}**2-{other}<={number}",
        f"({one}-{other})**3//7<={number}",
        f"({one}-9)//3*3<={one}-10",
    ]
    where = source.sample(conditions, source.choice((0, 0, 1, 2)))
    stride, rows = source.choice((1, 1, 2, 4)), []
    for number in range(source.randint(2, 7)):
        start, terms = source.randint(0, 5), [source.choice((0, 0, 1, 2, 5, 40)) for _ in range(5)]
        rows.append((f"b{number}", start, start + source.randint(1, 4), terms))
    unit = source.choice((1, 1, 4, 64))

    def program(**dims: int) -> Problem:
        a, b, c = (*dims.values(), 1, 1)[:3]
        half = -(-a // stride)
        made = []
        for id, start, end, (k, ka, kb, kc, kall) in rows:
            size = k + ka * half + kb * b * half + kc * c + kall * half * b * c
            made.append(Buffer(id, start, end, size, unit))
        return Problem(made)

    texts = {name: text for name, (text, _) in drawn.items()}
    return Case(program, texts, where, {name: values for name, (_, values) in drawn.items()})


def make_headers(folder: Path, source: random.Random, count: int) -> Iterator[tuple[Case, str]]:
    """Yield cases that have a size, each with the prefix of its header in the folder."""
    made = 0
    while made < count:
        case = draw_case(source)
        if not any(case.contains(point) for point in product(*case.values.values())):
            continue
        found = envelope(case.program, case.dims, case.where, threads=1)
        if len(found.scenarios) > 1 or not isinstance(found.scenarios[0].bytes, Pieces):
            continue
        (folder / f"p{made}.h").write_text(write_sizes_header(found, name=f"p{made}"))
        yield case, f"p{made}"
        made += 1


ASK = """
  {{
    static const uint64_t s[] = {{
#include "{name}.sizes"
    }};
    uint64_t at[{upper}_BUFFER_COUNT];
    for (int k = 0; k < {count}; ++k) {{
      const uint64_t bytes = {name}_plan({point}, at);
      if ({name}_contains({point}) != (bytes != {upper}_NO_SIZE)) return 1;
      if (bytes == {upper}_NO_SIZE) {{ puts("-"); continue; }}
      if (bytes > {upper}_LARGEST) return 2;
      printf("%.0f", (double)bytes);
      for (int b = 0; b < {upper}_BUFFER_COUNT; ++b) printf(" %.0f", (double)at[b]);
      puts("");
    }}
  }}"""


@needs_compiler
@pytest.mark.parametrize("count", [25, pytest.param(200, marks=pytest.mark.deep)])
def test_the_function_answers_exactly_what_was_asked(tmp_path: Path, count: int) -> None:
    """Tests steps, lists and conditions at every size in the hull and some beyond it.

    All headers are in one program; each answer is held against a plan of that size alone.
    """
    source, answered = random.Random(45), 0
    cases = [
        (case, name, case.list_sizes(source))
        for case, name in make_headers(tmp_path, source, count)
    ]
    lines = []
    for case, name, points in cases:
        values = (f"{value & (1 << 64) - 1}u" for point in points for value in point)
        (tmp_path / f"{name}.sizes").write_text(", ".join(values))
        dims = len(case.dims)
        at = ", ".join(f"s[{dims} * k + {axis}]" for axis in range(dims))
        lines.append(ASK.format(name=name, upper=name.upper(), count=len(points), point=at))
    headers = [f'#include "{name}.h"' for _, name, _ in cases]
    text = [*headers, "#include <stdio.h>", "int main(void) {", *lines, "  return 0;", "}", ""]
    (tmp_path / "run.c").write_text("\n".join(text))
    command = [COMPILERS[0], *STRICT, "-std=c99", "run.c", "-o", "run"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "run"], check=True, capture_output=True, text=True).stdout
    answers = iter(out.splitlines())
    for case, _, points in cases:
        for point, answer in zip(points, answers, strict=False):
            assert (answer != "-") == case.contains(point), (case, point)
            if answer != "-":
                answered += 1
                peak, *offsets = map(int, answer.split())
                problem = case.program(**dict(zip(case.dims, point, strict=True)))
                mp.verify(problem, Plan.of(problem, offsets))
                assert peak == mp.solve(problem, threads=1).peak, (case, point)
    assert not list(answers)
    assert answered > 10 * count


@needs_compiler
def test_the_command_writes_a_header(tmp_path: Path) -> None:
    """Tests the header of a model."""
    pytest.importorskip("onnx")
    out = tmp_path / "net.h"
    words = ["envelope", str(MODEL), "--dim", "batch=1:8,16:64:4", "--where", "batch*batch<=64"]
    assert main([*words, "-o", str(out)]) == 0
    text = out.read_text()
    assert (
        " *   dim_batch (batch): 1 to 8, 16 to 64 by 4\n *   that keep to batch*batch<=64\n" in text
    )
    assert "#define NET_LARGEST 1572864u" in text
    assert "static inline uint64_t net_plan(uint64_t dim_batch, uint64_t* offset) {" in text
    subprocess.run([COMPILERS[0], *STRICT, "-fsyntax-only", "-x", "c", out], check=True)


def test_what_no_table_has_is_refused() -> None:
    """Tests sizes that are no polynomials, and buffers that depend on the size."""
    odd = envelope(lambda a: Problem([Buffer("x", 0, 1, 7 * (a % 3) + 1)]), {"a": range(1, 99)})
    with pytest.raises(MemplanError, match="are no polynomials"):
        write_sizes_header(odd)
    empty = envelope(lambda a: Problem([]), {"a": (1, 2)})
    assert empty.peak_at(a=1) == 0
    with pytest.raises(MemplanError, match="no buffer is planned"):
        write_sizes_header(empty)
    other = envelope(lambda a: Problem([Buffer(f"x{a}", 0, 1, 8)]), {"a": (1, 2)})
    with pytest.raises(MemplanError, match="buffers differ between sizes"):
        write_sizes_header(other)
