"""Tests of the search for regions and bands: against every choice, and by layouts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from memplan import solve
from memplan.base.errors import MemplanError
from memplan.levers.pipeline import Arranged, Plain, arrange
from memplan.levers.rewrite.bands import Cut, Region, Uncut, cut, find_frontier
from memplan.levers.rewrite.bands.cutting import cut_region, divide
from memplan.levers.rewrite.bands.frontier import _ROWS
from memplan.levers.rewrite.bands.measure import Timeline
from memplan.programs.graph import Graph, Kind, Operator, Tensor, lay_out
from memplan.programs.graph.pictures import Each, Padding, Read, Window
from memplan.programs.sources import of_graph


def draw_program(rng: random.Random, count: int, *, branches: bool = False) -> Uncut:
    """Return convolutions, poolings and sums of random shapes; also with results read again."""
    shapes = [(rng.choice((12, 16, 24)), rng.choice((8, 12)), rng.randint(1, 4))]
    rules: list[tuple[tuple[int, Window | Each], ...]] = []
    whole: list[str] = []
    for at in range(count):
        rows, columns, depth = shapes[-1]
        same = [t for t, shape in enumerate(shapes[:-1]) if shape == shapes[-1]]
        if branches and same and rng.random() < 0.4:
            rules.append(((at, Each()), (rng.choice(same), Each())))
            shapes.append(shapes[-1])
        else:
            stride = rng.choice((1, 1, 2)) if min(rows, columns) > 4 else 1
            kind = rng.choice((Padding.SAME, Padding.SAME, Padding.FREE))
            kernel = rng.choice((1, 3, 5) if stride == 1 else (3, 5))  # each row is read
            before = kernel // 2 if kind is Padding.FREE else 0
            window = Window(kernel, stride, 1, kind, before, zeros=rng.random() < 0.7)
            rules.append(((at, window),))
            size = (-(-rows // stride), -(-columns // stride))
            shapes.append((*size, rng.choice((depth, rng.randint(1, 12)))))
        whole.append("it mixes all rows" if branches and rng.random() < 0.08 else "")
    return make_program(shapes, rules, whole)


def make_program(
    shapes: list[tuple[int, int, int]],
    rules: list[tuple[tuple[int, Window | Each], ...]],
    whole: list[str],
) -> Uncut:
    """Return a program whose operator number i makes tensor i + 1 from pictures."""
    tensors = []
    for at, (rows, columns, depth) in enumerate(shapes):
        kind = Kind.INPUT if at == 0 else Kind.INTERMEDIATE
        kind = Kind.OUTPUT if at == len(shapes) - 1 else kind
        size = rows * columns * depth * 4
        tensors.append(Tensor(f"t{at}", size, kind, "float32", (1, rows, columns, depth)))
    operators = [
        Operator(
            f"o{at}",
            "conv",
            tuple(tensor for tensor, _ in reads),
            (at + 1,),
            workspace=at % 3 * 40,
            reads=tuple(Read(tensor, rule, rule) for tensor, rule in reads if not whole[at]),
            why_whole=whole[at],
            macs=9 * tensors[at + 1].bytes,
        )
        for at, reads in enumerate(rules)
    ]
    last = len(shapes) - 1
    graph = Graph("net", tuple(tensors), tuple(operators), (0,), (last,), alignment=16, row_axis=1)
    kept = tuple(20 + at for at in range(len(rules)))
    return Uncut(graph, 4, kept, 10)


def draw_mobile() -> Uncut:
    """Return two blocks that expand a picture, halve it, and narrow it."""
    depths = [(1, 1, 12), (3, 1, 12), (1, 1, 4), (1, 1, 24), (3, 2, 24), (1, 1, 6)]
    shapes, rules = [(24, 16, 2)], []
    for at, (kernel, stride, depth) in enumerate(depths):
        rows, columns, _ = shapes[-1]
        window: Window | Each = Window(kernel, stride, 1, Padding.SAME, zeros=True)
        rules.append(((at, window),))
        shapes.append((rows // stride, columns // stride, depth))
    return make_program(shapes, rules, [""] * len(depths))


def measure(program: Uncut, found: Cut) -> tuple[int, int]:
    """Return the arena and the work of a program in bands, by its layout and its operators."""
    load = lay_out(found.graph(), pins=False).problem.max_load
    overhead = sum(program.overheads[action.step] for action in found.actions)
    overhead -= sum(program.overheads[:-1])
    return load + overhead, found.macs + found.copied


def iterate_choices(program: Uncut) -> Iterator[tuple[Region, ...]]:
    """Yield every set of one or two regions, in bands of rows."""
    count = len(program.operators)
    regions = []
    for first, last in product(range(count), range(1, count + 1)):
        if first >= last or any(step.why_whole for step in program.operators[first:last]):
            continue
        made = frozenset(step.makes for step in program.operators[first:last])
        for rows, kept, pads in product(_ROWS, (frozenset[int](), made), (False, True)):
            regions.append(Region(first, last, (rows, 1), kept, pads))
    yield from ((region,) for region in regions)
    few = [region for region in regions if region.bands[0] in (2, 4, 8)]
    yield from ((a, b) for a in few for b in few if a.last <= b.first)


@pytest.mark.parametrize(
    "seed", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 2, 3, 5))]
)
def test_no_choice_beats_the_frontier(seed: int) -> None:
    """Tests chains of three and four operators against every set of one or two regions."""
    program = draw_program(random.Random(seed), 3 + seed % 2)
    found = find_frontier(program, work=10**7)
    assert found.is_complete
    points = [(point.arena, point.work) for point in found.points]
    compared = 0
    for regions in iterate_choices(program):
        try:
            arena, work = measure(program, cut(program, regions))
        except ValueError:  # more bands than rows
            continue
        compared += 1
        assert any(a <= arena and w <= work for a, w in points), (regions, arena, work)
    assert compared > 100


@pytest.mark.parametrize("seed", range(12))
def test_points_are_what_their_layouts_are(seed: int) -> None:
    """Tests load, overhead and work of each point, and that none beats another."""
    program = draw_program(random.Random(100 + seed), 4 + seed, branches=seed % 2 == 1)
    found = find_frontier(program, work=20_000)
    assert found.points[0].regions == ()
    assert found.points[0].load == lay_out(program.graph).problem.max_load
    for point in found.points:
        bands = found.cut(point)
        assert measure(program, bands) == (point.arena, point.work)
        assert lay_out(bands.graph(), pins=False).problem.max_load == point.load
        assert sum(operator.macs for operator in bands.graph().operators) == bands.macs
    arenas = [point.arena for point in found.points]
    assert arenas == sorted(set(arenas), reverse=True)
    works = [point.work for point in found.points]
    assert works == sorted(works)


@pytest.mark.parametrize("seed", range(8))
def test_no_region_needs_less_than_its_bound(seed: int) -> None:
    """Tests that regions which are left uncut for their bound could not have needed less."""
    rng, compared = random.Random(seed), 0
    while compared < 40:
        program = draw_program(rng, rng.randint(2, 9), branches=rng.random() < 0.6)
        timeline = Timeline(program, lay_out(program.graph, pins=False))
        for first, pads, keeps in product(range(len(program.operators)), (True, False), (0, 1)):
            last = rng.randint(first + 1, len(program.operators))
            kept = frozenset(program.made[first:last] if keeps else ())
            region = Region(first, last, (rng.choice((2, 3, 4, 6)), 1), kept, pads)
            try:
                divided = divide(program, region)
                found = cut_region(program, divided)
            except ValueError:
                continue
            assert timeline.bound(divided) <= timeline.measure(region, found), region
            compared += 1


def test_what_is_read_through_a_copy_is_gone_before_it_is_used() -> None:
    """Tests the bound where the last column is left out, so that each piece of a picture is a copy.

    The picture is gone when the last operator of the last band, whose pieces are the largest, runs.
    """
    half, each = Window(1, 2, 1, Padding.SAME, zeros=True), Window(1)
    program = make_program(
        [(14, 24, 1), (7, 12, 4), (7, 12, 4)], [((0, half),), ((1, each),)], ["", ""]
    )
    timeline = Timeline(program, lay_out(program.graph, pins=False))
    region = Region(0, 2, (6, 1))
    divided = divide(program, region)
    assert 0 < timeline.bound(divided) <= timeline.measure(region, cut_region(program, divided))


def test_a_plan_of_bands_needs_their_load() -> None:
    """Tests that plans of the graphs of bands are found at their loads."""
    program = draw_mobile()
    found = find_frontier(program, work=20_000)
    assert len(found.points) > 1
    for point in found.points:
        plan = solve(lay_out(found.cut(point).graph(), pins=False).problem)
        assert (plan.peak, str(plan.status)) == (point.load, "optimal")


def choose(graph: Graph, max_extra: float, capacity: int | None = None) -> Arranged:
    """Return the bands that are taken for a runtime that allocates while it runs."""
    writer = Plain(of_graph(graph), takes_offsets=False)
    return arrange(writer, bands=True, max_extra=max_extra, capacity=capacity)


def test_bands_are_chosen_by_work_and_by_arena() -> None:
    """Tests the smallest arena within a share of work, and the least work within an arena."""
    graph = draw_mobile().graph
    assert choose(graph, 0.0).point is None
    found = choose(graph, 100.0)
    assert found.frontier is not None
    assert found.point == found.frontier.points[-1]
    assert "; its runtime takes no plan" in str(found)
    points = found.frontier.points
    for point in (points[1], points[len(points) // 2], points[-1]):
        assert choose(graph, found.frontier.extra(point)).point == point
        least = choose(graph, 100.0, point.arena)
        assert (least.point, least.peak, least.fits) == (point, point.arena, True)


def test_a_budget_that_no_bands_meet() -> None:
    """Tests that the error names the least arena, and the operator that holds it up, and why."""
    program = draw_mobile()
    high = 4
    operators = list(program.operators)
    operators[high] = replace(operators[high], reads=(), why_whole="it mixes all rows")
    found = choose(replace(program.graph, operators=tuple(operators)), 100.0, 64)
    words = f'has {found.peak} bytes.*, {found.peak - 64} more.*"o{high}".*it mixes all rows'
    with pytest.raises(MemplanError, match=words):
        found.require_fit(100.0)


@pytest.mark.slow
def test_a_long_network_takes_bounded_work() -> None:
    """Tests 300 operators: the search makes a bounded number of operators of bands."""
    rng = random.Random(9)
    shapes = [(96, 96, 3)]
    rules: list[tuple[tuple[int, Window | Each], ...]] = []
    for at in range(300):
        rows, columns, _ = shapes[-1]
        stride = 2 if at in (1, 12, 40, 90) else 1
        kernel = 3 if at % 3 == 1 else 1
        rules.append(((at, Window(kernel, stride, 1, Padding.SAME, zeros=True)),))
        depth = rng.choice((8, 16, 24)) * (1 + (at > 12) + 2 * (at > 90))
        shapes.append((rows // stride, columns // stride, depth))
    program = make_program(shapes, rules, [""] * 300)
    found = find_frontier(program)
    assert found.points[-1].load < found.points[0].load / 2
    assert not found.is_complete
