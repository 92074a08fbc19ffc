"""Named lists of problems. A case is made only when its turn comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from memplan.base.errors import MemplanError
from memplan.extensions.streams.training import Streams, training_step
from memplan.problem import Buffer, Problem, formats
from memplan.problem.plan import Status
from memplan.programs.graph import lay_out
from memplan.solvers import solve
from memplan_lab.bench import generators
from memplan_lab.bench.real_models import REAL_MODELS
from memplan_lab.bench.records import Corpus, corpus


@dataclass(frozen=True, slots=True)
class Case:
    """One problem of a suite, not yet made."""

    # suite, name, make: Where it belongs, what it is called, and what makes it.
    suite: str
    name: str
    make: Callable[[], Problem]
    best_peak: int | None = None  # the least peak where one is known, in bytes
    # What makes a bound on every peak that is known beforehand, in bytes; 0: none.
    bound: Callable[[], int] = int


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose about the suites.

    Attributes
    ----------
    data
        A file or folder of CSVs, for the suites that read them; for `corpus` another one.
    sizes
        Numbers of buffers, for the suites that are generated; None: the suite's own.
    seeds
        How many instances of each size, or variants of each case; None: the suite's own.
    limit
        At most so many cases, spread evenly over the suite; None: all.
    capacity_percent
        The capacity in percent of the least peak, which `exact` proves when a case is made; None:
        the suite's own (of `models` 110, as in TelaMalloc, section 7).
    """

    data: Path | None = None
    sizes: Sequence[int] | None = None
    seeds: int | None = None
    limit: int | None = None
    capacity_percent: int | None = None

    def __post_init__(self) -> None:
        percent = ("capacity_percent", self.capacity_percent)
        counts = [("sizes", n) for n in self.sizes or ()]
        for name, value in (*counts, ("seeds", self.seeds), ("limit", self.limit), percent):
            if value is not None and value < 1:
                raise MemplanError(f"{name}: {value} is below 1")


def parse_factor(text: str) -> int:
    """Read a capacity as a ratio of the smallest peak, such as 1.1; return it in percent."""
    match = re.fullmatch(r"(\d{1,4})(?:\.(\d\d?))?", text, re.ASCII)
    percent = int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0")) if match else 0
    if percent < 1:
        raise MemplanError(f"{text!r} is not a ratio such as 1.1 or 1.05")
    return percent


