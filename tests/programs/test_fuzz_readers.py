"""Tests that a few thousand damaged files of all kinds end in a sentence, or are read."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.deep


def test_mutants_end_in_a_sentence_or_are_read() -> None:
    """Tests that a few thousand damaged files of all kinds neither hang nor crash a reader."""
    for library in ("onnx", "flatbuffers", "google.protobuf"):
        pytest.importorskip(library)
    from fuzz_readers import fuzz

    summary, found = fuzz(4000, seed=0)
    assert found == []
    assert summary["mutants"] == 4000
    readers = {end.partition(":")[0] for end in summary["ends"]}
    assert len(readers) == 20
    assert any(end.endswith(": read") for end in summary["ends"])


def test_commands_take_mutants_as_they_take_files() -> None:
    """Tests that all commands that plan end in their exit codes, and in one sentence."""
    for library in ("onnx", "flatbuffers", "google.protobuf"):
        pytest.importorskip(library)
    from fuzz_readers import fuzz

    summary, found = fuzz(60, seed=1, readers="onnx,tflite", commands=True)
    assert found == []
    assert {end.partition(":")[0] for end in summary["ends"]} == {"onnx", "tflite"}
    assert summary["ends"]["onnx: read"] > 0
