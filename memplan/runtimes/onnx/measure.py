"""Measures what onnxruntime needs for a model: the most bytes requested from its arena.

Onnxruntime takes no plan from outside, and fuses operators before it makes its own. The figure is
that of a session with default settings, as users have it; the one without fusions says whether the
planned sizes are those that it makes.
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

from memplan.base.errors import MemplanError, listed, quoted
from memplan.base.notes import Code, Note
from memplan.programs.sources.children import run_child
from memplan.programs.sources.loaded import Figure, Loaded, lay_out_again
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read, read_declared

__all__ = [
    "Held",
    "Settled",
    "find_shapes",
    "measure",
    "measure_difference",
    "measure_file",
    "settle",
]

_CHILD: Final = Path(__file__).with_name("_measure_child.py")
_TIMEOUT: Final = 20.0  # seconds of the processor


class Held(NamedTuple):
    """What the arena of the runtime held while a model ran twice."""

    version: str  # of the runtime
    made: dict[str, list[int]]  # the bytes of the results of each operator, by its type
    # Of the first run: the most bytes that were requested after any operator, and that were in use
    # with scratch of kernels. It has no memory pattern yet; sessions without one need no more in
    # any run.
    once: tuple[int, int]
    both: tuple[int, int]  # the same of both runs

    @property
    def requested(self) -> int:
        """The most bytes that were requested, after any operator of two runs."""
        return self.both[0]


class Settled(NamedTuple):
    """Declared shapes that the runtime makes, though others are inferred."""

    dims: dict[str, int]  # their sizes, by "TENSOR:AXIS"
    note: Note


def measure(path: Path, options: Options) -> Figure | None:
    """Return the most bytes requested from onnxruntime's arena while a model runs on the CPU.

    The model runs twice, on zeros, with one thread; the second run uses the memory pattern that the
    runtime made from the first. Outputs count, weights and inputs do not. The figure is the largest
    value after any operator of a session with default settings, whose operators are fused; `what`
    adds the bytes in use with scratch of kernels, both without fusions, and, if the two orders have
    different loads, those in the order of the file. `None` if the runtime is not installed, rejects
    the model, or needs longer than 20 seconds of the processor.
    """
    if find_spec("onnxruntime") is None:
        return None
    options = replace(options, in_place=False)
    try:
        loaded = read(path, replace(options, runtime_order=True))
    except MemplanError:
        return None
    run = partial(_run, path, options, find_shapes(loaded))
    session = run(fused=True)
    plain = session if options.fused else run(fused=False)
    if session is None or plain is None:
        return None
    what = f"{session.both[1]} with kernel scratch"
    if not options.fused:
        what += f"; {plain.requested} and {plain.both[1]} without fusing operators"
    if not options.fused and _has_other_load(path, options):
        ordered = run(fused=False, in_file_order=True)
        if ordered is not None:
            what += f"; {ordered.requested} and {ordered.both[1]} in the order of the file"
    settled = _believe(path, options, loaded, plain)
    if settled is not None:
        options = replace(options, dims={**options.dims, **settled.dims})
        loaded = read(path, replace(options, runtime_order=True))
    others = list(_find_others(loaded, plain))
    load = loaded.problem.max_load
    alone = plain
    if plain.requested > load:  # it may only share memory worse than a plan does
        alone = run(fused=options.fused, reuse=False) or plain
    return Figure(
        f"onnxruntime {session.version}",
        session.requested,
        "measured",
        what,
        _explain_larger(others),
        (*_doubt_override(loaded, others), *_explain_fused(loaded, session, plain)),
        live=min(alone.requested, plain.requested),
        load=load,
    )


def _explain_fused(loaded: Loaded, session: Held, plain: Held) -> tuple[Note, ...]:
    """Return a note where fusions need less than any plan of the operators of the file."""
    load = lay_out_again(loaded, in_place=True).problem.max_load
    if session.requested >= min(load, plain.requested):
        return ()
    text = (
        f"onnxruntime fuses operators, and needs {session.requested} bytes, where those of the "
        f"file have at least {load} live at one time: --read fused plans the model as it runs it"
    )
    return (Note(Code.FUSED_BELOW, text),)


def find_shapes(loaded: Loaded) -> dict[str, Sequence[int]]:
    """Return the shapes of the inputs."""
    assert loaded.graph is not None
    inputs = (loaded.graph.tensors[index] for index in loaded.graph.inputs)
    return {each.name: each.shape or () for each in inputs}


def _find_others(loaded: Loaded, run: Held) -> Iterator[tuple[str, int, int]]:
    """Yield the types of operators that made other bytes than planned: type, made, planned.

    Operators are known by their type alone, so those are compared that ran as often as they are
    planned: the largest with the largest, and so on. Of others, as in loops, the largest one is
    compared if more was made than is planned for any of them.
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
        elif found and found[-1] > max(sizes):
            yield kind, found[-1], max(sizes)


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
    plain = _run(path, options, find_shapes(loaded), fused=False, in_file_order=True)
    return None if plain is None else _believe(path, options, loaded, plain)


