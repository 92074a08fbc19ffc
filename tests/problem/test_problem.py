"""Tests of memplan.problem: columns, the checks at the door, and changed copies."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

from memplan.base.errors import MemplanError, ProblemError
from memplan.problem import Buffer, Gap, Problem, Reserved

BIG = 1 << 62


def one(**changes: object) -> Buffer:
    """Return a plain buffer with some fields replaced."""
    return dataclasses.replace(Buffer("b", start=0, end=10, size=8), **changes)


class TestColumns:
    """What a problem holds, and in what shape."""

    def test_columns_of_buffers(self, five: Problem) -> None:
        """Tests that objects become int64 columns with the documented values for "none"."""
        assert len(five) == 5
        assert five.ids == ("b1", "b2", "b3", "b4", "b5")
        assert five.start.tolist() == [0, 3, 0, 9, 0]
        assert five.end.tolist() == [3, 9, 9, 21, 21]
        assert five.size.tolist() == [4] * 5
        assert five.alignment.tolist() == [1] * 5
        assert five.pin.tolist() == five.hint.tolist() == [-1] * 5
        assert {column.dtype for column in (five.start, five.pin, five.gap_start)} == {
            np.dtype(np.int64)
        }

    def test_features(self, five: Problem) -> None:
        """Tests that each feature is seen where it is, and only there."""
        names = ("alignment", "pins", "hints", "gaps", "windows", "reserved")
        with_feature = {
            "alignment": Problem([one(alignment=2)]),
            "pins": Problem([one(pin=0)]),
            "hints": Problem([one(hint=0)]),
            "gaps": Problem([one(gaps=(Gap(1, 2),))]),
            "reserved": Problem([one()], reserved=[(0, 1)]),
        }
        assert [getattr(five, f"has_{name}") for name in names] == [False] * len(names)
        for feature, problem in with_feature.items():
            assert [n for n in names if getattr(problem, f"has_{n}")] == [feature]
        windows = Problem([one(gaps=(Gap(1, 2, (0, 1)),))])
        assert windows.has_gaps
        assert windows.has_windows
        empty = Problem([one(gaps=(Gap(1, 2, (1, 1)),))])
        assert not empty.has_windows

    @given(problems())
    def test_buffers_round_trip(self, problem: Problem) -> None:
        """Tests that the objects of a problem make the same problem again."""
        again = Problem(problem.buffers, problem.capacity, problem.reserved)
        assert again == problem
        assert hash(again) == hash(problem)
        assert [problem.buffer(row) for row in range(len(problem))] == list(problem.buffers)
        assert [problem.buffer(id) for id in problem.ids] == list(problem.buffers)

    def test_buffers_are_a_sequence(self, five: Problem) -> None:
        """Tests that they have a length, are indexed and sliced, and can be iterated twice."""
        buffers = five.buffers
        assert len(buffers) == 5
        assert list(buffers) == list(buffers)
        assert buffers[0] == five.buffer(0)
        assert buffers[-1] in buffers
        assert list(buffers[3:0:-2]) == [buffers[3], buffers[1]]
        with pytest.raises(IndexError):
            buffers[5]

    @given(problems(min_buffers=1))
    def test_from_arrays(self, problem: Problem) -> None:
        """Tests that columns make the same problem as objects, gaps in any order of rows."""
        gaps = [
            problem.gap_buffer,
            problem.gap_start,
            problem.gap_end,
            problem.gap_lower,
            problem.gap_upper,
        ]
        again = Problem.from_arrays(
            problem.start.astype(np.int32),
            problem.end.tolist(),
            tuple(problem.size.tolist()),
            ids=np.array(problem.ids),
            alignment=problem.alignment,
            pin=problem.pin,
            hint=problem.hint,
            gaps=[column[::-1] for column in gaps],
            capacity=problem.capacity,
            reserved=[(block.lower, block.upper) for block in problem.reserved[::-1]],
        )
        assert again == problem

    def test_default_ids(self) -> None:
        """Tests that buffers without ids are called by their rows."""
        problem = Problem.from_arrays([0, 1], [2, 3], [4, 5])
        assert problem.ids == ("0", "1")
        assert problem.index("1") == 1
        assert problem.same_rows(Problem.from_arrays([0, 1], [2, 3], [4, 5], ids=["0", "1"]))

    def test_empty(self) -> None:
        """Tests that a problem may have no buffers."""
        problem = Problem([])
        assert (len(problem), problem.max_load, problem.ids) == (0, 0, ())
        assert problem.reversed_in_time() == problem.shuffled(3) == problem.subset([]) == problem

    def test_unknown_buffer(self, five: Problem) -> None:
        """Tests that an id that is not there is refused by name."""
        with pytest.raises(ProblemError, match='no buffer has the id "b6"'):
            five.buffer("b6")
        with pytest.raises(IndexError):
            five.buffer(5)

    def test_repr_is_short(self, five: Problem) -> None:
        """Tests that printing a problem prints one line."""
        assert repr(five) == "<Problem: 5 buffers, max load 12, capacity 12>"


class TestImmutable:
    """A problem cannot be changed."""

    def test_attributes(self, five: Problem) -> None:
        """Tests that neither attributes nor columns can be written to."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            five.capacity = 3  # type: ignore[misc]
        for name in ("start", "end", "size", "alignment", "pin", "hint", "gap_buffer"):
            assert not getattr(five, name).flags.writeable

    def test_does_not_follow_its_source(self) -> None:
        """Tests that writing to an array that made a problem does not change the problem."""
        size = np.array([4, 5])
        problem = Problem.from_arrays([0, 0], [1, 1], size)
        size[0] = 99
        assert problem.size.tolist() == [4, 5]

    def test_shares_read_only_columns(self) -> None:
        """Tests that a read-only int64 column is not copied."""
        size = np.array([4, 5])
        size.flags.writeable = False
        assert Problem.from_arrays([0, 0], [1, 1], size).size is size

    def test_pickle(self, five: Problem) -> None:
        """Tests that problems and errors survive the way to another process."""
        assert pickle.loads(pickle.dumps(five)) == five
        error = ProblemError("no", row=3, field="size")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.row, again.field) == ("no", 3, "size")


