"""Any program that reads problems and writes plans in MiniMalloc's CSV, as a peer."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from memplan.base.errors import MemplanError
from memplan.problem import Problem, formats
from memplan_lab.bench.memory import maxrss_mib, peak_rss_mib
from memplan_lab.bench.peers.judge import judge
from memplan_lab.bench.rows import Outcome, Request, last_line

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_KNOWN = ("input", "capacity", "output", "timeout", "threads", "seed")
_GRACE = 1.0  # seconds past its timeout before a program is killed


class _Usage(NamedTuple):
    """What one run of a program took; `exit_code` is None for one that was killed."""

    exit_code: int | None
    wall: float
    cpu: float
    peak_rss_mib: float


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments, with placeholders.

    Times are those of the whole process, including its start and reading, because nothing else can
    be measured from outside.
    """

    name: str  # its name in the results
    words: tuple[str, ...]  # its command line; the first word is an absolute path

    @classmethod
    def parse(cls, name: str, template: str) -> Command:
        """Split a command line as a shell would; no shell will run it.

        Its placeholders are `{input}` and `{output}`, which it must have, `{capacity}`, `{timeout}`
        (seconds), `{threads}` and `{seed}`. It runs in an empty folder of its own, so files among
        its arguments need absolute paths.
        """
        try:
            words = shlex.split(template)
        except ValueError as error:
            raise MemplanError(f"peer {name!r}: the command cannot be split: {error}") from None
        program = shutil.which(words[0]) if words else None
        if program is None:
            first = words[0] if words else ""
            raise MemplanError(f"peer {name!r}: there is no program {first!r}")
        used = set(_PLACEHOLDER.findall(template))
        for unknown in sorted(used - set(_KNOWN)):
            known = ", ".join("{" + word + "}" for word in _KNOWN)
            raise MemplanError(f"peer {name!r}: {{{unknown}}} is unknown; there are {known}")
        for needed in ("input", "output"):
            if needed not in used:
                raise MemplanError(f"peer {name!r}: the command does not use {{{needed}}}")
        return cls(name, (os.path.abspath(program), *words[1:]))

    def run(self, problem: Problem, request: Request) -> Outcome:
        """Run the program as often as the request says, and check the last plan.

        For a problem without a capacity, `{capacity}` is its greatest load: the least that any plan
        could need.
        """
        with TemporaryDirectory(prefix="memplan-peer-") as name:
            folder = Path(name)
            values = {
                "input": str(folder / "problem.csv"),
                "output": str(folder / "plan.csv"),
                "capacity": str(problem.max_load if problem.capacity is None else problem.capacity),
                "timeout": "" if request.timeout is None else f"{request.timeout:g}",
                "threads": str(request.threads),
                "seed": str(request.seed),
            }
            formats.save(problem, values["input"])
            limit = None if request.timeout is None else request.timeout + _GRACE
            runs: list[_Usage] = []
            for _ in range(request.repeat):
                Path(values["output"]).unlink(missing_ok=True)
                runs.append(_launch(self._fill_in(values), folder, limit))
                if runs[-1].exit_code != 0:
                    break
            return _outcome(problem, request.objective, folder, runs)

    def _fill_in(self, values: Mapping[str, str]) -> list[str]:
        return [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.words]


def _launch(words: list[str], folder: Path, limit: float | None) -> _Usage:
    """Run to the end, or kill at the limit, with everything that it started."""
    killed = threading.Event()
    begin = time.perf_counter()
    with open(folder / "messages", "wb") as messages:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            start_new_session=True,
        )

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def expire() -> None:
        killed.set()
        kill()

    timer = threading.Timer(limit, expire) if limit is not None else None
    if timer:
        timer.start()
    try:
        # It is wait4 and not Popen.wait, because only wait4 returns the CPU time of this child.
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        kill()
        process.wait()
        raise
    finally:
        if timer:
            timer.cancel()
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    exit_code = None if killed.is_set() else process.returncode
    return _Usage(exit_code, wall, usage.ru_utime + usage.ru_stime, maxrss_mib(usage))


def _outcome(problem: Problem, objective: str, folder: Path, runs: list[_Usage]) -> Outcome:
    last = runs[-1]
    # A child's maximum begins at that of its launcher, so it is known only if it is above that.
    memory = max(run.peak_rss_mib for run in runs)
    measured = Outcome(
        status="failed",
        wall=tuple(run.wall for run in runs),
        cpu=tuple(run.cpu for run in runs),
        peak_rss_mib=memory if memory > peak_rss_mib() else None,
    )
    if last.exit_code is None:
        return measured.with_status("killed", "it was killed for running past its time")
    if last.exit_code != 0:
        message = last_line((folder / "messages").read_text(errors="replace"))
        return measured.with_status("failed", f"exit code {last.exit_code}: {message}")
    if not (folder / "plan.csv").exists():
        return measured.with_status("failed", "it ended well but wrote no plan")
    try:
        plan = formats.load_plan(folder / "plan.csv")
    except MemplanError as error:
        return measured.with_status("invalid", str(error).replace(f"{folder}{os.sep}", ""))
    return judge(problem, plan, objective, measured)
