"""Answers as files: one form for all kinds of them.

    {"memplan": {"kind": "answer", "version": 1},
     "status": "feasible", "capacity": null, "interrupted": false, "seconds": 0.1,
     "axes": [{"name": "traffic", "unit": "bytes x cost", "found": 36, "bound": 36, "scope": ""}],
     "parts": [{"name": "sram", "program": "net", "place": "sram",
                "problem": {"memplan": {"kind": "problem", ...}, ...},
                "plan": {"memplan": {"kind": "plan", ...}, ...}}],
     "steps": [{"lever": "order", "program": "", ..., "data": {"runs": [1, 0]}}],
     "stretches": [],
     "notes": [], "facts": {},
     "question": {"names": ["net"], "machine": {...}, "keep": [], ...}}

The question says in which machine and scenario the parts are, so that the joint problem can be made
of the programs again; `memplan.ask.checked` does that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any, Final

from memplan.answer import Answer, Axis, Part, Step
from memplan.ask.machines import Machine
from memplan.ask.question import Question
from memplan.base.errors import FormatError, MemplanError
from memplan.base.files import read_text, write_text
from memplan.base.notes import Code, Note
from memplan.machine.memories import Memory, Stretch
from memplan.machine.memories.accesses import Given, is_timed
from memplan.problem.formats._fields import Fields, dumps, join, lines
from memplan.problem.formats.json import read_plan, read_problem, write_plan, write_problem
from memplan.scenarios.paths import PathPlans

__all__ = ["describe_question", "load_answer", "read_machine", "save_answer", "write_answer"]

VERSION: Final = 1

_DOCUMENT: Final = dict.fromkeys(
    (
        *("memplan", "status", "capacity", "interrupted", "seconds", "axes", "parts", "steps"),
        *("stretches", "notes", "question", "facts"),
    ),
    True,
)
_PART: Final = dict.fromkeys(("name", "program", "place", "problem", "plan"), True)
_STEP: Final = dict.fromkeys(
    ("lever", "program", "arena", "extra", "words", "data", "facts", "taken"), True
)
_NOTE: Final = dict.fromkeys(("code", "text", "tensors"), True)
_AXIS: Final = dict.fromkeys((each.name for each in fields(Axis)), True)
_STRETCH: Final = dict.fromkeys((each.name for each in fields(Stretch)), True)
_MEMORY: Final = dict.fromkeys((each.name for each in fields(Memory)), True)
_QUESTION: Final = (
    dict.fromkeys(("names", "keep", "overlap", "where", "levers"), list)
    | dict.fromkeys(("machine", "often", "sizes", "pins"), dict)
    | dict.fromkeys(("read_all", "constrained"), bool)
)
_MACHINE: Final = (
    dict.fromkeys(("memories", "penalties", "apart", "reserved"), list)
    | dict.fromkeys(("allowed", "reads", "accesses"), dict)
    | {"capacity": int, "block": int, "residency": bool}
)


def save_answer(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write an answer as JSON, completely or not at all.

    Parameters
    ----------
    answer
        What `memplan.plan` returned.
    path
        The file.

    Raises
    ------
    MemplanError
        If it cannot be written.
    """
    write_text(path, write_answer(answer))


def write_answer(answer: Answer) -> str:
    """Format an answer; a `MemplanError` says that JSON does not have what it says."""
    if any(isinstance(each, PathPlans) for each in answer.claims):
        raise MemplanError("an answer about paths has no form as JSON; a header in C has its plans")
    head = {
        "memplan": {"kind": "answer", "version": VERSION},
        "status": str(answer.status),
        "capacity": answer.capacity,
        "interrupted": answer.interrupted,
        "seconds": round(answer.seconds, 6),
        "question": dict(answer.question),
        "facts": dict(answer.facts),
    }
    rows = {
        "axes": [asdict(each) for each in answer.axes],
        "steps": [
            {name: getattr(step, name) for name in _STEP}
            | {"data": dict(step.data), "facts": dict(step.facts)}
            for step in answer.steps
        ],
        "stretches": [asdict(each) for each in answer.stretches],
        "notes": [asdict(each) for each in answer.notes],
        "parts": [
            {"name": part.name, "program": part.program, "place": part.place}
            | {
                "problem": json.loads(write_problem(part.problem)),
                "plan": json.loads(write_plan(part.plan)),
            }
            for part in answer.parts
        ],
    }
    try:
        parts = [f"{dumps(key)}: {dumps(value)}" for key, value in head.items()]
        return join([*parts, *(lines(key, value) for key, value in rows.items())])
    except (TypeError, ValueError) as error:
        raise MemplanError(f"JSON cannot store this answer: {error}") from None


