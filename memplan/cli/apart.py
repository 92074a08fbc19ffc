"""`memplan plan --penalties` and `--sync`: plans in which sharing costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import output

if TYPE_CHECKING:
    from memplan.apart import Apart, Waits
    from memplan.sources import Loaded

__all__ = ["Sharing", "run"]


@dataclass(frozen=True)
class Sharing:
    """Which buffers should not share addresses."""

    penalties: Annotated[
        str | None,
        typer.Option(
            "--penalties",
            metavar="PAIRS.csv",
            help="Pay as little as --capacity allows for pairs that share addresses; the file has "
            "the columns first,second,cost.",
        ),
    ] = None
    sync: Annotated[
        str | None,
        typer.Option(
            "--sync",
            metavar="FILE",
            help="Let streams wait for each other as little as --capacity allows, and write the "
            "program that waits to this file (graph JSON).",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.penalties is not None and self.sync is not None:
            raise typer.BadParameter(
                "waits have penalties of their own; leave out --penalties", param_hint="'--sync'"
            )
        if self.sync is not None and not self.sync.endswith(".json"):
            raise typer.BadParameter(
                "a program with waits is written as graph JSON (.json)", param_hint="'--sync'"
            )

    @property
    def option(self) -> str | None:
        """The option that is given."""
        return "--penalties" if self.penalties else "--sync" if self.sync else None


def run(
    loaded: Loaded,
    sharing: Sharing,
    out: str | None,
    *,
    as_json: bool,
    quiet: bool,
    threads: int | None,
    **search: Any,
) -> None:
    """Plan within a capacity, print what sharing costs, and write what is asked for.

    Threads are refused, as the search has one; `search` are arguments of `memplan.plan_apart`.
    """
    if threads is not None:
        raise typer.BadParameter(
            f"the search of {sharing.option} runs in one thread", param_hint="'--threads'"
        )
    if loaded.problem.capacity is None:
        raise typer.BadParameter(
            "it needs --capacity: without a limit, nothing has to be shared",
            param_hint=f"'{sharing.option}'",
        )
    from memplan import formats
    from memplan.apart import plan_apart, plan_waits
    from memplan.formats.json import write_plan

    waits: Waits | None = None
    if sharing.penalties is not None:
        found = plan_apart(loaded, sharing.penalties, **search)
        plan = found.plan
    else:
        waits = plan_waits(loaded, **search)
        found, plan = waits.apart, waits.plan
    files: dict[str, bytes] = {}
    tables: tuple[str, ...] = ()
    if plan.has_offsets and waits is not None and sharing.sync is not None:
        files[sharing.sync] = _write_graph(waits)
    if plan.has_offsets and out is not None:
        if out.endswith(".json"):
            files[out] = write_plan(plan).encode()
        else:
            tables = formats.save(plan, out)
    formats.write_files(files)
    if as_json:
        output.line(output.make_json(_summarise(loaded, found, waits, out)))
    elif not quiet:
        from memplan.view.words import apart, parts

        output.console().print(apart.describe_apart(found, waits))
        if loaded.notes:
            output.console().print(parts.render_notes(loaded.notes))
        if plan.has_offsets:
            output.tell_written(*files, *tables)
    output.tell_interrupted(found.interrupted, found.status)
    for path in (sharing.sync, out):
        if path is not None and not plan.has_offsets:
            output.message(f"no plan was found; {path} was not changed")
    raise typer.Exit(output.exit_code(plan, found.interrupted))


def _write_graph(waits: Waits) -> bytes:
    from memplan.sources.graph_json import write_graph

    assert waits.loaded.graph is not None
    return write_graph(waits.loaded.graph).encode()


def _summarise(
    loaded: Loaded, found: Apart, waits: Waits | None, out: str | None
) -> dict[str, object]:
    plan = found.plan
    record: dict[str, object] = {
        "source": loaded.source,
        "status": str(found.status),
        "interrupted": found.interrupted,
        "cost": found.cost if plan.has_offsets else None,
        "bound": found.bound,
        "met": [{"first": a, "second": b, "cost": found.penalties[a, b]} for a, b in found.met],
        "peak": plan.peak,
        "peak_bound": found.peak_bound,
        "capacity": found.problem.capacity,
        "buffers": len(found.problem),
        "penalties": len(found.penalties),
        "conflict": list(plan.conflict),
        "nodes": found.nodes,
        "seconds": round(found.seconds, 6),
        "output": out if plan.has_offsets else None,
    }
    if waits is not None:
        assert loaded.graph is not None
        names = [each.name for each in loaded.graph.operators]
        record["waits"] = [
            {"operator": after, "for": before, "names": [names[after], names[before]]}
            for before, after in waits.arcs
        ]
        record |= {"lost": waits.lost, "chain": waits.chain}
    return record
