"""Fixtures and marks that the tests of memplan and of its laboratory share."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import limits
import pytest
from hypothesis import settings

from memplan.problem import Buffer, Problem

# The machines that run the tests are slow and shared; a test says what is right, not how soon.
# Examples are the same in every run, so that a red test is red again where it is looked at; `pytest
# --hypothesis-profile=random` draws others.
settings.register_profile("memplan", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile("memplan")

limits.limit_children()
limits.restore_interrupts()

# Files whose tests are all `slow`: they import PyTorch, ONNX Runtime or a compiler's output, draw
# pictures, run processes and clusters, or repeat at random what faster tests say. A test of another
# file that is slow has the mark itself.
SLOW = (
    *("test_source_torch*", "test_source_onnx.*", "test_source_tflite.*", "test_source_xla*"),
    *("test_source_cuda_snapshot*", "test_runtime_torch*", "test_yardstick_*", "test_caching_*"),
    *(
        "test_stale_onnx_family*",
        "test_source_onnx_foreign*",
        "test_target_[cefo]*",
        "test_target_tflite_micro.*",
    ),
    *("test_target_tflite_micro_order*", "test_target_tflite_micro_stripes*", "test_stripes_fx*"),
    *("test_stripes_onnx*", "test_stripes_operators*"),
    *("test_target_tflite_micro_file*", "test_plot*", "test_view_heap_map*", "test_view_page*"),
    *("test_bench_*", "test_sweep*", "test_study*", "test_corpus*", "test_learn*"),
    *("test_best_known*", "test_solvers_*", "test_cli_inputs*", "test_cli_[lm]*"),
    *(
        "test_cli_record*",
        "test_docs*",
        "test_sources_audit*",
        "test_notebook*",
        "test_stub*",
        "test_rehearsal*",
    ),
    *("test_hostile*", "test_promises*", "test_oracle*", "test_progress*", "test_selection*"),
    *("test_order_oracle*",),
    *("test_planning*", "test_cli_proof*", "test_rounds*", "test_cli_bench*", "test_plugins*"),
)
# Files that only `make deep` runs: a browser, the built site, clusters, sanitized slabs, fuzzers.
DEEP = (
    *("browser/*", "test_docs_tutorials*", "test_bench_real_models*"),
    *("test_fuzz_readers*", "test_watchdog*", "test_sweep_cluster*", "test_runtime_torch_native*"),
)


def _is_one_of(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(f"{path.parent.name}/{path.name}", f"*{each}") for each in patterns)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer random examples in `make quick`; `make test` tries all of them."""
    if "not slow" in str(config.getoption("markexpr")):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file that has no test to run unread: to import PyTorch takes seconds."""
    if collection_path.is_dir():
        return None
    wanted = str(config.getoption("markexpr"))
    slow = "not slow" in wanted and _is_one_of(collection_path, SLOW)
    deep = "not deep" in wanted and _is_one_of(collection_path, DEEP)
    return True if slow or deep else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that are slow, or deep, as a whole."""
    for item in items:
        for patterns, mark in ((SLOW, pytest.mark.slow), (DEEP, pytest.mark.deep)):
            if _is_one_of(item.path, patterns):
                item.add_marker(mark)


@pytest.fixture
def five() -> Problem:
    """Return the five buffers of MiniMalloc (Figure 2, section A.3.4) and their capacity."""
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


@pytest.fixture
def five_offsets() -> list[int]:
    """Return the offsets of Figure 2 of MiniMalloc."""
    return [8, 8, 4, 4, 0]
