"""Where a file says that its buffers lay: what a runtime did, to be compared with a plan."""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.plan import Plan
from memplan.problem.trace import Trace
from memplan.programs.sources import Loaded
from memplan.view.addresses import compress

__all__ = ["find_recorded", "of_trace"]


def find_recorded(loaded: Loaded) -> Plan | None:
    """Return the offsets that the file itself has for all of its buffers, or `None`.

    They are the addresses of a recorded run, or pins (an offline plan in a TFLite model), or hints
    (XLA's own assignment).
    """
    if loaded.trace is not None:
        return of_trace(loaded.problem, loaded.trace)
    problem = loaded.problem
    offset = np.where(problem.pin != NONE, problem.pin, problem.hint)
    if not len(problem) or (offset[problem.size > 0] == NONE).any():
        return None
    return Plan.of(problem, np.maximum(offset, 0))


def of_trace(problem: Problem, trace: Trace) -> Plan | None:
    """Return where a recorded run had the buffers of a problem, as far as both are one program.

    The problem is as `trace.problem()` returns it, of this run or of another run of the same
    program. Pages that none of them ever touched are cut out. The answer is `None` if the trace has
    no addresses, or is one of other buffers.
    """
    rows = trace.planned
    if trace.address is None or len(rows) != len(problem):
        return None
    columns = ((trace.start, problem.start), (trace.end, problem.end), (trace.size, problem.size))
    if any((ours[rows] != theirs).any() for ours, theirs in columns):
        return None
    return Plan.of(problem, compress(trace.address[rows], trace.size[rows]).offset)
