"""The C++ core of memplan. `memplan.solvers` is the door to it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


class Problem:
    """Columns, copied. Optional ones may be empty."""

    def __init__(self, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alignment: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], hint: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap_buffer: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap_end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap_lower: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap_upper: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], reserved_lower: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], reserved_upper: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: int | None, conflicts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None, groups: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None) -> None: ...

    def check(self) -> str:
        """One sentence on what is wrong, or an empty string."""

class Plan:
    """The answer to one call of `solve`."""

    @property
    def status(self) -> str: ...

    @property
    def has_offsets(self) -> bool: ...

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """In bytes, one per buffer; empty without a plan."""

    @property
    def peak(self) -> int:
        """In bytes; 0 without a plan."""

    @property
    def lower_bound(self) -> int: ...

    @property
    def conflict(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Rows that cannot be placed together."""

    @property
    def solver(self) -> str: ...

    @property
    def nodes(self) -> int: ...

    @property
    def restarts(self) -> int: ...

    @property
    def backtracks(self) -> int: ...

    @property
    def major_backtracks(self) -> int: ...

    @property
    def seconds(self) -> list[tuple[str, float]]:
        """By phase."""

    @property
    def note(self) -> str: ...

    @property
    def interrupted(self) -> bool: ...

class Outside:
    """A solver of another native module, with its options."""

def solve(problem: Problem, solver: str, minimize: bool, seconds: float | None, nodes: int | None, threads: int, seed: int, options: dict[str, object], progress: Callable[[float, int | None, int, str, int], None] | None, trace: Callable[[float, str, str, str, int, int, int | None, int, int, str], None] | None, proof: str | None, outside: Outside | None = None) -> Plan:
    """
    Runs one solver without the GIL; Ctrl-C ends it with its best plan. `progress` is called with seconds, peak, bound, phase and nodes, `trace` with each round; a refutation is added to the file `proof`. `outside` runs in place of the solver of that name.
    """

def exact_search() -> Outside:
    """The exact search, for modules that have it not."""

def lower_bound(problem: Problem) -> tuple[int, str, int | None, int | None]:
    """
    Bytes, the rule that gave them, and start and end of the section, if it is of one.
    """

def version() -> str: ...

def set_stopped(stopped: bool) -> None:
    """
    Whether all searches that this thread begins end at once, as after Ctrl-C.
    """

def greedy_orders() -> list[str]:
    """The names that the option `orders` may have."""

class Solver:
    """A native solver, as data."""

    @property
    def name(self) -> str: ...

    @property
    def says(self) -> str:
        """What it is, in a line."""

    @property
    def lacks(self) -> list[str]:
        """The constraints that it refuses."""

    @property
    def proves(self) -> bool:
        """Whether it can write down why no plan is better."""

    @property
    def baseline(self) -> bool:
        """Whether it is here to be compared with."""

def solvers() -> list[Solver]:
    """The table of solvers."""

def options(solver: str) -> list[tuple[str, bool | str | list[str], str]]:
    """Name, default and sentence of each option."""

class Repacked:
    """The answer to one call of `Repacker.repack`."""

    @property
    def status(self) -> str: ...

    @property
    def lower_bound(self) -> int: ...

    @property
    def moved(self) -> int:
        """Buffers of the plan before that lie elsewhere now."""

    @property
    def conflict(self) -> list[int]:
        """Slots that cannot be placed together."""

    @property
    def solver(self) -> str: ...

    @property
    def nodes(self) -> int: ...

    @property
    def restarts(self) -> int: ...

    @property
    def seconds(self) -> list[tuple[str, float]]:
        """By phase."""

    @property
    def note(self) -> str: ...

    @property
    def interrupted(self) -> bool: ...

class Repacker:
    """A plan that is kept while buffers come and go, by slots."""

    def __init__(self, reserved_lower: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], reserved_upper: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add(self, rows: Problem) -> list[int]:
        """The slots of the rows of a problem."""

    def add_buffers(self, buffers: tuple[object, ...]) -> list[int] | None:
        """
        The same for objects of memplan.Buffer; None, and nothing added, for those that only a problem can take.
        """

    def copy(self) -> Repacker: ...

    def __getstate__(self) -> list[int]: ...

    def __setstate__(self, arg: Sequence[int], /) -> None: ...

    def remove(self, slots: Sequence[int]) -> None: ...

    def repack(self, capacity: int | None, solver: str, minimize: bool, seconds: float | None, nodes: int | None, threads: int, seed: int, outside: Outside | None = None) -> Repacked:
        """Places all, without the GIL; Ctrl-C ends it with the best plan."""

    def lower_bound(self) -> int:
        """No plan has a smaller peak."""

    @property
    def peak(self) -> int:
        """Of those that are placed."""

    def offset(self, slot: int) -> int:
        """In bytes; -1 where it is not placed yet."""

    def columns(self, slots: Sequence[int]) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """
        One row for each of start, end, size, alignment, pin and offset; -1 stands for no pin and no offset.
        """

