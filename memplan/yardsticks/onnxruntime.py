"""Measures what onnxruntime needs for a model: the most bytes requested from its arena.

Onnxruntime takes no plan from outside, and fuses operators before it makes its own. The figure to
compare with is the one without fusions; the one with fusions is reported in addition.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from memplan.errors import MemplanError, listed, quoted
from memplan.notes import Code, Note
from memplan.sources.loaded import Figure, Loaded
from memplan.sources.onnx import read, read_declared
from memplan.sources.options import Options
from memplan.yardsticks.children import run_child

__all__ = ["Settled", "measure", "measure_difference", "measure_least", "settle"]

_CHILD: Final = Path(__file__).with_name("_onnxruntime_child.py")
_TIMEOUT: Final = 20.0  # seconds


class _Held(NamedTuple):
    version: str
    requested: int
    in_use: int
    made: dict[str, list[int]]  # bytes of the results of each operator, by its type


class Settled(NamedTuple):
    """Declared shapes that the runtime makes, though others are inferred.

    Attributes
    ----------
    dims
        Their sizes, by "TENSOR:AXIS".
    note
        Which shape is planned, and why.
    """

    dims: dict[str, int]
    note: Note


def measure(
    path: Path, options: Options, *, in_file_order: bool = False, reuse: bool = True
) -> Figure | None:
    """Return the most bytes requested from onnxruntime's arena while a model runs on the CPU.

    The model runs twice, on zeros, with one thread; the second run uses the memory pattern that the
    runtime made from the first. Outputs count, weights and inputs do not.

    Parameters
    ----------
    path, options
        The model, and how it is read.
    in_file_order
        Whether it runs its operators in the order of the file (`PRIORITY_BASED`), and not in its
        own order.
    reuse
        Whether the runtime gives the memory of a tensor to others of its size, and keeps it until
        the last of these; otherwise it frees each after its last reader.

    Returns
    -------
    Figure or None
        In bytes, the largest value after any operator; `what` adds the bytes in use with scratch of
        kernels and the arena's rounding, the bytes after fusions, and, if the two orders have
        different loads, those in the order of the file. `None` if the runtime is not
        installed, rejects the model, or needs longer than 20 seconds.
    """
    if find_spec("onnxruntime") is None:
        return None
    try:
        loaded = read(path, replace(options, runtime_order=not in_file_order, in_place=False))
    except MemplanError:
        return None
    run = partial(_run, path, options, _find_shapes(loaded), in_file_order=in_file_order)
    plain = run(fused=False, reuse=reuse)
    if plain is None:
        return None
    what = f"{plain.in_use} with kernel scratch and the arena's rounding"
    fused = run(fused=True, reuse=reuse)
    if fused is not None:
        what += f"; {fused.requested} and {fused.in_use} after fusing operators"
    if not in_file_order and _has_other_load(path, options):
        ordered = run(fused=False, in_file_order=True, reuse=reuse)
        if ordered is not None:
            what += f"; {ordered.requested} and {ordered.in_use} in the order of the file"
    settled = _believe(path, options, loaded, plain)
    if settled is not None:
        options = replace(options, dims={**options.dims, **settled.dims}, in_place=False)
        loaded = read(path, replace(options, runtime_order=not in_file_order))
    others = list(_find_others(loaded, plain))
    beyond = _explain_larger(others)
    load = loaded.problem.max_load
    if not beyond and plain.requested > load:  # it may only share memory worse than a plan does
        alone = run(fused=False, reuse=False)
        if alone is not None and alone.requested > load:
            beyond = f"{alone.requested} bytes live at one time, {load} planned"
    return Figure(
        f"onnxruntime {plain.version}",
        plain.requested,
        "measured",
        what,
        beyond,
        _doubt_override(loaded, others),
    )


def _find_shapes(loaded: Loaded) -> dict[str, Sequence[int]]:
    """Return the shapes of the inputs."""
    assert loaded.graph is not None
    inputs = (loaded.graph.tensors[index] for index in loaded.graph.inputs)
    return {each.name: each.shape or () for each in inputs}


def _find_others(loaded: Loaded, run: _Held) -> Iterator[tuple[str, int, int]]:
    """Yield the types of operators that made other bytes than planned: type, made, planned.

    Operators are known by their type alone, so those are compared that ran as often as they are
    planned: the largest with the largest, and so on.
    """
    assert loaded.graph is not None
    planned: dict[str, list[int]] = defaultdict(list)
    for operator in loaded.graph.walk():
        kind = operator.type.rpartition(".")[2]
        planned[kind].append(sum(loaded.graph.tensors[one].bytes for one in operator.outputs))
    for kind, sizes in planned.items():
        found = sorted(run.made.get(kind, ()))
        if len(found) == len(sizes):
            pairs = zip(found, sorted(sizes), strict=True)
            yield from ((kind, made, size) for made, size in pairs if made != size)


def _explain_larger(others: Iterable[tuple[str, int, int]]) -> str:
    """Say which operator made more bytes than are planned for it, if one did."""
    for kind, made, size in others:
        if made > size:
            return f"operator {kind} makes {made} bytes, {size} planned"
    return ""


def settle(path: Path, options: Options) -> Settled | None:
    """Return what the runtime makes where declared and inferred shapes of a model differ.

    `None` if it is not installed or does not run the model, and if it makes what is inferred, or
    neither of both.
    """
    if find_spec("onnxruntime") is None:
        return None
    loaded = read(path, replace(options, in_place=False))
    plain = _run(path, options, _find_shapes(loaded), fused=False, in_file_order=True, reuse=True)
    return None if plain is None else _believe(path, options, loaded, plain)


def _believe(path: Path, options: Options, loaded: Loaded, run: _Held) -> Settled | None:
    """Return the sizes of declared shapes that a run made, where the inferred ones it did not."""
    assert loaded.graph is not None
    ignored = _list_overridden(loaded)
    if not ignored or not _list_doubtful(loaded, ignored, _find_others(loaded, run)):
        return None
    tensors, declared = loaded.graph.tensors, read_declared(path)
    first = [
        tensors[one].name
        for operator in loaded.graph.walk()
        for one in operator.outputs
        if tensors[one].name in ignored.intersection(declared)
        and not ignored.intersection(tensors[each].name for each in operator.inputs)
    ]
    for names in (first, *([name] for name in first if len(first) > 1)):
        dims = {f"{name}:{at}": size for name in names for at, size in enumerate(declared[name])}
        try:
            other = read(path, replace(options, dims={**options.dims, **dims}, in_place=False))
        except MemplanError:  # no operator behind it takes the declared shape
            continue
        if not _list_doubtful(other, ignored, _find_others(other, run)):
            return Settled(dims, _explain_declared(run, names, declared, loaded))
    return None


def _explain_declared(
    run: _Held, names: Sequence[str], declared: Mapping[str, Sequence[int]], loaded: Loaded
) -> Note:
    assert loaded.graph is not None
    shapes = {one.name: list(one.shape or ()) for one in loaded.graph.tensors}
    each = [f"{quoted(name)} as {list(declared[name])}, not {shapes[name]}" for name in names]
    text = (
        f"onnxruntime {run.version} was asked and makes {listed(each, quote=False)}: the shape "
        "that the file declares is planned, and not the one that is inferred from the inputs"
    )
    return Note(Code.SHAPE_OVERRIDDEN, text, tuple(names))


def _list_overridden(loaded: Loaded) -> set[str]:
    """Return the tensors whose declared shape does not count."""
    notes = (note for note in loaded.notes if note.code is Code.SHAPE_OVERRIDDEN)
    return {name for note in notes for name in note.tensors}


def _list_doubtful(
    loaded: Loaded, ignored: set[str], others: Iterable[tuple[str, int, int]]
) -> list[tuple[str, int, int]]:
    """Return what the runtime makes otherwise with operators that make such tensors."""
    assert loaded.graph is not None
    makers = {
        operator.type.rpartition(".")[2]
        for operator in loaded.graph.walk()
        if ignored.intersection(loaded.graph.tensors[one].name for one in operator.outputs)
    }
    return [one for one in others if one[0] in makers]


def _doubt_override(loaded: Loaded, others: Iterable[tuple[str, int, int]]) -> tuple[Note, ...]:
    """Return a note where the runtime does not make what counts against a declared shape."""
    ignored = _list_overridden(loaded)
    for kind, made, size in _list_doubtful(loaded, ignored, others)[:1]:
        text = f"onnxruntime makes {made} bytes with operator {kind}, and {size} are planned"
        text += ": the shape that the file declares may be right"
        return (Note(Code.SHAPE_OVERRIDDEN, text, tuple(sorted(ignored))),)
    return ()


def _has_other_load(path: Path, options: Options) -> bool:
    """Whether the reader says that the runtime's order has another load than that of the file."""
    notes = read(path, replace(options, runtime_order=False)).notes
    return any(note.code is Code.ORDER_OF_RUNTIME for note in notes)


