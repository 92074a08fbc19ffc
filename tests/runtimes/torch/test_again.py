"""Tests of training steps of PyTorch in which operators run again: their bits, and their peak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from memplan.base.errors import GraphError, PlanError  # noqa: E402
from memplan.levers.rewrite import recompute, verify_recompute  # noqa: E402
from memplan.referee import verify  # noqa: E402
from memplan.runtimes.torch.measure.run import find_worst  # noqa: E402
from memplan.runtimes.torch.read.training import training_program  # noqa: E402
from memplan.runtimes.torch.record import record  # noqa: E402
from memplan.runtimes.torch.write import again  # noqa: E402
from memplan.solvers import solve  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

nn = torch.nn


class Attention(nn.Module):  # type: ignore[misc, name-defined]
    """A block of a transformer: parts of a tuple, views of them, and attention."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.parts = nn.Linear(width, 3 * width)
        self.after = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: Any) -> Any:
        """Return the result for a batch of sequences."""
        batch, steps, width = x.shape
        parts = self.parts(self.norm(x)).split(width, 2)
        query, key, value = (one.view(batch, steps, 4, -1).transpose(1, 2) for one in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(batch, steps, width)
        return x + self.after(x)


def transformer(dropout: float = 0.0) -> tuple[Any, tuple[Any, ...]]:
    """Return blocks of attention and an input, large for the parameters."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Attention(16, dropout) for _ in range(2)))
    return model, (torch.randn(16, 32, 16),)


def pictures() -> tuple[Any, tuple[Any, ...]]:
    """Return convolutions with batch norm, and an input."""
    torch.manual_seed(0)
    layers: list[Any] = []
    for inside in (3, 8, 8):
        layers += [nn.Conv2d(inside, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2)), (torch.randn(4, 3, 24, 24),)


def mean(result: Any) -> Any:
    """Return a loss."""
    return result.square().mean()


def peak_of(module: Any, inputs: list[Any]) -> int:
    """Return the most bytes that a run holds beyond its inputs."""
    trace = record(module, inputs)
    return find_worst(trace, list(range(len(trace))))[0]


def eager(model: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return loss and gradients of autograd, and the buffers after the step."""
    loss = mean(model(*args))
    loss.backward()
    grads = [each.grad for each in model.parameters()]
    return [loss.detach(), *grads], list(model.buffers())


def all_equal(some: list[Any], others: list[Any]) -> bool:
    """Return whether all bits of two lists of tensors are equal."""
    return len(some) == len(others) and all(map(torch.equal, some, others))


def measured(program: Any) -> tuple[int, dict[str, float]]:
    """Return the load of a step, and costs that depend on no clock: the bytes of results."""
    graph, _ = again.measured_graph(program)
    costs = {
        each.name: 1e-9 * sum(graph.tensors[tensor].bytes for tensor in each.outputs)
        for each in graph.operators
    }
    return recompute(graph, "1GiB", costs=costs).given_peak, costs


def run_step(step: Any, args: tuple[Any, ...], expected: list[Any]) -> int:
    """Check the results of a step, and that it needs what was planned; return its peak."""
    inputs = step.inputs(*args)
    assert all_equal(list(step.module(*inputs)), expected)
    peak = peak_of(step.module, inputs)
    assert step.found.peak / 1.02 <= peak <= 1.02 * step.found.peak
    return peak


@pytest.mark.parametrize("make", [transformer, pictures])
def test_a_step_runs_in_the_memory_that_was_planned(
    make: Callable[[], tuple[Any, tuple[Any, ...]]],
) -> None:
    """Tests bits against the plain graph, the measured peak, and that it falls with the budget."""
    model, args = make()
    program = training_program(model, args, mean)
    before, costs = measured(program)
    expected: list[Any] = []
    peaks = []
    for share in (1.0, 0.85, 0.7):
        step = again.recompute(program, int(share * before), costs=costs, states=2_000)
        expected = expected or list(program.graph_module(*step.inputs(*args)))
        peaks.append(run_step(step, args, expected))
        assert peaks[-1] <= share * before
        verify_recompute(step.found.given, step.found, costs=step.costs)
    assert step.found.repeated > 0
    assert peaks == sorted(peaks, reverse=True)
    plan = solve(step.found.loaded.problem)
    verify(step.found.loaded.problem, plan)


@pytest.mark.parametrize("make", [transformer, pictures])
def test_results_move_to_host_memory_and_back(
    make: Callable[[], tuple[Any, tuple[Any, ...]]],
) -> None:
    """Tests bits and the measured peak, which the memory outside is no part of."""
    model, args = make()
    program = training_program(model, args, mean)
    before, costs = measured(program)
    expected: list[Any] = []
    for share, rate in ((0.7, "1000GB/s"), (0.85, "5GB/s")):
        step = again.recompute(program, int(share * before), costs=costs, spill=rate, states=1_000)
        expected = expected or list(program.graph_module(*step.inputs(*args)))
        run_step(step, args, expected)
        assert step.found.peak <= share * before
        assert step.found.moved
        verify_recompute(step.found.given, step.found, costs=costs, spill=rate)


@pytest.mark.parametrize("make", [transformer, pictures])
def test_a_step_does_what_autograd_does(
    make: Callable[[], tuple[Any, tuple[Any, ...]]],
) -> None:
    """Tests loss, gradients, and statistics of batch norm, which two steps change twice."""
    model, args = make()
    other, _ = make()
    program = training_program(model, args, mean)
    before, costs = measured(program)
    step = again.recompute(program, int(0.7 * before), costs=costs, states=2_000)
    for _ in range(2):
        loss = step(*args)
        expected, buffers = eager(other, args)
        assert all_equal([loss, *(each.grad for each in model.parameters())], expected)
        assert all_equal(list(model.buffers()), buffers)


class Noise(nn.Module):  # type: ignore[misc, name-defined]
    """Layers with random numbers of many kinds, which the backward pass needs."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.drops = [nn.Dropout(0.3), nn.AlphaDropout(0.2), nn.RReLU()]

    def forward(self, x: Any) -> Any:
        """Return the result for a batch of sequences."""
        for layer, drop in zip(self.layers, self.drops, strict=False):
            x = drop(layer(x)).sin()
        heads = x.view(8, 64, 2, 16).transpose(1, 2)
        x = nn.functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.2)
        x = x.transpose(1, 2).reshape(8, 64, 32)
        x = x + torch.rand_like(x) * torch.bernoulli(torch.sigmoid(x))
        return nn.functional.gumbel_softmax(self.layers[3](x))


def test_what_draws_random_numbers_runs_again_and_draws_the_same() -> None:
    """Tests bits of a step whose draws run again, and that the generator is left as it should be.

    Dropout does not draw again: its mask is kept, which takes less time.
    """
    torch.manual_seed(0)
    model, args = Noise().train(), (torch.randn(8, 64, 32),)
    program = training_program(model, args, mean)
    before, costs = measured(program)
    costs = {name: 10 * cost if "draw" in name else cost for name, cost in costs.items()}
    repeated = set()
    for share in (0.8, 0.6):
        step = again.recompute(program, int(share * before), costs=costs, states=2_000)
        outcomes = []
        for module in (program.graph_module, step.module):
            torch.manual_seed(3)
            outcomes.append([*module(*step.inputs(*args)), torch.get_rng_state()])
        assert all_equal(*outcomes)
        assert peak_of(step.module, step.inputs(*args)) <= step.found.peak
        verify_recompute(step.found.given, step.found, costs=costs)
        repeated |= {each.name for each in step.found.graph.operators if "(again)" in each.name}
    assert any(name.startswith("draw") for name in repeated)
    assert any(name.startswith("native_dropout_backward") for name in repeated)
    torch.manual_seed(3)
    loss, *gradients = outcomes[0]
    expected = mean(model(*args))
    assert torch.equal(expected, loss)
    gradients = gradients[: len(list(model.parameters()))]
    assert all_equal(list(torch.autograd.grad(expected, list(model.parameters()))), gradients)


def test_times_of_a_run_are_the_costs() -> None:
    """Tests that operators have measured times, with which the same is found again."""
    model, args = pictures()
    program = training_program(model, args, mean)
    before = again.recompute(program, "1GiB").found.given_peak
    step = again.recompute(program, int(0.7 * before), states=2_000)
    assert isinstance(step.costs, dict)
    graph, seconds = again.measured_graph(program)
    assert step.costs.keys() == seconds.keys() == {each.name for each in graph.operators}
    assert all(seconds > 0 for seconds in step.costs.values())
    same = again.recompute(program, int(0.7 * before), costs=step.costs, states=2_000)
    assert same.found.runs == step.found.runs
    verify_recompute(step.found.given, same.found, costs=step.costs)


def test_gradients_of_a_convolution_are_made_one_by_one() -> None:
    """Tests that a step needs less memory than PyTorch's kernel, which makes both at once."""
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(64, 64, 3, padding=1), nn.ReLU())]
    model, args = nn.Sequential(nn.Conv2d(3, 64, 1), *layers), (torch.randn(1, 3, 8, 8),)
    program = training_program(model, args, mean)
    step = again.recompute(program, "1GiB")
    inputs = step.inputs(*args)
    assert all_equal(list(step.module(*inputs)), list(program.graph_module(*inputs)))
    calls = [node for node in step.module.graph.nodes if "convolution_backward" in str(node.target)]
    assert sorted(node.args[-1] for node in calls) == (
        3 * [[False, True, True]] + [[False, True, True]] + 3 * [[True, False, False]]
    )
    assert peak_of(step.module, inputs) <= step.found.peak


