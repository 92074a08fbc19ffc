"""Tests that answers come back from files, and that what is false in a file is noticed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asked import BRANCHES, BURSTS, PARALLEL, RESIDUAL, STEP, Question
from rounds import rounds

import memplan as mp
from memplan.base.errors import MemplanError

QUESTIONS = {
    "one": Question(frozenset({"order", "in place"}), (BRANCHES,)),
    "again": Question(frozenset({"again"}), (STEP,)),
    "in turn": Question(frozenset({"in turn"}), (RESIDUAL, BRANCHES)),
    "blocks": Question(frozenset({"blocks", "in turn"}), (RESIDUAL, BRANCHES)),
    "memories": Question(frozenset({"memories", "in turn", "order"}), (RESIDUAL, BRANCHES)),
    "moves": Question(frozenset({"memories"}), (BURSTS,), residency=True),
    "nested": Question(frozenset({"memories", "blocks"}), (RESIDUAL,)),
    "costly": Question(frozenset({"memories", "penalties"}), (RESIDUAL,)),
    "penalties": Question(frozenset({"penalties", "order"}), (BRANCHES,)),
    "waits": Question(frozenset({"waits"}), PARALLEL[1:2]),
    "sizes": Question(frozenset({"sizes", "again"}), (RESIDUAL,)),
    "sizes in turn": Question(frozenset({"sizes", "in turn"}), (RESIDUAL, BRANCHES)),
}


def programs_of(question: Question) -> Any:
    """Return the programs of a question as `memplan.plan` takes them."""
    found: list[Any] = [each.at if question.is_sized else each.at() for each in question.sketches]
    return found if len(found) > 1 else found[0]


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_come_back(name: str, tmp_path: Path) -> None:
    """Tests that a file has all of an answer, which its programs prove again; and pickles."""
    question = QUESTIONS[name]
    answer = question.ask()
    path = tmp_path / "answer.json"
    mp.save_answer(answer, path)
    read = mp.load_answer(path)
    read.verify()
    assert read.summary() | {"seconds": 0} == answer.summary() | {"seconds": 0}
    assert [part.plan for part in read] == [part.plan for part in answer]
    again = tmp_path / "again.json"
    mp.save_answer(read, again)
    assert again.read_bytes() == path.read_bytes()
    mp.check_answer(programs_of(question), path)
    back = pickle.loads(pickle.dumps(answer))
    back.verify()
    assert back.summary() == answer.summary()


GONE = object()
Change = tuple[tuple[str | int, ...], object]  # where in the document, and what is there then


def list_lies(document: dict[str, Any]) -> Iterator[Change]:
    """Yield changes of which each makes one number, name or row of a document false."""
    for at, axis in enumerate(document["axes"]):
        yield ("axes", at, "found"), axis["found"] - 1
        yield ("axes", at, "found"), axis["found"] + 1
        yield ("axes", at, "bound"), axis["found"] + 1
        yield ("axes", at, "name"), "other"
        yield ("axes", at), GONE
    for at, part in enumerate(document["parts"]):
        yield ("parts", at), GONE
        yield ("parts", at, "program"), "other"
        placed, known = part["plan"]["buffers"], part["problem"]["buffers"]
        for row in range(len(placed)):
            if placed[row]["offset"] != placed[row - 1]["offset"]:
                where = ("parts", at, "plan", "buffers", row, "offset")
                yield where, part["plan"]["peak"]
            yield ("parts", at, "problem", "buffers", row, "end"), known[row]["end"] + 1
    for at, step in enumerate(document["steps"]):
        if not step["taken"]:  # only words about what was not done
            continue
        yield ("steps", at), GONE
        yield ("steps", at, "taken"), False
        for key, value in step["data"].items():
            yield ("steps", at, "data", key), value[::-1][:-1] if isinstance(value, list) else None
    for at in range(len(document["stretches"])):
        yield ("stretches", at), GONE
        yield ("stretches", at, "start"), 2
    for at in range(len(document["question"]["machine"]["memories"])):
        where = ("question", "machine", "memories", at)
        yield (*where, "read"), "7"
        yield (*where, "capacity"), 3
        yield (*where, "name"), "other"
    if document["question"]["machine"]["block"]:
        yield ("question", "machine", "block"), 3
    yield ("capacity",), 1
    yield ("status",), "infeasible"
    names = document["question"]["names"]
    yield ("question", "names"), [f"{name}!" for name in names]
    if document["question"]["keep"]:
        yield ("question", "keep"), ["inputs", "outputs"]
        yield ("question", "overlap"), [names]


def tell(document: Any, where: tuple[str | int, ...], value: object) -> Any:
    """Return a document with something else at a place."""
    if not where:
        return value
    key, *rest = where
    made = copy.copy(document)
    made[key] = tell(made[key], tuple(rest), value)
    if made[key] is GONE:
        del made[key]
    return made


@pytest.mark.parametrize("name", [each for each in QUESTIONS if "sizes" not in each])
def test_what_is_false_is_noticed(name: str, tmp_path: Path) -> None:
    """Tests each number and name of a file, one at a time."""
    question = QUESTIONS[name]
    programs = programs_of(question)
    path = tmp_path / "answer.json"
    mp.save_answer(question.ask(), path)
    document = json.loads(path.read_text())
    before = mp.check_answer(programs, path)
    missed = []
    for where, value in list_lies(document):
        path.write_text(json.dumps(tell(document, where, value)))
        with suppress(MemplanError):
            if mp.check_answer(programs, path) == before:
                missed.append((where, value))
    assert missed == []


def test_other_programs_are_noticed(tmp_path: Path) -> None:
    """Tests a file with programs that it is not of."""
    path = tmp_path / "answer.json"
    mp.save_answer(QUESTIONS["one"].ask(), path)
    for other in (RESIDUAL.at(), BRANCHES.at(2), [BRANCHES.at(), RESIDUAL.at()]):
        with pytest.raises(MemplanError):
            mp.check_answer(other, path)


@pytest.mark.parametrize("name", ["memories", "again"])
def test_any_bytes_give_a_sentence(name: str, tmp_path: Path) -> None:
    """Tests files with random faults: each is read, or refused with one sentence."""
    question = QUESTIONS[name]
    path = tmp_path / "answer.json"
    mp.save_answer(question.ask(), path)
    text, random = path.read_bytes(), Random(0)
    values: tuple[Any, ...] = (None, -1, 1 << 70, "x", [], {}, 0.5, True)

    def spoil(node: Any) -> Any:
        if isinstance(node, dict) and node and random.random() < 0.85:
            key = random.choice([*node])
            return {**node, key: spoil(node[key])}
        if isinstance(node, list) and node and random.random() < 0.85:
            at = random.randrange(len(node))
            return [*node[:at], spoil(node[at]), *node[at + 1 :]]
        return random.choice(values)

    for number in range(rounds(150, 10_000)):
        if number % 3:
            path.write_text(json.dumps(spoil(json.loads(text))))
        else:
            at = random.randrange(len(text))
            path.write_bytes(text[:at] + bytes([random.randrange(256)]) + text[at + 1 :])
        with suppress(MemplanError):
            mp.check_answer(programs_of(question), path)
