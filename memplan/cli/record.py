"""`memplan record`: what a model allocates while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import output

if TYPE_CHECKING:
    from memplan.runtime.torch import Recording

NAME = "record"


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT:FUNCTION",
            help="A Python file, and the function in it that returns a torch model, or (model, "
            "example_inputs).",
        ),
    ],
    out: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The trace, as JSON.")],
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="SHAPE[:DTYPE]",
            help="An input of the model: 1x3x224x224, 1x128:int64. In place of the function's "
            "own. May be repeated.",
        ),
    ] = None,
    warmup: Annotated[
        int, typer.Option("--warmup", min=0, help="Runs before the one that is recorded.")
    ] = 1,
    compare_ir: Annotated[
        bool,
        typer.Option(
            "--compare-ir", help="Also show what torch.export's graph has of these allocations."
        ),
    ] = False,
) -> None:
    """Run a PyTorch model once, and record every allocation with its operator and module.

    The trace can be planned, viewed, inspected and explained as any problem. Needs the extra
    `torch`.
    """
    from memplan.cli import script

    path, name = script.parse_target(target)
    output.check_output(out, path)

    from memplan import formats
    from memplan.errors import FormatError
    from memplan.runtime.torch import record
    from memplan.runtime.torch.recorder import make_arguments

    file = script.Script(path)
    model, inputs = file.model(name)
    if input:
        inputs = tuple(map(script.make_tensor, input))
    if inputs is None:
        raise FormatError(
            path, f"{name}() returns no example inputs; return them, or give --input 1x3x224x224"
        )
    with file.blame("the model raises"):
        trace = record(model, inputs, warmup=warmup)
    formats.save(trace, out)
    _show(trace)
    if compare_ir:
        _show_graph(trace, *make_arguments(inputs))


def _show(trace: Recording) -> None:
    from memplan.view.units import exact

    console = output.console()
    total = sum(trace.size.tolist())
    lasting = sum(trace.size[trace.outlives].tolist())
    facts = [
        *trace.about.items(),
        ("allocations", f"{len(trace):,}, {exact(total)} in all"),
        ("results", f"{trace.outlives.sum():,} outlive the run, {exact(lasting)}; not planned"),
        ("to plan", f"{len(trace.planned):,}, {exact(trace.problem().max_load)} live at once"),
    ]
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        console.print(f"{name:<{width}}{value}")
    if trace.about["mode"] == "train":
        output.message("the model is in training mode; return model.eval() to plan inference")


def _show_graph(trace: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from memplan.yardsticks import ir_level

    rows = ir_level.compare(ir_level.export(trace.model, args, kwargs), trace)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("operator", overflow="fold")
    for column in ("in the graph", "bytes", "recorded", "bytes"):
        table.add_column(column, justify="right")
    for row in (*rows, ir_level.add_up(rows)):
        table.add_row(
            row.operator,
            f"{row.tensors:,}",
            f"{row.tensor_bytes:,}",
            f"{row.allocations:,}",
            f"{row.allocated_bytes:,}",
        )
    console = output.console()
    console.print()
    console.print(table)
