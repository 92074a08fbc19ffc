"""Modules without memory: what libraries build, as if it had weights."""

from __future__ import annotations

from typing import Any

from memplan_lab.extras import require

__all__ = ["Weightless"]

torch = require("torch", extra="corpus")
_Mode: Any = require("torch.overrides", extra="corpus").TorchFunctionMode


class Weightless(_Mode):  # type: ignore[misc]
    """A context in which what is left empty, as weights before they are filled, takes no memory.

    It is on the meta device. Not all is made there, as in the context of a device: libraries
    compute rates and tables of positions while they build, and read them. What is made is to be
    moved to the meta device behind it.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty:
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)
