"""Fixtures of the tests that run models in PyTorch, which is imported for them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def native() -> Any:
    """Return the native module of slabs, or skip the test where it cannot be built."""
    from slab_models import require_slab

    return require_slab()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run on one thread: on a busy machine several wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def without_gradients(one_thread: None) -> Iterator[None]:
    """Run without gradients, and on one thread."""
    import torch

    with torch.no_grad():
        yield
