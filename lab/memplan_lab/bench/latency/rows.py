"""The request to one process, what it measures, and the rows made of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from memplan_lab.bench.latency.profile import Profile


@dataclass(frozen=True, slots=True)
class Case:
    """A network with its inputs, and how many requests are served at once."""

    network: str  # one of `memplan_lab.bench.models.NETWORKS`
    size: int  # side of the images; for transformers the number of tokens
    batch: int  # images or sequences in one request
    threads: int  # request threads, each of which runs its operators alone
    training: bool = False  # whether a training step is measured instead of an inference

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Case:
        """Return the case of a row."""
        return cls(*(row[name] for name in ("network", "size", "batch", "threads", "training")))

    @property
    def name(self) -> str:
        """As tables show it: `resnet18 4x128`, `resnet18 4x128 training`."""
        return f"{self.network} {self.batch}x{self.size}{' training' if self.training else ''}"


@dataclass(frozen=True, slots=True)
class Request:
    """What one process has to do."""

    # network, size, batch, threads, training: See `Case`.
    network: str
    size: int
    batch: int
    threads: int
    training: bool
    library: str  # what has to be loaded in it, or ""
    runs: int  # inferences of each thread that are measured, of each kind
    # For all of them together; fewer are measured when it is spent, but never fewer than three.
    seconds: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians over the inferences of all threads of one process."""

    # cpu_s, wall_s: CPU time of the request's thread and wall clock, in seconds.
    cpu_s: float
    wall_s: float
    faults: float  # minor page faults of the request's thread


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one process measured."""

    # eager, slab: Inferences as PyTorch makes them, and through a slab; None where there was an
    # error.
    eager: Timing | None = None
    slab: Timing | None = None
    # allocations, planned: Of one inference, and how many of them lie in the slab.
    allocations: int = 0
    planned: int = 0
    # peak, max_load: Of the plan, and the sum of live bytes at the worst moment; bytes.
    peak: int = 0
    max_load: int = 0
    result_bytes: int = 0  # of one inference that outlive it, and so are not planned
    # How many of the planned allocations have at least 2^k and less than 2^(k+1) bytes, for k from
    # 0.
    sizes: tuple[int, ...] = ()
    # bytes, large_bytes: Of all planned allocations, and of those of 128 KiB or more, which glibc's
    # allocator at first requests from the system.
    bytes: int = 0
    large_bytes: int = 0
    # greedy_s, auto_s: Seconds to plan: by size, and with the default solver.
    greedy_s: float = 0.0
    auto_s: float = 0.0
    # hits, fallbacks: Allocations of one inference that the slab served, and that it passed on:
    # unknown ones, those of another size, and those whose range was in use. Neither counts
    # allocations that outlive the inference.
    hits: float = 0.0
    fallbacks: float = 0.0
    # Bytes in active extents of jemalloc after each operator of an inference, above those before
    # it; empty with an allocator that has no `mallctl`.
    active: tuple[int, ...] = ()
    # Whether the outputs were those of eager, bit for bit, before and after the measurement.
    equal: bool = False
    error: str = ""  # one sentence, or empty

    @classmethod
    def from_json(cls, answer: dict[str, Any]) -> Outcome:
        """Return what a process wrote."""
        timings = {
            kind: None if answer[kind] is None else Timing(**answer[kind])
            for kind in ("eager", "slab")
        }
        lists = {name: tuple(answer.get(name, ())) for name in ("sizes", "active")}
        return cls(**answer | timings | lists)


@dataclass(frozen=True, slots=True)
class Row:
    """One process: a case, under an allocator, in one of the rounds."""

    case: Case
    allocator: str
    round: int
    outcome: Outcome

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Row:
        """Return a row of the experiment `latency`."""
        outcome = Outcome.from_json({name: row[name] for name in _OUTCOME})
        return cls(Case.of(row), row["allocator"], row["round"], outcome)

    def figures(self) -> dict[str, Any]:
        """Return the columns of which `of` makes this row."""
        where = {"allocator": self.allocator, "round": self.round}
        return {**asdict(self.case), **where, **asdict(self.outcome)}


_OUTCOME = tuple(each.name for each in fields(Outcome))


@dataclass(frozen=True, slots=True)
class Served:
    """The work while the profiler was on: threads by the system's number, and inferences."""

    threads: tuple[int, ...]
    inferences: int


@dataclass(frozen=True, slots=True)
class Contention:
    """One process under the profiler."""

    case: Case
    allocator: str
    slab: bool  # whether through a slab
    # served, profile: The work of the request threads, and where their time went; `None` where
    # there was an error.
    served: Served | None = None
    profile: Profile | None = None
    error: str = ""  # one sentence, or empty

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Contention:
        """Return a row of the experiment `contention`."""
        served = row["served"] and Served(
            tuple(row["served"]["threads"]), row["served"]["inferences"]
        )
        profile = row["profile"] and Profile(**row["profile"])
        return cls(Case.of(row), row["allocator"], row["slab"], served, profile, row["error"])

    def figures(self) -> dict[str, Any]:
        """Return the columns of which `of` makes this row."""
        return {
            **asdict(self.case),
            **{name: each for name, each in asdict(self).items() if name != "case"},
        }
