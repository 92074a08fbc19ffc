"""Tests of programs of PyTorch in bands: every operator, what is allocated, what cannot be cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rounds import rounds

torch = pytest.importorskip("torch")

from fx_operators import DRAWS, export, move  # noqa: E402
from slab_models import Calls  # noqa: E402

import memplan as mp  # noqa: E402
from memplan.base.errors import MemplanError  # noqa: E402
from memplan.levers.rewrite.bands import Region, Uncut, cut  # noqa: E402
from memplan.programs.graph import lay_out  # noqa: E402
from memplan.runtimes.torch.measure.run import measure_run  # noqa: E402
from memplan.runtimes.torch.write import apply as target  # noqa: E402
from memplan.runtimes.torch.write.bands import keep_whole, list_calls, write_bands  # noqa: E402
from memplan.runtimes.torch.write.writer import load_graph  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_gradients")]

nn = torch.nn
functional = torch.nn.functional


def check(draw_one: Callable[[random.Random], Any], seed: int) -> bool:
    """Test one random operator in random bands; return whether it was cut, and is bit-equal."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Hardtanh(-9, 9), draw_one(draw), nn.Hardtanh(-9, 9))
    x = torch.randn(1, 4, 16, 12)
    # A shuffle of pixels is decomposed into views of more dimensions.
    program = export(model, x, decomposed=draw.random() < 0.5 and draw_one is not move)
    expected = program.module()(x)
    graph = load_graph(program)
    made = Uncut(keep_whole(graph, list_calls(program.graph_module, graph)))
    assert not any(step.why_whole for step in made.operators)
    bands = draw.choice([(2, 1), (3, 1), (5, 1), (1, 2), (2, 2), (3, 4)])
    kept = [step.makes for step in made.operators if draw.random() < 0.5]
    first = draw.randrange(2)
    kept = [tensor for tensor in kept if tensor != made.operators[0].makes] if first else kept
    region = Region(first, len(made.operators), bands, frozenset(kept if bands[1] == 1 else ()))
    try:
        found = cut(made, [region])
    except ValueError:  # there are more bands than rows
        return False
    write_bands(program, found)
    program.validate()
    load = lay_out(load_graph(program)).problem.max_load
    assert load <= lay_out(found.graph()).problem.max_load
    result = program.module()(x)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    return bool(torch.equal(result, expected))


@pytest.mark.parametrize("draw_one", DRAWS, ids=lambda one: one.__name__)
def test_parts_of_operators_are_equal_to_the_whole(draw_one: Any) -> None:
    """Tests 12 random operators of each kind, in random bands."""
    assert sum(check(draw_one, seed) for seed in range(12)) > 6


@pytest.mark.deep
@pytest.mark.parametrize("draw_one", DRAWS, ids=lambda one: one.__name__)
def test_parts_of_many_operators_are_equal_to_the_whole(draw_one: Any) -> None:
    """Tests many more of each kind."""
    count = rounds(40, 400)
    assert sum(check(draw_one, seed) for seed in range(25, 25 + count)) > count // 2


# Networks


def network(third: Any = None) -> Any:
    """Return a network whose first pictures are the largest."""
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        nn.Conv2d(8, 8, 3, stride=2, padding=1),
        third or nn.Hardswish(),
        *(nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.AdaptiveAvgPool2d(1)),
    )


@pytest.mark.parametrize("decomposed", [False, True])
def test_the_measured_peak_falls(decomposed: bool) -> None:
    """Tests the allocations of both programs, with the scratch of kernels, and the results."""
    x = torch.randn(1, 3, 64, 64)
    program = export(network(), x, decomposed=decomposed)
    expected = program.module()(x)
    before = measure_run(program, (x,))
    found = target.put_in_bands(program, max_extra=0.2)
    program.validate()
    after = measure_run(program, (x,))
    assert (before.load, after.load) == (found.given_peak, found.peak)
    assert found.peak < 0.4 * found.given_peak
    assert after.peak < 0.4 * before.peak
    assert 0 < found.extra <= 0.2
    torch.testing.assert_close(program.module()(x), expected)


def test_a_file_keeps_the_bands(tmp_path: Path) -> None:
    """Tests a `.pt2` in bands, which is loaded and run: the bits of the program, and its load."""
    x = torch.randn(1, 3, 64, 64)
    program = export(network(), x)
    found = target.put_in_bands(program, max_extra=0.2)
    torch.export.save(program, tmp_path / "bands.pt2")
    loaded = torch.export.load(tmp_path / "bands.pt2")
    assert torch.equal(loaded.module()(x), program.module()(x))
    assert measure_run(loaded, (x,)).load == found.peak


