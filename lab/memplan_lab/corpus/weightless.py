"""Modules without memory, built by libraries as if they had weights."""

from __future__ import annotations

from typing import Any

from memplan_lab.extras import require

__all__ = ["Weightless"]

torch = require("torch", extra="corpus")
_Mode: Any = require("torch.overrides", extra="corpus").TorchFunctionMode


class Weightless(_Mode):  # type: ignore[misc]
    """A context in which empty tensors, such as weights before they are filled, take no memory.

    Such tensors are on the meta device. In the context of that device, all tensors would be; but
    libraries compute rates and tables of positions while they build, and read them. The caller
    moves the module to the meta device afterwards.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty:
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)
