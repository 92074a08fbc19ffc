"""Tests of training steps from one slab, of random small networks, against eager steps."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from rounds import rounds

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import memplan  # noqa: E402
from memplan.extensions.streams import StreamRunner, capture_training  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SIDE = 6


class Residual(nn.Module):
    """A sum of its input and of what layers make of it."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape."""
        return x + self.body(x)


class Classifier(nn.Module):
    """Layers on a picture, and scores of the mean over it."""

    def __init__(self, layers: list[nn.Module], channels: int) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(*layers), nn.Linear(channels, 3)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        return self.head(self.body(x).mean((2, 3)))


def draw_layer(numbers: random.Random, channels: int) -> tuple[nn.Module, int]:
    """Return a layer for pictures of `SIDE`, and the number of channels behind it.

    Layers that torch itself traces to other operators than eager runs (SiLU, upsampling) have
    other last bits in the trace, so there are none.
    """
    out, yes = numbers.choice([2, 4]), numbers.random() < 0.7
    same: list[Any] = [
        lambda: nn.BatchNorm2d(channels, affine=yes, track_running_stats=numbers.random() < 0.8),
        lambda: nn.BatchNorm2d(channels),
        lambda: nn.GroupNorm(1, channels, affine=yes),
        lambda: nn.LayerNorm([channels, SIDE, SIDE], elementwise_affine=yes),
        lambda: nn.InstanceNorm2d(channels, affine=yes),
        lambda: nn.Dropout(0.3),
        lambda: nn.Dropout2d(0.3),
        lambda: nn.AvgPool2d(3, 1, 1),
        lambda: nn.MaxPool2d(3, 1, 1),
        lambda: nn.AdaptiveAvgPool2d(SIDE),
        lambda: nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
        lambda: nn.PReLU(numbers.choice([1, channels])),
        lambda: numbers.choice([nn.ReLU, nn.GELU, nn.Hardswish, nn.Tanh])(),
        lambda: nn.ReLU(inplace=True),
        lambda: Residual(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels)),
    ]
    if numbers.random() < 0.3:
        kind = numbers.choice([nn.Conv2d, nn.ConvTranspose2d])
        return kind(channels, out, 3, padding=1, bias=yes), out
    return numbers.choice(same)(), channels


def draw_network(numbers: random.Random) -> nn.Module:
    """Return a network of a few layers, of which some weights may be frozen."""
    layers, channels = [], 3
    for _ in range(numbers.randrange(1, 6)):
        layer, channels = draw_layer(numbers, channels)
        if isinstance(layer, nn.ReLU) and layers and isinstance(layers[-1], nn.ReLU | nn.Tanh):
            continue  # in place, it would change what the layer before keeps for its gradient
        layers.append(layer)
    model = Classifier(layers, channels)
    if numbers.random() < 0.25:
        next(model.parameters()).requires_grad_(False)
    return model.train(numbers.random() < 0.75)


def check_steps(seed: int) -> None:
    """Compare losses, weights and statistics of three steps, bit by bit."""
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    model = draw_network(numbers)
    eager = copy.deepcopy(model)
    optimizer = numbers.choice(["sgd", "adam"])
    program = capture_training(
        model,
        (torch.randn(2, 3, SIDE, SIDE),),
        loss=lambda scores: scores.square().mean(),
        optimizer=optimizer,
        lr=0.01,
        bucket_bytes=numbers.choice([100, 9000]),
        streams=numbers.choice(["one", "ddp", "category", "overlap"]),
    )
    runner = StreamRunner(memplan.solve(program.problem, nodes=500), program)
    torch_has: Any = torch.optim
    trained = [each for each in eager.parameters() if each.requires_grad]
    updates = (
        torch_has.SGD(trained, lr=0.01, momentum=0.9, foreach=False)
        if optimizer == "sgd"
        else torch_has.Adam(trained, lr=0.01, foreach=False)
    )
    for number in range(3):
        x = torch.randn(2, 3, SIDE, SIDE)
        torch.manual_seed(number)
        loss = runner.rehearse(x, seed=number, delay=1e-4) if number else runner(x)
        torch.manual_seed(number)
        updates.zero_grad()
        wanted = eager(x).square().mean()
        wanted.backward()
        updates.step()
        assert torch.equal(loss, wanted)
        mine, its = model.state_dict(), eager.state_dict()
        assert [name for name in its if not torch.equal(mine[name], its[name])] == []


@pytest.mark.parametrize("seed", range(4))
def test_random_steps_are_bit_equal(seed: int) -> None:
    """Tests steps of random networks in train and eval mode, with frozen weights and dropout."""
    check_steps(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4, rounds(24, 64)))
def test_more_random_steps_are_bit_equal(seed: int) -> None:
    """Tests the same on more networks."""
    check_steps(seed)
