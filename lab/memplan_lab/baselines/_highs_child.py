"""Runs HiGHS on a program, and prints a line of JSON whenever its bound or solution changes.

`memplan_lab.baselines._highs` runs it as a program, for two reasons. A process can be ended at any
time; a call of a library cannot. And highspy cannot be loaded into one process with OR-tools, which
contains another HiGHS of the same name.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
from typing import IO, Any

import numpy as np


def main() -> None:
    """Read the program and the options from standard input, as NumPy's archive."""
    # HiGHS 1.16 prints lines of its own even if it is silent, so they go to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import highspy

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C
    request = np.load(io.BytesIO(sys.stdin.buffer.read()))
    highs = _load(request)
    shown = int(request["shown"])

    def on_improvement(event: Any) -> None:
        out = event.data_out
        point = [out.mip_solution[at] for at in range(shown)]
        _write(answers, out.mip_dual_bound, out.mip_node_count, point)

    def on_log(event: Any) -> None:
        _write(answers, event.data_out.mip_dual_bound, event.data_out.mip_node_count)

    highs.cbMipImprovingSolution += on_improvement
    highs.cbMipLogging += on_log
    highs.run()
    info = highs.getInfo()
    status = highs.modelStatusToString(highs.getModelStatus())
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    best = highs.getSolution().col_value[:shown] if solved else None
    _write(answers, info.mip_dual_bound, info.mip_node_count, best, status)


def _load(request: Any) -> Any:
    import highspy

    highs = highspy.Highs()
    highs.silent()
    options = json.loads(str(request["options"]))
    for name, value in options.items():
        highs.setOptionValue(name, value)
    program = highspy.HighsLp()
    program.num_col_ = len(request["lower"])
    program.num_row_ = len(request["row_upper"])
    program.col_cost_ = request["cost"].astype(float)
    program.col_lower_ = request["lower"]
    program.col_upper_ = request["upper"]
    program.row_lower_ = np.full(program.num_row_, -highspy.kHighsInf)
    program.row_upper_ = request["row_upper"]
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.append(request["row_begin"], len(request["column"]))
    program.a_matrix_.index_ = request["column"]
    program.a_matrix_.value_ = request["value"]
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    program.integrality_ = [kinds[whole] for whole in request["whole"].tolist()]
    highs.passModel(program)
    if len(request["point"]):
        start = highspy.HighsSolution()
        start.col_value = request["point"].tolist()
        highs.setSolution(start)
    return highs


def _write(
    answers: IO[str], bound: float, nodes: int, point: Any | None = None, status: str | None = None
) -> None:
    known = {
        "bound": bound if math.isfinite(bound) else None,
        "nodes": max(0, nodes),
        "point": None if point is None else [float(at) for at in point],
        "status": status,
    }
    print(json.dumps(known), file=answers, flush=True)


if __name__ == "__main__":
    main()
