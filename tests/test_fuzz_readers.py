"""Tests that a few thousand damaged files of all kinds end in a sentence, or are read."""

from __future__ import annotations

import pytest


def test_mutants_end_in_a_sentence_or_are_read() -> None:
    """Tests that a few thousand damaged files of all kinds neither hang nor crash a reader."""
    for library in ("onnx", "flatbuffers", "google.protobuf"):
        pytest.importorskip(library)
    from fuzz_readers import fuzz

    summary, found = fuzz(4000, seed=0)
    assert found == []
    assert summary["mutants"] == 4000
    readers = {end.partition(":")[0] for end in summary["ends"]}
    assert len(readers) == 15
    assert any(end.endswith(": read") for end in summary["ends"])
