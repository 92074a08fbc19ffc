"""The peaks of exported programs at every size of a range, held against a plan for some sizes."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import memplan
from memplan.scenarios.envelope import envelope
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Setting,
    Table,
    read_count,
    ready,
    tell,
)
from memplan_lab.extras import require


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


def measure(name: str, checks: int) -> dict[str, Any]:
    """Find the envelope of a program, and plan some of its sizes by themselves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pt2"
        ranges, condition = _export(name, path)
        begun = time.process_time()
        found = envelope(path, ranges, condition or (), threads=1)
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
        return {
            "buffers": len(corner.problem),
            "sizes": len(found),
            "plans": len(found.used),
            "proved": 0.0 if found.premise else 1 - found.open / len(found),
            "seconds": seconds,
            "differ": differ,
            "planned": len(rows),
            "one": found.plan.peak or 0,
            "largest": int(found.peaks.max()),
            "corner": memplan.solve(corner, threads=1, nodes=100_000).peak or 0,
        }


TABLE = Table(
    "Envelopes",
    (
        Column("program", "{case}"),
        Column("buffers", "{buffers}"),
        Column("sizes", "{sizes:,}"),
        Column("plans", "{plans}"),
        Column("proved", "{proved:.1%}"),
        Column("CPU seconds", "{seconds:.2f}"),
        Column("differ", "{differ} of {planned}"),
        Column("one plan", "{one:,}"),
        Column("over the largest", tell("{:.3f}", max, lambda row: row["one"] / row["largest"])),
        Column("corner of the box", "{corner:,}"),
    ),
)

EXPERIMENT = Experiment(
    "envelopes",
    "peaks of exported programs at every size of a range, held against plans for some sizes",
    figures={
        "sizes": "of the range",
        "plans": "that give the peaks of all sizes",
        "proved": "the share of the sizes at which no plan needs less",
        "seconds": "CPU time, with reading the file at some sizes",
        "differ": "sizes with another peak in a plan of their own, of those `planned`",
        "one": "bytes of the one plan for all sizes",
        "largest": "bytes of the largest peak",
        "corner": "the peak at the largest value of each dimension, whatever the condition says",
    },
    cases=lambda _: (Case(name, ready(name)) for name in PROGRAMS),
    arms=lambda settings: [Arm("memplan", partial(measure, checks=settings["checks"]))],
    tables=lambda rows, _: [TABLE],
    own={"checks": Setting(40, "sizes of each program that get a plan of their own", read_count)},
)
