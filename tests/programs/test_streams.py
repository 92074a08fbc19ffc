"""Tests of programs.graph.streams: which storages parallel streams may need together, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, get_args

import numpy as np
import pytest
import strategies_graph
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import GraphError, UnsupportedError
from memplan.programs.graph import (
    Block,
    Graph,
    Kind,
    Operator,
    Tensor,
    View,
    Why,
    beyond_lifetimes,
    lay_out,
    unsafe_pairs,
    why,
)
from memplan.programs.graph.order import in_order, on_streams, waits
from memplan.programs.graph.streams import Algorithm
from memplan_lab.bench.generators import multi_stream, pangu_like

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
Pairs = set[frozenset[str]]


def program(text: str, **more: Any) -> Graph:
    """Return a program: lines "stream: inputs > outputs"; operators are named by their numbers.

    Tensors have a letter each; capital letters are given by the caller, and "!" before one says
    that the caller gets it.
    """
    letters = sorted({letter for letter in text if letter.isalpha()})
    wanted = {text[at + 1] for at, letter in enumerate(text) if letter == "!"}
    index = {letter: at for at, letter in enumerate(letters)}
    operators = []
    for number, line in enumerate(text.split("\n"), 1):
        stream, rest = line.split(":")
        read, made = (
            tuple(index[letter] for letter in side if letter.isalpha()) for side in rest.split(">")
        )
        operators.append(Operator(str(number), "Op", read, made, int(stream)))
    kinds = {letter: Kind.INPUT for letter in letters if letter.isupper()}
    kinds |= dict.fromkeys(wanted, Kind.OUTPUT)
    made_of = tuple(Tensor(letter, 1, kinds.get(letter, Kind.INTERMEDIATE)) for letter in letters)
    return Graph("program", made_of, tuple(operators), **more)


def names_of(graph: Graph, algorithm: Algorithm = "memplan") -> Pairs:
    """Return the unsafe pairs by name."""
    pairs = unsafe_pairs(graph, algorithm)
    names = [pairs.layout.storages[index].name for index in pairs.layout.rows]
    rows = range(len(names))
    found = {frozenset((names[i], names[j])) for i, j in combinations(rows, 2) if (i, j) in pairs}
    assert len(found) == len(pairs)
    assert all((j, i) in pairs for i, j in combinations(rows, 2) if (i, j) in pairs)
    return found


class Execution:
    """What is needed when, told from the operators of a program without blocks and views."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        arcs = on_streams(graph.operators, waits(graph.operators))
        self.before: list[set[int]] = []
        for awaited in arcs:
            self.before.append(set(awaited).union(*(self.before[other] for other in awaited)))
        self.names = [tensor.name for tensor in graph.tensors]
        self.makers: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {name: set() for name in self.names}
        for number, operator in enumerate(graph.operators):
            self.makers |= {self.names[index]: number for index in operator.outputs}
            for index in operator.inputs:
                self.readers[self.names[index]].add(number)
            if operator.workspace:
                self.makers[f"{operator.name} (workspace)"] = number

    def needed(self, over: frozenset[int], running: frozenset[int]) -> set[str]:
        """Return what must be in memory while some operators run and others are over."""
        found = set()
        for name in (*self.names, *(n for n in self.makers if n not in self.readers)):
            maker = self.makers.get(name)
            begun = maker is None or maker in over | running
            done = maker in over or maker is None
            done = done and self.readers.get(name, set()) <= over and not self.is_wanted(name)
            at_once = maker is None and not over and not running  # an input without readers
            if begun and (not done or at_once):
                found.add(name)
        return found

    def is_wanted(self, name: str) -> bool:
        """Whether the caller gets it."""
        return any(self.graph.tensors[i].name == name for i in self.graph.outputs)

    def moments(self) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yield operators that can be over while at most two run; every order passes some of it."""
        seen = {frozenset[int]()}
        todo = list(seen)
        while todo:
            over = todo.pop()
            yield over, frozenset()
            everybody = range(len(self.before))
            ready = [n for n in everybody if n not in over and self.before[n] <= over]
            yield from ((over, frozenset(some)) for some in combinations(ready, 1))
            yield from ((over, frozenset(some)) for some in combinations(ready, 2))
            fresh = {over | {number} for number in ready} - seen
            seen |= fresh
            todo += fresh

    def unsafe(self) -> Pairs:
        """Return all pairs that are needed together at some moment."""
        found: Pairs = set()
        for over, running in self.moments():
            # When nothing runs, only what the caller gives or gets is needed of itself.
            if running or len(over) in (0, len(self.before)):
                together = sorted(self.needed(over, running))
                found.update(frozenset(pair) for pair in combinations(together, 2))
        return found


def on_random_streams(graph: Graph, streams: list[int]) -> Graph:
    """Put the outermost operators on streams."""
    numbers = (streams * len(graph.operators))[: len(graph.operators)]
    pairs = zip(graph.operators, numbers, strict=True)
    return replace(graph, operators=tuple(replace(op, stream=number) for op, number in pairs))


class TestUnsafePairs:
    """Which pairs are unsafe, by four algorithms."""

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_figure_2(self, algorithm: Algorithm) -> None:
        """Tests what the text says of the pairs of figure 2; what it leaves open is chosen."""
        graph = program("0:>a\n1:a>c\n0:a>be\n1:c>df\n1:d>g\n1:feg>i\n2:b>h\n2:ehi>")
        unsafe = names_of(graph, algorithm)
        safe = {frozenset(pair) for pair in ("ai", "ci", "di")}
        assert not safe & unsafe
        assert {frozenset(pair) for pair in ("af", "ah", "be", "fi", "ch", "dh", "gh")} <= unsafe

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_streams_that_wait_for_each_other(self, algorithm: Algorithm) -> None:
        """Tests a circle in the stream graph: a goes over and its answer comes back."""
        graph = program("0:>a\n1:a>b\n0:b>c\n1:c>d\n0:d>e\n0:>f")
        assert names_of(graph, algorithm) == {frozenset(pair) for pair in ("ab", "bc", "cd", "de")}
        assert unsafe_pairs(graph).other.dtype == np.int32

    @pytest.mark.parametrize("seed", range(300))
    def test_against_all_executions(self, seed: int) -> None:
        """Tests that all algorithms give what is needed together in some order of running."""
        graph = multi_stream(2 + seed % 7, 1 + seed % 4, seed)
        expected = Execution(graph).unsafe()
        assert [names_of(graph, algorithm) for algorithm in ALGORITHMS] == [expected] * 4

    @given(strategies_graph.graphs(), st.lists(st.integers(0, 2), min_size=1, max_size=6))
    def test_algorithms_agree(self, graph: Graph, streams: list[int]) -> None:
        """Tests programs with views, aliases and blocks."""
        layout = lay_out(on_random_streams(graph, streams), include=tuple(Kind), pins=False)
        ours = unsafe_pairs(layout)
        for algorithm in ALGORITHMS[1:]:
            theirs = unsafe_pairs(layout, algorithm)
            assert ours.row_begin.tolist() == theirs.row_begin.tolist()
            assert ours.other.tolist() == theirs.other.tolist()

    @given(strategies_graph.graphs())
    def test_one_stream_is_what_lifetimes_say(self, graph: Graph) -> None:
        """Tests that a pair is unsafe iff its lifetimes overlap; unless an input has no readers."""
        layout = lay_out(graph, include=tuple(Kind), pins=False)
        pairs = unsafe_pairs(layout)
        start, end = layout.problem.start, layout.problem.end
        read = {index for operator in graph.walk() for index in operator.inputs}
        for i, j in combinations(range(len(layout.rows)), 2):
            together = bool(start[i] < end[j] and start[j] < end[i])
            both = [layout.storages[layout.rows[row]] for row in (i, j)]
            if all(not s.tensors or read.intersection(s.tensors) for s in both):
                assert ((i, j) in pairs) == together
            assert together or (i, j) not in pairs
        assert len(beyond_lifetimes(layout)[1]) == 0

    @given(strategies_graph.graphs(), st.lists(st.integers(0, 2), min_size=1, max_size=6))
    def test_beyond_lifetimes(self, graph: Graph, streams: list[int]) -> None:
        """Tests that it gives the unsafe pairs without a common time, in both directions."""
        layout = lay_out(on_random_streams(graph, streams), include=tuple(Kind), pins=False)
        pairs = unsafe_pairs(layout)
        start, end = layout.problem.start, layout.problem.end
        rows = range(len(layout.rows))
        expected = [
            [j for j in rows if i != j and (i, j) in pairs
             and not (start[i] < end[j] and start[j] < end[i])]
            for i in rows
        ]  # fmt: skip
        row_begin, other = beyond_lifetimes(layout)
        assert [other[row_begin[i] : row_begin[i + 1]].tolist() for i in rows] == expected

    def test_the_caller(self) -> None:
        """Tests that inputs are there from the start, outputs to the end, on any stream."""
        graph = program("0:A>b\n1:C>!d\n0:b>e\n1:>f", inputs=(0, 2), outputs=(3,))
        unsafe = names_of(graph)
        assert frozenset("AC") in unsafe
        assert frozenset("Ae") not in unsafe  # 3 waits for 1
        assert frozenset("Af") in unsafe  # 4 may run before 1
        assert {frozenset(pair) for pair in ("db", "de", "df")} <= unsafe
        assert frozenset("Cf") not in unsafe

    def test_workspaces_and_what_nobody_reads(self) -> None:
        """Tests that both are needed while one operator runs, and that two may run together."""
        graph = program("0:>a\n1:>b\n0:>c")
        graph = replace(
            graph,
            operators=(
                graph.operators[0],
                *(replace(op, workspace=4) for op in graph.operators[1:]),
            ),
        )
        assert names_of(graph) == {
            frozenset(pair)
            for pair in (
                ("a", "b"), ("b", "c"), ("a", "2 (workspace)"), ("b", "2 (workspace)"),
                ("c", "2 (workspace)"), ("b", "3 (workspace)"), ("c", "3 (workspace)"),
                ("2 (workspace)", "3 (workspace)"),
            )
        }  # fmt: skip

    def test_two_streams_write_parts_of_one_tensor(self) -> None:
        """Tests that what has no first writer goes over nothing, and is free when all is read."""
        graph = program("0:>u\n0:u>x\n0:x>p\n1:>q\n0:pq>r\n0:r>s")
        p, q, both = 0, 1, len(graph.tensors)
        graph = replace(
            graph,
            tensors=(*graph.tensors, Tensor("both", 2)),
            views=(View(p, both), View(q, both, 1)),
        )
        unsafe = names_of(graph)
        assert frozenset(("both", "x")) in unsafe
        assert frozenset(("both", "u")) in unsafe  # over before p is written, but q may be first
        assert frozenset(("both", "r")) in unsafe
        assert frozenset(("both", "s")) not in unsafe

        reason = why(graph, "both", "u")
        assert not reason.safe
        assert str(reason).startswith('"both" and "u" may not share memory: both are needed')

    def test_too_many_streams(self) -> None:
        """Tests that what would not fit into memory is refused before."""
        graph = Graph("", (), tuple(Operator("", "Op", stream=number) for number in range(40_000)))
        with pytest.raises(GraphError) as caught:
            beyond_lifetimes(graph)
        assert str(caught.value).startswith(
            "40002 operators on 40000 streams are too many to order"
        )

    def test_unknown_algorithm(self) -> None:
        """Tests that it is refused with the names of those that there are."""
        wrong: Any = "3"
        with pytest.raises(UnsupportedError) as caught:
            unsafe_pairs(program("0:>a"), wrong)
        assert str(caught.value) == 'there is no algorithm "3"; choose one of memplan, 1, 1opt, 2'

    def test_pangu_like(self) -> None:
        """Tests a program in which whole words of pairs are unsafe against Algorithm 2."""
        graph = pangu_like(1500, 7, 40, seed=3)
        ours, theirs = unsafe_pairs(graph), unsafe_pairs(graph, "2")
        assert np.array_equal(ours.row_begin, theirs.row_begin)
        assert np.array_equal(ours.other, theirs.other)
        assert len(ours) > 100_000


class TestWhy:
    """Reasons that can be checked."""

    @pytest.mark.parametrize("seed", range(120))
    def test_reasons_hold(self, seed: int) -> None:
        """Tests every reason on random programs by running them."""
        graph = multi_stream(2 + seed % 9, 1 + seed % 4, seed)
        execution = Execution(graph)
        unsafe = names_of(graph)
        names = [storage.name for storage in lay_out(graph).storages]
        for a, b in combinations(names, 2):
            reason = why(graph, a, b)
            assert reason.safe == (frozenset((a, b)) not in unsafe)
            if reason.safe:
                self.check_safe(execution, reason)
            else:
                self.check_unsafe(execution, reason)
            assert f'"{a}"' in str(reason)
            assert f'"{b}"' in str(reason)

    def check_safe(self, execution: Execution, reason: Why) -> None:
        """Check that there is a chain from every last use to the maker of the other."""
        graph = execution.graph
        second = reason.b if reason.first == reason.a else reason.a
        arcs = on_streams(graph.operators, waits(graph.operators))
        starts = []
        for path in reason.paths:
            assert path[-1] == execution.makers[second]
            for one, other in pairwise(path):
                along = graph.operators[one].stream == graph.operators[other].stream
                assert one in arcs[other] or (along and one < other)
            starts.append(path[0])
        ends = execution.readers.get(reason.first) or {execution.makers.get(reason.first)} - {None}
        for end in ends:
            stream = graph.operators[end].stream
            assert any(graph.operators[n].stream == stream and end <= n for n in starts)

    def check_unsafe(self, execution: Execution, reason: Why) -> None:
        """Check that both are needed when an order that is allowed has come to the moment."""
        assert sorted(reason.order) == list(range(len(execution.before)))
        for at, number in enumerate(reason.order):
            assert execution.before[number] <= set(reason.order[:at])
        over = frozenset(reason.order[: reason.at[0]])
        running = frozenset(reason.order[slice(*reason.at)])
        assert all(execution.before[number] <= over for number in running)
        assert {reason.a, reason.b} <= execution.needed(over, running)

    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            (
                "a",
                "i",
                '"a" and "i" may share memory: "a" is over before "i" is made '
                '("3" (stream 0) -> "6" (stream 1); "2" (stream 1) -> "6" (stream 1)).',
            ),
            (
                "h",
                "a",
                '"h" and "a" may not share memory: both are needed while "7" (stream 2) runs, '
                'if the streams have come to "3" (stream 0).',
            ),
            (
                "b",
                "e",
                '"b" and "e" may not share memory: both are needed while "3" (stream 0) runs, '
                'if the streams have come to "1" (stream 0).',
            ),
        ],
    )
    def test_sentences(self, a: str, b: str, said: str) -> None:
        """Tests what is said of figure 2."""
        graph = program("0:>a\n1:a>c\n0:a>be\n1:c>df\n1:d>g\n1:feg>i\n2:b>h\n2:ehi>")
        assert str(why(graph, a, b)) == said

    def test_sentences_without_an_operator(self) -> None:
        """Tests inputs, operators that run together, and an operator without a name."""
        graph = program("0:A>b\n1:C>d\n0:b>e", inputs=(0, 1))
        assert str(why(graph, "A", "C")) == (
            '"A" and "C" may not share memory: both are needed at the start.'
        )
        graph = program("0:>a\n1:>b\n0:>c", inputs=())
        assert str(why(graph, "a", "b")) == (
            '"a" and "b" may not share memory: both are needed while "1" (stream 0) and '
            '"2" (stream 1) run at the same time, before any other operator.'
        )
        unread = Graph(
            "", (Tensor("x", 1, Kind.INPUT), Tensor("y", 1)), (Operator("", "Op", (), (1,)),)
        )
        assert str(why(unread, "x", "y")) == (
            '"x" and "y" may share memory: "x" is not needed after the start of the program.'
        )
        unnamed = replace(graph, operators=tuple(replace(op, name="") for op in graph.operators))
        assert "Op number 0 (stream 0) -> Op number 2 (stream 0)" in str(why(unnamed, "a", "c"))

    @pytest.mark.parametrize(
        ("names", "sentence"),
        [
            (("a", "z"), 'there is no tensor "z"'),
            (("a", "w"), 'tensor "w" takes no memory that is planned'),
            (("a", "v"), '"a" and "v" have the same memory, "a"'),
        ],
    )
    def test_bad_names(self, names: tuple[str, str], sentence: str) -> None:
        """Tests what cannot be asked."""
        tensors = (Tensor("w", 4, Kind.CONSTANT), Tensor("a", 4), Tensor("v", 2), Tensor("b", 4))
        operators = (Operator("1", "Op", (0,), (1,)), Operator("2", "Op", (2,), (3,)))
        graph = Graph("", tensors, operators, views=(View(2, 1),))
        with pytest.raises(GraphError) as caught:
            why(graph, *names)
        assert str(caught.value) == sentence


class TestOrder:
    """Orders of operators, and what contradicts them."""

    @given(st.integers(0, 10_000), st.randoms(use_true_random=False))
    def test_streams_may_be_listed_in_any_order(self, seed: int, chance: Any) -> None:
        """Tests that shuffled streams give a program with the same unsafe pairs."""
        graph = multi_stream(12, 3, seed)
        queues = [[op for op in graph.operators if op.stream == s] for s in range(3)]
        shuffled = []
        while any(queues):
            queue = chance.choice([queue for queue in queues if queue])
            shuffled.append(queue.pop(0))
        again = replace(graph, operators=in_order(tuple(shuffled)))
        assert names_of(again) == names_of(graph)
        for number in range(3):
            assert [op for op in again.operators if op.stream == number] == [
                op for op in graph.operators if op.stream == number
            ]

    def test_a_good_order_stays(self) -> None:
        """Tests that nothing moves that need not."""
        operators = multi_stream(30, 4, 1).operators
        assert in_order(operators) == operators

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "0:b>a\n1:a>b",
                'the operators run in a cycle: "1" waits for "2" (tensor "b"), '
                '"2" waits for "1" (tensor "a")',
            ),
            (
                "0:d>a\n1:a>b\n1:>c\n0:c>d",
                "the order of operators on their streams contradicts the arcs: "
                '"1" waits for "4" (tensor "d"), "4" waits for "1" (stream 0)',
            ),
            (
                "0:b>a\n0:d>c\n1:c>d\n1:a>b",
                'the operators run in a cycle: "1" waits for "4" (tensor "b"), '
                '"4" waits for "1" (tensor "a")',
            ),
            (
                "0:d>a\n0:>b\n1:b>c\n1:>d",
                "the order of operators on their streams contradicts the arcs: "
                '"1" waits for "4" (tensor "d"), "4" waits for "3" (stream 1), '
                '"3" waits for "2" (tensor "b"), "2" waits for "1" (stream 0)',
            ),
            ("1:>a\n0:z>b", 'nothing makes tensor "z", which is read by operator "2"'),
            ("0:a>b\n0:>a", 'tensor "a", which is read by operator "1", is not made before'),
        ],
    )
    def test_no_order(self, text: str, sentence: str) -> None:
        """Tests that a cycle is told with its arcs, and streams that contradict them, too."""
        with pytest.raises(GraphError) as caught:
            program(text)
        assert str(caught.value).startswith(sentence)

    def test_a_long_cycle_is_cut(self) -> None:
        """Tests that an error stays readable."""
        tensors = tuple(Tensor(str(number), 1) for number in range(20))
        ring = tuple(Operator(f"op{n}", "Op", ((n + 1) % 20,), (n,)) for n in range(20))
        with pytest.raises(GraphError) as caught:
            Graph("", tensors, ring)
        assert str(caught.value).endswith('waits for "op4" (tensor "4") and 16 more')


class TestGroupsAndStreams:
    """What is wrong with groups and streams."""

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"groups": ((0, 1, 0),)}, 'group 0 lists tensor "a" twice'),
            (
                {"groups": ((0, 1), (2, 1))},
                'groups 0 and 1 share tensor "b"; a tensor may be in one group only',
            ),
            ({"groups": ((0, 7),)}, "a group names a tensor that does not exist"),
            (
                {"operators": (Operator("1", "Op", (), (0, 1, 2), -1),)},
                'operator "1" is on stream -1; streams are numbered from 0',
            ),
        ],
    )
    def test_bad_graphs(self, change: dict[str, Any], sentence: str) -> None:
        """Tests that each is one sentence."""
        good = program("0:>ab\n1:a>c", groups=((0, 1),))
        with pytest.raises(GraphError) as caught:
            replace(good, **change)
        assert str(caught.value) == sentence

    def test_blocks_run_on_one_stream(self) -> None:
        """Tests that an operator inside of another may not have a stream of its own."""
        inner = Operator("inner", "Op", (), (0,), stream=2)
        outer = Operator("outer", "If", stream=2, blocks=(Block("then", (inner,)),))
        assert Graph("", (Tensor("a", 1),), (outer,)).operators == (outer,)
        with pytest.raises(GraphError) as caught:
            Graph("", (Tensor("a", 1),), (replace(outer, stream=1),))
        assert str(caught.value) == (
            'operator "inner" is on stream 2, but runs inside of operator "outer", '
            "which is on stream 1"
        )


def test_an_input_that_is_made_again() -> None:
    """Tests that a reader of an input does not wait for a later operator that writes it."""
    tensors = (Tensor("x", 4, Kind.INPUT), Tensor("a", 4), Tensor("y", 4))
    first = Operator("first", "Op", (0,), (1,))
    again = Operator("again", "Op", (1,), (0,), stream=1)
    last = Operator("last", "Op", (1,), (2,))
    views = (View(2, 1),)
    graph = Graph("", tensors, (first, again, last), inputs=(0,), outputs=(2,), views=views)
    assert len(lay_out(graph, include=list(Kind)).problem) == 2
