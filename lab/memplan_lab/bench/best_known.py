"""The least known peaks of the problems of the corpus, with their evidence.

The file of a corpus has for every problem the peak that the standard search found within a limit of
nodes when it was built. The search gives the same result each time, so the file needs no plan.
Peaks that need more nodes, or that a later standard search does not find, are in
`data/best_known.jsonl`: a line with the format, then a JSON object on a line for each problem, by
fingerprint. It stores their offsets, because the search that found them may take hours, or may
change. A reader of a corpus gets the better of both.

Do not edit the file: `memplan-lab corpus best update RESULTS` writes what it has verified.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import FormatError, PlanError, shown
from memplan.base.files import read_text
from memplan.problem import Problem
from memplan.problem.formats import write_text
from memplan.problem.plan import Plan, Status
from memplan.referee import verify

__all__ = ["Best", "merge", "pack_offsets", "path", "read", "text", "write"]


@dataclass(frozen=True, slots=True)
class Best:
    """A line of the file: the least known peak of a problem, and its evidence."""

    # fingerprint, name: Those of the problem.
    fingerprint: str
    name: str
    # peak, lower_bound: In bytes.
    peak: int
    lower_bound: int
    # solver, seed, nodes: The search that reached the peak: a solver for `memplan.solve`, perhaps
    # with options, its seed, and a limit of nodes within which it reaches the peak again.
    solver: str
    seed: int
    nodes: int
    version: str  # the version of memplan
    offsets: str  # as `pack_offsets` returns them

    @property
    def proved(self) -> bool:
        """Whether it is proved that there is no smaller peak."""
        return self.peak == self.lower_bound

    def beats(self, peak: int, proved: bool) -> bool:
        """Whether this peak is smaller, or equal and proved for the first time."""
        return (self.peak, not self.proved) < (peak, not proved)

    def plan(self, problem: Problem) -> Plan:
        """Return the verified plan with this peak."""
        if self.fingerprint != problem.fingerprint:
            raise PlanError("the fingerprint is that of another problem")
        free = problem.with_capacity(None)
        status = Status.OPTIMAL if self.proved else Status.FEASIBLE
        plan = Plan.of(
            free,
            _unpack_offsets(self.offsets),
            status=status,
            lower_bound=self.lower_bound,
            solver=self.solver,
        )
        if plan.peak != self.peak:
            raise PlanError(f"the offsets reach {plan.peak} and not {self.peak}")
        verify(free, plan)
        return plan


_HEAD = {"memplan": "best known peaks", "format": 1}
_TYPES = {field.name: int if field.type == "int" else str for field in fields(Best)}


def path() -> str:
    """Return the path of the file that comes with the corpus."""
    return str(files("memplan_lab") / "data" / "best_known.jsonl")


def read(file: str | os.PathLike[str] | None = None) -> dict[str, Best]:
    """Return the lines of a file, by fingerprint."""
    name = path() if file is None else os.fspath(file)
    head, *lines = read_text(name).splitlines()
    if head != json.dumps(_HEAD):
        raise FormatError(name, f"is no file of best known peaks: it does not begin with {_HEAD}")
    found: dict[str, Best] = {}
    for number, line in enumerate(lines, 2):
        try:
            best = _best(json.loads(line))
        except ValueError as error:  # from JSON, or raised below
            raise FormatError(name, f"is no best known peak: {error}", line=number) from None
        if best.fingerprint in found:
            raise FormatError(name, f"{best.name} is in it twice", line=number)
        found[best.fingerprint] = best
    return found


def _best(values: Any) -> Best:
    if not isinstance(values, dict) or values.keys() != _TYPES.keys():
        raise ValueError(f"the fields must be {', '.join(_TYPES)}")
    for name, kind in _TYPES.items():
        if type(values[name]) is not kind or (kind is int and values[name] < 0):
            raise ValueError(f"{name} is {shown(values[name])}")
    return Best(**values)


def merge(rows: Iterable[dict[str, Any]]) -> None:
    """Replace values in rows of a corpus by those of `best_known.jsonl` that are better."""
    bests = read()
    for row in rows:
        best = bests.get(row["fingerprint"])
        if best is not None and best.beats(row["best_peak"], row["best_proved"]):
            row |= {"best_peak": best.peak, "best_proved": best.proved}


def write(bests: Mapping[str, Best], file: str | os.PathLike[str] | None = None) -> None:
    """Write lines, all of them or none."""
    write_text(path() if file is None else file, text(bests))


def text(bests: Mapping[str, Best]) -> str:
    """Return the lines of the file; the same lines give the same text."""
    lines = (_HEAD, *(asdict(bests[key]) for key in sorted(bests)))
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def pack_offsets(plan: Plan) -> str:
    """Return the offsets of a plan, by row of its problem, as a word of ASCII.

    They are base64 of zlib of a little-endian int64 for each row.
    """
    if plan.offsets is None:
        raise PlanError(f"the plan has no offsets to keep (its status is {plan.status})")
    data = np.ascontiguousarray(plan.offsets, dtype="<i8").tobytes()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _unpack_offsets(word: str) -> npt.NDArray[np.int64]:
    try:
        data = zlib.decompress(base64.b64decode(word, validate=True))
        return np.frombuffer(data, dtype="<i8").astype(np.int64)
    except (binascii.Error, zlib.error, ValueError):
        raise PlanError("the offsets are damaged") from None
