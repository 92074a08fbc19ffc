"""Traces a training step as one program: forward, loss and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from memplan.extras import require

__all__ = ["training_program"]


def training_program(
    module: Any, args: tuple[Any, ...], loss: Callable[[Any], Any] | None = None
) -> Any:
    """Trace a training step.

    Parameters
    ----------
    module
        A `torch.nn.Module`.
    args
        Its arguments; tensors on the "meta" device are enough.
    loss
        A function from the module's result to a scalar; by default the module returns its loss.

    Returns
    -------
    torch.export.ExportedProgram
        The joint graph of AOTAutograd, in the operators that PyTorch runs one by one: operators
        with a kernel are not decomposed. Its inputs include parameters and buffers; its outputs
        are the loss and a gradient for every parameter that needs one.
    """
    torch = require("torch", extra="torch")
    exported = require("torch.export.exported_program", extra="torch")

    base: Any = torch.nn.Module

    class WithLoss(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = module

        def forward(self, *inputs: Any) -> Any:
            result = self.model(*inputs)
            return result if loss is None else loss(result)

    with warnings.catch_warnings():
        # PyTorch itself still uses a class that it has deprecated; a user cannot change that.
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        return exported._decompose_exported_program(
            torch.export.export(WithLoss(), args),
            cia_to_decomp={},
            python_decomp_table={},
            joint_loss_index=0,
            decompose_custom_triton_ops=False,
        )
