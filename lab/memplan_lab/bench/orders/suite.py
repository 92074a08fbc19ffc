"""The suite `orders`: graphs of operators of real networks, and random graphs.

One Parquet file holds the columns of real networks, which `memplan-lab corpus orders` records.
Random graphs are made when they are used.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from memplan.base.errors import FormatError, ProblemError, quoted
from memplan.base.files import reading, write_bytes
from memplan.problem import OrderProblem
from memplan_lab.bench.generators.programs import layered, of_arcs, randwire

__all__ = ["Case", "cases", "moccasin", "read", "write"]

_COLUMNS = ("workspace", "arcs", "size", "given", "wanted", "user_begin", "user")
_RISING = ("user_begin", "user")
_KEY = "memplan.orders"  # the key of the file's metadata
_LEVEL = 22  # of zstd: the file is written once and copied often
_REMEDY = "`memplan-lab corpus orders` makes one"

_LAYERED = ((50, 4), (100, 10), (250, 6), (500, 3), (1000, 2))  # operators, and how many graphs
_RANDWIRE = ((16, 6), (32, 10), (64, 4))  # nodes of a stage


@dataclass(frozen=True)
class Case:
    """A graph."""

    name: str  # distinct in the suite
    family: str  # the origin: "timm", "transformers", "layered",
    problem: OrderProblem  # its columns; nothing is written in place
    cost: tuple[int, ...] = ()  # by operator: how long it takes; empty where nothing says so


def cases(data: str | os.PathLike[str] | None = None) -> Iterator[Case]:
    """Yield the graphs of the suite, those of real networks first."""
    yield from read(str(files("memplan_lab") / "data" / "orders.parquet"))
    for nodes, count in _RANDWIRE:
        for seed in range(count):
            yield Case(f"randwire-{nodes}-{seed}", "randwire", randwire(nodes, seed))
    for nodes, count in _LAYERED:
        for seed in range(count):
            yield Case(f"layered-{nodes}-{seed}", "layered", layered(nodes, seed))
    if data is not None:
        yield from moccasin(Path(data))


def write(
    graphs: Iterable[Case], path: str | os.PathLike[str], about: Mapping[str, object]
) -> None:
    """Write graphs without the names of operators and storages, completely or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = list(graphs)
    table: dict[str, Any] = {
        "name": pa.array([row.name for row in rows]),
        "family": pa.array([row.family for row in rows]),
        "fingerprint": pa.array([row.problem.fingerprint for row in rows]),
    }
    for name in _COLUMNS:
        cells = [_pack(name, getattr(row.problem, name)) for row in rows]
        table[name] = pa.array(cells, pa.list_(pa.int64()))
    sink = io.BytesIO()
    parquet.write_table(
        pa.table(table).replace_schema_metadata({_KEY: json.dumps(about, sort_keys=True)}),
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=False,
        write_statistics=False,
    )
    write_bytes(path, sink.getvalue())


def read(path: str | os.PathLike[str]) -> list[Case]:
    """Read what `write` wrote."""
    from pyarrow import parquet

    path = os.fspath(path)
    with reading(path, _REMEDY), open(path, "rb") as file:
        data = file.read()
    try:
        rows = parquet.read_table(io.BytesIO(data)).to_pylist()
        found = [Case(row["name"], row["family"], _unpack(row)) for row in rows]
    except Exception:  # Arrow, Thrift and zstd raise many kinds for damaged bytes
        raise FormatError(path, f"is damaged, or no file of graphs; {_REMEDY}") from None
    for row, case in zip(rows, found, strict=True):
        if case.problem.fingerprint != row["fingerprint"]:
            raise FormatError(path, f"is damaged in the graph {quoted(case.name)}; {_REMEDY}")
    return found


def _pack(name: str, column: Any) -> Any:
    """Return the differences of neighbours where columns ascend, which zstd packs best."""
    column = column.astype(np.int64)
    if name == "arcs":
        column = column[np.lexsort((column[:, 0], column[:, 1]))]
        return np.concatenate([column[:, 1] - column[:, 0], np.diff(column[:, 1], prepend=0)])
    if name in _RISING:
        return np.diff(column, prepend=0)
    return column


def _unpack(row: dict[str, Any]) -> OrderProblem:
    cells = {name: np.array(row[name], dtype=np.int64) for name in _COLUMNS}
    for name in _RISING:
        cells[name] = np.cumsum(cells[name])
    back, second = cells["arcs"].reshape(2, -1)
    second = np.cumsum(second)
    arcs = np.column_stack([second - back, second])
    return OrderProblem(
        cells["workspace"],
        arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))].astype(np.int32),
        cells["size"],
        cells["given"].astype(np.bool_),
        cells["wanted"].astype(np.bool_),
        cells["user_begin"],
        cells["user"].astype(np.int32),
        np.zeros((0, 3), dtype=np.int32),
    )


def moccasin(folder: Path) -> Iterator[Case]:
    """Yield the graphs of Moccasin and Checkmate; those of layers in the order of the file."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise FormatError(os.fspath(folder), "the folder has no JSON files of Moccasin")
    for path in paths:
        try:
            case = _of_moccasin(path.stem, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, ProblemError):
            raise FormatError(os.fspath(path), "is damaged, or no graph of Moccasin") from None
        yield case


def _of_moccasin(name: str, graph: dict[str, Any]) -> Case:
    layers = "order" in graph["graph"]
    first, second = ("0", "1") if layers else ("source", "target")
    key, size, cost = ("name", "out_cost", "duration") if layers else ("id", "cost_ram", "cost_cpu")
    nodes = {node[key]: (node[size], int(node.get(cost, 0))) for node in graph["nodes"]}
    order = graph["graph"]["order"] if layers else sorted(nodes)
    place = {node: at for at, node in enumerate(order)}
    arcs = [(place[link[first]], place[link[second]]) for link in graph["links"]]
    sizes, costs = zip(*(nodes[node] for node in order), strict=True)
    return Case(f"moccasin-{name}", "moccasin", of_arcs(sizes, arcs), costs if any(costs) else ())
