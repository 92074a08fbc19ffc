"""Tests of the target for ExecuTorch: the problems without it, the programs in its own runtime."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from executorch_networks import branches, mobilenet, transformer, two_branches

from memplan import Answer, assign, solvers
from memplan.base.errors import GraphError, MemplanError, PlanError
from memplan.extensions.executorch import planner, pools
from memplan.extensions.executorch.pools import Banks, Layout, Place, Region, plan_memories
from memplan.levers.pipeline import Arranged, Plain, arrange
from memplan.machine.memories import Assigned, Memory
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status

pytestmark = pytest.mark.slow


@dataclass(eq=False)
class Tensor:
    """A `TensorSpec` as far as a planner looks at it."""

    first: int | None
    last: int | None
    size: int
    mem_id: int | None = None
    storage_base: Any = None
    storage_base_offset: int = 0
    alignment: int = 1

    @property
    def lifetime(self) -> list[int | None]:
        """The first and the last node, as a list."""
        return [self.first, self.last]

    @property
    def allocated_memory(self) -> int:
        """The size, rounded up."""
        return math.ceil(self.size / self.alignment) * self.alignment

    def realign(self, new_alignment: int) -> int:
        """Round up to something else."""
        self.alignment = new_alignment
        return self.allocated_memory


def laid_out(
    tensors: list[Tensor], search: Any = arrange, *, padding: int = 0, **asked: Any
) -> Layout:
    """Return where the tensors (named a, b, ...) go."""
    asked = {"alignment": 16} | asked
    names = [chr(97 + row) for row in range(len(tensors))]
    return plan_memories(tensors, names, search, padding=padding, **asked)


def watched() -> tuple[list[Problem], Any]:
    """Return a list, and what plans a memory and adds its problem to the list."""
    problems: list[Problem] = []

    def search(writer: Plain) -> Arranged:
        problems.append(writer.loaded.problem)
        return arrange(writer)

    return problems, search


# Problems


def test_lifetimes_are_closed_and_sizes_aligned() -> None:
    """Tests that a tensor needed last by the node that makes another one conflicts with it."""
    first, second, third = Tensor(0, 3, 20), Tensor(3, 5, 16), Tensor(4, 6, 1)
    problems, search = watched()
    assert laid_out([first, second, third], search).sizes == (0, 48)
    (problem,) = problems
    assert problem.start.tolist() == [0, 3, 4]
    assert problem.end.tolist() == [4, 6, 7]
    assert problem.size.tolist() == [32, 16, 16]
    assert laid_out([first, third]).sizes == (0, 32)


def test_a_view_lies_in_its_base_and_keeps_it_alive() -> None:
    """Tests offsets through two levels, and that the base lives as long as the views in it."""
    base = Tensor(0, 1, 96)
    middle = Tensor(1, 2, 64, storage_base=base, storage_base_offset=32)
    inner = Tensor(2, 8, 16, storage_base=middle, storage_base_offset=16, mem_id=2)
    other = Tensor(7, 9, 128)
    layout = laid_out([inner, other, base, middle])
    start = layout.places[base].offset
    assert layout.places[middle] == Place(1, start + 32)
    assert layout.places[inner] == Place(1, start + 48)
    assert layout.sizes == (0, 96 + 128)


def test_every_memory_is_a_problem_of_its_own() -> None:
    """Tests mem_ids with a hole between them, and padding where there are tensors only."""
    tensors = [Tensor(0, 4, 64), Tensor(0, 4, 32, mem_id=3), Tensor(2, 6, 32, mem_id=3)]
    layout = laid_out(tensors, padding=64)
    assert layout.sizes == (0, 64 + 64, 0, 64 + 64)
    assert [layout.places[t].mem_id for t in tensors] == [1, 3, 3]


def test_what_control_flow_was_given_stays_below() -> None:
    """Tests that tensors start above, aligned, and that no memory of a sub-module is lost."""
    tensors = [Tensor(0, 2, 32), Tensor(5, 9, 48)]
    layout = laid_out(tensors, taken=[0, 40, 80], padding=8)
    assert [layout.places[t].offset for t in tensors] == [48, 48]
    assert layout.sizes == (0, 96 + 8, 80)
    assert laid_out([], taken=[0, 40]).sizes == (0, 40)
    assert laid_out([]).sizes == (0, 0)


def test_a_wider_alignment_concerns_offsets_only() -> None:
    """Tests offsets at 64 bytes where sizes keep to the 16 of the pass; views are as they are."""
    base = Tensor(0, 2, 48)
    view = Tensor(0, 2, 16, storage_base=base, storage_base_offset=16)
    tensors = [base, view, Tensor(0, 2, 16), Tensor(0, 2, 16)]
    layout = laid_out(tensors, unit=64)
    assert sorted(layout.places[t].offset for t in tensors if t is not view) == [0, 64, 128]
    assert layout.places[view].offset == layout.places[base].offset + 16
    assert {t.allocated_memory for t in tensors} == {48, 16}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Tensor(None, None, 16), r'"b" has the lifetime \[None, None\]'),
        (Tensor(4, 3, 16), r'"b" has the lifetime \[4, 3\]'),
        (Tensor(0, 1, 16, mem_id=0), r'"b" has the mem_id 0; memories are numbered from 1'),
        (Tensor(0, 1, 16, storage_base=Tensor(0, 9, 99)), r'"b" is a view of a tensor that is not'),
    ],
)
def test_a_tensor_that_cannot_be_planned_is_named(wrong: Tensor, words: str) -> None:
    """Tests that the error names the tensor and what is wrong with it."""
    with pytest.raises(GraphError, match=words):
        laid_out([Tensor(0, 9, 16), wrong])


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (-16, r'"b" .16 bytes at storage_base_offset -16. does not fit into tensor "a"'),
        (32, r'"b" .16 bytes at storage_base_offset 32. does not fit into tensor "a" .32 bytes'),
        (8, r'"b" begins 8 bytes into tensor "a", which is not a multiple of the alignment 16'),
    ],
)
def test_a_view_that_its_base_cannot_hold_is_refused(offset: int, words: str) -> None:
    """Tests views that reach out of their base, or are not aligned in it."""
    base = Tensor(0, 9, 32)
    with pytest.raises(GraphError, match=words):
        laid_out([base, Tensor(0, 9, 16, storage_base=base, storage_base_offset=offset)])


def test_views_in_a_circle_are_refused() -> None:
    """Tests two tensors that are each other's base."""
    first, second = Tensor(0, 9, 16), Tensor(0, 9, 16)
    first.storage_base, second.storage_base = second, first
    with pytest.raises(GraphError, match='"a" is a view of itself'):
        laid_out([first, second])


