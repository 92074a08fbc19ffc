"""Networks whose headers are compiled and run: what they compute, and a program in C that does.

`native/kernels.c` has a plain kernel for every operator that has a map. `native/steps.c` is given
networks as words and numbers, computes each as a whole, and then follows its header.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from compilers import require_compiler

from memplan.cli import main
from memplan.levers.rewrite.bands import Cut, Region, Uncut, cut
from memplan.programs.graph import Graph
from memplan.programs.sources import load

__all__ = ["Batch", "Network", "Op", "Part", "check_command", "compile_runtime", "draw_bands"]

_NATIVE = Path(__file__).parents[1] / "native"
_TYPES = ("float32", "int8", "uint8", "int32", "int64", "bool")
_WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
_CHECKED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
_FLAGS = ["-std=c99", *_WARNINGS, *_CHECKED]


@dataclass(frozen=True)
class Part:
    """A tensor: its values if it is given, and whether it is outside of the arena."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: Any = None
    is_held: bool = False


@dataclass(frozen=True)
class Op:
    """An operator as a kernel of `kernels.c`: its inputs and its result by number, -1 for none."""

    kernel: str
    inputs: tuple[int, ...]
    result: int
    parameters: tuple[float, ...]
    element: str = ""


@dataclass(frozen=True)
class Network:
    """A model, and what it computes.

    Attributes
    ----------
    data, suffix
        The file.
    parts, ops
        Its tensors, and its operators in the order of the file.
    inputs, outputs
        By number of a part.
    is_nchw
        Whether channels come before rows.
    kinds
        The types of its operators, as in the file.
    """

    data: bytes
    suffix: str
    parts: Sequence[Part]
    ops: Sequence[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]
    is_nchw: bool
    kinds: Sequence[str]

    def check(self, graph: Graph, program: Uncut | None) -> None:
        """Check that a graph read from the file has these tensors and operators."""
        made = [graph.tensors[operator.outputs[0]].name for operator in graph.operators]
        assert made == [self.parts[op.result].name for op in self.ops]
        used = {at for op in self.ops for at in (*op.inputs, op.result) if at >= 0}
        known = {self.parts[at].name: self.parts[at] for at in used}
        for tensor in graph.tensors:
            if tensor.name in known and tensor.shape is not None:
                assert tensor.shape == known[tensor.name].shape, tensor.name
        assert program is None or program.rows_are_apart is not self.is_nchw


