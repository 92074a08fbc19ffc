"""What the tests of the slab share: models, and a slab of a model without further ado."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from memplan.base.errors import MemplanError  # noqa: E402
from memplan.extensions.slab import Slab, record  # noqa: E402
from memplan.extensions.slab.extension import load  # noqa: E402
from memplan.solvers import solve  # noqa: E402

nn = torch.nn


class Access(NamedTuple):
    """What an operator reads or writes: the address and the bytes of a storage."""

    address: int
    bytes: int
    is_written: bool


class Accesses(TorchDispatchMode):  # type: ignore[misc]
    """Notes what each operator reads and writes; a view of a storage touches none of its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Access] = []

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and look at its tensors."""
        result = function(*args, **(kwargs or {}))
        taken, made = _find_storages((args, kwargs)), _find_storages(result)
        changed = [
            value
            for value, argument in zip(args, function._schema.arguments, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        written = _find_storages(changed) | {at: made[at] for at in made if at not in taken}
        if written:
            self.seen += [Access(*each, False) for each in taken.items()]
            self.seen += [Access(*each, True) for each in written.items()]
        return result


def _find_storages(held: Any) -> dict[int, int]:
    """Return the bytes of all storages with some, by address."""
    tensors = [each for each in tree_leaves(held) if isinstance(each, torch.Tensor)]
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {each.data_ptr(): each.nbytes() for each in storages if each.nbytes()}


def require_slab() -> Any:
    """Return the native module; skip the tests where it cannot be built."""
    try:
        return load()
    except MemplanError as error:
        pytest.skip(str(error))


class Calls(nn.Module):  # type: ignore[misc]
    """A module whose forward is a function of it and its arguments."""

    def __init__(self, function: Any, **children: Any) -> None:
        super().__init__()
        self.function = function
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, *args: Any) -> Any:
        """Return what the function says."""
        return self.function(self, *args)


def convolutions(width: int = 16, layers: int = 3) -> Any:
    """Return a chain of convolutions, normalisations and activations, for 3 channels."""
    torch.manual_seed(0)
    chain: list[Any] = []
    for layer in range(layers):
        chain += [nn.Conv2d(width if layer else 3, width, 3, padding=1), nn.BatchNorm2d(width)]
        chain += [nn.ReLU()]
    return nn.Sequential(*chain, nn.Flatten(), nn.LazyLinear(10)).eval()


def image(side: int = 16, batch: int = 1) -> Any:
    """Return a random picture of 3 channels."""
    return torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(side))


def slab_of(model: Any, *inputs: Any, **options: Any) -> Slab:
    """Return a slab for a model, planned for these inputs."""
    trace = record(model, inputs)
    return Slab(solve(trace.problem(), "greedy_by_size"), trace, **options)


def missed(slab: Slab) -> int:
    """Return how many allocations did not go as they were recorded."""
    stats = slab.stats()
    return stats.unknown + stats.resized + stats.occupied + stats.elsewhere


def cpu_allocator() -> int:
    """Return the address of PyTorch's allocator for the CPU."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    get = library._ZN3c1012GetAllocatorERKNS_10DeviceTypeE
    get.restype = ctypes.c_void_p
    return int(get(ctypes.byref(ctypes.c_int8(0))))
