"""Tests of conflicts beyond lifetimes, and of contiguous groups, at the door and by the referee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import FormatError, MemplanError, PlanError, ProblemError
from memplan.problem import Buffer, Problem, formats
from memplan.problem.conflicts import Conflicts
from memplan.problem.plan import Plan
from memplan.referee import verify

PAIRS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])
        ),
    )
)


def chain(*sizes: int, **more: object) -> Problem:
    """Return buffers a, b, c, ... that live one after the other."""
    rows = [Buffer(chr(97 + i), i, i + 1, size) for i, size in enumerate(sizes)]
    return Problem(rows, **more)  # type: ignore[arg-type]


class TestConflicts:
    """The relation by itself."""

    @given(PAIRS)
    def test_pairs_come_back(self, case: tuple[int, set[tuple[int, int]]]) -> None:
        """Tests that what pairs make is symmetric, sorted, and gives the pairs again."""
        count, pairs = case
        relation = Conflicts.of_pairs(count, pairs)
        assert set(map(tuple, relation.pairs().tolist())) == pairs
        assert len(relation) == len(pairs)
        assert Conflicts.of_rows(relation.begin, relation.other) == relation
        for row in range(count):
            others = relation.of(row).tolist()
            assert others == sorted(
                {b for a, b in pairs if a == row} | {a for a, b in pairs if b == row}
            )

    @given(PAIRS, st.randoms(use_true_random=False))
    def test_a_subset_has_what_is_between_its_rows(
        self, case: tuple[int, set[tuple[int, int]]], random: object
    ) -> None:
        """Tests that choosing rows keeps exactly the pairs between them, renumbered."""
        count, pairs = case
        rows = random.sample(range(count), random.randint(0, count))  # type: ignore[attr-defined]
        part = Conflicts.of_pairs(count, pairs).subset(np.array(rows, dtype=np.int64))
        found = {frozenset((rows[a], rows[b])) for a, b in part.pairs().tolist()}
        assert found == {frozenset(p) for p in pairs if set(p) <= set(rows)}

    @pytest.mark.parametrize(
        ("begin", "other"),
        [
            ([0, 1, 1], [1]),  # not symmetric
            ([0, 1, 2], [0, 1]),  # with itself
            ([0, 1, 2], [2, 0]),  # not there
            ([0, 2, 4], [1, 1, 0, 0]),  # twice
            ([0, 2], [1, 0]),  # one row, two others
            ([1, 1, 2], [1, 0]),  # does not begin at 0
        ],
    )
    def test_bad_rows(self, begin: list[int], other: list[int]) -> None:
        """Tests that rows that are no symmetric relation are refused."""
        with pytest.raises(ProblemError, match="conflicts"):
            Conflicts.of_rows(begin, other)

    def test_bad_pairs(self) -> None:
        """Tests that pairs that are none, out of range or of one buffer are refused."""
        for pairs, words in (
            ([(0, 3)], "between 0 and 2"),
            ([(1, 1)], "cannot conflict with itself"),
            ([(0, 1, 2)], "pairs of rows"),
            ([(0.0, 1.0)], "pairs of rows"),
        ):
            with pytest.raises(ProblemError, match=words):
                Conflicts.of_pairs(3, pairs)


class TestDoor:
    """What a problem makes of them."""

    def test_unknown_ids(self) -> None:
        """Tests that a conflict or a group with an unknown id names it."""
        with pytest.raises(ProblemError, match=r'conflicts\[0\] lists "z"'):
            chain(1, 1, conflicts=[("a", "z")])
        with pytest.raises(ProblemError, match=r'groups\[1\] lists "z"'):
            chain(1, 1, groups=[["a"], ["z"]])

    def test_a_buffer_in_two_groups(self) -> None:
        """Tests that being twice in a group, or in two, is refused with the name."""
        with pytest.raises(ProblemError, match='buffer "a" is twice in the group'):
            chain(1, 1, groups=[["a", "b", "a"]])
        with pytest.raises(ProblemError, match='buffer "b" is in two groups'):
            chain(1, 1, 1, groups=[["a", "b"], ["b", "c"]])

    def test_groups_become_leads(self) -> None:
        """Tests that a member lies behind all that are listed before it."""
        problem = chain(3, 5, 7, 2, groups=[["c", "a", "d"]])
        assert problem.group.tolist() == [0, -1, 0, 0]
        assert problem.lead.tolist() == [7, 0, 0, 10]
        assert problem.groups == ((2, 0, 3),)

    def test_what_is_left_of_a_group(self) -> None:
        """Tests that a subset keeps the distances between the members that it has."""
        part = chain(3, 5, 7, 2, groups=[["c", "a", "b", "d"]]).subset([3, 0])
        assert part.group.tolist() == [0, 0]
        assert part.lead.tolist() == [8, 0]
        with pytest.raises(MemplanError, match="only a part"):
            formats.json.write_problem(part)

    def test_alignments_of_a_group(self) -> None:
        """Tests that members that cannot both be aligned are refused with both names."""
        rows = [Buffer("a", 0, 1, 3), Buffer("b", 0, 1, 4, alignment=4)]
        assert Problem(rows, groups=[["b", "a"]]).has_groups
        rows[0] = Buffer("a", 0, 1, 3, alignment=2)
        with pytest.raises(
            ProblemError, match='"a": in its group it lies 3 bytes before buffer "b"'
        ):
            Problem(rows, groups=[["a", "b"]])
        rows[0] = Buffer("a", 0, 1, 12, alignment=3)
        with pytest.raises(ProblemError, match="alignments 3 and 4 in one group"):
            Problem(rows, groups=[["a", "b"]])

    def test_pins_that_contradict(self) -> None:
        """Tests that pins against a group or a conflict are refused with both names."""
        rows = [Buffer("a", 0, 1, 4, pin=0), Buffer("b", 1, 2, 4, pin=2)]
        with pytest.raises(ProblemError, match=r'"b": its pin 2 must be 4 bytes behind .*"a"'):
            Problem(rows, groups=[["a", "b"]])
        with pytest.raises(ProblemError, match=r'"b": its pin and that of buffer "a", .* \[2, 4\)'):
            Problem(rows, conflicts=[("a", "b")])
        assert Problem(rows).has_pins

    def test_fingerprint(self) -> None:
        """Tests that conflicts and groups count in the fingerprint, the order of rows does not."""
        plain, both = chain(1, 2, 3), chain(1, 2, 3, conflicts=[("c", "a")], groups=[["b", "c"]])
        prints = {
            plain.fingerprint,
            both.fingerprint,
            chain(1, 2, 3, conflicts=[("a", "c")]).fingerprint,
            chain(1, 2, 3, groups=[["b", "c"]]).fingerprint,
            chain(1, 2, 3, groups=[["c", "b"]]).fingerprint,
        }
        assert len(prints) == 5
        assert both.shuffled(3).fingerprint == both.fingerprint
        assert both.reversed_in_time().conflicts == both.conflicts
        assert both != plain


class TestReferee:
    """What `verify` says of plans."""

    def test_conflicting_buffers_apart(self) -> None:
        """Tests that buffers that never meet in time may share bytes, unless they conflict."""
        plan = [0, 0, 0]
        verify(chain(4, 4, 4), Plan.of(chain(4, 4, 4), plan))
        problem = chain(4, 4, 4, conflicts=[("c", "a")])
        with pytest.raises(PlanError, match=r'"a" and buffer "c" conflict, .* bytes \[0, 4\)'):
            verify(problem, Plan.of(problem, plan))
        verify(problem, Plan.of(problem, [0, 2, 4]))

    def test_nothing_conflicts_with_nothing(self) -> None:
        """Tests that a buffer of size 0 may lie anywhere."""
        problem = chain(4, 0, conflicts=[("a", "b")])
        verify(problem, Plan.of(problem, [0, 2]))

    def test_groups_together(self) -> None:
        """Tests that a member that is not behind the one before it is named."""
        problem = chain(4, 2, 4, groups=[["a", "b", "c"]])
        verify(problem, Plan.of(problem, [8, 12, 14]))
        with pytest.raises(PlanError, match='"c" is at 15, not 6 bytes behind buffer "a"'):
            verify(problem, Plan.of(problem, [8, 12, 15]))


class TestFormats:
    """Conflicts and groups on disk."""

    def test_json_has_them(self) -> None:
        """Tests that JSON brings back the same problem."""
        problem = chain(1, 2, 3, conflicts=[("c", "a"), ("b", "c")], groups=[["b", "a"]])
        text = formats.json.write_problem(problem)
        assert formats.json.read_problem(text, "x.json") == problem

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            (
                '["c"]',
                '["z"]',
                r'buffers\[0\].conflicts\[0\] is "z", which is not the id of a buffer',
            ),
            ('["c"]', "[7]", r"buffers\[0\].conflicts\[0\] is 7, which is not the id of a buffer"),
            ('["c"]', '"c"', r'buffers\[0\].conflicts is "c"; it must be an array'),
            ('["c"]', '["a"]', "cannot conflict with itself"),
            ('[["b", "c"]]', '["b"]', r'groups\[0\] is "b"; it must be an array'),
            ('[["b", "c"]]', '[["b", "b"]]', "twice in the group"),
        ],
    )
    def test_bad_json(self, old: str, new: str, words: str) -> None:
        """Tests that every wrong field is named."""
        problem = chain(1, 2, 3, conflicts=[("a", "c")], groups=[["b", "c"]])
        text = formats.json.write_problem(problem)
        assert old in text
        with pytest.raises(FormatError, match=words):
            formats.json.read_problem(text.replace(old, new), "x.json")

    @pytest.mark.parametrize("members", ["abc", "bac", "cba", "bca"])
    def test_empty_members_keep_their_places(self, members: str) -> None:
        """Tests a group whose empty members come first, last and together, in any order of rows."""
        problem = chain(0, 3, 0, groups=[list(members)])
        again = formats.json.read_problem(formats.json.write_problem(problem), "x.json")
        assert again == problem
        assert again.fingerprint == problem.fingerprint

    def test_csv_refuses(self) -> None:
        """Tests that CSV, which has no word for them, drops nothing in silence."""
        for problem, what in (
            (chain(1, 2, conflicts=[("a", "b")]), "conflicts"),
            (chain(1, 2, groups=[["a", "b"]]), "groups"),
        ):
            with pytest.raises(MemplanError, match=f"CSV cannot store {what}"):
                formats.minimalloc_csv.write_problem(problem)
