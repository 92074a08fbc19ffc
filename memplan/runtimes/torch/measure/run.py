"""Compares what PyTorch allocates for an exported program with its plan, operator by operator.

The program runs once on real tensors, and every allocation is recorded
(`memplan.runtimes.torch.record`). An operator's memory is the peak of the allocations inside of it:
its results, and the scratch of its kernels. In a plan, an operator's memory is the storages that it
makes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.base.extras import require
from memplan.base.notes import Note
from memplan.problem.trace import Trace
from memplan.programs.graph import Graph, Kind, Layout, lay_out
from memplan.programs.sources.loaded import Figure
from memplan.programs.sources.measuring import join_notes
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.read import program_in_file, program_in_memory
from memplan.runtimes.torch.read.autocast import CAST, get_region, with_casts
from memplan.runtimes.torch.read.builder import graph_with_indices
from memplan.runtimes.torch.read.program import Exported
from memplan.runtimes.torch.read.scope import bodies
from memplan.runtimes.torch.read.values import Value
from memplan.runtimes.torch.record import Recording, record

__all__ = [
    "Difference",
    "Measured",
    "find_operator",
    "find_worst",
    "measure_file",
    "measure_run",
    "name_scope",
]

torch: Any = require("torch", extra="torch")
_MARK = "@"  # before the names of operators in the scopes of the recording


@dataclass(frozen=True, slots=True)
class Difference:
    """An operator which needs another number of bytes than the plan has for it."""

    operator: str  # its name and type: "layer1.0.conv2d_3 (aten.conv2d)"
    planned: int  # bytes of the storages that it makes in the plan
    real: int  # the peak of the allocations inside of it, in bytes


@dataclass(frozen=True, slots=True)
class Measured:
    """A run compared with a plan."""

    peak: int  # the most bytes that the allocations of the run held at one time
    load: int  # the same for the tensors that the program shows; no plan of it needs less
    allocations: int  # how many there were
    during: str  # the operator that ran at the peak, or an empty text if none did
    # Bytes alive at the peak that no tensor of the program holds: scratch inside of `during`.
    beyond: int
    # Operators which need other memory than planned, the largest difference first.
    differences: tuple[Difference, ...]

    def make_notes(self) -> tuple[Note, ...]:
        """Return a note if the run held more than is planned."""
        why = ""
        if self.during and self.beyond and self.peak > self.load:
            why = f"operator {self.during} takes {self.beyond} bytes more than its results"
        figure = Figure(
            "PyTorch", self.peak, "measured", beyond=why, live=self.peak, load=self.load
        )
        return join_notes((), (figure,))


def measure_file(path: Path, options: Options) -> Measured:
    """Load a program from a `.pt2` file with torch, and measure a run of it.

    `torch.export.load` may unpickle what the file holds, and the program's operators run: this is
    for files that you trust.
    """
    shown = program_in_file(path, options)
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises errors of many classes
        raise FormatError(str(path), f"torch cannot load it: {_format_reason(error)}") from None
    return _measure(program, shown, None)


def measure_run(
    model: Any, args: tuple[Any, ...] | None = None, *, dims: Mapping[str, int] | None = None
) -> Measured:
    """Run a program once, and compare its allocations with the tensors in a plan of it.

    The program is a `torch.export.ExportedProgram`, or a module, which is exported. Without
    arguments it gets random floating-point numbers, 0 for whole numbers, and `dims` as the sizes of
    symbolic dimensions. It has to be for a CPU.
    """
    program = model
    if not isinstance(model, torch.export.ExportedProgram):
        if args is None:
            raise MemplanError("a module is measured with the arguments of a call: give args")
        program = torch.export.export(model, args)
    return _measure(program, program_in_memory(program, dict(dims or {})), args)


def _measure(program: Any, shown: Exported, args: tuple[Any, ...] | None) -> Measured:
    if shown.device not in ("cpu", "meta"):
        raise MemplanError(f"the program is for {shown.device}; only programs for a CPU are run")
    trace = _record(program, shown, _collect_inputs(program, shown, args))
    # PyTorch writes no result in place here, so the layout must not either.
    return _compare(lay_out(graph_with_indices(with_casts(shown))[0]), trace)


def _record(program: Any, shown: Exported, inputs: list[Any]) -> Recording:
    """Run every operator in a scope of its own."""
    graph = _switch_on_caching(program.graph_module)
    run = _make_runner(graph, "")
    whole = get_region(shown)

    def call(*given: Any) -> Any:
        region = nullcontext()
        if whole is not None:
            region = torch.autocast(whole.device, getattr(torch, whole.dtype))
        with region:
            return run(*given)

    try:
        found: Recording = record(call, inputs)
    except MemplanError:
        raise
    except Exception as error:  # an operator may reject its arguments with any error
        raise MemplanError(f"the program does not run: {_format_reason(error)}") from None
    return found


def _switch_on_caching(module: Any) -> Any:
    """Return a copy of a graph with regions of autocast that cache, as in the user's module."""
    copied = copy.deepcopy(module)
    for one in (copied, *copied.modules()):
        for node in one.graph.nodes if hasattr(one, "graph") else ():
            if str(node.target).endswith("wrap_with_autocast"):
                node.args = (*node.args[:3], True, *node.args[4:])
    return copied


def _make_runner(module: Any, prefix: str) -> Any:
    """Return a function that runs a graph node by node, with bodies of higher-order operators."""
    for node in module.graph.nodes:
        for inner, body in bodies(module, prefix, node):
            body.forward = _make_runner(body, inner)

    class Run(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, n: Any) -> Any:
            if n.op != "call_function":
                return super().run_node(n)
            with torch.profiler.record_function(name_scope(f"{prefix}{n.name}")):
                return super().run_node(n)

    return lambda *args: Run(module).run(*args)


