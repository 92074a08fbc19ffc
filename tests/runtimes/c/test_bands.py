"""Tests of headers for programs in bands: the steps in C compute what the whole program does."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compilers import require_compiler
from numpy.typing import NDArray

from memplan.levers.rewrite.bands import Cut, Region, Uncut, cut, find_frontier
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.graph.pictures import Each, Padding, Read, Window
from memplan.programs.sources import of_graph
from memplan.runtimes.c.header import write_header
from memplan.solvers.planning import plan_model

pytestmark = pytest.mark.slow

Array = NDArray[np.float32]
_SHAPES = [(16, 12, 3), (16, 12, 8), (16, 12, 8), (16, 12, 8), (8, 6, 8), (8, 6, 8), (8, 6, 4)]
_WINDOW = Window(3, 1, 1, Padding.FREE, 1)
_HALF = Window(3, 2, 1, Padding.FREE, 1)
_MAIN = """
#define NET_DEFINE_ARENA
#define NET_DEFINE_TABLE
#include "net.h"
#include <stdio.h>
static void show(net_piece p) {
  printf(" %llu %d %d %d %d", (unsigned long long)p.offset, (int)p.top, (int)p.bottom,
         (int)p.left, (int)p.right);
}
int main(void) {
  uint32_t at, input;
  for (at = 0; at < NET_STEPS_COUNT; at++) {
    printf("%d %u", (int)net_steps[at].operator_, (unsigned)net_steps[at].point);
    show(net_steps[at].output);
    for (input = 0; input < net_steps[at].count; input++) {
      show(net_inputs[net_steps[at].first + input]);
    }
    printf("\\n");
  }
  return 0;
}
"""


def make_program() -> Uncut:
    """Return convolutions with a sum and a pooling between, of pictures of 16 x 12 points."""
    tensors = tuple(
        Tensor(
            f"t{at}",
            int(np.prod(shape)) * 4,
            Kind.INPUT if at == 0 else Kind.OUTPUT if at == 6 else Kind.INTERMEDIATE,
            "float32",
            (1, *shape),
        )
        for at, shape in enumerate(_SHAPES)
    )
    each = Each()
    rules = [
        ("conv", ((0, _WINDOW),)),
        ("conv", ((1, _WINDOW),)),
        ("add", ((1, each), (2, each))),
        ("pool", ((3, _HALF),)),
        ("conv", ((4, _WINDOW),)),
        ("conv", ((5, _WINDOW),)),
    ]
    operators = tuple(
        Operator(
            f"{kind}{at}",
            kind,
            tuple(tensor for tensor, _ in reads),
            (at + 1,),
            reads=tuple(Read(tensor, rule, rule) for tensor, rule in reads),
            why_whole="",
            macs=9 * tensors[at + 1].bytes,
        )
        for at, (kind, reads) in enumerate(rules)
    )
    return Uncut(Graph("net", tensors, operators, (0,), (6,), alignment=16, row_axis=1))


def run_part(kind: str, at: int, inputs: list[tuple[Array, list[int]]], made: list[int]) -> Array:
    """Return the rows and columns `made` of an operator's result, from parts of its inputs."""
    top, bottom, left, right = made
    if kind == "add":
        return inputs[0][0] + inputs[1][0]
    (value, box) = inputs[0]
    stride = 2 if kind == "pool" else 1
    channels = _SHAPES[at + 1][2]
    weights = np.random.default_rng(at).standard_normal((3, 3, value.shape[2], channels))
    result = np.zeros((bottom - top, right - left, channels), np.float32)
    for row in range(top, bottom):
        for column in range(left, right):
            most = np.full(channels, -np.inf) if kind == "pool" else np.zeros(channels)
            for y in range(3):
                for x in range(3):
                    here = (row * stride - 1 + y, column * stride - 1 + x)
                    if not (0 <= here[0] < _SHAPES[at][0] and 0 <= here[1] < _SHAPES[at][1]):
                        continue
                    assert box[0] <= here[0] < box[1], "a row that is needed was not fed"
                    assert box[2] <= here[1] < box[3], "a column that is needed was not fed"
                    point = value[here[0] - box[0], here[1] - box[2]]
                    if kind == "pool":
                        most = np.maximum(most, point)
                    else:
                        most = most + point @ weights[y, x]
            result[row - top, column - left] = most
    return result


def run_whole(program: Uncut, picture: Array) -> Array:
    """Return the result of the program as it is."""
    values = [picture]
    for at, operator in enumerate(program.graph.operators):
        whole = [(values[t], [0, _SHAPES[t][0], 0, _SHAPES[t][1]]) for t in operator.inputs]
        rows, columns, _ = _SHAPES[at + 1]
        values.append(run_part(operator.type, at, whole, [0, rows, 0, columns]))
    return values[-1]


def read_steps(header: str, folder: Path) -> list[list[int]]:
    """Compile a header, and return its steps as numbers."""
    (folder / "net.h").write_text(header)
    (folder / "main.c").write_text(_MAIN)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    compiler = require_compiler("cc", "gcc", "clang", flags=flags)
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=folder, check=True)
    shown = subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout
    return [[int(word) for word in line.split()] for line in shown.splitlines()]