def test_parts_and_views_of_a_copy_keep_no_older_one() -> None:
    """Tests the peak where a tuple and views of its parts are made again for a late reader."""

    class Parts(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64))

        def forward(self, x: Any) -> Any:
            wide = (x * self.weight).exp()
            first, second = wide.view(-1, 2, 32).unbind(1)
            late = torch.cat([first, second] * 4, 1).sin().reshape(-1, 64)
            return late.cos().sum() + (first.t() @ second).sum()

    torch.manual_seed(0)
    model, args = Parts(), (torch.randn(512, 64),)
    program = training_program(model, args)
    before, costs = measured(program)
    step = again.recompute(program, int(0.9 * before), costs=costs, order=False, states=2_000)
    assert step.found.repeated > 0
    inputs = step.inputs(*args)
    assert peak_of(step.module, inputs) <= step.found.peak
    assert all_equal(list(step.module(*inputs)), list(program.graph_module(*inputs)))


def test_what_cannot_be_done_is_said() -> None:
    """Tests a capacity below the floor, and a graph that writes in place."""
    model, args = pictures()
    program = training_program(model, args, mean)
    with pytest.raises(PlanError, match="below the floor"):
        again.recompute(program, "1KiB")

    class Writes(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return (x + 1).relu_().mul_(2)

    program = torch.export.export(Writes(), (torch.randn(4),))
    with pytest.raises(GraphError, match=r'"relu_" writes into its inputs.*training_program'):
        again.recompute(program, "1KiB")


def test_operators_with_programs_of_their_own_are_named() -> None:
    """Tests that a branch is said to be one, and not called what PyTorch does not know."""

    class Branch(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = torch.export.export(Branch(), (torch.randn(4),))
    with pytest.raises(GraphError, match=r'"cond" is of cond, which runs programs of its own'):
        again.recompute(program, "1KiB")