class OrderProblem:
    """Operators and storages; columns, copied."""

    def __init__(self, workspace: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_from: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_to: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], given: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], user_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], user: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], in_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def peak_of(self, order: Sequence[int]) -> int:
        """The peak of a legal order of all operators."""

class OrderResult:
    """The best order found, and a bound on every order."""

    @property
    def order(self) -> list[int]: ...

    @property
    def peak(self) -> int: ...

    @property
    def bound(self) -> int: ...

    @property
    def status(self) -> str: ...

    @property
    def operator(self) -> int:
        """The operator whose cut is the bound, or -1."""

    @property
    def done(self) -> list[int]:
        """What has run before that operator in the cheapest case."""

    @property
    def flow(self) -> list[list[int]]:
        """The flow that proves the bound: from, to, amount."""

    @property
    def states(self) -> int: ...

    @property
    def interrupted(self) -> bool: ...

def best_order(problem: OrderProblem, seconds: float | None, states: int | None, without: Sequence[str]) -> OrderResult:
    """
    The best order within the budget, without the rules that are named. Without the GIL.
    """

def order_rules() -> list[str]:
    """The names of the rules that can be switched off."""

class RecomputeProblem:
    """A program, what runs cost, and who may run again; columns, copied."""

    def __init__(self, program: OrderProblem, cost: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], again: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], maker: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], move: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def load_of(self, runs: Sequence[int]) -> tuple[int, int]:
        """The peak of a legal sequence, and what its re-runs cost."""

class CutLeaf:
    """A case of a proof, with the flow that bounds it."""

    @property
    def decisions(self) -> list[tuple[int, int]]:
        """Operator and choice, from the root on."""

    @property
    def price(self) -> int: ...

    @property
    def flow(self) -> list[tuple[int, int, int]]:
        """From, to, amount."""

class RecomputeProof:
    """Proves a bound on the cost of re-runs."""

    @property
    def op(self) -> int: ...

    @property
    def unit(self) -> int: ...

    @property
    def scale(self) -> int: ...

    @property
    def shift(self) -> int: ...

    @property
    def leaves(self) -> list[CutLeaf]: ...

class OrderLeaf:
    """A case of a proof for the given order."""

    @property
    def decisions(self) -> list[tuple[int, bool]]:
        """Variable and value, from the root on."""

    @property
    def is_impossible(self) -> bool: ...

    @property
    def prices(self) -> list[int]: ...

    @property
    def needs(self) -> list[tuple[int, int, int, int]]:
        """Block, what needs a storage in it, the storage, multiplier."""

class OrderProof:
    """Proves a bound for first runs in the given order."""

    @property
    def moments(self) -> list[int]: ...

    @property
    def unit(self) -> int: ...

    @property
    def scale(self) -> int: ...

    @property
    def shift(self) -> int: ...

    @property
    def leaves(self) -> list[OrderLeaf]: ...

class RecomputeResult:
    """The best sequence found, and bounds on all that fit."""

    @property
    def runs(self) -> list[int]: ...

    @property
    def peak(self) -> int: ...

    @property
    def extra(self) -> int: ...

    @property
    def bound(self) -> int: ...

    @property
    def order_bound(self) -> int: ...

    @property
    def status(self) -> str: ...

    @property
    def floor(self) -> int: ...

    @property
    def floor_op(self) -> int: ...

    @property
    def floor_flow(self) -> list[tuple[int, int, int]]:
        """The flow that proves the floor: from, to, amount."""

    @property
    def moment(self) -> int:
        """The operator whose cut is the bound, or -1."""

    @property
    def certificate(self) -> RecomputeProof: ...

    @property
    def order_certificate(self) -> OrderProof: ...

    @property
    def nodes(self) -> int: ...

    @property
    def interrupted(self) -> bool: ...

def recompute(problem: RecomputeProblem, capacity: int, seconds: float | None, nodes: int | None, free_order: bool, without: Sequence[str]) -> RecomputeResult:
    """
    The best sequence within the budget, without the rules that are named. Without the GIL.
    """

