"""Makes a planner for ExecuTorch's memory planning pass, in `to_executorch`.

    planning = MemoryPlanningPass(memory_planning_algo=memplan.extensions.executorch.planner())
    program.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))

The pass calls the planner once for every graph, the sub-modules of control flow first, which the
call for the graph around them moves; `pools.py` makes the problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memplan import Arranged, Memory, plan
from memplan.base.errors import GraphError, MemplanError, quoted, shown
from memplan.base.extras import require
from memplan.extensions.executorch.pools import (
    Banks,
    Layout,
    Place,
    Region,
    Spec,
    plan_memories,
)
from memplan.levers.writers import Plain, Writer
from memplan.problem import Problem
from memplan.programs.sources import of_problem

__all__ = ["planner"]

_WITHOUT_KERNEL = ("alloc", "free", "getitem", "view")  # nodes that only name memory


def planner(
    solver: str = "auto",
    *,
    timeout: float | None = None,
    nodes: int | None = None,
    alignment: int | None = None,
    memories: Any = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a planner for ExecuTorch's `MemoryPlanningPass(memory_planning_algo=...)`.

    Parameters
    ----------
    solver, timeout, nodes, **options
        Arguments of `memplan.solve`, for every graph and memory. `proof` is not allowed, as there
        would be several proofs.
    alignment
        Of every offset, in bytes, in addition to the alignment that the pass requires; sizes have
        only the latter.
    memories
        Memories that tensors without a `mem_id` are assigned to, the fastest first, so that what
        operators read and write costs least (`memplan.assign`): a list of `memplan.Memory`, whose
        numbers are 1, 2, ..., or ExecuTorch's `TargetMemoryMap`. A tensor with a `mem_id` stays
        there. The solver and its options are not asked then.

    Returns
    -------
    callable
        `(alignment, specs, graph_module, graph_signature, extra_padding)`, for the pass or, with
        other planners, for a `MemoryPlanningAlgorithmSuite`. It returns a `MemoryAlgoResult`,
        which can also be read as a list of buffer sizes. It raises `GraphError` if a tensor has
        no legal place, and `PlanError` if the budget ends without a plan.

    Raises
    ------
    MemplanError
        If ExecuTorch is not installed, and for arguments that `memplan.solve` refuses.
    """
    if alignment is not None and (type(alignment) is not int or alignment < 1):
        raise MemplanError(f"alignment is {shown(alignment)}; it must be at least 1 byte")
    if "proof" in options:
        raise MemplanError("proof is not available: every graph and memory would have its own")
    library = require("executorch.exir.memory_planning", extra="executorch")
    result_type = _result_type(library)
    numbered = None if memories is None else _number_memories(memories)
    if numbered and (solver != "auto" or options):
        raise MemplanError("with memories, the solver and its options cannot be chosen")

    def search(memory: Writer) -> Arranged:
        asked = {"timeout": timeout, "nodes": nodes, "solver": solver, **options}
        answer = plan(memory.open().loaded, writers=[memory], **asked)
        return answer.find(Arranged).require_whole()

    unit = alignment or 1
    search(Plain(of_problem(Problem(()))))  # it rejects bad arguments before a model is exported

    def algorithm(
        alignment: int,
        specs: Any,
        graph_module: Any,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> Any:
        rows = list(specs)
        names = _names(graph_module, rows)
        regions = _find_regions(graph_module, rows)
        taken: tuple[int, ...] = ()
        if not regions:
            taken = tuple(getattr(graph_module, "input_mem_buffer_sizes", None) or ())
        layout = plan_memories(
            rows,
            names,
            search,
            alignment=alignment,
            unit=unit,
            taken=taken,
            regions=regions,
            padding=extra_padding,
            banks=None
            if numbered is None
            else Banks(numbered, _count_accesses(graph_module, rows), timeout, nodes),
        )
        return _hand_over(layout, library, result_type)

    # A suite distinguishes its algorithms by name, so planners with other settings need others.
    settings = {"timeout": timeout, "nodes": nodes, "alignment": alignment, **options}
    if numbered:
        settings["memories"] = "+".join(each.name for each in numbered.values())
    arguments = [f"{key}={value}" for key, value in settings.items() if value is not None]
    algorithm.__name__ = f"memplan({', '.join([solver, *arguments])})"
    return algorithm


def _number_memories(memories: Any) -> dict[int, Memory]:
    """Return memories by `mem_id`; banks of ExecuTorch cost ten times as much as the one before."""
    banks = getattr(memories, "banks", None)
    if banks is None:
        found = dict(enumerate(memories, 1))
        if not found or not all(isinstance(each, Memory) for each in found.values()):
            raise MemplanError("memories is a list of memplan.Memory, or a TargetMemoryMap")
        return found
    return {
        bank.mem_id: Memory(bank.name, bank.size, 10**at, 10**at, bank.alignment or 1)
        for at, bank in enumerate(banks)
    }


def _count_accesses(graph_module: Any, specs: Sequence[Spec]) -> dict[Spec, tuple[int, int]]:
    """Return how often the nodes read each tensor, and write it; the caller's nodes count too."""
    planned = set(map(id, specs))
    found: dict[Spec, list[int]] = {}
    for node in graph_module.graph.nodes:
        if getattr(node.target, "__name__", "") in _WITHOUT_KERNEL:
            continue
        own = _list_specs(node) if node.op in ("call_function", "placeholder") else ()
        made = [spec for spec in own if id(spec) in planned]
        for spec in made:
            found.setdefault(spec, [0, 0])[1] += 1
        for other in getattr(node, "all_input_nodes", ()):
            for spec in _list_seen(other, planned):
                if all(spec is not each for each in made):
                    found.setdefault(spec, [0, 0])[0] += 1
    return {spec: (reads, writes) for spec, (reads, writes) in found.items()}


def _list_seen(node: Any, planned: set[int]) -> list[Spec]:
    """Return the planned tensors whose bytes a reader of a node sees, through views too."""
    found = [spec for spec in _list_specs(node) if id(spec) in planned]
    if found or getattr(node.target, "__name__", "") != "view":
        return found
    return _list_seen(node.all_input_nodes[0], planned)


def _names(graph_module: Any, specs: Sequence[Spec]) -> list[str]:
    """Return for every tensor the name of the node that makes it, or its number."""
    names: dict[Spec, str] = {}
    planned = set(map(id, specs))
    for node in graph_module.graph.nodes:
        # The node that only allocates comes first, but people know the name of the operator.
        if getattr(node.target, "__name__", "") == "alloc":
            continue
        several = isinstance(node.meta.get("spec"), (list, tuple))
        for at, spec in enumerate(_list_specs(node)):
            if id(spec) in planned:
                names.setdefault(spec, f"{node.name}:{at}" if several else node.name)
    return [names.get(spec, f"#{row}") for row, spec in enumerate(specs)]


def _list_specs(node: Any) -> Sequence[Any]:
    """Return the tensors that a node makes, as far as the pass knows them."""
    held = node.meta.get("spec")
    return held if isinstance(held, (list, tuple)) else [held]


def _find_regions(graph_module: Any, specs: Sequence[Spec]) -> list[Region]:
    """Return what the nodes of control flow run, whose tensors are already planned.

    Two nodes that run the same sub-module while a result of the first is still needed are refused.
    """
    own = set(map(id, specs))
    found: list[Region] = []
    runs: list[set[int]] = []
    for index, node in enumerate(graph_module.graph.nodes):
        modules = [module for module in _find_modules(graph_module, node) if _sizes_of(module)]
        if not modules:
            continue
        last = max([index, *_find_ends(node, index)])
        for one, earlier in zip(found, runs, strict=True):
            if not earlier.isdisjoint(map(id, modules)) and one.last >= index:
                raise GraphError(
                    f"nodes {quoted(one.name)} and {quoted(node.name)} run the same sub-module, "
                    f"and the result of {quoted(one.name)} is still needed then; clone it first"
                )
        found.append(_make_region(node, index, last, modules, own))
        runs.append(set(map(id, modules)))
    return found


def _find_modules(graph_module: Any, node: Any) -> list[Any]:
    """Return the sub-modules that a node runs: not those of delegates, which have no graph."""
    targets = [
        one.target for one in getattr(node, "args", ()) if getattr(one, "op", "") == "get_attr"
    ]
    modules = [getattr(graph_module, target, None) for target in targets]
    return [module for module in modules if hasattr(module, "graph")]


def _sizes_of(module: Any) -> list[int]:
    """Return the bytes of a planned sub-module by memory; the pass leaves them there."""
    return list(getattr(module, "meta", {}).get("non_const_buffer_sizes") or ())


def _find_ends(node: Any, index: int) -> Iterator[int]:
    """Yield the last nodes that need the results of a node."""
    for spec in _list_specs(node):
        if spec is not None and spec.lifetime[1] is not None:
            yield spec.lifetime[1]


def _make_region(node: Any, first: int, last: int, modules: list[Any], own: set[int]) -> Region:
    """Return a region: branches of a `cond` lie in the same place, all else side by side."""
    is_cond = getattr(node.target, "__name__", "") == "cond"
    total: list[int] = []
    places: dict[Spec, Place] = {}
    for module in modules:
        sizes = _sizes_of(module)
        total += [0] * (len(sizes) - len(total))
        base = [0] * len(total) if is_cond else list(total)
        for spec in _list_planned(module):
            if id(spec) not in own:
                offset = spec.mem_offset + base[spec.mem_id]
                places[spec] = Place(spec.mem_id, offset)
        for mem_id, size in enumerate(sizes):
            total[mem_id] = max(total[mem_id], base[mem_id] + size)
    return Region(node.name, first, last, total, places)


def _list_planned(module: Any) -> Iterator[Any]:
    """Yield the tensors of a sub-module that have a place, those of its own control flow too."""
    for node in module.graph.nodes:
        for spec in _list_specs(node):
            if getattr(spec, "mem_offset", None) is not None and spec.mem_id:
                yield spec
        for inner in _find_modules(module, node):
            yield from _list_planned(inner)


def _hand_over(layout: Layout, library: Any, result_type: Callable[..., Any]) -> Any:
    """Return the layout as ExecuTorch's result.

    The layout is written to the tensors too, as the pass expects that without a suite. A suite
    that prefers another algorithm overwrites it.
    """
    answers = {}
    for spec, at in layout.places.items():
        # Tensors that share bytes must have one object number, so each memory is one object.
        answer = library.SpecAllocResult(mem_id=at.mem_id, mem_obj_id=0, mem_offset=at.offset)
        answers[spec] = answer
        for field, value in vars(answer).items():
            setattr(spec, field, value)
    return result_type(spec_dict=answers, bufsizes=list(layout.sizes))


def _result_type(library: Any) -> Callable[..., Any]:
    """Return a class of ExecuTorch's `MemoryAlgoResult` that is also a list of buffer sizes.

    A suite needs the former, and the pass itself the latter; so one planner serves both.
    """

    class Result(library.MemoryAlgoResult):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(self.bufsizes)

        def __getitem__(self, at: Any) -> Any:
            return self.bufsizes[at]

    return Result
