"""Plans in several memories as headers for C and C++, which run there."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import pytest
from compilers import list_compilers
from memories_in_c import draw_program, run_header

import memplan as mp
from memplan.base.errors import PlanError
from memplan.machine.memories import Memory, assign
from memplan.machine.memories.copies import Copy, list_copies
from memplan.problem.plan import Plan
from memplan.programs.graph import Block, Graph
from memplan.programs.sources import of_graph
from memplan.runtimes.c.header import write_header

COMPILERS = list_compilers("gcc", "clang")
FAST = Memory("fast ram", 160)
MEMORIES = (FAST, Memory("psram", read=10, write=10, alignment=32))

_HOOKS = """\
#define LATE {late}
#define NET_DMA_START start_copy
#define NET_DMA_WAIT wait_for
void start_copy(unsigned, unsigned char*, const unsigned char*, unsigned long long);
void wait_for(unsigned);
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
def test_a_program_runs_in_two_memories(tmp_path: Path, compiler: str, standard: str) -> None:
    """Tests bits, and that what operators touch in each memory costs what was planned."""
    graph = draw_program(Random(standard), 24)
    found = assign(of_graph(graph), MEMORIES)
    assert all(plan.ids for plan in found.plans)
    assert found.loaded is not None
    header = write_header(found.loaded, found, name="net")
    names = ("fast_ram", "psram")
    counted = run_header(tmp_path, header, graph, names, compiler, standard)
    handed_out = graph.tensors[graph.outputs[0]]  # the caller reads it, and no operator
    fast = found.memory_of(handed_out.name) == FAST.name
    cost = sum(
        memory.read * read + memory.write * written
        for memory, (read, written) in zip(MEMORIES, counted, strict=True)
    )
    assert cost + handed_out.bytes * (1 if fast else 10) == found.traffic


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
@pytest.mark.parametrize("late", [0, 1, None])
def test_a_program_runs_while_buffers_move(
    tmp_path: Path, compiler: str, standard: str, late: int | None
) -> None:
    """Tests bits, traffic, and that no copy touches what others hold until it is waited for.

    Copies are as early or as late as they may be, or those that the header makes itself.
    """
    graph, found, header = _move_buffers()
    moved = sorted({each.buffer for each in found.stretches})
    begin = "net_move(at);"
    for number, tensor in enumerate(graph.tensors):
        if tensor.name in moved:
            row = found.problem.buffer(tensor.name)
            begin += (
                f" if ({row.start} <= at && at < {row.end} && "
                f"NET_AT_{tensor.name}(at) != find({number}, at)) exit(10);"
            )
    names, before = ("fast_ram", "psram"), "" if late is None else _HOOKS.format(late=late)
    counted = run_header(tmp_path, header, graph, names, compiler, standard, before, begin)
    handed_out = graph.tensors[graph.outputs[0]]  # the caller reads it, and no operator
    last = [each.memory for each in found.stretches if each.buffer == handed_out.name]
    where = (last or [found.memory_of(handed_out.name)])[-1]
    cost = sum(
        memory.read * (read + handed_out.bytes * (memory.name == where)) + memory.write * written
        for memory, (read, written) in zip(MEMORIES, counted, strict=True)
    )
    if late is None:  # memcpy counts nothing
        sizes = {each.name: each.bytes for each in graph.tensors}
        cost += 11 * sum(sizes[each.stretch.buffer] for each in list_copies(found))
    assert cost == found.traffic


@cache
def _move_buffers() -> tuple[Graph, mp.Assigned, str]:
    """Return a program with copies in both directions, some of them beside operators.

    A piece also goes home just before another one comes to its place.
    """
    for seed in range(100):
        graph = draw_program(Random(seed), 24, is_long=True)
        found = assign(of_graph(graph), MEMORIES, residency=True, nodes=300)
        copies = list_copies(found)
        kinds = {(each.stores, each.done > each.start) for each in copies}
        if len(kinds) == 4 and any(_follow(found, *two) for two in product(copies, copies)):
            assert found.loaded is not None
            return graph, found, write_header(found.loaded, found, name="net")
    raise AssertionError("some programs have such copies")


def _follow(found: mp.Assigned, store: Copy, fetch: Copy) -> bool:
    """Return whether one piece goes home just before another one comes to its place."""
    plan, size = found.plans[0], found.problem.size
    places = [
        (plan.offset(each.copy), size[found.problem.index(each.buffer)])
        for each in (store.stretch, fetch.stretch)
    ]
    (one, bytes), (other, more) = places
    return (
        store.stores > fetch.stores
        and store.done == fetch.start
        and one < other + more
        and other < one + bytes
    )


def test_what_a_header_of_moves_refuses(tmp_path: Path) -> None:
    """Tests one hook without the other, and branches, whose steps are not one after the other."""
    graph, found, header = _move_buffers()
    (tmp_path / "net.h").write_text(header)
    source = tmp_path / "arena.c"
    source.write_text('#define NET_DEFINE_ARENA\n#include "net.h"\n')
    command = [COMPILERS[0], "-c", source, "-o", tmp_path / "arena.o"]
    run = subprocess.run(
        [*command, "-DNET_DMA_WAIT(n)="], capture_output=True, text=True, check=False
    )
    assert "define both NET_DMA_START and NET_DMA_WAIT" in run.stderr
    operators = list(graph.operators)
    operators[0] = replace(operators[0], blocks=(Block("then", ()),))
    loaded = of_graph(replace(graph, operators=tuple(operators)))
    found = assign(loaded, MEMORIES, residency=True, nodes=1000)
    assert found.stretches
    with pytest.raises(PlanError, match="no fixed steps"):
        write_header(loaded, found)


def test_arrays_are_in_sections(tmp_path: Path) -> None:
    """Tests the names of sections, that a user may name others, and the assertions."""
    graph = draw_program(Random(3), 12)
    found = assign(of_graph(graph), MEMORIES)
    assert found.loaded is not None
    header = write_header(found.loaded, found, name="net")
    assert "#define NET_MEMORY_ALIGNMENT_psram 32u" in header
    (tmp_path / "net.h").write_text(header)
    source = tmp_path / "arena.c"
    source.write_text('#define NET_DEFINE_ARENA\n#include "net.h"\n')
    compiler = COMPILERS[0]
    other = '-DNET_MEMORY_SECTION_psram=__attribute__((section(".bss.dram")))'
    for flags, section in (([], ".bss.psram"), ([other], ".bss.dram")):
        subprocess.run([compiler, "-c", *flags, source, "-o", tmp_path / "arena.o"], check=True)
        if (tmp_path / "arena.o").read_bytes()[:4] == b"\x7fELF":
            assert section.encode() in (tmp_path / "arena.o").read_bytes()
    wrong = re.sub(r"(#define NET_MEMORY_SIZE_psram) \d+u", r"\1 4u", header)
    (tmp_path / "net.h").write_text(wrong)
    run = subprocess.run(
        [compiler, "-c", source, "-o", tmp_path / "arena.o"], capture_output=True, check=False
    )
    assert run.returncode != 0


def test_a_plan_that_is_wrong_is_refused() -> None:
    """Tests that the referee is asked before a header is written."""
    loaded = of_graph(draw_program(Random(4), 6))
    found = assign(loaded, MEMORIES)
    fast, slow = found.plans
    ids = [*fast.ids, *slow.ids]
    part = loaded.problem.subset([loaded.problem.index(id) for id in ids])
    object.__setattr__(found, "plans", (Plan.of(part, [0] * len(ids)), slow))
    with pytest.raises(PlanError):
        write_header(loaded, found)
