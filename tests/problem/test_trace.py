"""Tests of memplan.problem.trace: what a run allocated, and the problem in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import strategies_trace
from hypothesis import given

from memplan.base.errors import ProblemError
from memplan.problem import Buffer
from memplan.problem.trace import Scope, Trace, format_scope

CONV: Scope = ((".", 0), (".layer1", 0), (".layer1.conv", 0), ("aten::conv2d", 0))


def a_trace(**more: Any) -> Trace:
    """Return a, b, c of the picture in the module: c is a result."""
    columns: dict[str, Any] = {
        "start": [0, 1, 3],
        "end": [2, 5, 6],
        "size": [10, 20, 30],
        "scopes": [CONV, CONV, ()],
        "outlives": [False, False, True],
    }
    return Trace.from_arrays(**(columns | more))


class TestColumns:
    """What a trace is made of."""

    def test_what_is_left_out(self) -> None:
        """Tests that ordinals are counted by scope, and the rest is false, 0 and unknown."""
        trace = Trace.from_arrays([0, 0, 1, 2], [1, 3, 4, 4], [5, 6, 7, 8], [CONV, (), CONV, ()])
        assert trace.ordinal.tolist() == [0, 0, 1, 1]
        assert trace.thread.tolist() == [0] * 4
        assert not trace.outlives.any()
        assert trace.address is None
        assert (len(trace), dict(trace.about)) == (4, {})

    def test_immutable(self) -> None:
        """Tests that no column can be written to, and the caller's arrays are not shared."""
        late, address = np.array([False] * 3), np.array([64, 128, 64], dtype=np.uint64)
        trace = a_trace(outlives=late, address=address)
        late[0], address[0] = True, 0
        assert trace.address is not None
        assert not trace.outlives.any()
        assert trace.address.tolist() == [64, 128, 64]
        for name in ("start", "end", "size", "outlives", "ordinal", "thread", "address"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(trace, name)[0] = 1
        with pytest.raises(TypeError):
            trace.about["model"] = "x"  # type: ignore[index]

    def test_repr(self) -> None:
        """Tests that a trace in a terminal is a line."""
        assert repr(a_trace()) == "<Trace: 3 allocations, 2 to be planned>"

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"start": [0, 1]}, "start has shape (2,); it must be (3,), as there are 3 scopes"),
            ({"outlives": [True]}, "outlives has shape (1,)"),
            ({"thread": [0]}, "thread has shape (1,)"),
            ({"address": [1, 2]}, "address has shape (2,)"),
            ({"size": [1, 2.5, 3]}, "allocation 1: size is 2.5; it must be a whole number"),
            ({"end": [2, 1, 6]}, "allocation 1 has 20 bytes from 1 to 1; it must start at 0"),
            ({"size": [1, 2, -3]}, "allocation 2 has -3 bytes"),
            ({"size": [1, 2, (1 << 62) + 1]}, "nothing may be above 2^62"),
            ({"start": [-1, 1, 3]}, "allocation 0 has 10 bytes from -1 to 2"),
            ({"start": [1, 0, 3]}, "allocation 1 starts at 0, before the one that it follows"),
            ({"ordinal": [0, 0, 0]}, "allocation 1 has the scope and the ordinal of allocation 0"),
            ({"alignment": 0}, "alignment is 0; it must be between 1 and 2^62"),
        ],
    )
    def test_refusals(self, wrong: dict[str, Any], sentence: str) -> None:
        """Tests that what is not well formed is one sentence with the row."""
        with pytest.raises(ProblemError) as caught:
            a_trace(**wrong)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


class TestProblems:
    """What is to be placed."""

    def test_results_and_nothing_are_left_out(self) -> None:
        """Tests that what outlives the run or holds no byte is not planned."""
        trace = a_trace(size=[10, 0, 30])
        assert trace.planned.tolist() == [0]
        assert list(trace.problem(capacity=99).buffers) == [
            Buffer(".layer1.conv/aten::conv2d#0", 0, 2, 10, alignment=64)
        ]
        assert trace.problem(capacity=99).capacity == 99

    def test_names_of_the_caller(self) -> None:
        """Tests that names are by allocation, not by row of the problem."""
        late = [True, False, False]
        assert a_trace(outlives=late).problem(ids=["x", "y", "z"]).ids == ("y", "z")

    def test_nothing_recorded(self) -> None:
        """Tests that a run that allocates nothing is a problem without buffers."""
        empty = Trace.from_arrays([], [], [], [])
        assert (len(empty), empty.ids, len(empty.problem())) == (0, (), 0)

    @given(strategies_trace.traces())
    def test_every_trace_is_a_problem(self, trace: Trace) -> None:
        """Tests that ids are distinct whatever modules are called, and rows are those planned."""
        problem = trace.problem()
        assert len(set(trace.ids)) == len(trace)
        rows = [k for k in range(len(trace)) if trace.size[k] > 0 and not trace.outlives[k]]
        assert problem.ids == tuple(trace.ids[row] for row in rows)
        assert problem.size.tolist() == trace.size[rows].tolist()


class TestWritten:
    """Scopes as text."""

    @pytest.mark.parametrize(
        ("scope", "text"),
        [
            ((), ""),
            (((".", 0),), "."),
            (CONV, ".layer1.conv/aten::conv2d"),
            (((".", 0), (".a", 1), ("aten::add", 2)), ".a:1/aten::add:2"),
            (((".", 0), (".a", 1), (".a.b", 0)), ".a:1/.a.b"),
            (((".", 0), (".a", 0), (".ab", 0)), ".a/.ab"),  # called by .a, but no part of it
            (((".", 0), ("aten::relu", 0), (".a", 0)), "./aten::relu/.a"),
            ((("thread", 1), ("aten::relu", 0)), "thread:1/aten::relu"),
        ],
    )
    def test_text(self, scope: Scope, text: str) -> None:
        """Tests that a module is said once, and how-manieth only from the second on."""
        assert format_scope(scope) == text

    def test_names_that_look_alike(self) -> None:
        """Tests that two scopes whose texts are the same give two ids."""
        trace = Trace.from_arrays([0, 1], [2, 2], [1, 1], [(("a/b", 0),), (("a", 0), ("b", 0))])
        assert trace.ids == ("0:a/b#0", "1:a/b#0")