def test_no_plan_and_no_true_plan_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests a solver that finds nothing, and one whose plan overlaps."""
    tensors = [Tensor(0, 1, 16), Tensor(1, 2, 16)]

    def nothing(problem: Problem, *_: Any, **__: Any) -> Plan:
        return Plan.of(problem, None, status=Status.UNKNOWN, solver="exact")

    def wrong(problem: Problem, *_: Any, **__: Any) -> Plan:
        return Plan.of(problem, np.zeros(len(problem), np.int64))

    monkeypatch.setattr(solvers, "solve", nothing)
    with pytest.raises(PlanError, match=r"memory 1: no plan was found \(unknown\)"):
        laid_out(tensors)
    monkeypatch.setattr(solvers, "solve", wrong)
    with pytest.raises(RuntimeError, match='"a" and buffer "b" overlap'):
        laid_out(tensors)


# In ExecuTorch


def graph(**nodes: Any) -> SimpleNamespace:
    """Return a graph module as far as a planner looks at it: the tensors of every node."""
    made = [
        SimpleNamespace(name=name, target=None, meta={"spec": held}) for name, held in nodes.items()
    ]
    return SimpleNamespace(graph=SimpleNamespace(nodes=made))


def test_the_planner_names_tensors_by_their_nodes() -> None:
    """Tests the names in errors: of a node, and of one of several results of a node."""
    pytest.importorskip("executorch.exir")
    good, bad = Tensor(0, 1, 16), Tensor(None, 1, 16)
    with pytest.raises(GraphError, match='"conv" has the lifetime'):
        planner()(16, [good, bad], graph(x=good, conv=bad), None, 0)
    with pytest.raises(GraphError, match='"split:1" has the lifetime'):
        planner()(16, [good, bad], graph(split=[good, bad]), None, 0)


def test_the_planner_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests a machine without ExecuTorch."""
    monkeypatch.setitem(sys.modules, "executorch.exir.memory_planning", None)
    with pytest.raises(MemplanError, match=r"needs the library executorch: pip install 'memplan"):
        planner()