def _run(
    path: Path,
    options: Options,
    shapes: Mapping[str, Sequence[int]],
    *,
    fused: bool,
    in_file_order: bool,
    reuse: bool,
) -> _Held | None:
    with tempfile.TemporaryDirectory() as folder:
        order = {
            "path": str(path.absolute()),
            "shapes": dict(shapes),
            "dims": dict(options.dims),
            "fused": fused,
            "in_file_order": in_file_order,
            "reuse": reuse,
            "folder": folder,
        }
        run = run_child(_CHILD, order, _TIMEOUT)
    return None if run is None or run.returncode != 0 else _Held(**json.loads(run.stdout))


def measure_least(path: Path, options: Options, loaded: Loaded) -> tuple[int, bool] | None:
    """Return the least that a model needs in the order of its file, as `measure` counts.

    Parameters
    ----------
    path, options
        The model, and how it is read.
    loaded
        What was read of it.

    Returns
    -------
    tuple[int, bool] or None
        In bytes, and whether that takes the runtime's reuse of memory: with it, operators write
        over inputs, but the memory of a tensor is kept for others of its size. `None` if the
        runtime is not installed, or does not run the model.
    """
    if find_spec("onnxruntime") is None:
        return None
    run = partial(_run, path, options, _find_shapes(loaded), fused=False, in_file_order=True)
    found = ((run(reuse=reuse), reuse) for reuse in (False, True))
    return min(((held.requested, reuse) for held, reuse in found if held), default=None)


