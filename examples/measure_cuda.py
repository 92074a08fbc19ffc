"""Measures slabs and parallel streams on a CUDA device; needs torchvision.

    python examples/measure_cuda.py slab resnet50 16  # a slab, the caching allocator
    python examples/measure_cuda.py streams 1 28      # branches on 1, 2 and 4 streams

An allocator is chosen once for a process, so the first command runs three processes: one for the
caching allocator, one that records, and one that loads the recording. In a process that has used
the profiler, as recording does, every operator takes longer.
"""

from __future__ import annotations

import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import memplan
from memplan.extensions.slab import cuda, record
from memplan.extensions.streams import StreamRunner, capture_inference
from memplan.problem.formats import load_trace


class Branches(nn.Module):
    """Three blocks of four branches, each of three convolutions."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()

        def branch() -> nn.Module:
            layers = [(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()) for _ in range(3)]
            return nn.Sequential(*(layer for pair in layers for layer in pair))

        self.blocks = nn.ModuleList(nn.ModuleList(branch() for _ in range(4)) for _ in range(3))
        self.joins = nn.ModuleList(nn.Conv2d(4 * channels, channels, 1) for _ in range(3))

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape."""
        for block, join in zip(self.blocks, self.joins, strict=True):
            x = join(torch.cat([branch(x) for branch in block], 1))
        return x


def measure_time(run: Callable[[], object], rounds: int = 50) -> float:
    """Return the median of the microseconds from a call until the device has done it."""
    for _ in range(5):
        run()
    seconds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds) * 1e6


def make_network(name: str, batch: int) -> tuple[Any, Any]:
    """Return a network of torchvision, or four layers of a transformer, and an input."""
    torch.manual_seed(0)
    if name == "transformer":
        layers = (
            nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True)
            for _ in range(4)
        )
        return nn.Sequential(*layers).eval().cuda(), torch.randn(batch, 128, 512, device="cuda")
    import torchvision

    model = getattr(torchvision.models, name)()
    return model.eval().cuda(), torch.randn(batch, 3, 224, 224, device="cuda")


def measure_slab(how: str, name: str, batch: int, file: Path) -> None:
    """Run a network in one way, and print what it took."""
    if how != "caching":
        cuda.install()
    model, x = make_network(name, batch)
    for _ in range(3):
        expected = model(x)
    bits = hashlib.sha256(expected.cpu().numpy().tobytes()).hexdigest()[:16]
    del expected
    if how == "caching":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        model(x)
        more = torch.cuda.max_memory_allocated() - allocated
        segments = torch.cuda.max_memory_reserved() - reserved
        microseconds = measure_time(lambda: model(x))
        print(f"caching: {bits} peak {more:,} in segments {segments:,} {microseconds:.0f} us")
        return
    if how == "record":
        memplan.save(record(model, (x,), device="cuda", warmup=3), file)
    trace = load_trace(file)
    plan = memplan.solve(trace.problem(), timeout=2.0)
    with cuda.CudaSlab(plan, trace, model) as fast:
        equal = torch.equal(fast(x), model(x))
        found = fast.stats()
        microseconds = measure_time(lambda: fast(x))
    served = f"{found.hits} of {len(trace.planned)}"
    print(f"{how}: {bits} equal {equal} slab {plan.peak:,} hits {served} {microseconds:.0f} us")


def measure_streams(batch: int, side: int) -> None:
    """Run branches on one and more streams, launched from Python and from CUDA graphs."""
    torch.manual_seed(0)
    model = Branches().eval().cuda()
    x = torch.randn(batch, 64, side, side, device="cuda")
    expected = model(x)
    print(
        f"eager: {measure_time(lambda: model(x)):.0f} us, graph {_measure_graph(model, x):.0f} us"
    )
    for streams in (1, 2, 4):
        program = capture_inference(model, (x,), streams=streams)
        plan = memplan.solve(program.problem, timeout=2.0)
        fast = StreamRunner(plan, program)
        equal = all(torch.equal(fast(x), expected) for _ in range(50))
        launched, replayed = measure_time(partial(fast, x)), _measure_graph(fast, x)
        print(
            f"{streams} streams: equal {equal} slab {fast.slab_bytes:,} {launched:.0f} us, "
            f"graph {replayed:.0f} us"
        )


def _measure_graph(model: Any, x: Any) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(x)  # libraries make their workspaces
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(x)
    graph.replay()
    assert torch.equal(result, model(x))
    return measure_time(graph.replay)


def main() -> None:
    """Run the command of the caller, or one of its processes."""
    torch.backends.cudnn.deterministic = True
    torch.set_grad_enabled(False)
    kind, *arguments = sys.argv[1:]
    if kind == "streams":
        measure_streams(*map(int, arguments))
    elif kind == "slab":
        with tempfile.TemporaryDirectory() as folder:
            for how in ("caching", "record", "load"):
                child = [sys.executable, __file__, how, *arguments, f"{folder}/trace.json"]
                subprocess.run(child, check=True)
    else:
        name, batch, file = arguments
        measure_slab(kind, name, int(batch), Path(file))


if __name__ == "__main__":
    main()
