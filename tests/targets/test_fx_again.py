"""Tests of training steps of PyTorch in which operators run again: their bits, and their peak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from memplan.errors import GraphError, PlanError  # noqa: E402
from memplan.referee import verify  # noqa: E402
from memplan.rewrite import verify_recompute  # noqa: E402
from memplan.runtime.torch import record  # noqa: E402
from memplan.solvers import solve  # noqa: E402
from memplan.sources.torch_export.training import training_program  # noqa: E402
from memplan.targets import fx_again  # noqa: E402
from memplan.yardsticks.torch_run import find_worst  # noqa: E402

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


@pytest.mark.parametrize("make", [transformer, pictures])
def test_a_step_runs_in_the_memory_that_was_planned(
    make: Callable[[], tuple[Any, tuple[Any, ...]]],
) -> None:
    """Tests bits against the plain graph, the measured peak, and that it falls with the budget."""
    model, args = make()
    program = training_program(model, args, mean)
    whole = fx_again.recompute(program, "1GiB")
    before = whole.found.given_peak
    expected = list(program.graph_module(*whole.inputs(*args)))
    peaks = []
    for share in (1.0, 0.85, 0.7):
        step = fx_again.recompute(program, int(share * before), states=2_000)
        inputs = step.inputs(*args)
        assert all_equal(list(step.module(*inputs)), expected)
        peaks.append(peak_of(step.module, inputs))
        assert step.found.peak / 1.02 <= peaks[-1] <= 1.02 * step.found.peak
        assert peaks[-1] <= share * before
        verify_recompute(step.found.given, step.found)
        assert not step.notes
    assert step.found.repeated > 0
    assert peaks == sorted(peaks, reverse=True)
    plan = solve(step.found.loaded.problem)
    verify(step.found.loaded.problem, plan)


@pytest.mark.parametrize("make", [transformer, pictures])
def test_a_step_does_what_autograd_does(
    make: Callable[[], tuple[Any, tuple[Any, ...]]],
) -> None:
    """Tests loss, gradients, and statistics of batch norm, which two steps change twice."""
    model, args = make()
    other, _ = make()
    program = training_program(model, args, mean)
    before = fx_again.recompute(program, "1GiB").found.given_peak
    step = fx_again.recompute(program, int(0.7 * before), states=2_000)
    for _ in range(2):
        loss = step(*args)
        expected, buffers = eager(other, args)
        assert all_equal([loss, *(each.grad for each in model.parameters())], expected)
        assert all_equal(list(model.buffers()), buffers)


def test_random_numbers_are_drawn_once() -> None:
    """Tests a model with dropout: its masks are those of the plain graph, and a note says why."""
    model, args = transformer(dropout=0.2)
    program = training_program(model, args, mean)
    before = fx_again.recompute(program, "1GiB").found.given_peak
    step = fx_again.recompute(program, int(0.7 * before), states=2_000)
    torch.manual_seed(3)
    expected = list(program.graph_module(*step.inputs(*args)))
    torch.manual_seed(3)
    assert all_equal(list(step.module(*step.inputs(*args))), expected)
    calls = [str(node.target) for node in step.module.graph.nodes]
    assert sum("dropout.default" in each for each in calls) == 2
    assert step.found.repeated > 0
    (note,) = step.notes
    assert note.code == "runs-once"
    assert '"native_dropout"' in note.text


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
    before = fx_again.recompute(program, "1GiB").found.given_peak
    step = fx_again.recompute(program, int(0.9 * before), order=False, states=2_000)
    assert step.found.repeated > 0
    inputs = step.inputs(*args)
    assert peak_of(step.module, inputs) <= step.found.peak
    assert all_equal(list(step.module(*inputs)), list(program.graph_module(*inputs)))


def test_what_cannot_be_done_is_said() -> None:
    """Tests a capacity below the floor, and a graph that writes in place."""
    model, args = pictures()
    program = training_program(model, args, mean)
    with pytest.raises(PlanError, match="below the floor"):
        fx_again.recompute(program, "1KiB")

    class Writes(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return (x + 1).relu_().mul_(2)

    program = torch.export.export(Writes(), (torch.randn(4),))
    with pytest.raises(GraphError, match=r'"relu_" writes into its inputs.*training_program'):
        fx_again.recompute(program, "1KiB")
