"""Searches with the exact solver as an oracle (TelaMalloc, section 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from memplan.extensions.published import backtracking
from memplan.extensions.published.backtracking import Model
from memplan_lab.learn.instances import Instance
from memplan_lab.learn.samples import Samples, join

__all__ = ["Searched", "collect"]


@dataclass(frozen=True)
class Searched:
    """One search that samples were taken from."""

    instance: str  # its name
    solved: bool  # whether it ended with a plan; a search without one gives no samples
    impasses: int  # major backtracks with a label


def collect(
    instances: Iterable[Instance],
    *,
    runs: int = 2,
    steps: int = 20_000,
    oracle_nodes: int = 2_000,
    oracle_share: float = 0.5,
    seed: int = 0,
    model: Model | None = None,
    about: Mapping[str, object] | None = None,
    on_search: Callable[[Searched], object] | None = None,
) -> Samples:
    """Return samples of the major backtracks of `telamalloc`.

    Parameters
    ----------
    instances
        Problems with capacities that they fit in.
    runs
        Searches of each, which differ by when they follow the oracle.
    steps
        Limit of a search, in placements tried.
    oracle_nodes
        Limit of each question to the exact search; a backtrack with a question that stays open
        gives no sample.
    oracle_share
        Share of the backtracks that follow the oracle; the others follow the rule.
    seed
        Of that choice.
    model
        Replaces the rule, because a model leads to other states than the rule.
    about
        Where the instances are from, for the recipe.
    on_search
        Called after every search.
    """
    parts: list[Samples] = []
    count = 0
    for instance in instances:
        problem = instance.make()
        count += 1
        for run in range(runs):
            seen = backtracking.collect(
                problem,
                steps=steps,
                oracle_nodes=oracle_nodes,
                oracle_share=oracle_share,
                seed=seed + run,
                model=model,
            )
            part = Samples(
                seen.features,
                seen.level,
                seen.impasse,
                seen.length,
                seen.solvable,
                seen.shared,
                recipe={},
            )
            parts.append(part)
            if on_search is not None:
                on_search(Searched(instance.name, seen.solved, len(part.length)))
    recipe: dict[str, object] = {
        **(about or {}),
        "instances": count,
        "runs": runs,
        "steps": steps,
        "oracle_nodes": oracle_nodes,
        "oracle_share": oracle_share,
        "seed": seed,
        "memplan": version("memplan"),
    }
    if model is not None:
        recipe["model"] = dict(model.recipe)
    return join(parts, recipe)