def test_arguments_are_refused_before_a_model_is_exported() -> None:
    """Tests solver, options, budget and alignment at the moment the planner is made."""
    pytest.importorskip("executorch.exir")
    with pytest.raises(MemplanError, match="there is no solver"):
        planner("fastest")
    with pytest.raises(MemplanError, match="has no option"):
        planner("greedy", magic=True)
    with pytest.raises(MemplanError, match="timeout is -1"):
        planner(timeout=-1)
    with pytest.raises(MemplanError, match="alignment is 0; it must be at least 1 byte"):
        planner(alignment=0)
    with pytest.raises(MemplanError, match="proof is not available"):
        planner(proof="why.txt")


def test_planners_that_differ_have_names_that_differ() -> None:
    """Tests the names by which a suite tells its algorithms apart."""
    pytest.importorskip("executorch.exir")
    made = [planner(), planner("greedy"), planner(nodes=100), planner(alignment=64)]
    assert [each.__name__ for each in made] == [
        "memplan(auto)",
        "memplan(greedy)",
        "memplan(auto, nodes=100)",
        "memplan(auto, alignment=64)",
    ]


def compiled(model: Any, inputs: tuple[Any, ...], algorithm: Any) -> Any:
    """Return the program that ExecuTorch makes with an algorithm."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    planning = MemoryPlanningPass(memory_planning_algo=algorithm)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return to_edge(torch.export.export(model, inputs)).to_executorch(config)


def run(program: Any, inputs: tuple[Any, ...]) -> Any:
    """Return what ExecuTorch's own runtime answers."""
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return method.execute(list(inputs))[0].clone()


def sizes(program: Any) -> list[int]:
    """Return the bytes of every memory of a program."""
    return list(program.exported_program().graph_module.meta["non_const_buffer_sizes"])


def count_bytes(program: Any) -> list[tuple[int, int]]:
    """Return by memory the bytes that a run reads and writes, from the file that the runtime gets.

    Each instruction names its tensors, which have a memory, an offset and a size in the file; the
    schema of its operator says which of them it writes. The caller writes inputs and reads outputs.
    """
    import torch
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.exir.schema import Tensor as Stored

    (plan,) = deserialize_pte_binary(program.buffer).program.execution_plan
    counted = [[0, 0] for _ in plan.non_const_buffer_sizes]

    def add(number: int, is_written: bool) -> None:
        value = plan.values[number].val
        if isinstance(value, Stored) and value.allocation_info:
            width = {"BOOL": 1, "FLOAT": 4, "LONG": 8}[value.scalar_type.name]
            size = math.ceil(math.prod(value.sizes) * width / 16) * 16  # as the pass reserves it
            counted[value.allocation_info.memory_id][is_written] += size
        for item in getattr(value, "items", ()) if "Tensor" in type(value).__name__ else ():
            add(item, is_written)

    for number in plan.inputs:
        add(number, True)
    for number in plan.outputs:
        add(number, False)
    for call in (each.instr_args for chain in plan.chains for each in chain.instructions):
        operator = plan.operators[call.op_index]
        space, _, name = operator.name.partition("::")
        schema = getattr(getattr(getattr(torch.ops, space), name), operator.overload)._schema
        rows = zip(schema.arguments, call.args, strict=False)  # results come again at the end
        written = {each: bool(one.alias_info and one.alias_info.is_write) for one, each in rows}
        for each, is_written in written.items():  # what an operator reads twice counts once
            add(each, is_written)
    return [(read, written) for read, written in counted]