def _collect_inputs(program: Any, shown: Exported, args: tuple[Any, ...] | None) -> list[Any]:
    """Return the inputs of the graph: weights, and the user's arguments."""
    given = iter(
        torch.utils._pytree.tree_leaves(args) if args is not None else _get_examples(program, shown)
    )
    made: list[Any] = []
    values = {each.value.name: each.value for each in shown.inputs}
    torch.manual_seed(0)
    for spec in program.graph_signature.input_specs:
        value = values.get(getattr(spec.arg, "name", ""))
        if spec.kind.name == "USER_INPUT":
            one = next(given, None)
            if value is not None:
                one = _make_random(value) if one is None else one
            elif one is None:
                one = getattr(spec.arg, "value", None)
            made.append(one)
        else:
            held = program.state_dict.get(spec.target, program.constants.get(spec.target))
            made.append(_make_input(held, value, spec.kind.name == "PARAMETER"))
    return made


def _make_input(held: Any, value: Value | None, parameter: bool) -> Any:
    """Return a weight for the run; buffers are copied, as a run may change them."""
    if not isinstance(held, torch.Tensor):
        return held
    if held.device.type == "meta" and value is not None:
        made = _make_random(value)
        return torch.nn.Parameter(made, held.requires_grad) if parameter else made
    return held if parameter else held.clone()


def _get_examples(program: Any, shown: Exported) -> list[Any]:
    """Return the arguments that the program was exported with, if they have the given sizes."""
    found = (
        torch.utils._pytree.tree_leaves(program.example_inputs) if program.example_inputs else []
    )
    tensors = [one for one in found if isinstance(one, torch.Tensor)]
    expected = [each.value.sizes for each in shown.inputs if each.kind is Kind.INPUT]
    real = all(one.device.type == "cpu" for one in tensors)
    return found if real and [tuple(one.shape) for one in tensors] == expected else []


def _make_random(value: Value) -> Any:
    """Return a tensor of random floating-point numbers, or of zeros for other types."""
    dtype = getattr(torch, value.dtype)
    flat = torch.zeros(max(value.span // value.itemsize, prod(value.sizes)), dtype=dtype)
    if dtype.is_floating_point and value.itemsize > 1:
        flat.normal_()
    return flat.as_strided(value.sizes, value.strides)


def _compare(layout: Layout, trace: Trace) -> Measured:
    names = dict(_iterate_operators(layout.graph))
    planned = _add_up_planned(layout)
    rows: dict[str, list[int]] = {}
    for row, scope in enumerate(trace.scopes):
        rows.setdefault(find_operator(scope), []).append(row)
    differences = []
    for key in names.keys() | rows.keys():
        mine = rows.get(key, [])
        real = find_worst(trace, mine)[0]
        if real != planned.get(key, 0):
            label = names.get(key, key or "outside of all operators")
            differences.append(Difference(label, planned.get(key, 0), real))
    differences.sort(key=lambda each: (-abs(each.real - each.planned), each.operator))
    peak, at = find_worst(trace, list(range(len(trace))))
    during = find_operator(trace.scopes[at]) if len(trace) else ""
    beyond = 0
    if during:
        alive = [row for row in rows[during] if trace.start[row] <= trace.start[at]]
        alive = [row for row in alive if trace.end[row] > trace.start[at]]
        beyond = max(sum(int(trace.size[row]) for row in alive) - planned.get(during, 0), 0)
    return Measured(
        peak,
        layout.problem.max_load,
        len(trace),
        names.get(during, during),
        beyond,
        tuple(differences),
    )


def name_scope(operator: str) -> str:
    """Return the scope of the profiler in which the recorder finds an operator."""
    return f"memplan:{_MARK}{operator}"


def find_worst(trace: Trace, rows: list[int]) -> tuple[int, int]:
    """Return the most bytes that some allocations hold at once, and the last of these."""
    events = [(int(trace.end[row]), 0, row) for row in rows]
    events += [(int(trace.start[row]), 1, row) for row in rows]
    now = most = at = 0
    for _, begins, row in sorted(events):
        now += int(trace.size[row]) if begins else -int(trace.size[row])
        if now > most:
            most, at = now, row
    return most, at


def _iterate_operators(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield node and name for people of every operator; casts belong to their users."""
    for operator in graph.walk():
        if isinstance(operator.origin, str):
            yield operator.origin, f"{operator.name} ({operator.type})"


def _add_up_planned(layout: Layout) -> dict[str, int]:
    """Return the bytes of the storages that every operator makes."""
    found: dict[str, int] = {}
    first: dict[int, str] = {}
    waiting: list[int] = []  # results of casts for the next operator
    for operator in layout.graph.walk():
        if operator.type == CAST:
            waiting += operator.outputs
        elif not operator.blocks and isinstance(operator.origin, str):
            for index in (*waiting, *operator.outputs):
                first.setdefault(index, operator.origin)
            waiting = []
    for storage in layout.storages:
        maker = next((first[index] for index in storage.tensors if index in first), None)
        if maker is not None and storage.kind in (Kind.INTERMEDIATE, Kind.OUTPUT):
            found[maker] = found.get(maker, 0) + storage.bytes
    return found


def find_operator(scope: Any) -> str:
    """Return the innermost of the program's operators around an allocation."""
    marked = (name for name, _ in reversed(scope) if str(name).startswith(_MARK))
    return next(marked, _MARK).removeprefix(_MARK)


def _format_reason(error: Exception) -> str:
    return quoted(f"{type(error).__name__}: {error}".split("\n")[0])
