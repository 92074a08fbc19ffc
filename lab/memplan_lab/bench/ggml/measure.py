"""What ggml allocates for graphs of llama.cpp, by its own rule and by plans.

Lists of events that were recorded are planned as they are; or llama.cpp is built (`build`) and run
with both.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memplan.base.errors import MemplanError
from memplan.extensions.ggml import parse
from memplan.memories import plan_blocks
from memplan.solvers import solve
from memplan_lab.bench.ggml.networks import LARGE, TINY, Network, write_network

__all__ = ["HEADINGS", "LISTS", "Row", "compute", "lines", "plan_lists", "reserve"]

LISTS: Final = Path(__file__).parents[2] / "data" / "ggml"
_GIB: Final = 1 << 30
_SHARES: Final = (1, 2, 3, 4)  # of the buffer's bytes that a chunk may have
_CONTEXT, _BATCH = 256, 64
# Network, context, batch, flash attention, limit of a chunk: what is only reserved.
_RESERVED: Final = (
    ("llama2-7B", 4096, 512, True, 0),
    ("llama2-7B", 32768, 2048, True, 0),
    ("llama2-7B", 4096, 512, False, 0),
    ("Mixtral-8x7B", 4096, 512, True, 0),
    ("Mixtral-8x7B", 32768, 2048, True, 0),
    ("llama3-8B", 8192, 512, True, 0),
    ("TinyLlama-1.1B", 2048, 512, True, 0),
    ("llama2-7B", 32768, 512, False, _GIB),
    ("Mixtral-8x7B", 32768, 2048, False, _GIB),
    ("llama3-8B", 131072, 2048, True, _GIB),
)
HEADINGS: Final = (
    *("graph", "ggml", "chunks", "memplan", "chunks", "ratio", "least", "logits", "CPU"),
)


@dataclass(frozen=True)
class Row:
    """One graph."""

    name: str  # the network, with what it was run with
    # host, host_chunks: The bytes of ggml's buffer, in how many chunks.
    host: int
    host_chunks: int
    # bytes, chunks: The same with memplan.
    bytes: int
    chunks: int
    bound: int  # the bytes that are needed at once
    equal: bool | None  # whether all logits have the same bits; `None` if none were computed
    seconds: float  # CPU time of the dearest plan

    @property
    def ratio(self) -> float:
        """The bytes with memplan, over those of ggml."""
        return self.bytes / max(1, self.host)


def plan_lists() -> Iterator[Row]:
    """Plan each list of events that was recorded."""
    for path in sorted(LISTS.glob("*.events")):
        events = parse(path.read_text("utf-8"), path.name)
        begun = time.process_time()
        if events.limit is not None and len(events.chunks) > 1:
            blocks = plan_blocks(events.problem, events.limit, threads=1)
            total, count = blocks.total, blocks.count
        else:
            total, count = solve(events.problem, threads=1).peak or 0, 1
        seconds = time.process_time() - begun
        host, load = sum(events.chunks), events.problem.max_load
        yield Row(path.stem, host, len(events.chunks), total, count, load, None, seconds)


def compute(program: Path, folder: Path) -> Iterator[Row]:
    """Run tiny networks with flash attention and without, in one chunk and in several.

    A whole batch is computed, or the ends of buffers would not be used and could overlap unseen.
    """
    for network in TINY:
        path = _write(network, folder, seed=0)
        for flash in (True, False):
            host = 0
            for share in _SHARES:
                limit = host // share // 64 * 64
                row = _run(program, path, _CONTEXT, _BATCH, flash, limit, _BATCH)
                host = host or row.host
                yield row


def reserve(program: Path, folder: Path) -> Iterator[Row]:
    """Reserve the buffers of large networks, which needs their shapes alone."""
    networks = {network.name: network for network in LARGE}
    for name, context, batch, flash, limit in _RESERVED:
        path = _write(networks[name], folder, seed=None)
        yield _run(program, path, context, batch, flash, limit, 0)


def _write(network: Network, folder: Path, seed: int | None) -> Path:
    path = folder / f"{network.name}.gguf"
    if not path.exists():
        write_network(network, path, seed)
    return path


def _run(
    program: Path, path: Path, context: int, batch: int, flash: bool, limit: int, tokens: int
) -> Row:
    numbers = (context, batch, int(flash), limit, tokens)
    words = [str(program), str(path), *map(str, numbers)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise MemplanError(f"llama.cpp did not run {path.name}: {last}")
    told = json.loads(done.stdout)
    largest = max(told["plans"], key=lambda plan: plan["host"])
    if (told["host"], told["bytes"]) != (largest["host"], largest["bytes"]):
        raise MemplanError(f"llama.cpp reports other bytes for {path.name} than its plans have")
    return Row(
        f"{path.stem} {context}/{batch}{'' if flash else ', no flash attention'}"
        + (f", chunks of {limit}" if limit else ""),
        told["host"],
        largest["host_chunks"],
        told["bytes"],
        largest["chunks"],
        largest["bound"],
        told["host_hash"] == told["hash"] if tokens else None,
        max(plan["seconds"] for plan in told["plans"]),
    )


def lines(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return the lines of the table."""
    return [
        (
            row.name,
            f"{row.host:,}",
            str(row.host_chunks),
            f"{row.bytes:,}",
            str(row.chunks),
            f"{row.ratio:.3f}",
            "proved" if row.bytes == row.bound else "",
            {True: "equal", False: "DIFFERENT", None: "–"}[row.equal],
            f"{1000 * row.seconds:.2f} ms",
        )
        for row in rows
    ]
