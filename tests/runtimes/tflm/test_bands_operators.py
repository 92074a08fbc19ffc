"""Tests that TFLM computes the same bits for any operators in any bands: random TFLite files."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rounds import rounds
from steps_tflite import draw_network
from tflite_networks import NOT_IN_TFLM, OPERATORS, File, draw_file

from memplan.base.errors import FormatError
from memplan.levers.rewrite.bands import Cut, Region, Uncut, cut
from memplan.levers.rewrite.bands.cutting import cut_region, divide
from memplan.levers.rewrite.bands.measure import Timeline
from memplan.programs.graph import View, lay_out
from memplan.programs.sources import load
from memplan.runtimes.tflm.operators import TABLE
from memplan.runtimes.tflm.read.graph import graph_of
from memplan.runtimes.tflm.read.model import parse
from memplan.runtimes.tflm.write.bands import write_bands
from memplan.runtimes.tflm.write.metadata import with_offsets
from memplan.runtimes.tflm.write.planning import find_offsets, get_layout
from memplan.runtimes.tflm.write.writer import uncut_of, with_views
from memplan.solvers.planning import plan_model

pytestmark = pytest.mark.slow

runtime: Any = pytest.importorskip("tflite_micro").runtime

ARENA = 8 << 20


def run(data: bytes, seed: int = 0) -> list[bytes] | None:
    """Return what TFLM makes of random inputs; `None` if it does not run the file."""
    main = parse(data, "m").subgraphs[0]
    draw = np.random.default_rng(seed)
    try:
        interpreter = runtime.Interpreter.from_bytes(data, arena_size=ARENA)
        for at, number in enumerate(main.inputs):
            tensor = main.tensors[number]
            value = draw.standard_normal(tensor.shape) * (40 if "int" in tensor.dtype else 2)
            value = np.clip(value, -127, 127) if tensor.dtype == "int8" else value
            given = value > 0 if tensor.dtype == "bool" else value.astype(tensor.dtype)
            interpreter.set_input(given, at)
        interpreter.invoke()
    except (RuntimeError, ValueError):
        return None
    return [np.asarray(interpreter.get_output(at)).tobytes() for at in range(len(main.outputs))]


def draw_region(rng: random.Random, program: Uncut) -> Region:
    """Return a random region, of bands that may be too many."""
    count = len(program.operators)
    first, last = 0, count
    if rng.random() < 0.4:
        first = rng.randrange(count)
        last = rng.randint(first + 1, count)
    ends = program.sizes[program.operators[last - 1].makes] or (2, 2)
    most = rng.choice((6, 6, 9, 25))  # TFLM joins ten tensors at once
    rows, columns = (rng.randint(2, max(2, min(most, size + 1))) for size in ends)
    bands = rng.choice(((rows, 1), (rows, 1), (1, columns), (rows, min(columns, 4))))
    made = [step.makes for step in program.operators[first:last]]
    kept: frozenset[int] = frozenset()
    if bands[1] == 1 and rng.random() < 0.6:
        kept = frozenset(
            made if rng.random() < 0.5 else rng.sample(made, rng.randint(0, len(made)))
        )
    return Region(first, last, bands, kept, rng.random() < 0.5)


def draw_regions(rng: random.Random, program: Uncut) -> list[Region]:
    """Return one random region, or two that follow each other."""
    count, region = len(program.operators), draw_region(rng, program)
    if count < 2 or rng.random() < 0.8:
        return [region]
    middle = rng.randint(1, count - 1)
    regions = []
    for first, last in ((middle, count), (0, middle)):
        made = {step.makes for step in program.operators[first:last]}
        regions.append(replace(region, first=first, last=last, kept=region.kept & made))
        region = draw_region(rng, program)
    return regions


@dataclass
class Counts:
    """What was drawn, and what became of it."""

    drawn: int = 0
    compared: int = 0
    planned: int = 0
    rejected: Counter[str] = None  # type: ignore[assignment]
    whole: Counter[str] = None  # type: ignore[assignment]
    why: Counter[str] = None  # type: ignore[assignment]
    kinds: Counter[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.rejected, self.whole, self.why, self.kinds = (Counter() for _ in range(4))


def _read(data: bytes) -> Uncut:
    model = parse(data, "m")
    return uncut_of(graph_of(model))


def _find_untouched(data: bytes) -> list[int]:
    main = parse(data, "m").subgraphs[0]
    touched = {i for o in main.operators for i in (*o.inputs, *o.outputs)}
    touched |= {*main.inputs, *main.outputs}
    return [at for at in range(len(main.tensors)) if at not in touched]


def check_load(program: Uncut, timeline: Timeline, region: Region, found: Cut) -> None:
    """Check that a region is measured as the layout of the program in bands, and bounded below."""
    divided = divide(program, region)
    measured = timeline.measure(region, cut_region(program, divided))
    assert timeline.bound(divided) <= measured
    if (region.first, region.last) == (0, len(program.operators)):
        assert measured == lay_out(found.graph(), pins=False).problem.max_load


def list_views(found: Cut, numbers: dict[int, int]) -> list[View]:
    """Return what lies in other tensors, by their numbers in the file."""
    return [View(numbers[t], numbers[base], at) for t, (base, at) in found.views.items()]


def find_places(views: Iterable[View]) -> dict[int, tuple[int, int]]:
    """Return by view the tensor with memory of its own that it lies in, and its offset there."""
    given = {view.tensor: view for view in views}
    places = {}
    for tensor in given:
        base, offset = tensor, 0
        while base in given:
            base, offset = given[base].base, offset + given[base].offset
        places[tensor] = (base, offset)
    return places


def plan_offsets(data: bytes, views: Sequence[View], path: Path) -> list[int]:
    """Return the offsets of a plan in which bands lie at their places in pictures."""
    path.write_bytes(data)
    planned = plan_model(with_views(load(path), views))
    return find_offsets(parse(data, "m"), get_layout(planned), planned.plan)


def check_plan(data: bytes, found: Cut, numbers: dict[int, int], folder: Path) -> bytes:
    """Return a file with its plan, from which the same views are read back."""
    path, views = folder / "model.tflite", list_views(found, numbers)
    result = with_offsets(data, "m", plan_offsets(data, views, path))
    path.write_bytes(result)
    again = load(path).graph
    assert again is not None
    assert find_places(views).items() <= find_places(again.views).items()
    return result


def draw_any(rng: random.Random, case: int) -> tuple[bytes, Sequence[str]]:
    """Return a file of an operator and a few more, or a network, and the types of all operators."""
    if case % 8 == 0:
        network = draw_network(rng)
        return network.data, network.kinds
    return draw_file(rng, [*OPERATORS][case % len(OPERATORS)], rng.choice((0, 0, 0, 1, 2, 3)))


def compare(rng: random.Random, wanted: int, folder: Path) -> Counts:
    """Compare so many random cuts of random files, by what TFLM computes."""
    counts, case = Counts(), rng.randrange(1000)
    while counts.compared < wanted:
        case += 1
        data, kinds = draw_any(rng, case)
        expected = run(data)
        if expected is None:
            counts.rejected[" ".join(kinds)] += 1
            continue
        program = _read(data)
        timeline = Timeline(program, lay_out(program.graph, pins=False))
        for number in range(3):
            regions = draw_regions(rng, program)
            inside = [at for region in regions for at in range(region.first, region.last)]
            whys = {program.operators[at].why_whole for at in inside} - {""}
            if whys:
                counts.whole[min(whys)] += 1
                continue
            counts.drawn += 1
            try:
                found = cut(program, regions)
            except ValueError as why:
                counts.why[str(why)] += 1
                continue
            new, numbers = write_bands(data, "m", found)
            where = f"{kinds} {regions}"
            assert not _find_untouched(new), where
            check_load(program, timeline, regions[0], found)
            assert run(new) == expected, where
            if number == 0 and case % 3 == 0:
                assert run(check_plan(new, found, numbers, folder)) == expected, where
                counts.planned += 1
            counts.compared += 1
            counts.kinds.update({kinds[at] for at in inside})
    return counts


def check_counts(counts: Counts) -> None:
    """Check that most of what was drawn was compared."""
    assert counts.compared >= 0.6 * counts.drawn, counts


def test_any_operators_in_any_bands_give_the_same_bits(tmp_path: Path) -> None:
    """Tests random files: convolutions, pools, resizes, joins, and all others of the table."""
    check_counts(compare(random.Random(1), 300, tmp_path))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(rounds(2, 10)))
def test_thousands_of_operators_in_bands_give_the_same_bits(seed: int, tmp_path: Path) -> None:
    """Tests thousands of cuts of random files."""
    counts = compare(random.Random(100 + seed), 1_000, tmp_path)
    check_counts(counts)
    assert {*counts.kinds} == {*OPERATORS}


def test_a_band_off_its_place_is_refused(tmp_path: Path) -> None:
    """Tests plans of random files in which one band lies an element, or a word, beside its place.

    The kernel that copies it would overwrite what it still has to read.
    """
    rng, path, refused, case = random.Random(3), tmp_path / "model.tflite", 0, 0
    while refused < 40:
        case += 1
        data, _ = draw_file(rng, [*OPERATORS][case % len(OPERATORS)], rng.choice((0, 1)))
        program = _read(data)
        if any(step.why_whole for step in program.operators):
            continue
        try:
            found = cut(program, [draw_region(rng, program)])
        except ValueError:
            continue
        new, numbers = write_bands(data, "m", found)
        views = list_views(found, numbers)
        offsets = plan_offsets(new, views, path)
        moved = [rng.choice(views).tensor] if views else []
        for tensor in moved:
            width = 4 if parse(new, "m").subgraphs[0].tensors[tensor].dtype == "float32" else 1
            offsets[tensor] += rng.choice((width, -width, 16, -16))
            if offsets[tensor] < 0:
                continue
            path.write_bytes(with_offsets(new, "m", offsets))
            with pytest.raises(FormatError, match=r"overlap|conflict|pin|offset"):
                plan_model(load(path))
            refused += 1


def test_every_operator_with_a_map_is_drawn() -> None:
    """Tests that no map is without a test, but those of operators that TFLM does not have."""
    mapped = {name for name, row in TABLE.items() if row.rows not in ("", "mixes")}
    assert {*OPERATORS} | {*NOT_IN_TFLM} == mapped


@pytest.mark.parametrize("kind", NOT_IN_TFLM)
def test_other_operators_are_not_in_tflm(kind: str) -> None:
    """Tests the operators that are not drawn: TFLM refuses them, or they would have to be."""
    file = File(random.Random(2))
    x = file.image((1, 4, 4, 2), "float32")
    inputs = (x, x) if kind == "POW" else (x,)
    data = file.pack([file.operator(kind, inputs, file.value(x.shape, "float32"))])
    assert run(data) is None
