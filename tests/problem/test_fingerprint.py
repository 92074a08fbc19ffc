"""Tests of Problem.fingerprint: what is in it, what is not, and that it never changes."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from strategies import ids, problems

from memplan.problem import Buffer, Gap, Problem


def one(**changes: object) -> Buffer:
    """Return a plain buffer with some fields replaced."""
    return dataclasses.replace(Buffer("b", start=0, end=10, size=8), **changes)


CHANGES: dict[str, Callable[[Problem], Problem]] = {
    "start": lambda p: Problem([one(start=1)]),
    "end": lambda p: Problem([one(end=11)]),
    "size": lambda p: Problem([one(size=9)]),
    "id": lambda p: Problem([one(id="c")]),
    "alignment": lambda p: Problem([one(alignment=2)]),
    "pin": lambda p: Problem([one(pin=0)]),
    "gap": lambda p: Problem([one(gaps=(Gap(1, 2),))]),
    "window": lambda p: Problem([one(gaps=(Gap(1, 2, (0, 1)),))]),
    "reserved": lambda p: p.with_reserved([(9, 10)]),
    "count": lambda p: Problem([one(), one(id="c")]),
}


class TestFingerprint:
    """What is in the fingerprint, and what is not."""

    def test_documented_bytes(self) -> None:
        """Tests the fingerprint against its documentation, byte by byte."""
        problem = Problem(
            [
                Buffer("é", start=-1, end=9, size=8, gaps=(Gap(4, 6, (0, 2)), Gap(1, 2))),
                Buffer("a", start=0, end=3, size=4, alignment=4, pin=16, hint=8),
            ],
            capacity=99,
            reserved=[(64, 72)],
        )
        numbers = [2, 2, 1, 1, 2]  # n, g, r, and the lengths of "a" and "é" in UTF-8
        tail = [0, -1, 3, 9, 4, 8, 4, 1, 16, -1]  # "a" is before "é" in every column
        tail += [1, 1, 1, 4, 2, 6, -1, 0, -1, 2, 64, 72]
        data = b"memplan problem 1\n" + struct.pack(f"<{len(numbers)}q", *numbers)
        data += "aé".encode() + struct.pack(f"<{len(tail)}q", *tail)
        assert problem.fingerprint == "sha256:" + hashlib.sha256(data).hexdigest()

    def test_stays_the_same(self, five: Problem) -> None:
        """Tests that the fingerprint of the worked example is what it has always been."""
        assert five.fingerprint == (
            "sha256:82c6af8075e6ee011dbeb62be9a1b2983fcf92a4feec5ad2578b108354ddd6eb"
        )

    @given(problems(names=ids()))
    def test_order_capacity_and_hints_do_not_count(self, problem: Problem) -> None:
        """Tests that what does not decide whether offsets are safe is not in the fingerprint."""
        other = problem.shuffled(1).without_hints().with_capacity(1 << 40)
        assert other.fingerprint == problem.fingerprint

    @pytest.mark.parametrize("field", CHANGES)
    def test_all_else_counts(self, field: str) -> None:
        """Tests that each thing that decides whether offsets are safe changes the fingerprint."""
        problem = Problem([one()])
        other = CHANGES[field](problem)
        assert other.fingerprint != problem.fingerprint
        assert not other.same_rows(problem)
        assert other != problem

    def test_is_forgotten_by_changed_copies(self, five: Problem) -> None:
        """Tests that a fingerprint that was asked for before a change is not handed on."""
        before = five.fingerprint
        assert five.with_pins({"b1": 8}).fingerprint != before
        assert five.with_reserved([(50, 60)]).fingerprint != before
        assert five.with_capacity(40).fingerprint == before
