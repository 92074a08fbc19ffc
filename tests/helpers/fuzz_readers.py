"""Damaged files by the million: nothing may hang, crash, or end in anything but one sentence.

    python tests/helpers/fuzz_readers.py 10000000 [--seed 0] [--log FILE] [--readers onnx,tflite]
    python tests/helpers/fuzz_readers.py 1000000 --commands     also through commands
    python tests/helpers/fuzz_readers.py --only 123456     one of them again, with its traceback

Every mutant must be read or refused with a `MemplanError` of one line under 300 characters, within
10 s and 1 GB. They are read in a process that is started again when it dies; the mutant that killed
it is a finding like any other. With `--commands`, every command of `COMMANDS` takes it too, in the
same process, and must end with one of its exit codes and, where that is a refusal, in one sentence.
Runtimes in which commands run models, in processes of their own, count as not installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import io
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
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

LONGEST = 300  # characters of a sentence, without the name of the file
SECONDS = 10
BYTES = 1 << 30
_BATCH = 100_000  # mutants that one process reads: what a library leaks goes with it


# By command: its arguments behind the file. OUT is a file that it may write, SAME the file again.
COMMANDS = (
    ("plan", "--nodes", "500", "--no-runtime", "--json"),
    ("order", "--states", "2000", "--json"),
    ("bands", "--json"),
    ("recompute", "--nodes", "500", "--capacity", "20KiB", "--json"),
    ("tradeoff", "--nodes", "500", "--points", "2", "--json"),
    ("plan", "SAME", "--nodes", "500", "--json"),
    ("plan", "--memory", "fast=8KiB", "--memory", "slow=1GiB", "--nodes", "500", "--json"),
    ("plan", "--block-limit", "1MiB", "--nodes", "500", "--json"),
    ("apply", "--nodes", "500", "--c-header", "OUT.h"),
    ("apply", "--nodes", "500", "--order", "--c-header", "OUT.h"),
    ("apply", "--nodes", "500", "--bands", "--c-header", "OUT.h"),
    ("apply", "--nodes", "500", "--order", "-o", "OUT"),
    ("apply", "--nodes", "500", "--bands", "--allow-inexact", "-o", "OUT"),
)
_RUNTIMES = ("onnxruntime", "tflite-micro", "tflite_micro")


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
    from memplan.base.errors import MemplanError

    mutant = mutants[number]
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        mutant.read(mutant.content)
        return mutant.reader, "read", ""
    except MemplanError as error:
        sentence = str(error)
        fault = _find_fault(sentence, getattr(error, "path", ""))
        return mutant.reader, fault or "refused", sentence[:400] if fault else ""
    except Hang:
        return mutant.reader, "hang", traceback.format_exc(limit=-3)
    except Exception as error:
        return mutant.reader, type(error).__name__, traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _find_fault(sentence: str, path: str) -> str:
    """Return what is wrong with a sentence about a file; empty if it is as it must be."""
    if len(sentence.replace(path or "\0", "")) > LONGEST:
        return "long"
    if "\n" in sentence.replace("\n    ", ""):  # indented lines are what to type
        return "lines"
    return "memory" if "not enough memory" in sentence else ""


def run_commands(number: int, mutants: Any, out: Path) -> tuple[str, str, str]:
    """Let every command take a mutant; return what `examine` does."""
    from memplan.cli import main

    mutant = mutants[number]
    if mutant.place is None:
        return mutant.reader, "refused", ""
    path = str(mutant.place(mutant.content))
    end = "refused"
    for name, *rest in COMMANDS:
        words = [path if each == "SAME" else each.replace("OUT", str(out)) for each in rest]
        arguments = [name, path, *words]
        line, said = " ".join((name, *rest)), io.StringIO()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(said):
                code = main(arguments)
        except Hang:
            return mutant.reader, "hang", f"{line}: {traceback.format_exc(limit=-3)}"
        except BaseException:  # whatever a command lets through is a finding
            return mutant.reader, "raises", f"{line}: {traceback.format_exc(limit=-3)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        sentence = said.getvalue().rstrip("\n")
        if code not in (0, 1, 2, 3):
            return mutant.reader, f"exit code {code}", f"{line}: {sentence[-600:]}"
        fault = _find_fault(sentence.removeprefix(f"memplan: {path}"), path) if code == 2 else ""
        if fault:
            return mutant.reader, fault, f"{line}: {sentence[:400]}"
        end = "read" if code == 0 else end
    return mutant.reader, end, ""


def _prepare_commands() -> None:
    """Hide runtimes, and build the command line once: both before commands are imported."""
    version, find_spec = importlib.metadata.version, importlib.util.find_spec

    def find_version(name: str) -> str:
        if name in _RUNTIMES:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    importlib.metadata.version = find_version
    importlib.util.find_spec = lambda name, *rest: (  # type: ignore[assignment]
        None if name in _RUNTIMES else find_spec(name, *rest)
    )
    import typer.main

    typer.main.get_command = cache(typer.main.get_command)  # that of the program itself


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _work(first: int, count: int, step: int, at: Path, only: list[str], commands: bool) -> None:
    """Read mutants, and print findings; where it is stands in a file, should it be killed."""
    from mutants import Mutants, packed

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _on_alarm)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES * 4, BYTES * 4))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries complain there of what they read
    if commands:
        _prepare_commands()
    mutants = Mutants(at.parent, only)
    most = max(BYTES, _peak_bytes())  # which also counts the process that started this one
    ends: Counter[str] = Counter()
    slowest = (0.0, 0)
    with at.open("r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        for number in range(first, first + count * step, step):
            place[:] = packed(number)
            begun = time.perf_counter()
            reader, end, where = examine(number, mutants)
            if commands and end in ("read", "refused"):
                reader, end, where = run_commands(number, mutants, at.parent / "out")
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

    def __init__(self, log: Path | None, readers: str, commands: bool) -> None:
        self._readers, self._commands = readers, commands
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
        command += ["--readers", self._readers, *(["--commands"] if self._commands else [])]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        done = None
        last, since = b"", time.monotonic()
        with worker:
            assert worker.stdout is not None
            while worker.poll() is None:
                time.sleep(0.2)
                if at.read_bytes() != last:
                    last, since = at.read_bytes(), time.monotonic()
                elif (
                    time.monotonic() - since > (3 + len(COMMANDS)) * SECONDS
                ):  # in a library, deaf to the alarm
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


def fuzz(
    count: int,
    seed: int = 0,
    log: Path | None = None,
    readers: str = "",
    commands: bool = False,
) -> tuple[dict[str, Any], list[Any]]:
    """Read `count` mutants, and return a summary and the findings.

    `readers` are separated by commas; with `commands`, the command line takes every mutant too.
    """
    run = _Run(log, readers, commands)
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
    parser.add_argument("--readers", default="", help="separated by commas; all of them if empty")
    parser.add_argument("--commands", action="store_true")
    parser.add_argument("--only", type=int)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    only = list(filter(None, given.readers.split(",")))
    if given.work:
        first, count, step, at = given.work.split(",")
        _work(int(first), int(count), int(step), Path(at), only, given.commands)
        return 0
    if given.only is not None:
        from mutants import Mutants

        with tempfile.TemporaryDirectory() as folder:
            if given.commands:
                _prepare_commands()
                signal.signal(signal.SIGALRM, _on_alarm)
            mutants = Mutants(Path(folder), only)
            mutant = mutants[given.only]
            print(mutant.reader, repr(mutant.content)[:4000])
            if given.commands:
                print(*run_commands(given.only, mutants, Path(folder) / "out"), sep="\n")
            else:
                print(mutant.read(mutant.content))
        return 0
    summary, found = fuzz(given.count, given.seed, given.log, given.readers, given.commands)
    print(json.dumps(summary, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