def run_steps(
    program: Uncut, steps: list[list[int]], places: dict[int, int], size: int, picture: Array
) -> Array:
    """Run the steps of a header in one arena, and return the result."""
    arena = np.full(size, 0xA5, np.uint8)

    def view(piece: list[int], channels: int) -> Array:
        offset, top, bottom, left, right = piece
        count = (bottom - top) * (right - left) * channels * 4
        part = arena[offset : offset + count].view(np.float32)
        return part.reshape(bottom - top, right - left, channels)

    view([places[0], 0, 16, 0, 12], 3)[:] = picture
    for number, point, *rest in steps:
        output, *inputs = [rest[at : at + 5] for at in range(0, len(rest), 5)]
        if number < 0:
            target = view(output, point // 4)
            for piece in inputs:
                low = [max(piece[at], output[at]) for at in (1, 3)]
                high = [min(piece[at], output[at]) for at in (2, 4)]
                part = view(piece, point // 4)[
                    low[0] - piece[1] : high[0] - piece[1], low[1] - piece[3] : high[1] - piece[3]
                ].copy()
                target[
                    low[0] - output[1] : high[0] - output[1],
                    low[1] - output[3] : high[1] - output[3],
                ] = part
            continue
        operator = program.graph.operators[number]
        if not inputs:
            inputs = [[places[t], 0, _SHAPES[t][0], 0, _SHAPES[t][1]] for t in operator.inputs]
        fed = [
            (view(piece, _SHAPES[tensor][2]).copy(), piece[1:])
            for piece, tensor in zip(inputs, operator.inputs, strict=True)
        ]
        channels = _SHAPES[operator.outputs[0]][2]
        view(output, channels)[:] = run_part(operator.type, number, fed, output[1:])
    rows, columns, channels = _SHAPES[-1]
    return view([places[6], 0, rows, 0, columns], channels).copy()


def plan_bands(program: Uncut, found: Cut, in_place: bool) -> tuple[str, dict[int, int], int]:
    """Return a header for bands, the places of the program's own tensors, and the arena's size."""
    planned = plan_model(of_graph(found.graph()), in_place=in_place)
    layout, plan = planned.loaded.layout, planned.plan
    assert layout is not None
    assert plan.peak is not None
    places = {}
    for index in layout.rows:
        storage = layout.storages[index]
        for tensor, within in zip(storage.tensors, storage.offsets, strict=True):
            places[tensor] = plan.offset(storage.name) + within
    return write_header(planned.loaded, plan, name="net", bands=found), places, plan.peak


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("first", "last", "bands", "keeps"),
    [
        (0, 6, (4, 1), False),
        (0, 6, (4, 1), True),
        (0, 6, (8, 1), True),
        (1, 4, (5, 1), True),
        (0, 5, (2, 3), False),
        (2, 6, (3, 1), False),
    ],
)
def test_steps_compute_the_program(
    tmp_path: Path, first: int, last: int, bands: tuple[int, int], keeps: bool, in_place: bool
) -> None:
    """Tests the steps of a header, run in its arena, against the program as it is."""
    program = make_program()
    made = frozenset(step.makes for step in program.operators[first:last]) if keeps else frozenset()
    found = cut(program, [Region(first, last, bands, made)])
    header, places, size = plan_bands(program, found, in_place)
    picture = np.random.default_rng(7).standard_normal(_SHAPES[0]).astype(np.float32)
    result = run_steps(program, read_steps(header, tmp_path), places, size, picture)
    assert np.array_equal(result, run_whole(program, picture))


def test_the_best_bands_repeat_nothing_and_need_less(tmp_path: Path) -> None:
    """Tests a whole way: the frontier, its smallest arena, a plan of that, and its steps."""
    program = make_program()
    frontier = find_frontier(program)
    allowed = [each for each in frontier.points if frontier.extra(each) <= 0.5]
    point = min(allowed, key=lambda each: (each.arena, each.work))
    assert point.load < frontier.points[0].load
    found = frontier.cut(point)
    header, places, size = plan_bands(program, found, False)
    assert size == point.load
    picture = np.random.default_rng(8).standard_normal(_SHAPES[0]).astype(np.float32)
    result = run_steps(program, read_steps(header, tmp_path), places, size, picture)
    assert np.array_equal(result, run_whole(program, picture))


def test_a_whole_operator_with_two_results_has_no_place_of_its_own() -> None:
    """Tests that a step names no place for several results: they are in the table."""
    program = make_program()
    tensors = (*program.graph.tensors, replace(program.graph.tensors[6], name="t7"))
    split = Operator("split", "split", (6,), (7, 8), why_whole="it has several results")
    tensors += (replace(tensors[7], name="t8"),)
    operators = (*program.graph.operators, split)
    graph = replace(program.graph, tensors=tensors, operators=operators, outputs=(7, 8))
    program = Uncut(graph)
    header, _, _ = plan_bands(program, cut(program, [Region(0, 4, (4, 1))]), False)
    assert re.search(r"\{6, \d+u, 0u, 0u, \{0u, 0, 0, 0, 0\}, 0u\}, /\* split \*/", header)