def audit(program: Any) -> None:
    """Let ExecuTorch's own verifier look for tensors that share bytes while both live."""
    from executorch.exir.memory_planning import Verifier

    exported = program.exported_program()
    for module in exported.graph_module.modules():
        top = module is exported.graph_module
        Verifier(module, top, True, True, exported.graph_signature).verify_storage_reuse()


@pytest.mark.parametrize("network", [mobilenet, transformer, branches])
def test_programs_compute_the_same_in_no_more_memory(network: Any) -> None:
    """Tests real programs in the real runtime, against eager mode and ExecuTorch's own planner."""
    pytest.importorskip("executorch.exir")
    pytest.importorskip("executorch.runtime")
    import torch
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite

    torch.manual_seed(7)
    model, inputs = network()
    model = model.eval()
    theirs = compiled(model, inputs, MemoryPlanningAlgorithmSuite())
    ours = compiled(model, inputs, planner())
    audit(ours)
    assert len(sizes(ours)) == len(sizes(theirs)) == 2
    assert sum(sizes(ours)) <= sum(sizes(theirs))
    answers = []
    for sign in (1, -1):  # both branches of the one that has them
        given = tuple(sign * x for x in inputs)
        with torch.no_grad():
            expected = model(*given)
        answer = run(ours, given)
        answers.append(answer)
        assert torch.equal(answer, run(theirs, given))
        torch.testing.assert_close(answer, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(*answers, rtol=0.1, atol=0.1), "the input hardly matters"


def test_programs_at_the_edges_run() -> None:
    """Tests a program of one operator, one without elements, and one of no operator at all.

    Each is in one memory, in one bank, and in several, the first of 16 bytes.
    """
    pytest.importorskip("executorch.exir")
    pytest.importorskip("executorch.runtime")
    import torch

    class Program(torch.nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

        def forward(self, x: Any) -> Any:
            for _ in range(self.count):
                x = x + 1
            return x

    banks = [Memory("*/", 16), Memory("漢字", read=2, write=2), Memory("unused", read=3, write=3)]
    edges = ((0, (2, 3)), (1, (2, 3)), (3, (0, 4)), (3, ()))
    for (count, shape), memories in product(edges, (None, banks[1:2], banks)):
        given = torch.ones(shape)
        ours = compiled(Program(count).eval(), (given,), planner(memories=memories))
        audit(ours)
        assert torch.equal(run(ours, (given,)), given + count)


@pytest.mark.parametrize("with_suite", [False, True])
def test_a_choice_survives_the_next_one(with_suite: bool) -> None:
    """Tests results of branches that are read after other branches ran, nested ones included."""
    pytest.importorskip("executorch.exir")
    pytest.importorskip("executorch.runtime")
    import torch
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite

    model, inputs = two_branches()
    algorithm = MemoryPlanningAlgorithmSuite([planner()]) if with_suite else planner()
    program = compiled(model, inputs, algorithm)
    audit(program)
    for scale in (1, 2, -1, 0.01):
        given = (scale * inputs[0],)
        torch.testing.assert_close(run(program, given), model(*given))


def test_regions_are_apart_while_they_are_needed() -> None:
    """Tests that a region moves all tensors in it, and that its memory is used again after it."""
    inner, early, late = Tensor(0, 9, 16), Tensor(0, 1, 64), Tensor(5, 6, 64)
    regions = [
        Region("one", 2, 4, (0, 48), {inner: Place(1, 32)}),
        Region("two", 3, 4, (0, 16), {}),
    ]
    problems, search = watched()
    layout = laid_out([early, late], search, regions=regions)
    assert [each.ids for each in problems] == [("a", "b", "inside one", "inside two")]
    assert layout.sizes == (0, 64)
    assert layout.places[inner].offset in (32, 48)
    assert laid_out([], regions=regions[:1]).sizes == (0, 48)


def test_one_branch_of_two_choices_is_refused() -> None:
    """Tests that a sub-module which two nodes run keeps no result of the first for later."""
    pytest.importorskip("executorch.exir")
    branch = graph(y=None)
    branch.meta = {"non_const_buffer_sizes": [0, 16]}
    taken = SimpleNamespace(op="get_attr", target="branch")

    def refuse(last: int) -> None:
        module = graph(first=Tensor(0, last, 16), second=Tensor(1, 4, 16))
        module.branch = branch
        for node in module.graph.nodes:
            node.args = (taken,)
        planner()(16, [node.meta["spec"] for node in module.graph.nodes], module, None, 0)

    refuse(0)
    with pytest.raises(GraphError, match='"first" and "second" run the same sub-module'):
        refuse(3)


def test_a_suite_takes_the_better_of_two() -> None:
    """Tests the planner together with ExecuTorch's own, and a wider alignment in the real pass."""
    pytest.importorskip("executorch.exir")
    import torch
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy

    torch.manual_seed(7)
    model, inputs = transformer()
    model = model.eval()
    alone = sizes(compiled(model, inputs, planner()))
    both = compiled(model, inputs, MemoryPlanningAlgorithmSuite([greedy, planner()]))
    assert sizes(both) == alone
    wide = compiled(model, inputs, planner(alignment=256))
    specs = [node.meta.get("spec") for node in wide.exported_program().graph_module.graph.nodes]
    offsets = [getattr(spec, "mem_offset", None) for spec in specs]
    assert sum(offset is not None for offset in offsets) > 20
    assert all(offset % 256 == 0 for offset in offsets if offset is not None)


def fan() -> tuple[Any, tuple[Any, ...]]:
    """Return a network of four branches, whose wide tensors are all made first."""
    import torch
    from torch import nn

    class Fan(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.ModuleList(nn.Conv2d(8, 32, 3, padding=1) for _ in range(4))
            self.narrow = nn.ModuleList(nn.Conv2d(32, 4, 3, padding=1) for _ in range(4))

        def forward(self, x: Any) -> Any:
            wide = [each(x).relu() for each in self.wide]
            return torch.cat([f(x) for f, x in zip(self.narrow, wide, strict=True)], 1)

    return Fan(), (torch.rand(1, 8, 36, 36),)


def test_a_program_in_order_needs_half() -> None:
    """Tests that nodes are reordered before the program is made, planned and run: bit-equal."""
    pytest.importorskip("executorch.exir")
    pytest.importorskip("executorch.runtime")
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    from memplan.runtimes.torch.write import writer as fx

    torch.manual_seed(7)
    model, inputs = fan()
    planning = MemoryPlanningPass(memory_planning_algo=planner())
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    edge = to_edge(torch.export.export(model.eval(), inputs))
    found = fx.reorder(edge.exported_program())
    ours = edge.to_executorch(config)
    given = compiled(model, inputs, planner())
    audit(ours)
    assert found.peak == found.bound
    assert sum(sizes(given)) - sum(sizes(ours)) == pytest.approx(found.given_peak - found.peak, 0.1)
    assert sum(sizes(ours)) < 0.55 * sum(sizes(given))
    assert torch.equal(run(ours, inputs), run(given, inputs))


BANKS = {1: Memory("sram", 96), 2: Memory("psram", read=10, write=10)}


def test_tensors_go_to_banks_by_what_they_save() -> None:
    """Tests views, a tensor that has a bank, one that has another memory, and padding."""
    often, seldom = Tensor(0, 4, 64), Tensor(0, 4, 64)
    view = Tensor(1, 2, 16, storage_base=seldom, storage_base_offset=16)
    pinned, apart = Tensor(0, 4, 16, mem_id=2), Tensor(0, 4, 48, mem_id=5)
    accesses = {often: (3, 1), seldom: (0, 1), view: (1, 0), pinned: (9, 9)}
    tensors = [seldom, often, view, pinned, apart]
    layout = laid_out(tensors, padding=16, banks=Banks(BANKS, accesses))
    assert [layout.places[each].mem_id for each in tensors] == [2, 1, 2, 2, 5]
    assert layout.places[view].offset == layout.places[seldom].offset + 16
    assert layout.sizes == (0, 64 + 16, 80 + 16, 0, 0, 48 + 16)
    more = {**accesses, seldom: (0, 3), view: (2, 0)}
    layout = laid_out(tensors, banks=Banks(BANKS, more))
    assert (layout.places[often].mem_id, layout.places[seldom].mem_id) == (2, 1)


def test_what_control_flow_has_stays_in_its_bank() -> None:
    """Tests parts of a region in both banks, and what sub-modules have at the bottom."""
    inner, outer, early = Tensor(0, 9, 16), Tensor(0, 9, 16), Tensor(2, 4, 48)
    places = {inner: Place(1, 16), outer: Place(2, 0)}
    regions = [Region("one", 2, 4, (0, 32, 16), places)]
    banks = Banks(BANKS, {early: (1, 1)})
    layout = laid_out([early], regions=regions, banks=banks)
    assert (layout.places[early].mem_id, layout.sizes[1]) == (1, 80)
    assert layout.places[inner].mem_id == 1
    assert layout.places[outer] == Place(2, 0)
    layout = laid_out([early], taken=[0, 64, 0], banks=banks)
    assert (layout.places[early].mem_id, layout.sizes[1]) == (2, 64)


def test_banks_that_are_too_small_are_named() -> None:
    """Tests the words, and what cannot be asked together."""
    small = {1: Memory("sram", 16), 2: Memory("psram", 32, read=10, write=10)}
    with pytest.raises(PlanError, match=r"sram.*psram"):
        laid_out([Tensor(0, 4, 48)], banks=Banks(small))
    pytest.importorskip("executorch.exir")
    with pytest.raises(MemplanError, match="memories is a list of"):
        planner(memories=["sram"])
    with pytest.raises(MemplanError, match="cannot be chosen"):
        planner("greedy", memories=list(BANKS.values()))


@pytest.mark.parametrize(("network", "with_map"), [(mobilenet, True), (transformer, False)])
def test_a_program_runs_in_two_banks(
    network: Any, with_map: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests bits in the real runtime, and that its file moves the planned bytes in each bank.

    They cost no more than with ExecuTorch's own assignment.
    """
    pytest.importorskip("executorch.exir")
    pytest.importorskip("executorch.runtime")
    banked = pytest.importorskip("executorch.exir.banked_memory_planning")
    import torch
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite

    found: list[Assigned] = []

    def assign_seen(*asked: Any, **options: Any) -> Answer:
        answer = assign(*asked, **options)
        found.append(answer.find(Assigned))
        return answer

    monkeypatch.setattr(pools, "assign", assign_seen)
    torch.manual_seed(7)
    model, inputs = network()
    model = model.eval()
    whole = compiled(model, inputs, planner())
    fast = sum(sizes(whole)) // 2 // 16 * 16
    target = banked.TargetMemoryMap(
        [banked.Bank("sram", fast, 1), banked.Bank("psram", 1 << 20, 2)]
    )
    memories = [Memory("sram", fast), Memory("psram", 1 << 20, read=10, write=10)]
    ours = compiled(model, inputs, planner(memories=target if with_map else memories))
    audit(ours)
    assert 0 < sizes(ours)[1] <= fast
    assert sizes(ours)[2] > 0
    assert torch.equal(run(ours, inputs), run(whole, inputs))
    (planned,) = found
    counted = count_bytes(ours)[1:]
    assert counted == planned.count_bytes()
    assert planned.traffic == sum(counted[0]) + 10 * sum(counted[1])
    theirs = compiled(model, inputs, MemoryPlanningAlgorithmSuite([banked.BankedGreedy(target)]))
    assert sum(counted[1]) <= sum(count_bytes(theirs)[2])
