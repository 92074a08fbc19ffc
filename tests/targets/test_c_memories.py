"""Plans in several memories as headers for C and C++, which run there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from memories_in_c import draw_program, run_header

import memplan as mp
from memplan.errors import PlanError
from memplan.memories import Memory
from memplan.plan import Plan
from memplan.sources import of_graph
from memplan.targets.c_header import write_header

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
FAST = Memory("fast ram", 160)
MEMORIES = (FAST, Memory("psram", read=10, write=10, alignment=32))

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
def test_a_program_runs_in_two_memories(tmp_path: Path, compiler: str, standard: str) -> None:
    """Tests bits, and that what operators touch in each memory costs what was planned."""
    graph = draw_program(Random(standard), 24)
    found = mp.assign(of_graph(graph), MEMORIES)
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


def test_arrays_are_in_sections(tmp_path: Path) -> None:
    """Tests the names of sections, that a user may name others, and the assertions."""
    graph = draw_program(Random(3), 12)
    found = mp.assign(of_graph(graph), MEMORIES)
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
    found = mp.assign(loaded, MEMORIES)
    fast, slow = found.plans
    ids = [*fast.ids, *slow.ids]
    part = loaded.problem.subset([loaded.problem.index(id) for id in ids])
    object.__setattr__(found, "plans", (Plan.of(part, [0] * len(ids)), slow))
    with pytest.raises(PlanError):
        write_header(loaded, found)
