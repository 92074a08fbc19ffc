"""The peaks of exported programs at every size of a range, held against a plan for some sizes."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memplan
from memplan_lab.extras import require

__all__ = ["HEADINGS", "PROGRAMS", "Row", "format_rows", "measure"]

HEADINGS = (
    *("program", "buffers", "sizes", "plans", "proved", "CPU seconds", "differ"),
    *("one plan", "over the largest", "corner of the box"),
)


@dataclass(frozen=True)
class Program:
    """A program with symbolic dimensions."""

    # Returns a module, example inputs, and the dynamic shapes, given `torch`.
    make: Callable[[Any], tuple[Any, tuple[Any, ...], Any]]
    ranges: tuple[str, ...]  # the sizes, by the place of a symbol among those of the inputs
    condition: str = ""  # what the sizes keep to, with {0} and {1} for the symbols


def _attention(torch: Any) -> tuple[Any, tuple[Any, ...], Any]:
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
            self.first, self.second = nn.LayerNorm(128), nn.LayerNorm(128)

        def forward(self, x: Any) -> Any:
            batch, tokens, _ = x.shape
            heads = self.qkv(self.first(x)).view(batch, tokens, 3, 4, 32).permute(2, 0, 3, 1, 4)
            q, k, v = heads.unbind(0)
            mixed = (q @ k.transpose(-2, -1)).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    dims = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("tokens", min=2, max=1024)
    layers = nn.Sequential(*(Layer() for _ in range(4)))
    return layers, (torch.randn(4, 64, 128),), ({0: dims[0], 1: dims[1]},)


def _recommender(torch: Any) -> tuple[Any, tuple[Any, ...], Any]:
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(100, 32) for _ in range(8))
            self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 32))
            self.top = nn.Sequential(nn.Linear(288, 512), nn.ReLU(), nn.Linear(512, 1))

        def forward(self, dense: Any, sparse: Any) -> Any:
            found = [table(sparse[:, at]) for at, table in enumerate(self.tables)]
            return self.top(torch.cat([self.bottom(dense), *found], 1))

    batch = torch.export.Dim("batch", min=1, max=4096)
    inputs = torch.randn(8, 13), torch.randint(0, 100, (8, 8))
    return Net(), inputs, ({0: batch}, {0: batch})


def _residual(torch: Any) -> tuple[Any, tuple[Any, ...], Any]:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, given: int, made: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(given, made, 3, 2, 1)
            self.second = nn.Conv2d(made, made, 3, 1, 1)
            self.short = nn.Conv2d(given, made, 1, 2)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.second(torch.relu(self.first(x))) + self.short(x))

    blocks = [Block(16 << at, 32 << at) for at in range(3)]
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
        *blocks,
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
    )
    batch, side = (
        torch.export.Dim("batch", min=1, max=16),
        torch.export.Dim("side", min=33, max=512),
    )
    return net, (torch.randn(2, 3, 64, 64),), ({0: batch, 2: side, 3: side},)


PROGRAMS: Mapping[str, Program] = {
    "recommender": Program(_recommender, ("1:4096",)),
    "attention": Program(_attention, ("1:64", "2:1024")),
    "attention, 4,096 tokens": Program(_attention, ("1:64", "2:1024"), "{0}*{1}<=4096"),
    "residual network": Program(_residual, ("1:16", "33:512")),
}


@dataclass(frozen=True)
class Row:
    """What was found of a program; amounts are in bytes."""

    # program, buffers, sizes, plans: Its name; its buffers, the sizes of the range, and the plans
    # that give their peaks.
    program: str
    buffers: int
    sizes: int
    plans: int
    proved: float  # the share of the sizes at which no plan needs less
    seconds: float  # CPU time, with reading the file at some sizes
    differ: int  # how many of the sizes that have a plan of their own have another peak in it
    planned: int  # how many have one
    # one, largest, corner: The one plan for all sizes, the largest peak, and the peak at the
    # largest values of all dimensions, whatever the condition says.
    one: int
    largest: int
    corner: int


def _export(name: str, path: Path) -> tuple[dict[str, str], str]:
    """Write an exported program to a file; return its ranges by symbol, and its condition."""
    torch = require("torch", extra="corpus")
    torch.manual_seed(0)
    program = PROGRAMS[name]
    module, inputs, shapes = program.make(torch)
    with torch.no_grad():
        exported = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes, strict=False)
    given = [node.meta["val"].shape for node in exported.graph.nodes if node.op == "placeholder"]
    symbols = dict.fromkeys(
        str(size) for shape in given for size in shape if not str(size).isdigit()
    )
    ranges = dict(zip(symbols, program.ranges, strict=True))
    torch.export.save(exported, path)
    return ranges, program.condition.format(*symbols)


def measure(name: str, checks: int) -> Row:
    """Find the envelope of a program, and plan some of its sizes by themselves."""
    with tempfile.TemporaryDirectory() as folder:
        return _measure(name, Path(folder) / "program.pt2", checks)


def _measure(name: str, path: Path, checks: int) -> Row:
    ranges, condition = _export(name, path)
    begun = time.process_time()
    found = memplan.envelope(path, ranges, condition or (), threads=1)
    seconds = time.process_time() - begun
    source, differ = random.Random(1), 0
    rows = source.sample(range(len(found)), min(checks, len(found)))
    for row in rows:
        sizes = found.range.sizes(row)
        problem = memplan.load(path, dims=sizes).problem
        memplan.verify(problem, found.plan_at(**sizes))
        differ += memplan.solve(problem, threads=1, nodes=100_000).peak != found.peaks[row]
    corner = memplan.load(
        path, dims={symbol: int(text.split(":")[1]) for symbol, text in ranges.items()}
    )
    return Row(
        name,
        len(corner.problem),
        len(found),
        len(found.used),
        0.0 if found.premise else 1 - found.open / len(found),
        seconds,
        differ,
        len(rows),
        found.plan.peak or 0,
        int(found.peaks.max()),
        memplan.solve(corner, threads=1, nodes=100_000).peak or 0,
    )


def format_rows(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a table, as `HEADINGS`."""
    for row in rows:
        yield (
            row.program,
            f"{row.buffers}",
            f"{row.sizes:,}",
            f"{row.plans}",
            f"{row.proved:.1%}",
            f"{row.seconds:.2f}",
            f"{row.differ} of {row.planned}",
            f"{row.one:,}",
            f"{row.one / row.largest:.3f}",
            f"{row.corner:,}",
        )
