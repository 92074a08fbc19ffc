"""Programs in several memories, whose headers are compiled and run with `native/memories.c`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from compilers import require_compiler

from memplan.programs.graph import Graph, Kind, Operator, Tensor

__all__ = ["draw_program", "run_header"]

_SOURCE = Path(__file__).parents[1] / "native" / "memories.c"
_CHECKED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
_FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", *_CHECKED]
_MOST_INPUTS = 3


def draw_program(random: Random, count: int, most: int = 64, *, is_long: bool = False) -> Graph:
    """Return a program of operators with one result each; the last one reads what nothing did.

    In one of long lives, each operator also reads an older result, and so does the one after it.
    """
    tensors, operators = [], []
    unread: set[int] = set()
    before = -1
    for number in range(count):
        last = number == count - 1
        near = range(max(0, number - 6), number)
        inputs = random.sample(near, min(len(near), random.randint(0, _MOST_INPUTS)))
        if is_long:
            older = random.randrange(max(1, number - 4))
            inputs = sorted({number - 1, older, before} - {-1, number}) if number else []
            before = older
        if last and unread:
            inputs = sorted(unread)[-_MOST_INPUTS:]
        unread -= set(inputs)
        unread.add(number)
        kind = Kind.OUTPUT if last else Kind.INTERMEDIATE
        tensors.append(Tensor(f"t{number}", 4 * random.randint(1, most // 4), kind))
        operators.append(Operator(f"op{number}", "Mix", tuple(inputs), (number,)))
    return Graph("net", tuple(tensors), tuple(operators), (), (count - 1,), alignment=4)


def run_header(
    folder: Path,
    header: str,
    graph: Graph,
    memories: Sequence[str],
    compiler: str,
    standard: str = "c99",
    before: str = "",
    begin: str = "(void)0",
) -> list[list[int]]:
    """Compile a program against its header and run it.

    Parameters
    ----------
    folder
        For files.
    header, graph
        The header, with the prefix "net", and the program that it is of.
    memories
        The names of the memories as they are in C.
    compiler, standard
        Which one, and of which language; the test is skipped where it lacks what a check needs.
    before
        What the source says before it includes the header.
    begin
        What is called before an operator; `at` is its step.

    Returns
    -------
    list
        The numbers of each line that it prints: bytes read and written, by memory.
    """
    (folder / "net.h").write_text(before + header)
    tensors = ", ".join(f'{{"{each.name}", {each.bytes}}}' for each in graph.tensors)
    steps = ", ".join(
        f"{{{each.outputs[0]}, {{{', '.join(map(str, (*each.inputs, -1)))}}}}}"
        for each in graph.operators
    )
    ranges = ", ".join(
        f"{{net_memory_{name}, sizeof net_memory_{name}, 0, 0}}" for name in memories
    )
    (folder / "program.h").write_text(
        f"#define BEGIN(at) {begin}\n"
        f"static const tensor tensors[] = {{{tensors}}};\n"
        f"static const step steps[] = {{{steps}}};\n"
        f"static range ranges[] = {{{ranges}}};\n"
    )
    is_cpp = "++" in standard
    language = ["-x", "c++"] if is_cpp else ["-x", "c"]
    flags = [f"-std={standard}", *language, *_FLAGS]
    libraries = ["-lstdc++"] if is_cpp else []
    require_compiler(compiler, flags=[*flags, *libraries])
    command = [compiler, *flags, f"-I{folder}", str(_SOURCE)]
    subprocess.run([*command, "-o", str(folder / "main"), *libraries], check=True)
    run = subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