def recompute_rules() -> list[str]:
    """The names of the rules that can be switched off."""

class ApartResult:
    """A plan in which sharing costs, and bounds."""

    @property
    def status(self) -> str: ...

    @property
    def offsets(self) -> list[int]:
        """In bytes, one per buffer; empty without a plan."""

    @property
    def cost(self) -> int: ...

    @property
    def bound(self) -> int:
        """No plan costs less."""

    @property
    def peak(self) -> int: ...

    @property
    def peak_bound(self) -> int:
        """No plan of this cost has a smaller peak."""

    @property
    def conflict(self) -> list[int]:
        """Rows that cannot be placed together."""

    @property
    def nodes(self) -> int: ...

    @property
    def interrupted(self) -> bool: ...

def plan_apart(problem: Problem, first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float | None, nodes: int | None, seed: int) -> ApartResult:
    """
    A plan of least cost, where pairs of rows cost if they share addresses. Without the GIL.
    """

class Choice:
    """The items that are chosen for memories, and a bound."""

    @property
    def chosen(self) -> list[int]: ...

    @property
    def worth(self) -> int: ...

    @property
    def bound(self) -> int: ...

    @property
    def status(self) -> str: ...

    @property
    def times(self) -> list[int]: ...

    @property
    def prices(self) -> list[list[int]]: ...

    @property
    def shift(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def interrupted(self) -> bool: ...

def choose(start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], worth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], memory: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], must: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: Sequence[int], refused: Sequence[Sequence[int]], seconds: float | None, nodes: int | None) -> Choice:
    """
    The items that are worth most together within the capacities of memories at each time. Of a unit, no two are live at a time; sets that are refused are never whole. Without the GIL.
    """

class CompatSolver:
    """The solver of memplan.extensions.minimalloc."""

    def __init__(self, seconds: float, switches: Mapping[str, bool], orders: Sequence[str], published: Outside | None) -> None: ...

    def solve(self, rows: Sequence[tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None]], capacity: int) -> tuple[int, str, list[int], int, int]:
        """Code, message, offsets, height and nodes; without the GIL."""

    def find_infeasible(self, rows: Sequence[tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None]], capacity: int) -> tuple[int, str, list[int], int]:
        """Code, message, rows and nodes; without the GIL."""

    def cancel(self) -> None: ...

def compat_read(text: str) -> tuple[int, str, list[tuple[str, tuple[int, int], int, int, list[tuple[int, int, tuple[int, int] | None]], int | None, int | None]]]:
    """Code, message and buffers of a table."""

def compat_write(rows: Sequence[tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None]], offsets: Sequence[int] | None, old_format: bool) -> str:
    """A table."""

def compat_validate(rows: Sequence[tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None]], capacity: int, offsets: Sequence[int], height: int) -> int:
    """What is wrong with a solution, as a number; 0 is nothing."""

def compat_effective_size(below: tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None], above: tuple[str, tuple[int, int], int, int, Sequence[tuple[int, int, tuple[int, int] | None]], int | None, int | None]) -> int | None:
    """
    The bytes between the offsets of two buffers; `None` if they never meet.
    """

class StreamGraph:
    """Operators on streams, and tensors; columns, copied."""

    def __init__(self, stream: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_from: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_to: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], consumer_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], consumer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def check(self) -> str:
        """One sentence on what is wrong, or an empty string."""

class Witness:
    """Why two tensors are a safe pair, or are not."""

    @property
    def safe(self) -> bool: ...

    @property
    def first(self) -> int:
        """Of a safe pair: the tensor that is over first."""

    @property
    def paths(self) -> list[list[int]]:
        """Of a safe pair: operators that wait for each other."""

    @property
    def order(self) -> list[int]:
        """Of an unsafe pair: the operators as they may run."""

    @property
    def begin(self) -> int:
        """Both are needed while order[begin:end] run."""

    @property
    def end(self) -> int: ...

def unsafe_pairs(graph: StreamGraph, algorithm: str) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]]:
    """
    Row bounds and the other tensor of each pair, greater than its row and ascending, by algorithm memplan, 1, 1opt or 2. Without the GIL.
    """

def unsafe_beyond_order(graph: StreamGraph) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]]:
    """
    The pairs that are safe if operators run by number, in both directions. Without the GIL.
    """

def latest_ancestors(graph: StreamGraph) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None), writable=False)]:
    """MaxAncId, operators x streams."""

def witness(graph: StreamGraph, a: int, b: int) -> Witness:
    """For two different tensors."""