# Each: a buffer, and what the sentence must say.
BAD_BUFFERS: list[tuple[dict[str, object], str]] = [
    ({"end": 0}, 'buffer "b": end is 0, not after start (0)'),
    ({"start": -BIG - 1}, 'buffer "b": start is -4611686018427387905'),
    ({"end": BIG + 1}, 'buffer "b": end is 4611686018427387905'),
    ({"size": -4}, 'buffer "b": size is -4; it must be between 0 and 2^62'),
    ({"size": BIG + 1}, 'buffer "b": size is 4611686018427387905'),
    ({"size": 1 << 63}, "does not fit in 64 bits"),
    ({"size": 1 << 64}, "does not fit in 64 bits"),
    ({"size": 1.0}, "size is 1.0; it must be a whole number"),
    ({"size": float("nan")}, "size is nan; it must be a whole number"),
    ({"size": True}, "size is True; it must be a whole number"),
    ({"size": "4"}, 'size is "4"; it must be a whole number'),
    ({"size": None}, "size is None; it must be a whole number"),
    ({"size": [4]}, "size is a list; it must be a whole number"),
    ({"alignment": 0}, "alignment is 0; it must be between 1 and 2^62"),
    ({"alignment": -8}, "alignment is -8"),
    ({"hint": -2}, "hint is -2"),
    ({"hint": BIG + 1}, "hint is 46"),
    ({"pin": -2}, "pin is -2"),
    ({"pin": BIG}, "pin is 4611686018427387904; the buffer of 8 bytes"),
    ({"pin": 6, "alignment": 4}, "pin is 6, not a multiple of the alignment (4)"),
    ({"pin": 47}, "pin 47 puts it on the reserved range [50, 60)"),
    ({"pin": 59}, "pin 59 puts it on the reserved range [50, 60)"),
    ({"gaps": (Gap(-1, 2),)}, "gap [-1, 2) is not inside the lifetime [0, 10)"),
    ({"gaps": (Gap(8, 11),)}, "gap [8, 11) is not inside the lifetime [0, 10)"),
    ({"gaps": (Gap(3, 3),)}, "gap [3, 3) is empty"),
    ({"gaps": (Gap(5, 7), Gap(1, 6))}, "gap [5, 7) overlaps the gap [1, 6)"),
    (
        {"gaps": (Gap(1, 2, (0, 9)),)},
        "gap [1, 2) has the window [0, 9), which is not inside [0, 8)",
    ),
    ({"gaps": (Gap(1, 2, (5, 4)),)}, "has the window [5, 4)"),
    ({"gaps": (Gap(1, 2, (-2, 4)),)}, "has the window [-2, 4)"),
    ({"gaps": (Gap(1, 2, (-1, 4)),)}, "has the window [-1, 4)"),
    ({"gaps": (Gap(1, 2, (0, 1.5)),)}, "gap upper is 1.5"),  # type: ignore[arg-type]
    ({"gaps": (Gap(1, 2, 3),)}, "must be a pair"),  # type: ignore[arg-type]
    ({"gaps": ((1, 2),)}, "is not a Gap"),
    ({"id": ""}, "the id of buffer number 1 is empty"),
    ({"id": 7}, "the id of buffer number 1 is 7; it must be a string"),
    ({"id": "\ud800"}, "is not valid Unicode"),
    ({"id": "fine"}, 'buffer "fine": the id occurs twice'),
]


