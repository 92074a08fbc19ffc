"""What `memplan plan` says of a plan in one arena, to people and to scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from memplan.cli import output

if TYPE_CHECKING:
    from memplan.levers.rewrite import Recomputed, Reordered
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Figure, Loaded
    from memplan.runtimes.torch.measure.run import Measured

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What the command says of a plan, to people and to scripts."""

    loaded: Loaded
    plan: Plan
    elapsed: float
    interrupted: bool
    figures: Sequence[Figure]
    measured: Measured | None
    order: Reordered | Recomputed | None = None

    def show(self, top: int) -> None:
        """Print the report for people."""
        from memplan.view.words import measured, parts, plans

        problem, console = self.loaded.problem, output.console()
        console.print(
            plans.plan_summary(
                problem,
                self.plan,
                elapsed=self.elapsed,
                interrupted=self.interrupted,
                loaded=self.loaded,
                figures=self.figures,
                order=self.order,
            )
        )
        if self.loaded.notes:
            console.print(parts.render_notes(self.loaded.notes))
        if self.measured is not None:
            console.print()
            console.print(measured.describe_run(self.measured, self.plan.peak))
        if self.plan.has_offsets and len(problem):
            console.print()
            console.print(plans.peak_buffers(problem, self.plan, top, self.loaded.labels))

    def summary(self, out: str | None, proof: str | None) -> dict[str, object]:
        """Return the report for scripts."""
        problem, plan = self.loaded.problem, self.plan
        return {
            "source": self.loaded.source,
            "in_place": self.loaded.in_place,
            "tensors": self.loaded.tensors,
            "status": str(plan.status),
            "interrupted": self.interrupted,
            "peak": plan.peak,
            "lower_bound": plan.lower_bound,
            "gap": plan.gap,
            "capacity": problem.capacity,
            "arena": None if self.loaded.arena is None else asdict(self.loaded.arena),
            "buffers": len(problem),
            "sum_of_sizes": sum(problem.size.tolist()),
            "max_load": problem.max_load,
            "runtimes": [asdict(figure) for figure in self.figures],
            "measured": None if self.measured is None else asdict(self.measured),
            "solver": plan.solver,
            "seconds": round(self.elapsed, 6),
            "nodes": plan.stats.get("nodes"),
            "conflict": list(plan.conflict),
            "problem": problem.fingerprint,
            "output": out if plan.has_offsets else None,
            "proof": proof if plan.stats.get("proof") else None,
            "notes": [asdict(note) for note in self.loaded.notes],
        }