def load_answer(path: str | os.PathLike[str]) -> Answer:
    """Read an answer that `memplan.Answer.save` has written.

    Its parts are checked by `verify`; what else it says is checked by `memplan.check_answer`, which
    needs the programs.

    Raises
    ------
    FormatError
        If the file is not one.
    MemplanError
        If it cannot be read.
    """
    name = os.fspath(path)
    reader = Fields(name)
    document = reader.document(read_text(path), "answer", VERSION, _DOCUMENT)
    try:
        answer = _read(reader, document)
    except FormatError:
        raise
    except (MemplanError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise FormatError(name, f"the answer is wrong: {error}") from None
    if document["status"] != str(answer.status):
        raise FormatError(
            name, f"the status is {document['status']}, but axes and plans say {answer.status}"
        )
    return answer


def _read(reader: Fields, document: dict[str, Any]) -> Answer:
    rows = {
        field: reader.objects(document[field], field, known)
        for field, known in (
            *(("axes", _AXIS), ("parts", _PART), ("steps", _STEP), ("notes", _NOTE)),
            ("stretches", _STRETCH),
        )
    }
    question = _read_fields(reader, document["question"], "question", _QUESTION)
    seconds = document["seconds"]
    if type(seconds) not in (int, float) or not seconds >= 0:
        raise reader.error("seconds must be a number from 0 on")
    capacity = reader.scalar(document["capacity"], "capacity", int)
    return Answer(
        tuple(_read_part(reader, row, at) for at, row in enumerate(rows["parts"])),
        tuple(_read_axis(reader, row) for row in rows["axes"]),
        tuple(_read_step(reader, row) for row in rows["steps"]),
        tuple(
            Note(Code(row["code"]), str(row["text"]), tuple(map(str, row["tensors"])))
            for row in rows["notes"]
        ),
        capacity=capacity,
        seconds=float(seconds),
        interrupted=document["interrupted"] is True,
        facts=reader.scalar(document["facts"], "facts", dict) or {},
        question=question,
        stretches=tuple(_read_stretch(reader, row) for row in rows["stretches"]),
    )


def _read_fields(
    reader: Fields, given: object, where: str, known: Mapping[str, type]
) -> dict[str, Any]:
    """Return an object with these fields, each of its type or null."""
    if not isinstance(given, dict):
        raise reader.error(f"{where} must be an object")
    reader.check(given, where, dict.fromkeys(known, True))
    for field, kind in known.items():
        if kind is list:
            reader.array(given[field] or [], f"{where}.{field}")
        else:
            reader.scalar(given[field], f"{where}.{field}", kind)
    return given


def _read_part(reader: Fields, row: dict[str, Any], at: int) -> Part:
    where = f"{reader.name}: parts[{at}]"
    words = [
        reader.scalar(row[field], f"parts[{at}].{field}", str) or ""
        for field in ("name", "program", "place")
    ]
    problem = read_problem(json.dumps(row["problem"]), where)
    return Part(words[0], problem, read_plan(json.dumps(row["plan"]), where), words[1], words[2])


def _read_axis(reader: Fields, row: dict[str, Any]) -> Axis:
    for field in ("found", "bound"):
        if type(row[field]) not in (int, float, *([type(None)] if field == "found" else [])):
            raise reader.error(f"the {field} of an axis must be a number")
    for field in ("name", "unit", "scope"):
        if type(row[field]) is not str:
            raise reader.error(f"the {field} of an axis must be a string")
    return Axis(**row)


def _read_step(reader: Fields, row: dict[str, Any]) -> Step:
    kinds = {"lever": str, "program": str, "arena": int, "words": str, "data": dict}
    kinds |= {"facts": dict, "taken": bool}
    for field, kind in kinds.items():
        if type(row[field]) is not kind:
            raise reader.error(f"the {field} of a step is wrong")
    if type(row["extra"]) not in (int, float):
        raise reader.error("the extra work of a step must be a number")
    return Step(**row)


def _read_stretch(reader: Fields, row: dict[str, Any]) -> Stretch:
    kinds: dict[str, type] = dict.fromkeys(("buffer", "copy", "memory"), str)
    kinds |= {"start": int, "end": int, "fetched": bool, "stored": bool}
    if any(type(row[field]) is not kind for field, kind in kinds.items()):
        raise reader.error("a stretch is wrong")
    return Stretch(**row)


def describe_question(question: Question, machine: Machine) -> dict[str, Any]:
    """Return what was asked as JSON has it."""
    sizes = {
        name: values if isinstance(values, str) else [*map(int, values)]
        for name, values in (
            (name, [values] if isinstance(values, int) else values)
            for name, values in question.sizes.items()
        )
    }
    return {
        "names": list(question.called),
        "machine": describe_machine(machine),
        "keep": list(question.keep),
        "overlap": [list(pair) for pair in question.overlap],
        "often": dict(question.often),
        "sizes": sizes,
        "where": list(question.where),
        "read_all": question.read_all,
        "pins": dict(question.pins),
        "levers": [lever.name for lever in question.levers],
        "constrained": question.constrain is not None,
    }


def describe_machine(machine: Machine) -> dict[str, Any]:
    """Return a machine as JSON has it; costs are exact, as texts."""
    pairs = machine.penalties.items() if isinstance(machine.penalties, Mapping) else None
    return {
        "memories": [
            asdict(each) | {"read": str(each.read), "write": str(each.write)}
            for each in machine.memories
        ],
        "capacity": machine.capacity,
        "block": machine.block,
        "penalties": None if pairs is None else [[a, b, int(cost)] for (a, b), cost in pairs],
        "allowed": {id: list(names) for id, names in machine.allowed.items()},
        "apart": [list(pair) for pair in machine.apart],
        "reads": {
            type_: [str(each) for each in (times if isinstance(times, (list, tuple)) else [times])]
            for type_, times in machine.reads.items()
        },
        "residency": machine.residency,
        "reserved": [list(block) for block in machine.reserved],
        "accesses": {id: _tell_accesses(given) for id, given in machine.accesses.items()},
    }


def _tell_accesses(given: Given) -> list[Any]:
    """Return the accesses of a buffer, with exact numbers, as texts."""
    rows: Any = given
    if is_timed(given):
        return [[int(time), str(read), str(written)] for time, read, written in rows]
    return [str(each) for each in rows]


def _read_accesses(given: Any) -> Given:
    if is_timed(given):
        return [(time, Fraction(read), Fraction(written)) for time, read, written in given]
    read, written = given
    return Fraction(read), Fraction(written)


def read_machine(given: object, name: str) -> Machine:
    """Return a machine from JSON; a `FormatError` says what is wrong."""
    reader = Fields(name)
    row = _read_fields(reader, given, "machine", _MACHINE)
    memories = reader.objects(row["memories"], "machine.memories", _MEMORY)
    try:
        return Machine(
            tuple(
                Memory(**each | {"read": Fraction(each["read"]), "write": Fraction(each["write"])})
                for each in memories
            ),
            row["capacity"],
            row["block"],
            None if row["penalties"] is None else {(a, b): cost for a, b, cost in row["penalties"]},
            row["allowed"],
            tuple((a, b) for a, b in row["apart"]),
            {
                type_: [Fraction(each) for each in times] if len(times) > 1 else Fraction(times[0])
                for type_, times in row["reads"].items()
            },
            row["residency"] is True,
            tuple((lower, upper) for lower, upper in row["reserved"]),
            {id: _read_accesses(each) for id, each in row["accesses"].items()},
        )
    except MemplanError as error:
        raise FormatError(name, f"the machine is wrong: {error}") from None
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise FormatError(name, f"the machine is wrong: {error}") from None
