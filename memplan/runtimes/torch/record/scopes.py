"""Tracks the module that a forward pass is in, by replacing every module's `forward` for a time.

The recorder and the slab use the same names of modules, `.layer1.0.conv1` and `.` for the model
itself, so that the slab finds recorded allocations. A module with two names gets the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

__all__ = ["Forward", "replace_forwards", "walk_modules"]

Forward = Callable[..., Any]


def walk_modules(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and modules with a `forward` that Python calls, outermost first.

    A compiled or scripted module has no Python forward, or one that the compiler guards. Such a
    module is skipped with all modules in it, and counts as a part of the module around it. A model
    that is no `torch.nn.Module` has no modules.
    """
    if isinstance(model, torch.nn.Module):
        yield from _walk(model, ".", set())


def _walk(module: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(module) in seen or _is_compiled(module):
        return
    seen.add(id(module))
    yield name, module
    for child_name, child in module.named_children():
        yield from _walk(child, f"{name.rstrip('.')}.{child_name}", seen)


def _is_compiled(module: Any) -> bool:
    return (
        isinstance(module, (torch.jit.ScriptModule, torch.jit.TopLevelTracedModule))
        or hasattr(module, "_orig_mod")  # torch.compile(module)
        or getattr(module, "_compiled_call_impl", None) is not None  # module.compile()
    )


def replace_forwards(model: Any, wrap: Callable[[str, Forward], Forward]) -> Callable[[], None]:
    """Replace the forward of every module by `wrap(name, forward)`; return a function to undo it.

    The model counts as a module too. Its old forward is mostly a bound method.
    """
    # This writes to the instance's dictionary, because `setattr` would register a wrapper that is a
    # module as a child. A forward that was set on the instance before is restored.
    undo: list[tuple[dict[str, Any], Forward | None]] = []
    for name, module in walk_modules(model):
        attributes = module.__dict__
        undo.append((attributes, attributes.get("forward")))
        attributes["forward"] = wrap(name, module.forward)

    def restore() -> None:
        for attributes, forward in reversed(undo):
            if forward is None:
                attributes.pop("forward", None)
            else:
                attributes["forward"] = forward
        undo.clear()

    return restore