def _believe(path: Path, options: Options, loaded: Loaded, run: Held) -> Settled | None:
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
    run: Held, names: Sequence[str], declared: Mapping[str, Sequence[int]], loaded: Loaded
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
    in_file_order: bool = False,
    reuse: bool = True,
) -> Held | None:
    optimizes = "all" if fused else "what does not fuse"
    return _ask(path, shapes, optimizes, options.dims, in_file_order=in_file_order, reuse=reuse)


def _ask(
    path: Path,
    shapes: Mapping[str, Sequence[int]],
    optimizes: str,
    dims: Mapping[str, int],
    *,
    in_file_order: bool,
    reuse: bool,
) -> Held | None:
    """Run a model in a process of its own; `None` if it does not run, or not in time."""
    with tempfile.TemporaryDirectory() as folder:
        order = {
            "path": str(path.absolute()),
            "shapes": dict(shapes),
            "dims": dict(dims),
            "optimizes": optimizes,
            "in_file_order": in_file_order,
            "reuse": reuse,
            "folder": folder,
        }
        run = run_child(_CHILD, order, _TIMEOUT)
    return None if run is None or run.returncode != 0 else Held(**json.loads(run.stdout))


def measure_file(path: Path, shapes: Mapping[str, Sequence[int]], *, default: bool) -> Held | None:
    """Return what a model with inputs of these shapes needs, as `measure` counts.

    A session with `default` has default settings. Otherwise it has those that keep a file as it is:
    nothing is optimized, nodes run in the order of the file, and tensors are freed after their last
    reader. `None` if the runtime is not installed, or does not run the model.
    """
    if find_spec("onnxruntime") is None:
        return None
    optimizes = "all" if default else "nothing"
    return _ask(path, shapes, optimizes, {}, in_file_order=not default, reuse=default)


def measure_difference(
    one: Path | bytes,
    other: Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    default: bool = False,
) -> float | None:
    """Run two models on the same random inputs, and return how far their results are apart.

    That is the largest difference of two numbers, 0.0 if all are equal bit for bit, as a NaN is to
    another one; `None` if the runtime is not installed, or does not run one of them. The second
    model may have fewer open dimensions; shapes are those of inputs that have some. Sessions
    without `default` settings optimize nothing.
    """
    if find_spec("onnxruntime") is None:
        return None
    try:
        runtime = importlib.import_module("onnxruntime")
        sessions = [_open(runtime, each, default=default) for each in (one, other)]
    except Exception:  # the runtime has classes of its own for each reason
        return None
    for largest in (50, 1):  # whole numbers may be places in a short list
        try:
            feeds = _draw_feeds(sessions[1].get_inputs(), shapes or {}, largest)
            return _compare(*(session.run(None, feeds) for session in sessions))
        except Exception:
            continue
    return None


def _open(runtime: Any, model: Path | bytes, *, default: bool) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not default:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = str(model) if isinstance(model, Path) else model
    return runtime.InferenceSession(source, options, ["CPUExecutionProvider"])


def _draw_feeds(
    inputs: Iterable[Any], shapes: Mapping[str, Sequence[int]], largest: int
) -> dict[str, Any]:
    random = np.random.default_rng(0)
    feeds = {}
    for each in inputs:
        # A single number too is an array: the runtime takes nothing else.
        drawn = np.asarray(random.normal(size=shapes.get(each.name, each.shape)))
        kind = {"float": "float32", "double": "float64"}.get(each.type[7:-1], each.type[7:-1])
        if kind == "string":
            feeds[each.name] = drawn.astype(str).astype(object)
            continue
        if "float" not in each.type and kind != "float64":
            drawn = np.asarray(drawn * 50 if largest > 1 else random.random(drawn.shape) < 0.5)
        drawn = np.abs(drawn) if kind[0] == "u" else drawn
        feeds[each.name] = np.asarray(drawn, kind)
    return feeds


def _compare(ones: Sequence[Any], others: Sequence[Any]) -> float:
    apart = 0.0
    for first, second in zip(ones, others, strict=True):
        if isinstance(first, list):  # a sequence
            apart = max(apart, _compare(first, second))
        elif not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
            apart = max(apart, float(np.nanmax(np.abs(first.astype("f8") - second))))
    return apart
