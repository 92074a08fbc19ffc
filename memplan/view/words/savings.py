"""What would come down, in words: of the load, and of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.problem.columns import NONE
from memplan.programs.graph.fusion import Fusion
from memplan.view.units import human, lifetime, percent, plural
from memplan.view.words.parts import (
    describe_contradiction,
    escape,
    make_name,
    make_table,
    quote_name,
)

if TYPE_CHECKING:
    from memplan.analysis.inspection import Inspection, Trial
    from memplan.analysis.savings import Change, Savings

__all__ = ["describe_savings", "list_missing"]

# By `Change`, in words.
_COLUMNS = {
    "halved": "halved",
    "removed": "removed or moved",
    "recomputed": "recomputed",
    "fused": "fused away",
}
_VERBS = {
    "halved": "halving",
    "removed": "removing or moving",
    "recomputed": "recomputing",
    "fused": "fusing the operators around",
}
_NOT_KNOWN = " The file does not say whether a runtime or compiler can fuse them."
_NAMES = 3  # of those that would do; the others are counted


def describe_savings(found: Inspection, most: int) -> RenderableType:
    """Return how far each change to the `most` largest lowers the load, and the best changes."""
    savings = found.savings
    heading = Text("What the load would be if one of them were changed", style="bold")
    sentences = [Text(_describe_trial(found, trial)) for trial in found.trials]
    if not any(savings.saved(change).any() for change in savings.after):
        return Group(heading, Text(_explain_no_savings(savings)), *sentences)
    return Group(heading, _tabulate(savings, most), Text(), *sentences)


def _explain_no_savings(savings: Savings) -> str:
    sections = plural(savings.count - 1, "other section")
    sentence = (
        f"No single change lowers the load: it is as great in {sections}, and no buffer is live in "
        "all of them."
    )
    if not savings.together:
        return sentence
    return f"{sentence} {plural(len(savings.together), 'buffer')} changed together lower it:"


def _tabulate(savings: Savings, most: int) -> RenderableType:
    columns = [change for change in savings.after if (savings.after[change] != NONE).any()]
    made = make_table("buffer", *(_COLUMNS[change] for change in columns))
    for at, row in enumerate(savings.rows[:most].tolist()):
        cells = [_cell(savings, at, change) for change in columns]
        made.add_row(make_name(savings.problem.ids[row]), *cells)
    return made


def _cell(savings: Savings, at: int, change: Change) -> str:
    if savings.after[change][at] == NONE:
        return "-"
    saved = int(savings.saved(change)[at])
    return f"{human(saved)} less" if saved else "nothing"


def _describe_trial(found: Inspection, trial: Trial) -> str:
    """Say what the best change of a kind brings: the load, its new peak, and the plan."""
    saved = found.savings.peak - trial.worst.load
    share = percent(saved, found.savings.peak)
    change, worst, plan = (
        _describe_change(found, trial),
        _describe_worst(trial),
        _describe_plan(trial),
    )
    return (
        f"{change} the load falls by {human(saved)} ({share}): it is then greatest at {worst} with "
        f"{human(trial.worst.load)}. {plan}{_NOT_KNOWN * (trial.change == 'fused')}"
    )


def _describe_change(found: Inspection, trial: Trial) -> str:
    ids = found.savings.problem.ids
    names, several = _join_names([ids[row] for row in trial.rows]), len(trial.rows) > 1
    if trial.change == "halved":
        return f"With {names} at half {'their sizes' if several else 'its size'}"
    if trial.change == "removed":
        return f"Without {names}, or with {'them' if several else 'it'} in another memory,"
    if trial.change == "fused":
        fusions = found.savings.fusions_for(trial.rows)
        rows = [row for each in fusions for row in each.rows]
        freed = _join_names([ids[row] for row in rows])
        verb = "is" if len(rows) == 1 else "are"
        runs = [_join_run(each) for each in fusions]
        what = f"{runs[0]} fused into one operator"
        if len(runs) > 1:
            listed = "; ".join(runs[:_NAMES])
            more = f"; and {plural(len(runs) - _NAMES, 'other')}" if len(runs) > _NAMES else ""
            what = f"{len(runs)} runs of operators fused, each into one ({listed}{more})"
        return f"With {what}, so that {freed} {verb} not stored,"
    remake = found.savings.remakes[trial.rows[0]]
    by = _join([escape(operator) for operator in remake.by])
    needs = ""
    if remake.kept:
        kept = _join_names([ids[each] for each in remake.kept])
        needs = f", for which {kept} must be kept until then,"
    return (
        f"With {names} dropped at time {remake.dropped} and made again by {by} just before "
        f"{remake.again}{needs}"
    )


def _join_run(fusion: Fusion) -> str:
    *some, last = map(escape, fusion.operators)
    return f"{', '.join(some)} and {last}"


def _describe_worst(trial: Trial) -> str:
    worst = trial.worst
    if worst.start == worst.end:
        return f"the moment before time {worst.start}, when it is made again,"
    return f"time {lifetime(worst.start, worst.end)}"


def _describe_plan(trial: Trial) -> str:
    peak = trial.plan.peak
    if peak is None:
        return "No plan for this was found within the budget."
    if trial.proved:
        return f"The plan then needs {human(peak)}, proved to be optimal."
    return f"The plan then needs {human(peak)}; less is not ruled out."


def list_missing(found: Inspection) -> list[str]:
    """Return the single changes that would make a problem fit; nothing if it already fits."""
    shortage, savings = found.shortage, found.savings
    if shortage is None or shortage.fits:
        return []
    if shortage.required is None:
        return [f"No capacity helps: {describe_contradiction(found.loaded.problem)}."]
    if savings.peak <= shortage.available:
        if shortage.fits is None:
            return ["The load is within the capacity."]
        return [
            "The load is within the capacity, but every plan leaves memory between buffers unused."
        ]
    ways = []
    for change in savings.after:
        ids = [savings.problem.ids[savings.rows[at]] for at in found.enough(change)]
        if ids:
            ways.append(f"{_VERBS[change]} {_join_names(ids, 'or')}")
    sentence = "No change to one buffer alone brings the load within the capacity."
    if ways:
        sentence = f"One of these alone brings the load within the capacity: {'; '.join(ways)}."
    fits = [each for each in (_describe_fit(found, trial) for trial in found.trials) if each]
    return [sentence, f"A plan fits {', or '.join(fits)}."] if fits else [sentence]


def _describe_fit(found: Inspection, trial: Trial) -> str:
    assert found.shortage is not None
    if trial.plan.peak is None or trial.plan.peak > found.shortage.capacity:
        return ""
    names = _join_names([found.savings.problem.ids[row] for row in trial.rows])
    verb = "is" if len(trial.rows) == 1 else "are"
    how = {
        "halved": "halved",
        "removed": "removed or moved",
        "recomputed": "recomputed",
        "fused": "not stored because operators are fused",
    }
    return f"if {names} {verb} {how[trial.change]} ({human(trial.plan.peak)})"


def _join_names(ids: Sequence[str], word: str = "and") -> str:
    """Return the names: "a", "b" and "c", or "a", "b", "c" and 4 others."""
    return _join([quote_name(id) for id in ids], word)


def _join(texts: Sequence[str], word: str = "and") -> str:
    """Return a, b and c; of many the first, and how many others."""
    *some, last = texts if len(texts) <= _NAMES else (*texts[:_NAMES], _count_others(texts, word))
    return f"{', '.join(some)} {word} {last}" if some else last


def _count_others(texts: Sequence[str], word: str) -> str:
    others = plural(len(texts) - _NAMES, "other")
    return f"one of {others}" if word == "or" and len(texts) > _NAMES + 1 else others
