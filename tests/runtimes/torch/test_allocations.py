"""Tests of memplan.runtimes.torch.measure.allocations: what a graph shows of what is recorded."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from memplan.base.errors import MemplanError  # noqa: E402
from memplan.runtimes.torch.measure.allocations import Row, add_up, compare, export  # noqa: E402
from memplan.runtimes.torch.record import record  # noqa: E402
from memplan_lab.bench.models import NETWORKS  # noqa: E402

pytestmark = pytest.mark.slow


def test_a_pooling_and_a_view() -> None:
    """Tests that hidden indices count as recorded only, and views not at all."""
    model = torch.nn.Sequential(
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.ReLU(), torch.nn.Tanh()
    )
    image = torch.ones(1, 2, 8, 8)
    rows = compare(export(model, (image,), {}), record(model, image))
    assert rows == [
        Row("aten::max_pool2d", 1, 128, 2, 384),
        Row("aten::relu", 1, 128, 1, 128),
        Row("aten::tanh", 1, 128, 1, 128),
    ]
    assert add_up(rows) == Row("total", 3, 384, 4, 640)
    assert add_up([]) == Row("total", 0, 0, 0, 0)


def test_a_network() -> None:
    """Tests that the table of the paper holds for a network: the graph shows the lesser part."""
    model, inputs = NETWORKS["resnet18"](1, 64)
    trace = record(model, inputs)
    rows = {row.operator: row for row in compare(export(model, inputs, {}), trace)}
    assert add_up(rows.values()).allocations == len(trace)
    assert add_up(rows.values()).allocated_bytes == trace.size.sum()
    assert add_up(rows.values()).tensors < 0.6 * len(trace)
    assert rows["aten::relu"].tensors == rows["aten::relu"].allocations == 17
    for row in rows.values():
        assert row.tensor_bytes <= row.allocated_bytes


def test_no_graph() -> None:
    """Tests that what the compiler refuses is one sentence."""

    class Branches(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.neg() if x.sum().item() > 0 else x

    with pytest.raises(
        MemplanError, match=r"torch\.export makes no graph of the model: "
    ) as caught:
        export(Branches(), (torch.zeros(3),), {})
    assert "\n" not in str(caught.value)
