"""Small networks for the tests of ExecuTorch; torch is imported where it is needed."""

from __future__ import annotations

from typing import Any


def mobilenet() -> tuple[Any, tuple[Any, ...]]:
    """Return a MobileNet V2 of reduced depth, for images of 32 x 32."""
    import torch
    from torch import nn

    def conv(i: int, o: int, kernel: int, stride: int = 1, groups: int = 1) -> list[Any]:
        pad = kernel // 2
        layer = nn.Conv2d(i, o, kernel, stride, pad, groups=groups, bias=False)
        nn.init.kaiming_normal_(layer.weight)  # without training: signals that do not die out
        return [layer, nn.BatchNorm2d(o)]

    class InvertedResidual(nn.Module):
        def __init__(self, i: int, o: int, stride: int) -> None:
            super().__init__()
            wide, act = 6 * i, nn.ReLU6()
            deep = conv(wide, wide, 3, stride, wide)
            self.body = nn.Sequential(*conv(i, wide, 1), act, *deep, act, *conv(wide, o, 1))
            self.skips = stride == 1 and i == o

        def forward(self, x: Any) -> Any:
            return x + self.body(x) if self.skips else self.body(x)

    rows = [(8, 16, 2), (16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 24, 1), (24, 32, 2)]
    blocks = [InvertedResidual(*row) for row in rows]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    model = nn.Sequential(*conv(3, 8, 3, 2), nn.ReLU6(), *blocks, *tail)
    return model, (torch.rand(1, 3, 32, 32),)


def transformer() -> tuple[Any, tuple[Any, ...]]:
    """Return a transformer encoder of two layers."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.rand(1, 24, 64),)


def branches() -> tuple[Any, tuple[Any, ...]]:
    """Return a network that takes one of two ways, and goes on with the result."""
    import torch
    from torch import nn

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.Linear(40, 40), nn.Linear(40, 24)

        def forward(self, x: Any) -> Any:
            def fast(a: Any) -> Any:
                return (a * 2).relu() + 1

            def slow(a: Any) -> Any:
                return torch.cat([a.sigmoid(), a.tanh()], 1).narrow(1, 20, 40) - a

            kept = self.before(x)
            chosen = torch.cond(x.sum() > 0, fast, slow, (kept,))
            return self.after(chosen).softmax(1) + self.after(kept)

    return Branches(), (torch.randn(8, 40),)


def two_branches() -> tuple[Any, tuple[Any, ...]]:
    """Return a network whose first choice, itself with one inside, is read after the second."""
    import torch
    from torch import nn

    class TwoBranches(nn.Module):
        def forward(self, x: Any) -> Any:
            def inner(a: Any) -> Any:
                first = torch.cond(a.sum() > 9, lambda b: b * 2, lambda b: b * 3, (a,))
                second = torch.cond(a.sum() < 9, lambda b: b + 2, lambda b: b - 3, (a,))
                return first.sin() + second

            one = torch.cond(x.sum() > 0, inner, lambda a: a * 5 + 1, (x,))
            two = torch.cond(x.sum() > 1, lambda a: a + 100, lambda a: a - 100, (x,))
            three = torch.cond(x.sum() > 2, inner, lambda a: (a + 1) * 7, (two,))
            return one + two + three

    return TwoBranches(), (torch.arange(6.0) + 1,)