class TestDoor:
    """What no problem may hold."""

    @pytest.mark.parametrize(("change", "sentence"), BAD_BUFFERS)
    def test_bad_buffer(self, change: dict[str, object], sentence: str) -> None:
        """Tests that a bad buffer is refused in one line that names it, and its row is known."""
        rows = [Buffer("fine", start=0, end=1, size=8), one(**change)]
        with pytest.raises(ProblemError) as caught:
            Problem(rows, capacity=100, reserved=[(50, 60)])
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.row in (1, None)
        assert caught.value.field is not None

    @pytest.mark.parametrize("capacity", [0, -1, BIG + 1, 1.5, "12", True])
    def test_bad_capacity(self, capacity: object) -> None:
        """Tests that a capacity is a positive whole number, or none at all."""
        with pytest.raises(ProblemError, match=r"^capacity is "):
            Problem([one()], capacity=capacity)  # type: ignore[arg-type]
        with pytest.raises(ProblemError, match=r"^capacity is "):
            Problem([one()]).with_capacity(capacity)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("reserved", "sentence"),
        [
            ([(3, 3)], "reserved range [3, 3) must have 0 <= lower < upper <= 2^62"),
            ([(-1, 3)], "reserved range [-1, 3) must"),
            ([(5, 9), (1, 6)], "reserved ranges [1, 6) and [5, 9) overlap"),
            ([(1, 2, 3)], "a reserved range must be a pair"),
            ([7], "a reserved range must be a pair"),
            ([("1", 2)], 'the lower end of a reserved range is "1"'),
        ],
    )
    def test_bad_reserved(self, reserved: list[object], sentence: str) -> None:
        """Tests that reserved ranges are disjoint ranges of addresses."""
        with pytest.raises(ProblemError) as caught:
            Problem([one()], reserved=reserved)  # type: ignore[arg-type]
        assert sentence in str(caught.value)

    def test_not_a_buffer(self) -> None:
        """Tests that anything but a Buffer is refused."""
        with pytest.raises(ProblemError, match="number 1 of the buffers is a tuple, not a Buffer"):
            Problem([one(), ("c", 0, 1, 2)])  # type: ignore[list-item]

    def test_colliding_pins(self) -> None:
        """Tests that two pins on common bytes at a common time are refused, with all four named."""
        with pytest.raises(ProblemError) as caught:
            Problem([one(pin=0), one(id="c", start=9, end=12, pin=4)])
        assert str(caught.value) == (
            'buffer "c": its pin and that of buffer "b" put both on bytes [4, 8) at time 9'
        )
        Problem([one(pin=0), one(id="c", start=10, end=12, pin=4)])
        Problem([one(pin=0), one(id="c", start=9, end=12, pin=8)])

    @given(st.data())
    def test_pins_collide_as_in_brute_force(self, data: st.DataObject) -> None:
        """Tests that the door refuses pins exactly where bitmaps say that they break something."""
        problem = data.draw(problems(min_buffers=1, features=frozenset({"windows", "reserved"})))
        pins = [data.draw(st.integers(0, 12)) for _ in problem.ids]
        wanted = dict(zip(problem.ids, pins, strict=True))
        if oracle.is_legal(problem, pins, None):
            assert problem.with_pins(wanted).pin.tolist() == pins
        else:
            with pytest.raises(ProblemError):
                problem.with_pins(wanted)

    def test_columns_of_different_lengths(self) -> None:
        """Tests that columns that do not belong together are refused by name."""
        with pytest.raises(ProblemError, match="size has 1 values for 2 buffers"):
            Problem.from_arrays([0, 0], [1, 1], [4])
        with pytest.raises(ProblemError, match="ids has 1 values for 2 buffers"):
            Problem.from_arrays([0, 0], [1, 1], [4, 4], ids=["a"])
        with pytest.raises(ProblemError, match="start has shape"):
            Problem.from_arrays(np.zeros((2, 2), int), [1, 1], [4, 4])
        with pytest.raises(ProblemError, match="gaps has 4 columns"):
            Problem.from_arrays([0], [1], [4], gaps=[[]] * 4)
        with pytest.raises(ProblemError, match="buffer must be a row between 0 and 0"):
            Problem.from_arrays([0], [1], [4], gaps=[[1], [0], [1], [-1], [-1]])
        with pytest.raises(ProblemError, match="gaps: end has 2 values for 1 gaps"):
            Problem.from_arrays([0], [1], [4], gaps=[[0], [0], [1, 1], [-1], [-1]])

    @pytest.mark.parametrize(
        "size",
        [
            np.array([1.0]),
            np.array([True]),
            np.array(["4"]),
            np.array([2**63], dtype=np.uint64),
            np.array([None]),
            np.array([4], dtype="m8[s]"),
        ],
    )
    def test_arrays_of_other_kinds(self, size: np.ndarray) -> None:
        """Tests that arrays of anything but integers are refused, whole floats too."""
        with pytest.raises(ProblemError, match='buffer "0": size is'):
            Problem.from_arrays([0], [1], size)

    def test_extremes_are_fine(self) -> None:
        """Tests that the largest sizes, times and pins are taken and summed without overflow."""
        problem = Problem(
            [
                Buffer("all", start=-BIG, end=0, size=BIG, pin=0),
                Buffer("half", start=0, end=BIG, size=BIG // 2, pin=BIG // 2),
                Buffer("none", start=-BIG, end=BIG, size=0, pin=BIG),
            ],
            capacity=BIG,
        )
        assert problem.max_load == BIG
        assert problem.reversed_in_time().reversed_in_time() == problem

    def test_load_beyond_the_limit(self) -> None:
        """Tests that more than 2^62 bytes at one time are refused, and just as many are not."""
        rows = [Buffer(str(i), start=0, end=i + 1, size=BIG // 4) for i in range(4)]
        assert Problem(rows).max_load == BIG
        rows.append(Buffer("drop", start=0, end=1, size=1))
        with pytest.raises(ProblemError, match=f"hold {BIG + 1} bytes at one time"):
            Problem(rows)
        many = [Buffer(str(i), start=0, end=1, size=BIG) for i in range(9)]
        with pytest.raises(ProblemError, match=f"hold {9 * BIG} bytes at one time"):
            Problem(many)

    def test_errors_are_memplan_errors(self) -> None:
        """Tests that one except clause catches them all."""
        with pytest.raises(MemplanError):
            Problem([one(size=-1)])

    def test_long_ids_are_cut(self) -> None:
        """Tests that an error stays one readable line whatever the id."""
        with pytest.raises(ProblemError) as caught:
            Problem([one(id="x\n" * 500, size=-1)])
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


class TestLoad:
    """The sweep for the maximum load."""

    def test_worked_example(self, five: Problem) -> None:
        """Tests the load of the example of MiniMalloc: twelve bytes, in its first section."""
        assert five.max_load == 12

    @given(problems())
    def test_as_brute_force(self, problem: Problem) -> None:
        """Tests the load against a count per unit of time, with gaps and windows."""
        assert problem.max_load == oracle.load(problem)

    @given(problems(min_buffers=1, features=frozenset({"windows", "zero"})))
    def test_large_sizes(self, problem: Problem) -> None:
        """Tests that the sums for huge sizes are those for small sizes, scaled."""
        unit = (1 << 62) // 64  # at most six buffers of six units each
        scaled = Problem.from_arrays(
            problem.start,
            problem.end,
            problem.size * unit,
            gaps=[
                problem.gap_buffer,
                problem.gap_start,
                problem.gap_end,
                np.where(problem.gap_lower < 0, -1, problem.gap_lower * unit),
                np.where(problem.gap_lower < 0, -1, problem.gap_upper * unit),
            ],
        )
        assert scaled.max_load == problem.max_load * unit


class TestChanges:
    """Copies with something changed."""

    def test_with_capacity(self, five: Problem) -> None:
        """Tests that another capacity shares the columns; below a pin, it is a question too."""
        other = five.with_capacity(None)
        assert other.capacity is None
        assert other.start is five.start
        assert five.capacity == 12
        assert five.with_pins({"b1": 8}).with_capacity(11).capacity == 11

    def test_with_pins(self, five: Problem) -> None:
        """Tests that pins are set and taken away by id."""
        pinned = five.with_pins({"b1": 8, "b5": 0})
        assert pinned.pin.tolist() == [8, -1, -1, -1, 0]
        assert pinned.with_pins({"b5": None}).pin.tolist() == [8, -1, -1, -1, -1]
        assert pinned.has_pins
        assert not five.has_pins
        with pytest.raises(ProblemError, match="no buffer"):
            five.with_pins({"b9": 0})

    def test_with_reserved(self, five: Problem) -> None:
        """Tests that reserved ranges replace those before, and are checked against the pins."""
        changed = five.with_reserved([(20, 30)]).with_reserved([(4, 8)])
        assert changed.reserved == (Reserved(4, 8),)
        with pytest.raises(ProblemError, match="reserved range"):
            five.with_pins({"b1": 0}).with_reserved([(3, 4)])

    @given(problems(), st.randoms(use_true_random=False))
    def test_subset(self, problem: Problem, random: object) -> None:
        """Tests that rows are taken in the order asked for, gaps and all."""
        rows = [row for row in range(len(problem)) if random.random() < 0.7]  # type: ignore[attr-defined]
        random.shuffle(rows)  # type: ignore[attr-defined]
        chosen = problem.subset(rows)
        assert list(chosen.buffers) == [problem.buffer(row) for row in rows]
        assert chosen.capacity == problem.capacity
        assert chosen.reserved == problem.reserved

    def test_subset_out_of_range(self, five: Problem) -> None:
        """Tests that a row that is not there is refused, counted from either end."""
        for rows in ([5], [-1]):
            with pytest.raises(ProblemError, match="between 0 and 4"):
                five.subset(rows)

    @given(problems())
    def test_reversed_in_time(self, problem: Problem) -> None:
        """Tests that the mirror image has the same range of times and is its own inverse."""
        mirror = problem.reversed_in_time()
        assert mirror.reversed_in_time() == problem
        assert mirror.max_load == problem.max_load
        assert sorted(mirror.end - mirror.start) == sorted(problem.end - problem.start)

    @given(problems())
    def test_shuffled(self, problem: Problem) -> None:
        """Tests that shuffling keeps the buffers, and repeats for the same seed."""
        other = problem.shuffled(7)
        assert sorted(other.ids) == sorted(problem.ids)
        assert all(other.buffer(id) == problem.buffer(id) for id in problem.ids)
        assert other == problem.shuffled(7)

    def test_without_hints(self) -> None:
        """Tests that hints are forgotten, and nothing else is."""
        problem = Problem([one(hint=3, pin=4)])
        assert list(problem.without_hints().buffers) == [one(pin=4)]
        assert not problem.without_hints().has_hints

    def test_without_names(self) -> None:
        """Tests that buffers are numbered by row, also where names had been asked for before."""
        problem = Problem([Buffer("b", 0, 3, 4), Buffer("a", 1, 2, 8)], capacity=12)
        named = problem.fingerprint
        assert problem.index("a") == 1
        bare = problem.without_names()
        assert bare.ids == ("0", "1")
        assert bare.index("1") == 1
        assert bare == Problem([Buffer("0", 0, 3, 4), Buffer("1", 1, 2, 8)], capacity=12)
        assert bare.fingerprint != named
        assert problem.ids == ("b", "a")
