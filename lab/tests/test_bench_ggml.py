"""Tests of `memplan-lab bench ggml`: recorded lists, and how llama.cpp's file is patched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memplan.base.errors import MemplanError
from memplan_lab.bench.experiments import ggml
from memplan_lab.bench.ggml import build, networks
from memplan_lab.cli import main

# A file with the functions that are looked for, and what could be taken for them.
SOURCE = """\
static void ggml_dyn_tallocr_free_bytes(struct a * alloc, size_t size);

static void other(void) {
    ggml_dyn_tallocr_free_bytes(alloc, 1);
}

// it frees
static void ggml_dyn_tallocr_free_bytes(struct a * alloc, size_t size) {
    if (size) {
        size = 0;
    }
}

static void ggml_gallocr_alloc_graph_impl(
        struct b * graph, const int * ids) {
    walk();
}
"""


def test_recorded_graphs_need_no_more_than_ggml_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that each list has a row, in which nothing is above ggml's own answer."""
    assert main(["bench", "ggml", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == len(list(ggml.LISTS.glob("*.events"))) == 8
    for row in rows:
        assert row["bound"] <= row["bytes"] <= row["host"]
        assert row["chunks"] <= row["host_chunks"]
        assert row["equal"] is None
    ratios = {row["case"]: row["bytes"] / row["host"] for row in rows}
    assert ratios["llama2-7B-4096-512"] <= 0.85
    assert ratios["llama2-7B-32768-512-1GiB"] <= 0.52


def test_the_headers_are_included_behind_two_functions() -> None:
    """Tests that a declaration and a call are not taken for the function."""
    lines = build.patch(SOURCE).splitlines()
    first, second = lines.index('#include "ggml_blocks.h"'), lines.index('#include "ggml_graph.h"')
    assert lines[first - 3 : first] == ["    }", "}", ""]
    assert lines[second - 3 : second] == ["    walk();", "}", ""]
    assert [line for line in lines if line not in SOURCE.splitlines()] == [
        lines[first],
        lines[second],
    ]
    with pytest.raises(MemplanError, match="has no function ggml_dyn_tallocr_free_bytes"):
        build.patch("int main(void) {\n}\n")


def test_options_of_a_build_need_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests that a folder without a build, and a file that is no archive, are one sentence."""
    assert main(["bench", "ggml", "--set", f"folder={tmp_path}"]) == 2
    assert "need --set build" in capsys.readouterr().err
    (tmp_path / "a.tar.gz").write_text("no archive")
    pytest.importorskip("gguf")
    with pytest.raises(MemplanError, match=r"a\.tar\.gz cannot be unpacked"):
        build.build(tmp_path, tmp_path / "a.tar.gz")


def test_networks_are_written_as_gguf(tmp_path: Path) -> None:
    """Tests the shapes of a mixture, and that a large file is a hole with a beginning."""
    gguf = pytest.importorskip("gguf")
    tiny = networks.TINY[1]
    networks.write_network(tiny, tmp_path / "tiny.gguf", seed=0)
    read = gguf.GGUFReader(tmp_path / "tiny.gguf")
    shapes = {each.name: tuple(int(n) for n in reversed(each.shape)) for each in read.tensors}
    assert shapes == tiny.list_tensors()
    weights = next(each.data for each in read.tensors if each.name == "output.weight")
    assert np.isfinite(weights).all()
    assert weights.std() > 0
    large = networks.LARGE[0]
    networks.write_network(large, tmp_path / "large.gguf", seed=None)
    file = (tmp_path / "large.gguf").stat()
    assert file.st_size > 2 * sum(int(np.prod(shape)) for shape in large.list_tensors().values())
    assert file.st_blocks * 512 < 1 << 20
