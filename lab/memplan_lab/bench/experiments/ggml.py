"""What ggml allocates for graphs of llama.cpp, by its own rule and by plans.

Lists of events that were recorded are planned as they are; or llama.cpp is built and run with both:
small networks with random weights compute logits, and large ones only reserve memory.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from memplan.base.errors import MemplanError
from memplan.extensions.ggml import parse
from memplan.machine.blocks import plan_blocks
from memplan.solvers import solve
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Setting,
    Settings,
    Table,
    tell,
)
from memplan_lab.bench.ggml.build import build
from memplan_lab.bench.ggml.networks import LARGE, TINY, Network, write_network

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


def _list_cases(settings: Settings) -> Iterator[Case]:
    if settings["build"]:
        yield Case("llama.cpp", partial(build_and_run, settings["data"], settings["folder"]))
        return
    if settings["data"] or settings["folder"]:
        raise MemplanError("--data and --set folder need --set build")
    for path in sorted(LISTS.glob("*.events")):
        yield Case(path.stem, partial(plan_list, path))


def plan_list(path: Path) -> Iterator[dict[str, Any]]:
    """Plan a list of events that was recorded."""
    events = parse(path.read_text("utf-8"), path.name)
    begun = time.process_time()
    if events.limit is not None and len(events.chunks) > 1:
        blocks = plan_blocks(events.problem, events.limit, threads=1)
        total, count = blocks.total, blocks.count
    else:
        total, count = solve(events.problem, threads=1).peak or 0, 1
    yield {
        "host": sum(events.chunks),
        "host_chunks": len(events.chunks),
        "bytes": total,
        "chunks": count,
        "bound": events.problem.max_load,
        "equal": None,
        "seconds": time.process_time() - begun,
    }


def build_and_run(sdist: str | None, folder: str) -> Iterator[dict[str, Any]]:
    """Build llama.cpp, and run small and large networks."""
    with TemporaryDirectory() as temporary:
        root = Path(folder or temporary)
        root.mkdir(parents=True, exist_ok=True)
        program, version = build(root.resolve(), Path(sdist) if sdist else None)
        for row in (*compute(program, root), *reserve(program, root)):
            yield {**row, "version": version}


def compute(program: Path, folder: Path) -> Iterator[dict[str, Any]]:
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
                host = host or row["host"]
                yield row


def reserve(program: Path, folder: Path) -> Iterator[dict[str, Any]]:
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
) -> dict[str, Any]:
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
    return {
        "case": f"{path.stem} {context}/{batch}{'' if flash else ', no flash attention'}"
        + (f", chunks of {limit}" if limit else ""),
        "host": told["host"],
        "host_chunks": largest["host_chunks"],
        "bytes": told["bytes"],
        "chunks": largest["chunks"],
        "bound": largest["bound"],
        "equal": told["host_hash"] == told["hash"] if tokens else None,
        "seconds": max(plan["seconds"] for plan in told["plans"]),
    }


_EQUAL = {True: "equal", False: "DIFFERENT", None: "–"}

TABLE = Table(
    "ggml",
    (
        Column("graph", "{case}"),
        Column("ggml", "{host:,}"),
        Column("chunks", "{host_chunks}"),
        Column("memplan", "{bytes:,}"),
        Column("chunks", "{chunks}"),
        Column("ratio", tell("{:.3f}", max, lambda row: row["bytes"] / max(1, row["host"]))),
        Column("least", lambda rows: "proved" if rows[0]["bytes"] == rows[0]["bound"] else ""),
        Column("logits", lambda rows: _EQUAL[rows[0]["equal"]]),
        Column("CPU", tell("{:.2f} ms", max, lambda row: 1000 * row["seconds"])),
    ),
)


def _is_wrong(row: Row) -> bool:
    return row["equal"] is False or row["bytes"] > row["host"]


EXPERIMENT = Experiment(
    "ggml",
    "recorded graphs of llama.cpp with memplan behind ggml's allocator, or llama.cpp itself",
    figures={
        "host": "bytes of ggml's buffer, in so many `host_chunks`",
        "bytes": "of the buffer with memplan, in so many `chunks`",
        "bound": "bytes that are needed at once",
        "equal": "whether all logits have the same bits; none where none are computed",
        "seconds": "CPU time of the dearest plan",
    },
    cases=_list_cases,
    arms=lambda _: [Arm("memplan", list)],
    tables=lambda rows, _: [TABLE],
    takes=("case", "limit", "data"),
    own={
        "build": Setting(
            False,
            "build llama.cpp and run it: minutes, CMake, a C++ compiler and a clone of memplan; "
            "--data names the source distribution of llama-cpp-python, else it is downloaded",
        ),
        "folder": Setting("", "the folder to build in, which is kept"),
    },
    wrong=lambda rows: "a row is worse than ggml's own" if any(map(_is_wrong, rows)) else "",
)
