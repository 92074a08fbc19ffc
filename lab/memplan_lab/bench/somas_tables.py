"""Tables 1 to 4 of SOMAS, by our solvers on training steps of networks that we can make.

Batches, sizes and streams of the paper are not public, so peaks are compared with the lower bound:
the most bytes that one stream needs at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from memplan.view.units import seconds
from memplan_lab.bench.experiments import somas
from memplan_lab.bench.rows import Row
from memplan_lab.bench.summary import by_case
from memplan_lab.bench.tables import DASH, Shown

# Table 1: milliseconds of algorithms 1opt and 2.
_SAFETY = {
    "BERT-base": (957, 620),
    "BERT-large": (4043, 2289),
    "BERT-nezha": (5275, 2959),
    "FaceRecognition": (1376, 845),
    "PanGu (2.6B)": (13845, 10359),
    "ResNet-50": (32, 20),
    "Tiny-BERT": (143, 96),
    "FaceDetection": (693, 546),
    "Transformer": (720, 568),
    "MobileNetv2": (57, 42),
}

# Tables 2 and 3, GB: without sharing, the heuristics in the order of `HEURISTICS`, the lower bound;
# and how much faster Many Objects is on average, in percent.
_PEAKS = {
    name: [float(number) for number in text.split()]
    for name, text in {
        "BERT-base": "42.7816 13.5119 13.5119 13.5121 13.5121 13.5148 13.5148 13.6894 13.6894 "
        "13.5121 13.5121 13.5119",
        "BERT-large": "83.3553 24.9171 24.9171 25.013 25.004 24.932 24.932 25.1032 25.1016 "
        "24.9172 24.9172 24.9171",
        "BERT-nezha": "61.5739 14.8293 14.8293 14.8232 14.7778 14.9117 14.9117 14.8282 14.8426 "
        "14.7854 14.7854 14.686",
        "FaceRecognition": "77.6916 16.121 16.121 15.81 15.7867 15.8746 16.0055 15.7456 15.7815 "
        "15.7797 15.7797 15.7456",
        "PanGu (2.6B)": "1349.14 18.4541 18.4541 18.4541 18.4541 19.5846 20.2817 21.4649 21.6111 "
        "18.4541 18.4541 18.4541",
        "ResNet-50": "3.3598 1.4909 1.4909 1.4211 1.4133 1.4917 1.4917 1.4207 1.4286 "
        "1.4251 1.4132 1.4056",
        "Tiny-BERT": "5.17475 0.71281 0.75969 0.70469 0.70708 0.74554 0.74581 0.704 0.7018 "
        "0.69726 0.69698 0.68938",
        "FaceDetection": "13.5162 3.2174 3.19949 3.20868 3.20813 3.20907 3.21292 3.19961 3.19961 "
        "3.20942 3.2107 3.19949",
        "Transformer": "34.2267 7.54506 7.54506 7.54506 7.54506 7.78331 7.78526 7.57963 7.57963 "
        "7.54506 7.54506 7.54506",
        "MobileNetv2": "64.1832 17.6506 17.6506 17.6682 17.6637 17.6881 17.6887 17.6613 17.6613 "
        "17.6662 17.6662 17.6423",
    }.items()
}
_GAINS = {
    "BERT-base": 47.43,
    "BERT-large": 41.89,
    "BERT-nezha": 47.49,
    "FaceRecognition": 70.31,
    "PanGu (2.6B)": 18.69,
    "ResNet-50": 41.24,
    "Tiny-BERT": 57.09,
    "FaceDetection": 47.60,
    "Transformer": 51.87,
    "MobileNetv2": 74.14,
}

# Table 4, GB: without the paper's solver, its best result, the lower bound.
_LARGE = {"PanGu (8B)": (27.36, 14.76, 14.68), "PanGu (13B)": (31.72, 25.08, 24.95)}

_SINGLE = [name for name in somas.HEURISTICS if name.startswith("single")]
_MANY = [name for name in somas.HEURISTICS if name.startswith("many")]
_GIB = 1 << 30

MEASURED = somas.MEASURED

Part = tuple[str, list[Shown]]  # a paragraph, and the tables below it
Of = dict[str, dict[str, Row]]  # by case and solver


def safety(runs: Sequence[Row]) -> Part | None:
    """Return table 1: the time to find the pairs that may not share memory."""
    lines = []
    for case, of in _collect(runs, somas.SAFETY).items():
        if case in _SAFETY and {"1opt", "2"} <= of.keys():
            first, second = (of[name].cpu_s or 0.0 for name in ("1opt", "2"))
            paper = _SAFETY[case]
            lines.append(
                (
                    *(case, f"{of['1opt'].n:,}", seconds(first), seconds(second)),
                    seconds(of["memplan"].cpu_s or 0.0) if "memplan" in of else DASH,
                    _gain(first, second),
                    *(seconds(value / 1000) for value in paper),
                    _gain(*map(float, paper)),
                )
            )
    headings = (
        *("network", "buffers", "algorithm 1opt", "algorithm 2", "memplan", "speedup of 2"),
        *("1opt in the paper", "2 in the paper", "speedup in the paper"),
    )
    return _section(
        "Times are CPU times of all unsafe pairs. Networks of the paper have more tensors, which "
        "it gives as 1,500 to 20,000.",
        [Shown("Table 1: time of multi-stream safety.", headings, lines)] if lines else [],
    )


def offsets(runs: Sequence[Row]) -> Part | None:
    """Return tables 2 and 3: peaks by heuristic, and the time that Many Objects saves."""
    of_case = {case: of for case, of in _collect(runs, somas.RIGOROUS).items() if case in _PEAKS}
    peaks, sums = [], []
    for at, solver in enumerate(("bump", *somas.HEURISTICS)):
        cells = [_beside(of.get(solver), _PEAKS[case], at) for case, of in of_case.items()]
        peaks.append((solver, *cells))
    peaks.append(("auto", *(_over(of.get("auto")) for of in of_case.values())))
    bounds = (f"{_bound(of) / _GIB:.4f} ({_PEAKS[case][-1]:.4f})" for case, of in of_case.items())
    peaks.append(("lower bound, GiB (GB)", *bounds))
    for case, of in of_case.items():
        single, many = (_find_best(of, names) for names in (_SINGLE, _MANY))
        slow, fast = (_mean_time(of, names) for names in (_SINGLE, _MANY))
        paper = _PEAKS[case]
        sums.append(
            (
                case,
                _percent(many, single),
                f"{100 * (min(paper[9:11]) / min(paper[1:9]) - 1):.3f} %",
                _percent(min(single, many), _bound(of)),
                f"{100 * (min(paper[1:11]) / paper[-1] - 1):.3f} %",
                seconds(slow),
                seconds(fast),
                _gain(slow, fast),
                f"{_GAINS[case]:.1f} %",
                seconds(of["auto"].cpu_s or 0.0) if "auto" in of else DASH,
            )
        )
    headings = (
        *("network", "best MO to best SO", "in the paper", "best to bound", "in the paper "),
        *("mean SO", "mean MO", "MO faster by", "in the paper  ", "auto"),
    )
    return _section(
        "Peaks are above the lower bound of one stream, in percent, and those of the paper in "
        "brackets; bump (no sharing) is a multiple of the bound. SO is Single Object, MO is Many "
        "Objects. All have the same conflicts and groups.",
        [
            Shown("Tables 2 and 3: peaks.", ("solver", *of_case), peaks),
            Shown("Tables 2 and 3: error, and CPU time of a solve.", headings, sums),
        ]
        if of_case
        else [],
    )


def groups(runs: Sequence[Row]) -> Part | None:
    """Return table 4, and what joining the tensors of a group into one costs."""
    ways = [_collect(runs, suite) for suite in (somas.RIGOROUS, somas.JOINED, somas.FREE)]
    names = (*somas.HEURISTICS, "auto")
    lines, large = [], []
    for case, of in ways[0].items():
        if any(case not in way for way in ways):
            continue
        rigorous, joined, free = (_find_best(way[case], names) for way in ways)
        heuristics = (_find_best(way[case], somas.HEURISTICS) for way in ways[:2])
        bound = _bound(of)
        lines.append(
            (
                case,
                f"{bound / _GIB:.4f}",
                *(_percent(peak, bound) for peak in (free, rigorous, joined)),
                *(_percent(peak, bound) for peak in heuristics),
                _percent(joined, rigorous),
            )
        )
        if case in _LARGE:
            baseline, best, least = _LARGE[case]
            large.append(
                (
                    case,
                    *(f"{peak / _GIB:.2f}" for peak in (joined, rigorous, bound)),
                    _percent(rigorous, joined),
                    _percent(rigorous, bound),
                    *(f"{value:.2f}" for value in (baseline, best, least)),
                    f"{100 * (best / baseline - 1):.2f} %",
                    f"{100 * (best / least - 1):.2f} %",
                )
            )
    tables = []
    if large:
        headings = (
            *("network", "joined, GiB", "rigorous", "bound", "to joined", "to bound"),
            *("baseline in the paper, GB", "best", "bound ", "to baseline", "to bound "),
        )
        tables.append(Shown("Table 4: PanGu, with groups.", headings, large))
    if lines:
        columns = (
            *("network", "bound, GiB", "no groups", "rigorous groups", "joined lists"),
            *("rigorous, heuristics alone", "joined, heuristics alone", "joined to rigorous"),
        )
        caption = "Groups: best peaks above the lower bound of one stream, with auto and without."
        tables.append(Shown(caption, columns, lines))
    return _section(
        "Rigorous groups keep the lifetime of each member. A joined list is one buffer, needed "
        "whenever a member is, and unsafe with all that a member is unsafe with. The paper's "
        "baseline of table 4 is another allocator of its framework; ours are joined lists. In the "
        "paper, joining costs 5 % for ResNet-50.",
        tables,
    )


def _section(text: str, tables: list[Shown]) -> Part | None:
    return (text, tables) if tables else None


def _collect(runs: Sequence[Row], suite: str) -> Of:
    """Return the runs of a suite, with the networks in the order of the paper."""
    found = by_case([run for run in runs if run.base == suite])
    order = [case for case in somas.NETWORKS.values() if case in found]
    order += sorted(found.keys() - set(order))
    return {case: {run.solver: run for run in found[case]} for case in order}


def _bound(of: dict[str, Row]) -> int:
    return max((run.max_load or 0 for run in of.values()), default=0)


def _find_best(of: dict[str, Row], solvers: Sequence[str]) -> int:
    """Return the least peak of some solvers, or 0 if none has a plan."""
    peaks = [of[name].peak for name in solvers if name in of and of[name].solved]
    return min((peak for peak in peaks if peak is not None), default=0)


def _mean_time(of: dict[str, Row], solvers: Sequence[str]) -> float:
    times = [of[name].cpu_s for name in solvers if name in of]
    return mean([value for value in times if value is not None] or [0.0])


def _percent(peak: int, base: int) -> str:
    return f"{100 * (peak / base - 1):.3f} %" if peak and base else DASH


def _gain(slow: float, fast: float) -> str:
    return f"{100 * (1 - fast / slow):.1f} %" if slow else DASH


def _over(run: Row | None) -> str:
    if run is None or run.peak is None or not run.max_load:
        return DASH
    return f"{100 * (run.peak / run.max_load - 1):.3f}"


def _beside(run: Row | None, paper: Sequence[float], at: int) -> str:
    """Return our cell and that of the paper."""
    if at == 0:
        mine = f"{run.peak / run.max_load:.2f}×" if run and run.peak and run.max_load else DASH
        return f"{mine} ({paper[0] / paper[-1]:.2f}×)"
    return f"{_over(run)} ({100 * (paper[at] / paper[-1] - 1):.3f})"


PARTS: dict[str, Callable[[Sequence[Row]], Part | None]] = {
    "SOMAS, table 1: multi-stream safety": safety,
    "SOMAS, tables 2 and 3: offsets": offsets,
    "SOMAS, table 4: groups": groups,
}