def measure_difference(one: bytes, other: bytes) -> float | None:
    """Run two models on the same random inputs, and return how far their results are apart.

    Parameters
    ----------
    one, other
        The bytes of files with the same inputs; the second one may have fewer open dimensions.

    Returns
    -------
    float or None
        The largest difference of two numbers, 0.0 if all are equal bit for bit, as a NaN is to
        another one. `None` if the runtime is not installed, or does not run one of them.
    """
    if find_spec("onnxruntime") is None:
        return None
    try:
        return _compare(importlib.import_module("onnxruntime"), one, other)
    except Exception:  # the runtime has classes of its own for each reason
        return None


def _compare(runtime: Any, one: bytes, other: bytes) -> float:
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    sessions = [runtime.InferenceSession(data, options) for data in (one, other)]
    random = np.random.default_rng(0)
    feeds = {}
    for each in sessions[1].get_inputs():
        drawn = random.normal(size=each.shape) * (1 if "float" in each.type else 50)
        kind = {"float": "float32", "double": "float64"}.get(each.type[7:-1], each.type[7:-1])
        feeds[each.name] = np.abs(drawn).astype(kind) if kind[0] == "u" else drawn.astype(kind)
    results = [session.run(None, feeds) for session in sessions]
    apart = 0.0
    for first, second in zip(*results, strict=True):
        if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
            apart = max(apart, float(np.nanmax(np.abs(first.astype("f8") - second))))
    return apart
