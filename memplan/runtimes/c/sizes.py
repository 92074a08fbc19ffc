"""Writes an envelope as a header for C99 and C++17: a function that makes the offsets of a size.

    net_plan(batch, tokens, offset)       fills the offsets of this size, and returns its bytes
    net_contains(batch, tokens)           whether this size was asked for
    net_fixed[NET_BUFFER_conv]            the offsets that are legal at every size
    NET_LARGEST, NET_FIXED                the bytes of the largest size, and for fixed offsets

The function has the polynomials of the sizes and, for each plan that was made, which buffers lie
below which. It puts each buffer on top of those below it, so it is exact at every size of the
range. At any other size it returns NET_NO_SIZE: nothing is known of it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import lcm, prod

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem.columns import MAX_BYTES, Column
from memplan.runtimes.c import names as c
from memplan.runtimes.c.arrays import align_array
from memplan.scenarios.envelope import Condition, Envelope, Pieces, Range

__all__ = ["write_sizes_header"]

_WIDTH = 90  # of a line of a table
_MOST_NUMBERS = 1 << 16  # in all tables


def write_sizes_header(found: Envelope, *, name: str = "plan") -> str:
    """Return an envelope as the text of a header; names have a prefix as for `write_header`.

    It is refused if the buffers depend on the size, if their bytes are no polynomials, or if the
    tables would be too large.
    """
    if len(found.scenarios) > 1:
        raise MemplanError(
            "the buffers differ between sizes, so that no one table has them; the plan for all "
            "sizes (.json) does"
        )
    if not len(found.scenarios[0].template):
        raise MemplanError("no buffer is planned, so that a header would be empty")
    pieces = found.scenarios[0].bytes
    if not isinstance(pieces, Pieces):
        raise MemplanError(
            "the bytes of the buffers are no polynomials of the dimensions, so that a program "
            "cannot compute them; the plan for all sizes (.json) holds at each"
        )
    tables = _Tables.of(pieces, [axis[-1] for axis in found.range.axes])
    below = [rows for layer in found.used for rows in layer.relation.below]
    runs = 3 * sum(map(len, found.range.runs))
    if len(tables.factors) + len(below) + sum(map(len, below)) + runs > _MOST_NUMBERS:
        raise _too_large()
    return "\n".join(_lines(found, tables, name)) + "\n"


def _too_large() -> MemplanError:
    return MemplanError("the tables of a C header would be too large; ask for fewer sizes")


@dataclass(frozen=True)
class _Tables:
    """Polynomials with common terms and one divisor, as the tables of a header."""

    powers: tuple[tuple[int, ...], ...]  # of each dimension in each term
    factors: tuple[int, ...]  # by part, term and buffer, in units of 1 / `divisor`
    divisor: int
    unit: tuple[int, ...]  # bytes to which each size is rounded up
    periods: tuple[int, ...]  # of the dimensions
    part: tuple[int, ...]  # by kind of remainders: which part it has; the number of parts for none

    @classmethod
    def of(cls, pieces: Pieces, ends: Sequence[int]) -> _Tables:
        """Return the tables for sizes up to these ends; refuse sums beyond 64 bits."""
        parts = [polynomials for _, polynomials in pieces.parts]
        powers = sorted({tuple(row) for each in parts for row in each.powers.tolist()})
        divisor = lcm(*(each.divisor for each in parts))
        factors: list[int] = []
        for each in parts:
            scale = divisor // each.divisor
            if max(each.bounds(ends), default=0) * scale > MAX_BYTES:
                raise _too_large()
            rows = dict(zip(map(tuple, each.powers.tolist()), each.factors.tolist(), strict=True))
            none = [0] * each.factors.shape[1]
            factors += [scale * value for term in powers for value in rows.get(term, none)]
        part = [len(parts)] * prod(pieces.periods)
        for number, (remainder, _) in enumerate(pieces.parts):
            part[int(np.ravel_multi_index(remainder, pieces.periods))] = number
        unit = tuple(pieces.unit.tolist())
        return cls(tuple(powers), tuple(factors), divisor, unit, pieces.periods, tuple(part))


def _lines(found: Envelope, tables: _Tables, title: str) -> Iterator[str]:
    upper = c.make_prefix(title)
    lower, asked, problem = upper.lower(), found.range, found.scenarios[0].template
    dims = [f"dim_{word}" for word in c.make_identifiers(asked.names)]
    alignment = align_array(problem.alignment)
    proved = " (proved to be the least)" if found.open == 0 else ""
    if found.premise:
        proved = proved.replace(")", " if the premise holds)")
    yield f"/* The memory of {c.escape_comment(title)} at each of {len(found)} sizes, planned"
    yield f" * by memplan; do not edit. Call {lower}_plan before a run, with the values of"
    for column, (word, name) in enumerate(zip(dims, asked.names, strict=True)):
        yield f" *   {word} ({c.escape_comment(name)}): {asked.describe_axis(column)}"
    for condition in asked.conditions:
        yield f" *   that keep to {c.escape_comment(condition)}"
    says = (
        f"It fills the offset of each buffer, and returns the bytes of this size{proved}, or "
        f"{upper}_NO_SIZE at any other size. {lower}_fixed holds at every one of these."
    )
    premise = f"Premise: {found.premise}; the program was not read there." if found.premise else ""
    for words in (says, premise):
        yield from textwrap.wrap(words, _WIDTH, initial_indent=" * ", subsequent_indent=" * ")
    yield " */"
    yield f"#ifndef {upper}_SIZES_H_"
    yield f"#define {upper}_SIZES_H_"
    yield ""
    yield "#include <stdint.h>"
    yield ""
    yield f"#define {upper}_NO_SIZE UINT64_MAX"
    yield f"#define {upper}_LARGEST {int(found.peaks.max())}u"
    yield f"#define {upper}_FIXED {found.plan.peak}u"
    yield f"#define {upper}_ARENA_ALIGNMENT {alignment}u"
    yield f"#define {upper}_BUFFER_COUNT {len(problem)}"
    ends = c.make_identifiers(problem.ids, ["COUNT"])
    for number, (id, word) in enumerate(zip(problem.ids, ends, strict=True)):
        yield f"#define {upper}_BUFFER_{word} {number} /* {c.escape_comment(id)} */"
    yield ""
    fixed = [found.plan.offset(id) for id in problem.ids]
    yield from _define(f"uint64_t {lower}_fixed", fixed, "u")
    yield ""
    yield from _contain(asked, lower, dims)
    yield ""
    parameters = f"{_list_parameters(dims)}, uint64_t* offset"
    yield f"static inline uint64_t {lower}_plan({parameters}) {{"
    for line in _body(found, tables, upper, dims):
        yield f"  {line}"
    yield "}"
    yield ""
    yield f"#endif /* {upper}_SIZES_H_ */"


# What an operator of a condition is in C, where it is no operator of C.
_FUNCTIONS = {
    "power": """\
