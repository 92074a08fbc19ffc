"""Tracks when the modules of a model run, and finds the tensors in a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MethodType, ModuleType
from typing import Any

import torch

from memplan.runtimes.torch.record.scopes import walk_modules

__all__ = ["Binding", "iterate_tensors"]


class Binding:
    """Replaces every `forward` of a model by a native frame, until it is undone.

    A callable that is no `torch.nn.Module` has no modules. A module may have several bindings,
    which end in any order. A frame counts only in calls of its own binding.
    """

    def __init__(self, native: ModuleType, model: Any) -> None:
        self._frame = native.Frame
        self._dictionaries = []
        for name, module in walk_modules(model):
            # This writes to the dictionary, because `setattr` would register a frame around a
            # module as a child.
            module.__dict__["forward"] = native.Frame(module.forward, self, name)
            self._dictionaries.append((module, module.__dict__))

    def undo(self) -> None:
        """Remove the frames, also those that frames of other bindings wrap."""
        for module, attributes in self._dictionaries:
            above, frame = None, attributes.get("forward")
            while isinstance(frame, self._frame) and frame.binding is not self:
                above, frame = frame, frame.__wrapped__
            if not isinstance(frame, self._frame):
                continue  # other code replaced or wrapped it; it stays, without effect
            if above is not None:
                above.__wrapped__ = frame.__wrapped__
            elif _is_own(module, frame.__wrapped__):
                del attributes["forward"]
            else:
                attributes["forward"] = frame.__wrapped__
        self._dictionaries.clear()


def _is_own(module: Any, forward: Any) -> bool:
    """Whether this is the method of the class, which needs no entry in the dictionary."""
    return (
        isinstance(forward, MethodType)
        and forward.__self__ is module
        and forward.__func__ is getattr(type(module), "forward", None)
    )


def iterate_tensors(result: Any, device: str = "cpu") -> Iterator[torch.Tensor]:
    """Yield the tensors of a result on a device, also in nested containers.

    A container may contain itself; each tensor is yielded once.
    """
    seen: dict[int, Any] = {}  # keeps the objects, so that no id is reused
    left = [result]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            if value.layout is torch.strided and value.device.type == device:
                yield value
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, (list, tuple, set, frozenset)):
            left += value
        elif is_dataclass(value):
            left += (getattr(value, field.name, None) for field in fields(value))