def cases(suite: str, options: Options = Options()) -> list[Case]:
    """Return the cases of a suite.

    Parameters
    ----------
    suite
        A name of `SUITES`, with or without some of `VARIANTS` behind it: `challenging-shuffled`,
        `csv-noise-reversed`. They share the seed.
    options
        See `Options`.

    Raises
    ------
    MemplanError
        If there is no such suite, or no file where it should read some.
    """
    base, variants = _parse(suite)
    found = SUITES[base](options)
    if variants:
        count = max(VARIANTS[name][1] for name in variants)
        seeds = range(count if options.seeds is None or count == 1 else options.seeds)
        found = [_vary(case, variants, seed, count) for case in found for seed in seeds]
    if options.limit is not None and options.limit < len(found):
        found = [found[i * len(found) // options.limit] for i in range(options.limit)]
    percent = options.capacity_percent or _PERCENT.get(base)
    if percent is not None:
        found = [_limit(case, percent) for case in found]
    return [replace(case, suite=suite) for case in found]


def _parse(suite: str) -> tuple[str, list[str]]:
    base, variants = suite, list[str]()
    while base not in SUITES:
        base, _, variant = base.rpartition("-")
        if variant not in VARIANTS or not base:
            raise MemplanError(
                f"there is no suite {suite!r}; the suites are {', '.join(SUITES)}, each also with "
                f"one or more of {', '.join('-' + name for name in VARIANTS)} appended"
            )
        variants.insert(0, variant)
    return base, variants


def _vary(case: Case, variants: Sequence[str], seed: int, count: int) -> Case:
    """Return the case with all variants of one seed, from left to right."""

    def make() -> Problem:
        problem = case.make()
        for name in variants:
            problem = VARIANTS[name][0](problem, seed)
        return problem

    suffix = "-".join(variants)
    return Case(case.suite, f"{case.name}-{suffix}" + (f"-{seed}" if count > 1 else ""), make)


_PERCENT = {"models": 110}
_PROOF_SECONDS = 120.0


def _limit(case: Case, percent: int) -> Case:
    """Return the case with a capacity of so much of its least peak."""

    def make() -> Problem:
        problem = case.make().with_capacity(None)
        plan = solve(problem, solver="exact", timeout=_PROOF_SECONDS, threads=1)
        if plan.status is not Status.OPTIMAL or plan.peak is None:
            raise MemplanError(
                f"the smallest peak is not proved within {_PROOF_SECONDS:.0f} seconds, so no "
                "capacity can be a percentage of it"
            )
        return problem.with_capacity(plan.peak * percent // 100)

    return Case(case.suite, case.name, make)


# Suites that read files ------------------------------------------------------------------------

_CAPACITY = re.compile(r"\.(\d+)$")
_CHALLENGING = (
    "MiniMalloc's are in the folder benchmarks/challenging of "
    "`git clone https://github.com/google/minimalloc`"
)


def _challenging(options: Options) -> list[Case]:
    files = _files("challenging", options)
    for file in files:
        if not _CAPACITY.search(file.stem):
            raise MemplanError(
                f"{file}: the name has no capacity; call it NAME.CAPACITY.csv, "
                "or use the suite 'csv'"
            )
    return [_from_file("challenging", file) for file in files]


def _csv(options: Options) -> list[Case]:
    return [_from_file("csv", file) for file in _files("csv", options)]


def _files(suite: str, options: Options) -> list[Path]:
    if options.data is None:
        where = f"; {_CHALLENGING}" if suite == "challenging" else ""
        raise MemplanError(f"the suite {suite!r} reads files; name them with --data{where}")
    if options.data.is_file():
        return [options.data]
    files = sorted(options.data.rglob("*.csv")) if options.data.is_dir() else []
    if not files:
        raise MemplanError(f"{options.data}: there is no CSV file for the suite {suite!r}")
    return files


def _corpus(options: Options) -> list[Case]:
    opened = corpus(options.data)
    return [
        Case("corpus", name, partial(_recorded, opened, name), best_peak)
        for name, best_peak in zip(opened.names, opened.best_peaks, strict=True)
    ]


def _recorded(opened: Corpus, name: str) -> Problem:
    return opened[name].problem


def _from_file(suite: str, file: Path) -> Case:
    capacity = _CAPACITY.search(file.stem)
    limit = int(capacity[1]) if capacity else None
    name = _CAPACITY.sub("", file.stem)
    return Case(suite, name, lambda: formats.load(file, capacity=limit))


# Suites that are generated ---------------------------------------------------------------------


def _microbenchmarks(options: Options) -> list[Case]:
    families = (
        ("non-overlapping", generators.non_overlapping, (1_000, 10_000)),
        ("full-overlap", generators.full_overlap, (100, 1_000)),
    )
    return [
        Case("microbenchmarks", f"{family}-{_short(n)}", partial(make, n))
        for family, make, sizes in families
        for n in options.sizes or sizes
    ]


def _generated(
    suite: str, make: Callable[[int, int], Problem], sizes: Sequence[int], seeds: int
) -> Callable[[Options], list[Case]]:
    def build(options: Options) -> list[Case]:
        count = seeds if options.seeds is None else options.seeds
        return [
            Case(suite, f"{suite}-{_short(n)}-{seed}", partial(make, n, seed))
            for n in options.sizes or sizes
            for seed in range(count)
        ]

    return build


def _short(n: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1_000, "K")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{letter}"
    return str(n)


def _robust(*families: str, moments: int = 1) -> Callable[[Options], list[Case]]:
    """Return what lists the cases of some families of `generators.robustness`."""

    def build(options: Options) -> list[Case]:
        return [
            Case(
                "robustness",
                f"{family}-{_short(n)}-{seed}",
                partial(_robust_problem, family, n, seed, moments),
                bound=partial(_robust_bound, family, n, seed, moments),
            )
            for family in families
            for n in options.sizes or (500, 2_000, 10_000, 50_000)
            for seed in range(2 if options.seeds is None else options.seeds)
        ]

    return build


_robust_case = lru_cache(maxsize=1)(generators.robustness)  # asked for its problem and bound


def _robust_problem(family: str, n: int, seed: int, moments: int) -> Problem:
    return _robust_case(family, n, seed, moments).problem


def _robust_bound(family: str, n: int, seed: int, moments: int) -> int:
    return _robust_case(family, n, seed, moments).bound


def five_buffers() -> Problem:
    """Return the running example of the MiniMalloc paper (its figure 2): five buffers in 12."""
    return Problem(
        [
            Buffer("b1", start=0, end=3, size=4),
            Buffer("b2", start=3, end=9, size=4),
            Buffer("b3", start=0, end=9, size=4),
            Buffer("b4", start=9, end=21, size=4),
            Buffer("b5", start=0, end=21, size=4),
        ],
        capacity=12,
    )


def _models(_: Options) -> list[Case]:
    return [Case("models", name, make) for name, make in REAL_MODELS.items()]


def _memomalloc(_: Options) -> list[Case]:
    """Return the networks of MemoMalloc's evaluation, each recorded on one image of 128 x 128."""
    from memplan_lab.bench.models import MEMOMALLOC

    return [Case("memomalloc", name, partial(_record, name)) for name in MEMOMALLOC]


def _record(network: str) -> Problem:
    from memplan.runtimes.torch.record import record
    from memplan_lab.bench.models import NETWORKS

    return record(*NETWORKS[network](1, 128)).problem()


def _streams(_: Options) -> list[Case]:
    """Return training steps on two and more streams, and the largest of the paper's own kind."""
    networks = ("bert_base", "bert_large", "tiny_bert", "resnet50", "mobilenet_v2", "transformer")
    partitions: tuple[Streams, ...] = ("ddp", "overlap", "category")
    cases = [
        Case("streams", f"{network}-{partition}", partial(_trained, network, partition))
        for network in networks
        for partition in partitions
    ]
    return [
        *cases,
        Case("streams", "pangu-like", lambda: lay_out(generators.pangu_like()).problem),
    ]


def _trained(network: str, streams: Streams) -> Problem:
    from memplan_lab.bench.models.training import TRAINED

    step = training_step(*TRAINED[network](), streams=streams)
    return lay_out(step).problem.without_alignment()


def _bundled(options: Options) -> list[Case]:
    """Return a few of everything that needs no files: what a new user runs first."""
    made: list[tuple[str, Callable[[], Problem]]] = [("five-buffers", five_buffers)]
    for suite, sizes in (
        ("microbenchmarks", None),
        ("synthetic", (20, 40, 60)),
        ("perfect", (50,)),
        ("nn-like", (1_000, 10_000)),
        ("training-like", (10_000,)),
    ):
        made += [(c.name, c.make) for c in SUITES[suite](Options(sizes=sizes, seeds=1))]
    return [Case("bundled", name, make) for name, make in made]


SUITES: Mapping[str, Callable[[Options], list[Case]]] = {
    "bundled": _bundled,
    "challenging": _challenging,
    "csv": _csv,
    "microbenchmarks": _microbenchmarks,
    "synthetic": _generated("synthetic", generators.synthetic, range(20, 61, 2), 25),
    "perfect": _generated("perfect", generators.perfect_packing, (50, 100, 200, 500, 1_000), 5),
    "flat-load": _generated("flat-load", generators.flat_load, (35, 42, 49, 56, 64), 4),
    "dense": _generated("dense", generators.dense, (60,), 20),
    "robustness": _robust(*generators.FAMILIES),
    "robustness-tight": _robust(
        *(family for family in generators.FAMILIES if family not in generators.UNCUT), moments=4
    ),
    **{f"robustness-{family}": _robust(family) for family in generators.FAMILIES},
    "nn-like": _generated("nn-like", generators.nn_like, (1_000, 10_000, 100_000, 1_000_000), 1),
    "training-like": _generated(
        "training-like", generators.training_like, (1_000, 10_000, 100_000, 1_000_000), 1
    ),
    "models": _models,
    "memomalloc": _memomalloc,
    "streams": _streams,
    "corpus": _corpus,
}

# Each changes something that should not matter to a good solver; with its default number of seeds.
VARIANTS: Mapping[str, tuple[Callable[[Problem, int], Problem], int]] = {
    "shuffled": (lambda problem, seed: problem.shuffled(seed), 20),
    "reversed": (lambda problem, _: problem.reversed_in_time(), 1),
    "noise": (generators.with_size_noise, 5),
}
