"""Solvers that misbehave, for tests: in the processes that solve, not in this one.

Python imports `sitecustomize` from its path when it starts. So the processes of a sweep, which
inherit the environment, have some solvers replaced; what is tested is the same code as ever.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROGRAM = """
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from memplan_lab.bench import worker
from memplan_lab.bench.rows import Outcome

NOTES = Path({notes!r})
true_answer = worker.answer


def answer(problem, request):
    if request.solver == "greedy":  # which warms up
        return true_answer(problem, request)
    with open(NOTES / "starts", "a") as file:
        file.write(f"{{request.solver}} {{problem.fingerprint}} {{os.getpid()}}\\n")
    solver = request.solver
    if solver == "greedy_by_size":  # crashes
        print("terminate called: out of luck", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if solver == "large":  # crashes the first time
        try:
            (NOTES / f"crashed {{problem.fingerprint[-8:]}}").touch(exist_ok=False)
        except FileExistsError:
            return true_answer(problem, request)
        os.abort()
    if solver == "gergov":  # hangs, and has started something that hangs
        child = subprocess.Popen(["sleep", "1000"])
        (NOTES / "hanging").write_text(str(child.pid))
        time.sleep(1000)
    if solver == "single_object":  # takes all the memory that it gets
        found = []
        while True:
            found.append(bytearray(1 << 26))
    if solver == "many_objects":  # talks too much, where it should not
        print("nonsense on standard output", flush=True)
    if solver == "shared_objects":
        time.sleep(0.25)
    return true_answer(problem, request)


worker.answer = answer
"""


def install(folder: Path) -> dict[str, str]:
    """Return the environment in which solvers misbehave, and write `starts` into `folder`."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_PROGRAM.format(notes=str(folder)))
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path}


def starts(folder: Path) -> list[tuple[str, ...]]:
    """Return solver, fingerprint and process of all that began."""
    return [tuple(line.split()) for line in (folder / "starts").read_text().splitlines()]
