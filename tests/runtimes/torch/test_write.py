"""Tests of programs of PyTorch whose nodes are put into another order: what they are, and need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from slab_models import Calls  # noqa: E402

from memplan.base.errors import GraphError  # noqa: E402
from memplan.extensions.slab import Slab, record  # noqa: E402
from memplan.extensions.slab.extension import load as load_slab  # noqa: E402
from memplan.problem.plan import Status  # noqa: E402
from memplan.programs.sources import load  # noqa: E402
from memplan.runtimes.torch.measure.run import measure_run  # noqa: E402
from memplan.runtimes.torch.write import writer as fx  # noqa: E402
from memplan.runtimes.torch.write.apply import put_in_bands  # noqa: E402
from memplan.solvers import solve  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_gradients")]


def fan(x: Any) -> Any:
    """Return four small sums of wide tensors, all of which are made first."""
    wide = [torch.cat([x * (at + 1)] * 8) for at in range(4)]
    return torch.stack([each.view(-1, 64).sum(0) for each in wide])


def exported(function: Callable[..., Any], *args: Any) -> Any:
    """Return the program of a function."""
    return torch.export.export(Calls(lambda _, *given: function(*given)), args)


def names(program: Any) -> list[str]:
    """Return the names of the nodes that call something."""
    return [node.name for node in program.graph.nodes if node.op == "call_function"]


def test_the_measured_peak_falls_as_said() -> None:
    """Tests the allocations of both orders on real tensors, and that results are bit-equal."""
    x = torch.randn(64, 64)
    program = exported(fan, x)
    expected = program.module()(x)
    before = measure_run(program, (x,))
    found = fx.reorder(program)
    after = measure_run(program, (x,))
    assert (before.peak, after.peak) == (found.given_peak, found.peak)
    assert found.peak == found.bound < 0.4 * found.given_peak
    assert found.status is Status.OPTIMAL
    assert torch.equal(program.module()(x), expected)
    again = fx.reorder(program)
    assert not again.moved


def test_a_file_keeps_the_order(tmp_path: Path) -> None:
    """Tests a `.pt2` of the new order, which is loaded and run: bits, nodes and the peak."""
    x = torch.randn(64, 64)
    program = exported(fan, x)
    expected = program.module()(x)
    found = fx.reorder(program)
    torch.export.save(program, tmp_path / "ordered.pt2")
    loaded = torch.export.load(tmp_path / "ordered.pt2")
    assert names(loaded) == names(program)
    assert torch.equal(loaded.module()(x), expected)
    assert (
        measure_run(loaded, (x,)).peak
        == found.peak
        == load(tmp_path / "ordered.pt2").problem.max_load
    )


EDGES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nothing": (lambda x: x, (torch.ones(4),)),
    "one operator": (lambda x: x.relu(), (torch.ones(1),)),
    "a view": (lambda x: x.reshape(-1), (torch.ones(2, 2),)),
    "an input as a result": (lambda x: (x.relu(), x), (torch.ones(3),)),
    "no inputs": (lambda: torch.ones(3) * 2, ()),
    "no elements": (lambda x: x.relu().tanh(), (torch.ones(0, 4),)),
    "one number": (lambda x: x.sum(), (torch.ones(5),)),
}


@pytest.mark.parametrize("change", [fx.reorder, put_in_bands])
@pytest.mark.parametrize("name", EDGES)
def test_programs_at_the_edges_run(tmp_path: Path, name: str, change: Callable[..., Any]) -> None:
    """Tests bits of programs with little in them, changed and saved."""
    function, args = EDGES[name]
    program = exported(function, *args)
    expected = program.module()(*args)
    change(program)
    torch.export.save(program, tmp_path / "edge.pt2")
    for each in (program, torch.export.load(tmp_path / "edge.pt2")):
        torch.testing.assert_close(each.module()(*args), expected, rtol=0, atol=0)


def test_a_slab_of_the_order_is_smaller() -> None:
    """Tests a recording of the program in its new order, run in a slab: bit-equal."""
    load_slab()
    x = torch.randn(64, 64)
    program = exported(fan, x)
    expected = program.module()(x)
    given = solve(record(program.module(), (x,)).problem())
    found = fx.reorder(program)
    trace = record(program.module(), (x,))
    plan = solve(trace.problem())
    assert given.peak is not None
    assert plan.peak is not None
    assert given.peak - plan.peak == found.given_peak - found.peak
    with Slab(plan, trace) as fast:
        assert torch.equal(fast(x), expected)


def test_results_of_several_and_sizes_stay_with_their_makers() -> None:
    """Tests tuples, views and sizes that are computed from shapes that are not fixed."""

    def several(x: Any) -> Any:
        wide = [torch.cat([x + at] * 6) for at in range(3)]
        parts = [each.unbind(1)[:3] for each in wide]
        best = [torch.max(first * second, 0) for first, second, _ in parts]
        return [value * x.shape[0] for value, _ in best] + [at for _, at in best]

    x = torch.randn(12, 32)
    model = Calls(lambda _, given: several(given))
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=((({0: rows}),),))
    found = fx.reorder(program)
    assert found.peak < found.given_peak
    program.graph_module.graph.lint()
    for count in (12, 5):
        x = torch.randn(count, 32)
        for one, other in zip(program.module()(x), several(x), strict=True):
            assert torch.equal(one, other)


def test_random_numbers_are_drawn_in_their_order() -> None:
    """Tests that the same seed gives the same results."""

    def draw(x: Any) -> Any:
        wide = [torch.cat([torch.rand_like(x)] * 8) for _ in range(4)]
        return torch.stack([each.sum() for each in wide])

    x = torch.randn(32, 32)
    program = exported(draw, x)
    torch.manual_seed(3)
    expected = program.module()(x)
    drawn = [name for name in names(program) if name.startswith("rand_like")]
    assert len(drawn) == 4
    found = fx.reorder(program)
    assert found.peak < found.given_peak
    torch.manual_seed(3)
    assert torch.equal(program.module()(x), expected)
    assert [name for name in names(program) if name.startswith("rand_like")] == drawn


def test_state_is_updated_as_before() -> None:
    """Tests a buffer that is read by a wide branch and then replaced."""

    class Counts(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(32, 32))

        def forward(self, x: Any) -> Any:
            wide = [torch.cat([self.seen + x * at] * 8) for at in range(4)]
            self.seen.add_(x)
            return torch.stack([each.sum() for each in wide]) + self.seen.mean()

    x = torch.randn(32, 32)
    expected = Counts()
    results = [expected(x), expected(x)]
    program = torch.export.export(Counts(), (x,))
    found = fx.reorder(program)
    assert found.peak < found.given_peak
    module = program.module()
    assert all(torch.equal(module(x), each) for each in results)
    assert torch.equal(module.seen, expected.seen)


def test_operators_that_write_into_tensors_keep_their_place() -> None:
    """Tests writes through a view, in a program before it was made functional."""

    def write(x: Any) -> Any:
        kept = x.clone()
        wide = [torch.cat([kept + at] * 8) for at in range(4)]
        kept[0].mul_(2)
        late = [torch.cat([kept + at] * 8) for at in range(4)]
        return torch.stack([each.sum() for each in (*wide, *late)])

    x = torch.randn(32, 32)
    program = torch.export.export(Calls(lambda _, given: write(given)), (x,))
    assert any("mul_" in str(node.target) for node in program.graph.nodes)
    found = fx.reorder(program)
    assert found.peak < found.given_peak
    assert torch.equal(program.module()(x), write(x))


def test_a_graph_module_is_reordered() -> None:
    """Tests what `make_fx` returns, with a weight inside."""
    from torch.fx.experimental.proxy_tensor import make_fx

    weight = torch.randn(64, 64)
    x = torch.randn(64, 64)
    module = make_fx(
        lambda given: fan(given + weight), tracing_mode="fake", _allow_non_fake_inputs=True
    )(x)
    expected = module(x)
    found = fx.reorder(module)
    assert found.peak < found.given_peak
    assert torch.equal(module(x), expected)


def test_unknown_operators_are_refused_by_name() -> None:
    """Tests an operator without results, and modules that are called."""
    library = torch.library.Library("memplan_fx", "DEF")
    library.define("log(Tensor x) -> ()")
    library.impl("log", lambda x: None, "CompositeExplicitAutograd")
    library.impl("log", lambda x: None, "Meta")

    def logs(x: Any) -> Any:
        result = fan(x)
        torch.ops.memplan_fx.log(result)
        return result

    x = torch.randn(8, 8)
    program = exported(logs, x)
    if "log_default" not in " ".join(names(program)) and "log" not in " ".join(names(program)):
        pytest.skip("the exporter drops operators without results")
    before = names(program)
    with pytest.raises(GraphError, match=r"side effects: .*memplan_fx.log"):
        fx.reorder(program)
    assert names(program) == before
    found = fx.reorder(program, pure=["memplan_fx.log.default"])
    assert found.peak < found.given_peak
    library._destroy()


def test_what_is_no_program_is_refused() -> None:
    """Tests a module without nodes, and nodes that do not say what they make."""
    with pytest.raises(GraphError, match="a Linear has no nodes"):
        fx.reorder(torch.nn.Linear(2, 2))
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with pytest.raises(GraphError, match=r'node "input_1" does not say|node "_0" does not say'):
        fx.reorder(traced)