static inline int64_t NAME(int64_t base, int64_t exponent) {
  int64_t value = 1;
  for (; exponent > 0; --exponent) value *= base;
  return value;
}
""",
    "floor_div": """\
static inline int64_t NAME(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}
""",
}
_SIGNS = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.Eq: "=="}
_CONTAINS = """\
for (uint32_t k = 0, row = 0; k < DIMSu; ++k) {
  int found = 0;
  for (; row < 3u * end[k]; row += 3u) {
    if (dim[k] < run[row] || dim[k] > run[row + 1u]) continue;
    if ((dim[k] - run[row]) % run[row + 2u] == 0u) found = 1;
  }
  if (!found) return 0;
}
"""


def _contain(asked: Range, lower: str, dims: Sequence[str]) -> Iterator[str]:
    """Yield the function that says whether a size was asked for, as `Range.contains` does."""
    places = dict(zip(asked.names, dims, strict=True))
    checks = [line for limit in asked.limits for line in _check(limit, places, lower)]
    for word, text in _FUNCTIONS.items():
        if any(f"{lower}_{word}(" in line for line in checks):
            yield from text.replace("NAME", f"{lower}_{word}").splitlines()
            yield ""
    yield f"static inline int {lower}_contains({_list_parameters(dims)}) {{"
    yield "  /* The values of the dimensions: the first, the last and the step of each run. */"
    runs = [number for axis in asked.runs for run in axis for number in run]
    for line in (
        *_define("uint64_t run", runs, "u"),
        *_define("uint32_t end", [*accumulate(map(len, asked.runs))], "u"),
        f"const uint64_t dim[{len(dims)}] = {{{', '.join(dims)}}};",
        *_CONTAINS.replace("DIMS", str(len(dims))).splitlines(),
        *checks,
        "return 1;",
    ):
        yield f"  {line}"
    yield "}"


def _list_parameters(dims: Sequence[str]) -> str:
    return ", ".join(f"uint64_t {dim}" for dim in dims)


def _check(limit: Condition, places: Mapping[str, str], lower: str) -> Iterator[str]:
    """Yield a condition in C; its numbers fit into 64 bits, see `Condition`."""
    sides = ", ".join(_compute(side, places, lower) for side in limit.sides)
    pairs = (
        f"side[{at}] {_SIGNS[type(sign)]} side[{at + 1}]" for at, sign in enumerate(limit.signs)
    )
    yield f"{{ /* {c.escape_comment(limit.text)} */"
    yield f"  const int64_t side[{len(limit.sides)}] = {{{sides}}};"
    yield f"  if (!({' && '.join(pairs)})) return 0;"
    yield "}"


def _compute(node: ast.expr, places: Mapping[str, str], lower: str) -> str:
    """Return a side of a condition in C."""
    match node:
        case ast.Constant(value=int() as value):
            return f"INT64_C({value})"
        case ast.Name(id=name):
            return f"(int64_t){places[name]}"
        case ast.BinOp(left=one, op=operation, right=other):
            left, right = (_compute(side, places, lower) for side in (one, other))
            match operation:
                case ast.Pow():
                    return f"{lower}_power({left}, {right})"
                case ast.FloorDiv():
                    return f"{lower}_floor_div({left}, {right})"
            signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
            return f"({left} {signs[type(operation)]} {right})"
    raise AssertionError("a condition has no other parts")


# The function behind its tables; the words in capitals are those of the header.
_BODY = """\
uint64_t size[COUNT], at[COUNT], best = NONE;
uint32_t kind = 0;
if (!CONTAINS) return NONE;
for (int k = 0; k < DIMS; ++k) kind = kind * period[k] + (uint32_t)(dim[k] % period[k]);
if (part[kind] == PARTS) return NONE;
for (int row = 0; row < COUNT; ++row) {
  int64_t sum = 0;
  for (int term = 0; term < TERMS; ++term) {
    int64_t value = factor[(part[kind] * TERMS + term) * COUNT + row];
    for (int k = 0; k < DIMS; ++k) {
      for (int p = 0; p < power[term * DIMS + k]; ++p) value *= (int64_t)dim[k];
    }
    sum += value;
  }
  if (sum < 0) return NONE;
  size[row] = ((uint64_t)sum / DIVISORu + unit[row] - 1u) / unit[row] * unit[row];
}
for (int plan = 0; plan < PLANS; ++plan) {
  uint64_t peak = 0;
  for (int k = plan * COUNT; k < (plan + 1) * COUNT; ++k) {
    const uint32_t row = order[k];
    uint64_t base = 0;
    for (uint32_t e = end[k]; e < end[k + 1]; ++e) {
      const uint64_t top = at[below[e]] + size[below[e]];
      if (top > base) base = top;
    }
    at[row] = (base + alignment[row] - 1u) / alignment[row] * alignment[row];
    if (size[row] && at[row] + size[row] > peak) peak = at[row] + size[row];
  }
  if (peak < best) {
    best = peak;
    for (int row = 0; row < COUNT; ++row) offset[row] = size[row] ? at[row] : 0;
  }
}
return best;
"""


def _body(found: Envelope, tables: _Tables, upper: str, dims: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the function: tables, the sizes, and the best of the relations."""
    order = [row for layer in found.used for row in layer.relation.order]
    below = [rows for layer in found.used for rows in layer.relation.below]
    ends = [0, *accumulate(map(len, below))]
    flat = [row for rows in below for row in rows]
    yield from _define("uint32_t period", tables.periods, "u")
    yield "/* By remainders of the dimensions: which of the polynomials. */"
    yield from _define("uint32_t part", tables.part, "u")
    yield from _define("uint8_t power", [power for term in tables.powers for power in term])
    yield from _define("int64_t factor", tables.factors)
    yield from _define("uint64_t unit", tables.unit, "u")
    yield from _define("uint64_t alignment", found.scenarios[0].template.alignment, "u")
    yield "/* By plan: the buffers from below to above, and those directly below each. */"
    yield from _define("uint32_t order", order)
    yield from _define("uint32_t end", ends)
    yield from _define("uint32_t below", flat or [0])
    yield f"const uint64_t dim[{len(dims)}] = {{{', '.join(dims)}}};"
    words = {
        "COUNT": f"{upper}_BUFFER_COUNT",
        "NONE": f"{upper}_NO_SIZE",
        "CONTAINS": f"{upper.lower()}_contains({', '.join(dims)})",
        "PARTS": f"{len(tables.factors) // (len(tables.powers) * len(tables.unit))}u",
        "TERMS": str(len(tables.powers)),
        "DIMS": str(len(dims)),
        "DIVISOR": str(tables.divisor),
        "PLANS": str(len(found.used)),
    }
    yield from re.sub("[A-Z]{4,}", lambda word: words[word[0]], _BODY).splitlines()


def _define(name: str, values: Sequence[int] | Column, suffix: str = "") -> Iterator[str]:
    """Yield the definition of a constant array."""
    words = ", ".join(f"{value}{suffix}" for value in values)
    yield f"static const {name}[{len(values)}] = {{"
    yield from (f"  {line}" for line in textwrap.wrap(words, _WIDTH))
    yield "};"
