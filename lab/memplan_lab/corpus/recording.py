"""Records what a PyTorch program allocates and frees, on the meta device.

Every operator passes a dispatch mode. A storage begins with the operator that returns it first, and
ends when nothing refers to it: no variable of Python, and nothing that autograd saved for the
backward pass. Eager mode has these lifetimes; scratch inside of kernels is not recorded.

    operators      conv   relu_   conv    add_
    storages   a   ████████████████████████████     held by `identity = x`
               b                  █████████████
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from memplan.base.errors import MemplanError
from memplan_lab.extras import require

__all__ = ["RecordedOperator", "Recording", "Storage", "record"]

torch = require("torch", extra="corpus")
_Mode: Any = require("torch.utils._python_dispatch", extra="corpus").TorchDispatchMode


@dataclass(slots=True)
class Storage:
    """A piece of memory."""

    bytes: int  # what it holds
    # shape, dtype: Of the tensor that it was first seen with.
    shape: tuple[int, ...]
    dtype: Any
    # start, end: It is held during `[start, end)`, in steps; `start` is -1 if it was there before.
    start: int
    end: int = -1
    weight: bool = False  # whether it is a parameter or a buffer of the module


@dataclass(frozen=True, slots=True)
class RecordedOperator:
    """An operator that makes or changes something; views are no steps."""

    operator: str  # as PyTorch names it, "aten.convolution"
    # reads, makes, changes: Numbers of storages; what it changes it may also read.
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    changes: tuple[int, ...]


@dataclass(frozen=True)
class Recording:
    """A run."""

    storages: list[Storage]  # in the order in which they were first seen
    steps: list[RecordedOperator]  # in the order in which they ran
    result: Any  # what the program returned
    _number_of: dict[int, int]

    @property
    def held(self) -> frozenset[int]:
        """Numbers of the storages that were held when the program had returned."""
        return frozenset(self._number_of.values())

    def number(self, tensor: Any) -> int:
        """Return the number of a tensor's storage, which was held at the end and still is."""
        return self._number_of[_address(tensor)]


def record(run: Callable[[], object], weights: Iterable[Any]) -> Recording:
    """Run a program and return what it allocated."""
    _warm_up()
    return _record(run, weights)


@cache
def _warm_up() -> None:
    """Record a step of training once in every process.

    At the first call of some operators PyTorch imports modules, which may hold their arguments for
    a while; a recording of that call would have wrong lifetimes.
    """
    with torch.device("meta"):
        layers = (torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.MaxPool2d(2))
        module = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.LayerNorm(72))
        images = torch.empty(2, 3, 8, 8)
    with torch.enable_grad():  # the first caller may have switched gradients off
        _record(lambda: module(images).sum().backward(), module.parameters())


def _record(run: Callable[[], object], weights: Iterable[Any]) -> Recording:
    seen = _Seen()
    for tensor in weights:
        seen.note(tensor).weight = True
    collecting = gc.isenabled()
    gc.disable()  # it would free reference cycles at times that differ from run to run
    try:
        with seen:
            result = run()
        seen.end_unused()
        for storage in seen.storages:
            if storage.end < 0:
                storage.end = max(len(seen.steps), storage.start + 1)
    finally:
        seen.forget()
        if collecting:
            gc.enable()
    return Recording(seen.storages, seen.steps, result, seen.number_of)


# The most storages in one recording. No problem of the corpus has half as many, and a recording
# checks all live storages before every operator, which would take minutes.
MOST = 40_000

_VALUE = torch.ops.aten._local_scalar_dense.default


class _Seen(_Mode):  # type: ignore[misc]
    """Sees every operator, below autograd.

    A network may branch on values, which the meta device does not have. Every such condition is
    true here: transformers ask whether a batch is without padding.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storages: list[Storage] = []
        self.steps: list[RecordedOperator] = []
        self.number_of: dict[int, int] = {}  # by address; a weak reference keeps it from reuse

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is _VALUE and args[0].is_meta and args[0].dtype is torch.bool:
            return True
        self.end_unused()
        reads = [self._number(tensor) for tensor in _tensors((args, kwargs))]
        result = func(*args, **kwargs)
        makes: list[int] = []
        again: list[int] = []
        for tensor in _tensors(result):
            known = _address(tensor) in self.number_of
            (again if known else makes).append(self._number(tensor))
        changes = dict.fromkeys(again) if func._schema.is_mutable else {}
        if makes or changes:
            name = str(func).removesuffix(f".{func._overloadname}")
            for number in makes:
                self.storages[number].start = len(self.steps)
            self.steps.append(
                RecordedOperator(
                    name, tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(makes)), tuple(changes)
                )
            )
        return result

    def note(self, tensor: Any) -> Storage:
        """Return the storage of a tensor; one that is new was there before."""
        return self.storages[self._number(tensor)]

    def _number(self, tensor: Any) -> int:
        address = _address(tensor)
        if address not in self.number_of:
            if len(self.storages) == MOST:
                raise MemplanError(f"it has more than {MOST:,} tensors")
            storage = tensor.untyped_storage()
            storage._weak_ref()
            self.number_of[address] = len(self.storages)
            found = Storage(storage.nbytes(), tuple(tensor.shape), tensor.dtype, start=-1)
            self.storages.append(found)
        return self.number_of[address]

    def end_unused(self) -> None:
        """End the storages that nothing refers to."""
        expired, free = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        for address in [address for address in self.number_of if expired(address)]:
            storage = self.storages[self.number_of.pop(address)]
            storage.end = max(len(self.steps), storage.start + 1)
            free(address)

    def forget(self) -> None:
        """Give the weak references back; addresses stay valid for storages that are still held."""
        for address in self.number_of:
            torch.UntypedStorage._free_weak_ref(address)


def _address(tensor: Any) -> int:
    address: int = tensor.untyped_storage()._cdata
    return address


def _tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors in the arguments or results of an operator."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
