"""Tests of random ONNX networks in bands: the same sizes and results as the whole."""

from __future__ import annotations

import pytest
from rounds import rounds

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx_networks import survey

pytestmark = pytest.mark.slow


def test_networks_in_bands_make_what_they_made() -> None:
    """Tests 60 networks of up to nine operators, of all versions of ONNX."""
    ends, wrong = survey(range(60))
    assert wrong == []
    assert ends["equal"] > 30


def test_operators_that_are_changed_for_inference_are_those_of_the_file() -> None:
    """Tests a pool whose last windows begin beyond its input: inference gets another window."""
    assert survey([30039])[1] == []


@pytest.mark.deep
@pytest.mark.parametrize("first", range(1000, rounds(2000, 4000), 500))
def test_thousands_of_networks_in_bands_make_what_they_made(first: int) -> None:
    """Tests a thousand more, or three."""
    assert survey(range(first, first + 500))[1] == []
