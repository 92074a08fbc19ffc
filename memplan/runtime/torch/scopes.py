"""Which module a forward pass is in: every module's `forward` is replaced for a while.

The recorder and the slab name modules alike, `.layer1.0.conv1` and `.` for the model itself, so
that what the one saw the other finds again. A module that is reached by two names has the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

__all__ = ["Forward", "modules", "replace_forwards"]

Forward = Callable[..., Any]


def modules(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the modules whose `forward` Python calls, outermost first, and their names.

    What was compiled or scripted has no Python forward, or one that the compiler watches: it is
    left alone with all that is in it, and counts as a part of the module around it. A model that
    is no `torch.nn.Module` has no modules.
    """
    if isinstance(model, torch.nn.Module):
        yield from _below(model, ".", set())


def _below(module: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(module) in seen or _is_compiled(module):
        return
    seen.add(id(module))
    yield name, module
    for child_name, child in module.named_children():
        yield from _below(child, f"{name.rstrip('.')}.{child_name}", seen)


def _is_compiled(module: Any) -> bool:
    return (
        isinstance(module, (torch.jit.ScriptModule, torch.jit.TopLevelTracedModule))
        or hasattr(module, "_orig_mod")  # torch.compile(module)
        or getattr(module, "_compiled_call_impl", None) is not None  # module.compile()
    )


def replace_forwards(model: Any, wrap: Callable[[str, Forward], Forward]) -> Callable[[], None]:
    """Replace the forward of every module by `wrap(name, forward)`; return what undoes it.

    Parameters
    ----------
    model
        Its own `forward` is one of them.
    wrap
        Gets the name of the module, and what was called so far: a bound method, mostly.
    """
    # This writes to the instance's dictionary, because `setattr` would register a wrapper that is a
    # module as a child. A forward that was set on the instance before is restored.
    undo: list[tuple[dict[str, Any], Forward | None]] = []
    for name, module in modules(model):
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
