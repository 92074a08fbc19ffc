"""Ctrl-C at a certain moment of a search, without a keyboard and without waiting."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import memplan as mp
from memplan import solvers
from memplan.problem.plan import Plan

__all__ = ["ctrl_c", "interrupt", "raise_signal"]


@contextmanager
def ctrl_c(at: int, send: Callable[[Plan], None]) -> Iterator[list[int]]:
    """Call a function after so many calls of `solve`; yield their number."""
    calls, solve = [0], solvers.solve

    def counted(*given: Any, **search: Any) -> Plan:
        calls[0] += 1
        plan = solve(*given, **search)
        if calls[0] == at:
            send(plan)
        return plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers, "solve", counted)
        yield calls


def interrupt(plan: Plan) -> None:
    """Do what `solve` does on Ctrl-C."""
    raise mp.Interrupted(plan)


def raise_signal(plan: Plan) -> None:
    """Do what the keyboard does on Ctrl-C, while Python code runs."""
    signal.raise_signal(signal.SIGINT)
