"""`memplan record`: what a model allocates while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.runtimes.torch.record import Recording

NAME = "record"
EXAMPLES = (
    "memplan record net.py:make_model -o trace.json",
    "memplan record net.py:make_model --input 1x3x224x224 -o trace.json",
)


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="SHAPE[:DTYPE]",
            help="An input of the model: 1x3x224x224, 1x128:int64. It replaces the inputs that "
            "the function returns. May be repeated.",
        ),
    ] = None
    warmup: Annotated[
        int, typer.Option("--warmup", min=0, help="Number of runs before the recorded one.")
    ] = 1
    compare_ir: Annotated[
        bool,
        typer.Option(
            "--compare-ir", help="Also show which of these allocations are in torch.export's graph."
        ),
    ] = False


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT:FUNCTION",
            help="A Python file, and the function in it that returns a torch model, (model, "
            "example_inputs), or (step, example_inputs, model) for a training step of a model.",
        ),
    ],
    *,
    out: Annotated[
        str,
        options.write_to("Write the trace to this file, as JSON."),
    ],
    asked: _Asked,
) -> None:
    """Run a PyTorch model or a training step once; record its allocations by operator and module.

    The trace can be planned, viewed and inspected like any problem. Needs the extra `torch`.
    """
    from memplan.cli import script

    path, name = script.parse_target(target)
    output.check_output(out, path)
    output.check_suffix(out, {".json": "the trace"})
    output.check_libraries(extras=("torch",))

    from memplan.base.errors import FormatError
    from memplan.problem import formats
    from memplan.runtimes.torch.record import record
    from memplan.runtimes.torch.record.recorder import make_arguments

    file = script.Script(path)
    model, inputs, trains = file.model(name)
    if asked.input:
        inputs = tuple(map(script.make_tensor, asked.input))
    if inputs is None:
        raise FormatError(
            path, f"{name}() returns no example inputs; return them, or give --input 1x3x224x224"
        )
    with file.blame("the model raises"):
        trace = record(model, inputs, trains=trains, warmup=asked.warmup)
    formats.save(trace, out)
    _show(trace)
    if asked.compare_ir:
        _show_graph(trace, *make_arguments(inputs))
    output.tell_written(out)


def _show(trace: Recording) -> None:
    from memplan.view.units import exact

    console = output.console()
    total = sum(trace.size.tolist())
    lasting = sum(trace.size[trace.outlives].tolist())
    facts = [
        *trace.about.items(),
        ("allocations", f"{len(trace):,}, {exact(total)} in total"),
        ("results", f"{trace.outlives.sum():,} outlive the run, {exact(lasting)}; not planned"),
        (
            "to plan",
            f"{len(trace.planned):,}, at most {exact(trace.problem().max_load)} live at one time",
        ),
    ]
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        console.print(f"{name:<{width}}{value}")
    if trace.about["mode"] == "train":
        output.message("the model is in training mode; return model.eval() to plan inference")


def _show_graph(trace: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from memplan.runtimes.torch.measure import allocations as ir_level
    from memplan.view.words.parts import make_name, make_table

    rows = ir_level.compare(ir_level.export(trace.model, args, kwargs), trace)
    table = make_table("operator", "in the graph", "bytes", "recorded", "bytes")
    for row in (*rows, ir_level.add_up(rows)):
        table.add_row(
            make_name(row.operator),
            f"{row.tensors:,}",
            f"{row.tensor_bytes:,}",
            f"{row.allocations:,}",
            f"{row.allocated_bytes:,}",
        )
    console = output.console()
    console.print()
    console.print(table)
