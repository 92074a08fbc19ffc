"""Asks memplan random questions of each kind, and compares what it claims with the true answer."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from memplan.base.errors import ProblemError
from memplan_lab.claims import places, plans, several
from memplan_lab.claims.comparing import FalseClaimError

__all__ = ["KINDS", "Count", "ask", "ask_many"]

KINDS: Final[dict[str, Callable[[random.Random], bool]]] = {
    "solve": plans.ask_solve,
    "proof": plans.ask_proof,
    "printed": plans.ask_printed,
    "assign": places.ask_assign,
    "residency": places.ask_residency,
    "weights": places.ask_weights,
    "blocks": places.ask_blocks,
    "penalties": places.ask_penalties,
    "waits": several.ask_waits,
    "together": several.ask_together,
    "envelope": several.ask_envelope,
    "order": several.ask_order,
    "recompute": several.ask_recompute,
}


class Answer(Enum):
    """What became of a question."""

    PROVED = "proved"
    OPEN = "open"
    SKIPPED = "skipped"
    FALSE = "false"


@dataclass
class Count:
    """How many questions of a kind were asked, and what became of them."""

    kind: str
    # asked, open: How many were answered, and of these how many without a proof that nothing is
    # better.
    asked: int = 0
    open: int = 0
    # The false claims: a sentence with the seed of each.
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0  # wall time


def ask(kind: str, seed: int) -> tuple[Answer, str]:
    """Ask one question; return what became of it, and what is false."""
    rng = random.Random(f"{kind} {seed}")
    try:
        return (Answer.PROVED if KINDS[kind](rng) else Answer.OPEN), ""
    except ProblemError:  # what was drawn contradicts itself
        return Answer.SKIPPED, ""
    except FalseClaimError as error:
        return Answer.FALSE, f"{kind} {seed}: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{os.path.basename(where.filename)}:{where.lineno}"
        return Answer.FALSE, f"{kind} {seed}: {type(error).__name__} at {at}: {error}"


def ask_many(kind: str, first: int, count: int) -> Iterator[Count]:
    """Ask questions from a seed on until so many are answered; yield the count after each."""
    found, begun = Count(kind), time.perf_counter()
    seed = first
    while found.asked < count:
        answer, what = ask(kind, seed)
        seed += 1
        if answer is Answer.SKIPPED:
            continue
        found.asked += 1
        found.open += answer is Answer.OPEN
        if what:
            found.wrong.append(what)
        found.seconds = time.perf_counter() - begun
        yield found
