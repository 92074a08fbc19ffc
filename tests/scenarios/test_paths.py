"""Tests of plans for paths of control flow, chosen while a program runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import strategies_graph
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from machine import Machine
from strategies_graph import chain

from memplan.base.errors import MemplanError
from memplan.programs.graph import Block, Graph, Kind, Operator
from memplan.programs.sources.loaded import of_graph
from memplan.referee import verify
from memplan.scenarios.paths import PathPlans, list_choices, plan_paths

EVERYTHING = frozenset(Kind)
PROGRAMS = frozenset({"blocks", "views", "aliases", "in_place", "workspace"})


class Switching(Machine):
    """Runs a graph; whenever a condition is known, it asks which plan to go on with."""

    def __init__(self, found: PathPlans, branch_of: dict[str, int], known: set[str]) -> None:
        layout = found.fallback.loaded.layout
        assert layout is not None
        super().__init__(layout, [0] * len(layout.rows), lambda low, high: high)
        self._found, self._branch_of = found, branch_of
        operators = list(self.graph.walk())
        self._choices = {id(operators[each.operator]): each for each in found.choices}
        self._busy = [at for at, operator in enumerate(operators) if operator.workspace]
        self._ids = [id(operator) for operator in operators]
        self.path = None
        self._known: dict[str, str] = {}
        for choice in found.choices:
            if choice.name in known:
                self._known[choice.name] = choice.branches[branch_of[choice.name]]
        self._follow()

    def _follow(self) -> None:
        """Take the offsets of the plan that is right for what is known."""
        before, self.path = self.path, self._found.choose(self._known)
        assert before in (None, self.path), "the plan of a run changes once at most"
        planned = self.path.planned if self.path else self._found.fallback
        layout, plan = planned.loaded.layout, planned.plan
        assert layout is not None
        self._place.clear()
        self._scratch.clear()
        work = {}
        for index in layout.rows:
            storage = layout.storages[index]
            offset = plan.offset(storage.name)
            for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
                self._place[tensor] = offset + inside
            if not storage.tensors:
                work[storage.name] = (offset, storage.bytes)
        whole = self._found.fallback.loaded.layout
        assert whole is not None
        names = [each.name for each in whole.storages if not each.tensors]
        for at, name in zip(self._busy, names, strict=True):
            if name in work:
                self._scratch[self._ids[at]] = work[name]

    def _enter(self, operator: Operator) -> tuple[Block, ...]:
        choice = self._choices.get(id(operator))
        if choice is None:
            return operator.blocks
        branch = self._branch_of[choice.name]
        self._known[choice.name] = choice.branches[branch]
        self._follow()
        return (operator.blocks[branch],)

    def _pick(self, operator: Operator) -> Block:
        choice = self._choices.get(id(operator))
        return operator.blocks[0 if choice is None else self._branch_of[choice.name]]

    def _bytes(self, tensor: int) -> tuple[int, int]:
        size = self.graph.tensors[tensor].bytes
        owner = tensor
        while owner in self._views:
            owner = self._views[owner][0]
        placed = tensor in self._place or not size or tensor in self._views
        assert placed, f"the plan has no place for {self.graph.tensors[tensor].name}"
        return super()._bytes(tensor)

    @property
    def touched(self) -> int:
        """The bytes from the lowest address to the highest one that was written."""
        return max(self._memory, default=-1) + 1


@pytest.mark.slow
@settings(max_examples=80)
@given(strategies_graph.graphs(PROGRAMS), st.data())
def test_programs_run_in_the_plans_of_their_paths(program: Graph, data: st.DataObject) -> None:
    """Tests runs that change their plan while they run, on every path of any program."""
    loaded = of_graph(program, include=EVERYTHING, in_place=data.draw(st.booleans()), pins=False)
    choices = list_choices(loaded)
    assume(choices)
    known = data.draw(st.sets(st.sampled_from([each.name for each in choices])))
    named: Any = None
    if data.draw(st.booleans()):
        (first, *_) = some = data.draw(st.permutations(choices))
        named = [{first.name: first.branches[data.draw(st.integers(0, 1))]}]
        inner = [each for each in some[1:] if each.inside is None]
        if inner and first.inside is None:
            named[0][inner[0].name] = inner[0].branches[0]
    found = plan_paths(loaded, named, known=known, nodes=200)
    for each in found.paths:
        verify(each.planned.problem, each.planned.plan)
        assert each.peak <= found.peak
    verify(found.fallback.problem, found.fallback.plan)
    for _ in range(3):
        taken = {each.name: data.draw(st.integers(0, 1)) for each in choices}
        machine = Switching(found, taken, known)
        machine.run()
        if machine.path is not None:
            assert machine.touched <= machine.path.peak
        else:
            assert not found.complete
        assert machine.touched <= found.peak


def test_what_another_branch_reads_is_not_kept() -> None:
    """Tests the peaks of a program with one choice against those counted by hand."""
    found = plan_paths(of_graph(chain(1)))
    # x, a, large and the result, as the large branch ends: the other branch may still read a.
    assert found.conservative.plan.peak == 700
    # On the large path a is not read at all; on the small one, x is dead by then.
    assert {each.name: each.peak for each in found.paths} == {"if0=large": 500, "if0=small": 310}
    assert (found.peak, found.complete) == (500, True)
    assert found.choose({}) is None
    assert found.choose({"if0": "small"}) is found.paths[0]


def test_many_choices_are_planned_one_by_one() -> None:
    """Tests that more than sixteen paths are not planned all, and which are left."""
    assert len(plan_paths(of_graph(chain(4)), nodes=100).paths) == 16
    found = plan_paths(of_graph(chain(9)), nodes=100)
    assert found.single
    assert len(found.paths) == 16
    assert all(len(each.choices) == 1 for each in found.paths)
    assert found.peak == max(each.peak for each in found.paths)
    assert found.complete  # for some choice both branches are there
    assert not plan_paths(of_graph(chain(9)), [{"if8": "small"}], nodes=100).complete


def test_a_condition_that_is_an_input_is_known_before_the_run() -> None:
    """Tests when paths are chosen, and that the caller may know more."""
    assert {each.step for each in plan_paths(of_graph(chain(1))).paths} == {-1}
    inside = of_graph(chain(2, given=False))
    first, second = (choice.step for choice in list_choices(inside))
    found = plan_paths(inside, [{"if0": "sm"}, {"if1": "small", "if0": "large"}])
    assert [each.step for each in found.paths] == [first, second]
    assert [each.step for each in plan_paths(inside, [{"if1": "l"}], known=["if1"]).paths] == [-1]


def test_choices_inside_loops_are_left_open() -> None:
    """Tests that what may change from round to round is no choice of a run."""
    program = chain(1)
    body = Block("body", program.operators)
    looped = Graph(
        "loop", program.tensors, (Operator("loop", "Loop", blocks=(body,), loop=True),), (0, 1)
    )
    assert list_choices(of_graph(looped)) == ()
    with pytest.raises(MemplanError, match="no operator outside of loops chooses"):
        plan_paths(of_graph(looped))


def test_names_are_distinct() -> None:
    """Tests that operators without names of their own are called by what they make."""
    program = chain(2)
    nameless = tuple(replace(each, name="if") for each in program.operators)
    choices = list_choices(of_graph(replace(program, operators=nameless)))
    assert [each.name for each in choices] == ["z0", "z1"]


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ([{"if7": "small"}], 'no operator "if7" chooses between branches; those are "if0", "if1"'),
        ([{"if0": "tiny"}], '"if0" has no branch "tiny"; its branches are "large", "small"'),
        ([{"if0": ""}], '"if0" has more than one branch ""'),
        ([{"if0": "small"}, {"if0": "sma"}], 'the path "if0=small" is named twice'),
        ([{}], "a path makes at least one choice"),
        ([], "no path is named"),
        (
            [{"if0": "small"}, {"if0": "small", "if1": "large"}],
            'the path "if0=small,if1=large" is never chosen: "if0=small" is known earlier',
        ),
    ],
)
def test_paths_that_are_refused(paths: list[dict[str, str]], says: str) -> None:
    """Tests one sentence for each mistake."""
    with pytest.raises(MemplanError) as told:
        plan_paths(of_graph(chain(2, given=False)), paths)
    assert says in str(told.value)


def test_several_streams_need_conditions_that_are_known() -> None:
    """Tests that a plan is not changed in a run whose operators have no one order."""
    inside = of_graph(chain(2, given=False, stream=1))
    with pytest.raises(MemplanError, match="on several streams"):
        plan_paths(inside)
    found = plan_paths(inside, known=["if0", "if1"])
    assert len(found.paths) == 4
    for each in found.paths:
        verify(each.planned.problem, each.planned.plan)