def test_a_result_is_joined_and_inputs_may_be_read_twice() -> None:
    """Tests a program whose pictures are results themselves, and a long way around."""

    def run(layers: Any, x: Any) -> Any:
        wide = torch.relu(layers.one(x))
        return layers.two(wide), wide.sum((2, 3)), layers.two(wide + 1) * 2

    model = Calls(run, one=nn.Conv2d(3, 16, 3, padding=1), two=nn.Conv2d(16, 1, 1))
    x = torch.randn(1, 3, 32, 32)
    program = export(model, x)
    expected = program.module()(x)
    assert target.put_in_bands(program, max_extra=1.0).peak > 0
    for one, other in zip(program.module()(x), expected, strict=True):
        torch.testing.assert_close(one, other)
    program = export(nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 1, 3)), x)
    expected = program.module()(x)
    found = target.put_in_bands(program)
    assert found.peak < 0.6 * found.given_peak
    torch.testing.assert_close(program.module()(x), expected)


def test_a_graph_module_is_cut() -> None:
    """Tests what `make_fx` returns, with weights inside."""
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(1, 3, 64, 64)
    module = make_fx(network().eval(), tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    module.graph.eliminate_dead_code()
    expected = module(x)
    found = target.put_in_bands(module, max_extra=0.2)
    assert found.peak < 0.5 * found.given_peak
    torch.testing.assert_close(module(x), expected)


def test_the_least_work_within_a_budget() -> None:
    """Tests that a budget asks for no more than it needs, and one that cannot be met."""
    x = torch.randn(1, 3, 64, 64)
    least = target.put_in_bands(export(network(), x), max_extra=0.5)
    budget = (least.peak + least.given_peak) // 2
    found = target.put_in_bands(export(network(), x), max_extra=0.5, capacity=budget)
    assert least.peak < found.peak <= budget
    assert found.extra < least.extra
    program = export(network(), x)
    nodes = [node.name for node in program.graph.nodes]
    with pytest.raises(
        MemplanError, match=r"found has \d+ bytes .* \d+ more than the capacity of 10: "
    ):
        target.put_in_bands(program, max_extra=0.5, capacity=10)
    assert [node.name for node in program.graph.nodes] == nodes


WHOLE = {
    "memplan does not know which rows of its inputs instance_norm needs": nn.InstanceNorm2d(8),
    "it writes into a tensor, or makes a view of one": nn.ReLU(inplace=True),
    "its last windows may reach beyond the padding (ceil_mode)": nn.MaxPool2d(2, ceil_mode=True),
    "its corners are aligned, so its scale depends on all rows": nn.Upsample(
        scale_factor=2, mode="bilinear", align_corners=True
    ),
    "its scale of 32 to 96 is not exact in binary numbers": nn.Upsample(scale_factor=3),
    "it normalizes by all rows or columns": nn.Softmax(2),
}


@pytest.mark.parametrize("why", WHOLE)
def test_an_operator_without_a_map_ends_a_region(why: str) -> None:
    """Tests that it is as it was, that its sides may be in bands, and that its reason is told."""
    x = torch.randn(1, 3, 64, 64)
    program = export(network(WHOLE[why]), x)
    expected = program.module()(x)
    found = target.put_in_bands(program, max_extra=0.5)
    assert found.frontier is not None
    operators = found.frontier.uncut.operators
    whole = [step for step in operators[:-1] if step.why_whole]
    assert [step.why_whole for step in whole] == [why]
    at = operators.index(whole[0])
    assert all(not r.first <= at < r.last for p in found.frontier.points for r in p.regions)
    torch.testing.assert_close(program.module()(x), expected)


def test_a_batch_and_open_sizes_are_whole() -> None:
    """Tests two pictures at once, and a program for any number of rows: nothing is cut."""
    x = torch.randn(2, 3, 64, 64)
    found = target.put_in_bands(export(network(), x))
    assert (found.peak, found.extra) == (found.given_peak, 0.0)
    assert found.frontier is not None
    assert found.frontier.uncut.operators[0].why_whole == "its result has a batch of 2"
    rows = torch.export.Dim("rows", min=8, max=64)
    program = torch.export.export(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval(), (x[:1],), dynamic_shapes=({2: rows},)
    )
    found = target.put_in_bands(program)
    assert found.cut is None
    assert found.frontier is not None
    assert found.frontier.uncut.operators[0].why_whole == "its sizes are known only at run time"


def test_a_program_in_memory_is_loaded_as_its_file() -> None:
    """Tests `memplan.load` with a program, and what it says of a module and of anything else."""
    x = torch.randn(1, 3, 16, 16)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    program = export(module, x)
    loaded = mp.load(program, capacity=100_000)
    assert loaded.source == "torch"
    assert loaded.problem.capacity == 100_000
    assert loaded.graph == load_graph(program)
    with pytest.raises(mp.MemplanError, match=r"torch\.export\.export\(module"):
        mp.load(module)
    with pytest.raises(mp.MemplanError, match="not a int"):
        mp.load(7)
