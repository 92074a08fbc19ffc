"""Compares the allocations in a model's graph with recorded ones (MemoMalloc, table 3.1).

A graph has an operator's results; the kernels of the operator also allocate memory that the graph
does not show: indices of a pooling, statistics of a normalisation, packed weights, second copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from memplan.base.errors import MemplanError, quoted
from memplan.base.extras import require
from memplan.problem.trace import Scope, Trace
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Loaded

__all__ = ["Row", "add_up", "compare", "export"]

_PLANNED = (Kind.INTERMEDIATE, Kind.OUTPUT)


@dataclass(frozen=True, slots=True)
class Row:
    """An operator of the graph, over all of its calls."""

    operator: str  # as PyTorch names it, "aten::conv2d"
    # Intermediates and results in the graph; tensors that share a storage count as one.
    tensors: int
    tensor_bytes: int
    allocations: int  # those that were recorded inside of it
    allocated_bytes: int


def export(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Loaded:
    """Return the graph that `torch.export` makes of a model, if it can."""
    from memplan.programs.sources import Options
    from memplan.runtimes.torch import read as torch_export

    torch = require("torch", extra="torch")
    try:
        with torch.no_grad():
            program = torch.export.export(model, args, dict(kwargs))
    except Exception as error:  # the compiler raises errors of many classes
        reason = quoted(f"{type(error).__name__}: {error}".split("\n")[0])
        raise MemplanError(f"torch.export makes no graph of the model: {reason}") from None
    return torch_export.load(program, Options(include=frozenset(_PLANNED)))


def compare(loaded: Loaded, trace: Trace) -> list[Row]:
    """Return a row for each operator that allocates; most bytes beyond the graph come first.

    The trace is a recording of the same model and inputs as the graph of `export`.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for at, found in ((0, _iterate_tensors(loaded)), (2, _iterate_allocations(trace))):
        for operator, size in found:
            counts[operator][at] += 1
            counts[operator][at + 1] += size
    rows = [Row(name, *count) for name, count in counts.items()]
    return sorted(rows, key=lambda r: (r.tensor_bytes - r.allocated_bytes, r.operator))


def add_up(rows: Iterable[Row], name: str = "total") -> Row:
    """Return the sum of rows."""
    rows = list(rows)
    return Row(name, *(sum(getattr(row, each.name) for row in rows) for each in fields(Row)[1:]))


def _iterate_tensors(loaded: Loaded) -> Iterator[tuple[str, int]]:
    """Yield the operator and the bytes of each of its results."""
    assert loaded.graph is not None
    assert loaded.layout is not None
    maker: dict[int, str] = {}
    for operator in loaded.graph.walk():
        for index in operator.outputs:
            maker.setdefault(index, operator.type.replace(".", "::", 1))
    for storage in loaded.layout.storages:
        made_by = next((maker[index] for index in storage.tensors if index in maker), None)
        if storage.kind in _PLANNED and storage.bytes and made_by is not None:
            yield made_by, storage.bytes


def _iterate_allocations(trace: Trace) -> Iterator[tuple[str, int]]:
    """Yield the operator and the bytes of each allocation that was recorded in it."""
    yield from zip(map(_find_operator, trace.scopes), trace.size.tolist(), strict=True)


def _find_operator(scope: Scope) -> str:
    """Return the outermost operator, which is the one in the graph."""
    return next((name for name, _ in scope if not name.startswith(".")), "(no operator)")
