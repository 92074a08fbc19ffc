"""
The published searches. `memplan.extensions.published` is the door to them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

import memplan._core


def solvers() -> list[memplan._core.Solver]:
    """The table of solvers."""

def options(solver: str) -> list[tuple[str, bool | str | list[str], str]]:
    """Name, default and sentence of each option."""

def solver(name: str, options: dict[str, object]) -> memplan._core.Outside:
    """For one call of `_core.solve`."""

def compat_solver(switches: Mapping[str, bool], orders: Sequence[str]) -> memplan._core.Outside:
    """The search of MiniMalloc, for `_core.CompatSolver`."""

def backtrack_features() -> list[str]:
    """What a target is scored by, by column."""

class Forest:
    """Regression trees; see core/published/include/memplan/forest.h."""

    def __init__(self, feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], root: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def trees(self) -> int: ...

    @property
    def width(self) -> int:
        """How many features it asks for."""

    def score(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """The sum over the trees for each row. Without the GIL."""

class BacktrackModel:
    """Says where a search goes back to."""

    def __init__(self, forest: Forest, threshold: float, discount: float) -> None: ...

class BacktrackSamples:
    """What a search saw at major backtracks."""

    @property
    def features(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), writable=False)]:
        """One row per target."""

    @property
    def level(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Of each target."""

    @property
    def impasse(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Of each target, ascending."""

    @property
    def length(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Of the path of each impasse."""

    @property
    def solvable(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """How much of it some solution has, from its first placement on."""

    @property
    def shared(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """How much of it the solution has that was found."""

    @property
    def solved(self) -> bool: ...

def collect_backtracks(problem: memplan._core.Problem, steps: int, oracle_nodes: int, oracle_share: float, seed: int, model: BacktrackModel | None, oracle: memplan._core.Outside) -> BacktrackSamples:
    """Searches once, with a complete search as the oracle. Without the GIL."""
