"""Damaged files by the million: nothing may hang, crash, or end in anything but one sentence.

    python tests/fuzz_readers.py 10000000 [--seed 0] [--jobs 1] [--log FILE]
    python tests/fuzz_readers.py --only 123456     one of them again, with its traceback

Every mutant must be read or refused with a `MemplanError` of one line under 300 characters, within
10 s and 1 GB. They are read in a process that is started again when it dies; the mutant that killed
it is a finding like any other.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = 300  # characters of a sentence, without the name of the file
SECONDS = 10
BYTES = 1 << 30
_BATCH = 100_000  # mutants that one process reads: what a library leaks goes with it


class Hang(BaseException):
    """A mutant took longer than it may."""


def _on_alarm(*_: object) -> None:
    raise Hang


def examine(number: int, mutants: Any) -> tuple[str, str, str]:
    """Read a mutant.

    Returns
    -------
    tuple
        The reader; "read", "refused", or what is wrong; and, where something is, where.
    """
    from memplan.errors import MemplanError

    mutant = mutants[number]
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        mutant.read(mutant.content)
        return mutant.reader, "read", ""
    except MemplanError as error:
        sentence = str(error)
        if len(sentence.replace(getattr(error, "path", "\0"), "")) > LONGEST:
            return mutant.reader, "long", sentence[:400]
        if "\n" in sentence.replace("\n    ", ""):  # indented lines are what to type
            return mutant.reader, "lines", sentence[:400]
        if "not enough memory" in sentence:
            return mutant.reader, "memory", sentence
        return mutant.reader, "refused", ""
    except Hang:
        return mutant.reader, "hang", traceback.format_exc(limit=-3)
    except Exception as error:
        return mutant.reader, type(error).__name__, traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _work(first: int, count: int, step: int, at: Path) -> None:
    """Read mutants, and print findings; where it is stands in a file, should it be killed."""
    from mutants import Mutants, packed

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _on_alarm)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES * 4, BYTES * 4))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries complain there of what they read
    mutants = Mutants(at.parent)
    most = max(BYTES, _peak_bytes())  # which also counts the process that started this one
    ends: Counter[str] = Counter()
    slowest = (0.0, 0)
    with at.open("r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        for number in range(first, first + count * step, step):
            place[:] = packed(number)
            begun = time.perf_counter()
            reader, end, where = examine(number, mutants)
            slowest = max(slowest, (time.perf_counter() - begun, number))
            ends[f"{reader}: {end if end in ('read', 'refused') else 'FOUND'}"] += 1
            if _peak_bytes() > most:
                end, where = "memory", f"{_peak_bytes() >> 20} MB"
            if end not in ("read", "refused"):
                print(json.dumps({"number": number, "reader": reader, "end": end, "where": where}))
            if end == "memory":
                break  # its peak stays: another process goes on
    done = (number - first) // step + 1
    peak = _peak_bytes() >> 20
    print(json.dumps({"done": done, "ends": ends, "slowest": slowest, "peak": peak}), flush=True)


class _Run:
    """The parent: starts processes, and keeps what they find."""

    def __init__(self, log: Path | None) -> None:
        self.ends: Counter[str] = Counter()
        self.found: list[dict[str, Any]] = []
        self.kinds: Counter[tuple[str, str, str]] = Counter()
        self.done = 0
        self.slowest = (0.0, 0)
        self.peak = 0
        self._log = log
        self._begun = time.monotonic()
        importlib.import_module("mutants")  # what is wrong with it is wrong for every mutant
        self._folder = Path(tempfile.mkdtemp(prefix="memplan-fuzz-", dir=_shared_memory()))

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, first: int, count: int, step: int) -> None:
        """Read so many mutants, the numbers of which are `step` apart."""
        while count > 0:
            done = self._batch(first, min(count, _BATCH), step)
            first += done * step
            count -= done

    def _batch(self, first: int, count: int, step: int) -> int:
        at = self._folder / "at"
        at.write_bytes((first - step).to_bytes(8, "little", signed=True))
        command = [sys.executable, __file__, "--work", f"{first},{count},{step},{at}"]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        done = None
        last, since = b"", time.monotonic()
        with worker:
            assert worker.stdout is not None
            while worker.poll() is None:
                time.sleep(0.2)
                if at.read_bytes() != last:
                    last, since = at.read_bytes(), time.monotonic()
                elif time.monotonic() - since > 3 * SECONDS:  # in a library, deaf to the alarm
                    worker.kill()
            for line in worker.stdout:
                said = json.loads(line)
                if "done" in said:
                    done = self._add(said)
                else:
                    self._note(said)
        if done is None:
            number = int.from_bytes(at.read_bytes(), "little", signed=True)
            end = f"killed the process ({worker.returncode})"
            self._note({"number": number, "reader": "?", "end": end, "where": ""})
            done = max((number - first) // step + 1, 1)
        self.done += done
        self._say(f"{self.done:,} mutants, {len(self.found)} findings, {self._seconds():,} s")
        return done

    def _add(self, said: dict[str, Any]) -> int:
        self.ends.update(said["ends"])
        self.slowest = max(self.slowest, tuple(said["slowest"]))
        self.peak = max(self.peak, said["peak"])
        return int(said["done"])

    def _note(self, finding: dict[str, Any]) -> None:
        self.found.append(finding)
        kind = finding["reader"], finding["end"], finding["where"][-200:]
        self.kinds[kind] += 1
        if self.kinds[kind] == 1 and len(self.kinds) <= 200:
            self._say(json.dumps(finding))

    def _seconds(self) -> int:
        return int(time.monotonic() - self._begun)

    def _say(self, line: str) -> None:
        print(line, flush=True)
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(line + "\n")

    def summary(self) -> dict[str, Any]:
        return {
            "mutants": self.done,
            "seconds": self._seconds(),
            "findings": len(self.found),
            "ends": dict(sorted(self.ends.items())),
            "slowest": {"seconds": round(self.slowest[0], 3), "number": self.slowest[1]},
            "peak_MB": self.peak,
        }


def _shared_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(count: int, seed: int = 0, log: Path | None = None) -> tuple[dict[str, Any], list[Any]]:
    """Read `count` mutants, and return a summary and the findings."""
    run = _Run(log)
    try:
        run.run(seed * 10**12, count, 1)
    finally:
        run.close()
    return run.summary(), run.found


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description="Damaged files by the million.")
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", type=int)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        first, count, step, at = given.work.split(",")
        _work(int(first), int(count), int(step), Path(at))
        return 0
    if given.only is not None:
        from mutants import Mutants

        with tempfile.TemporaryDirectory() as folder:
            mutant = Mutants(Path(folder))[given.only]
            print(mutant.reader, repr(mutant.content)[:4000])
            print(mutant.read(mutant.content))
        return 0
    summary, found = fuzz(given.count, given.seed, given.log)
    print(json.dumps(summary, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