class Batch:
    """Networks with their headers, which one program runs."""

    def __init__(self, folder: Path, runtime: Path) -> None:
        self._folder, self._runtime = folder, runtime
        self._lines: list[str] = []
        self._data = bytearray()
        self.networks: list[Network] = []
        self._uses: list[str] = []

    def add(self, network: Network, graph: Graph, header: str, uses: Sequence[str]) -> None:
        """Add a network; `uses` are the tables that its header has beside that of the tensors.

        The names in the header begin with "p" and the number of the network.
        """
        number = len(self.networks)
        (self._folder / f"p{number}.h").write_text(header)
        self.networks.append(network)
        self._lines += self._describe(f"p{number}", network, graph)
        names = ("TABLE", *uses)
        self._uses += [
            f"  if (at == {number}) {{",
            *(f"    COPY_{name}(header, p{number}, P{number});" for name in names),
            "  }",
        ]

    def run(self) -> list[list[Any]]:
        """Return the outputs of each network, computed as a whole.

        Raises
        ------
        AssertionError
            If a header is not followed to the same results.
        """
        count, folder = len(self.networks), self._folder
        (folder / "networks.txt").write_text("\n".join(self._lines) + "\n")
        (folder / "values.bin").write_bytes(self._data)
        includes = [f'#define P{at}_DEFINE_TABLE\n#include "p{at}.h"' for at in range(count)]
        source = [
            *('#include "steps.h"', *includes, f"const size_t headers_count = {count};"),
            *("void read_header(size_t at, Header* header) {", *self._uses, "}", ""),
        ]
        (folder / "batch.c").write_text("\n".join(source))
        command = [_find_compiler(), *_FLAGS, f"-I{_NATIVE}", "batch.c", str(self._runtime), "-lm"]
        built = subprocess.run(
            [*command, "-o", "batch"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert built.returncode == 0, built.stderr
        run = subprocess.run(
            [folder / "batch", "networks.txt", "values.bin"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        lines = iter(run.stdout.splitlines())
        return [
            [self._read(network.parts[at], next(lines)) for at in network.outputs]
            for network in self.networks
        ]

    def _read(self, part: Part, line: str) -> Any:
        return np.frombuffer(bytes.fromhex(line), part.dtype).reshape(part.shape)

    def _describe(self, name: str, network: Network, graph: Graph) -> Iterator[str]:
        roots = _find_roots(network, graph)
        yield f"{name} {int(network.is_nchw)} {len(network.parts)} {len(network.ops)}"
        for at, part in enumerate(network.parts):
            place = -1
            if part.values is not None:
                place = len(self._data)
                self._data += np.ascontiguousarray(part.values, part.dtype).tobytes()
            kind, is_held = _TYPES.index(part.dtype), network.parts[roots[at][0]].is_held
            fields = (kind, int(is_held), *roots[at], place, len(part.shape), *part.shape)
            yield f"{part.name} {_join(fields)}"
        for op in network.ops:
            inputs, numbers = (len(op.inputs), *op.inputs), (len(op.parameters), *op.parameters)
            yield f"{op.kernel} {_join(inputs)} 1 {op.result} {_join(numbers)} {op.element}"
        yield _join((len(network.outputs), *network.outputs))


def _find_roots(network: Network, graph: Graph) -> list[tuple[int, int]]:
    """Return by part the one in whose memory it lies in any plan, and the byte there."""
    numbers = {part.name: at for at, part in enumerate(network.parts)}
    views = {view.tensor: view for view in graph.views}
    places = {tensor.name: at for at, tensor in enumerate(graph.tensors)}
    found = []
    for part in network.parts:
        tensor, at = places.get(part.name, -1), 0
        while tensor in views:
            tensor, at = views[tensor].base, at + views[tensor].offset
        root = part.name if tensor < 0 else graph.tensors[tensor].name
        found.append((numbers[root], at))
    return found


def _join(numbers: Iterable[float]) -> str:
    return " ".join(f"{float(number):.17g}" for number in numbers)


def _find_compiler() -> str:
    return require_compiler("gcc", "clang", flags=_FLAGS)


def compile_runtime(folder: Path) -> Path:
    """Compile the kernels with sanitizers, and return the path of their library.

    The test is skipped where no compiler has them.
    """
    sources = [str(_NATIVE / name) for name in ("kernels.c", "steps.c")]
    subprocess.run([_find_compiler(), *_FLAGS, "-O1", "-c", *sources], cwd=folder, check=True)
    subprocess.run(["ar", "rc", "libsteps.a", "kernels.o", "steps.o"], cwd=folder, check=True)
    return folder / "libsteps.a"


def draw_bands(rng: random.Random, program: Uncut) -> Cut | None:
    """Return random bands of a random region, or of two; `None` if none can be cut."""
    stretches: list[list[int]] = [[]]
    for at, step in enumerate(program.operators):
        if step.why_whole:
            stretches.append([])
        else:
            stretches[-1].append(at)
    for _ in range(5):
        regions = []
        for stretch in rng.sample(stretches, min(len(stretches), rng.choice((1, 1, 2)))):
            if not stretch:
                continue
            first, last = stretch[0], stretch[-1] + 1
            if rng.random() < 0.4:
                first = rng.choice(stretch)
                last = rng.randint(first + 1, last)
            regions.append(draw_region(rng, program, first, last))
        try:
            found = cut(program, sorted(regions, key=lambda region: region.first))
        except ValueError:
            continue  # more bands than rows, for one
        if regions:
            return found
    return None


def draw_region(rng: random.Random, program: Uncut, first: int, last: int) -> Region:
    """Return operators in random bands."""
    rows, columns = program.size(program.operators[last - 1].makes)
    rows = rng.randint(2, max(2, min(rng.choice((5, 9, 25)), rows)))
    columns = rng.randint(2, max(2, min(4, columns)))
    bands = rng.choice(((rows, 1), (rows, 1), (rows, 1), (1, columns), (min(rows, 4), columns)))
    made = [step.makes for step in program.operators[first:last]]
    kept: list[int] = []
    if bands[1] == 1 and rng.random() < 0.7:
        kept = made if rng.random() < 0.6 else rng.sample(made, rng.randint(0, len(made)))
    return Region(first, last, bands, frozenset(kept))


def check_command(network: Network, folder: Path, runtime: Path, *options: str) -> str:
    """Run a network as the header says that `apply --bands` writes, and return the header."""
    path, out = folder / f"model.{network.suffix}", folder / "out.h"
    path.write_bytes(network.data)
    command = ["apply", str(path), "--bands", "--c-header", str(out), "--name", "p0", *options]
    assert main(command) == 0
    header, graph, batch = out.read_text(), load(path).graph, Batch(folder, runtime)
    assert graph is not None
    batch.add(network, graph, header, ["STEPS"])
    batch.run()
    assert len(re.findall(r"\{1, \d+u, ", header)) > 1, "it has no bands"
    return header
