"""Traces a training step as one program: forward, loss and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from memplan.base.errors import MemplanError
from memplan.base.extras import require

__all__ = ["training_program"]


def training_program(
    module: Any, args: tuple[Any, ...], loss: Callable[[Any], Any] | None = None
) -> Any:
    """Trace a training step of a `torch.nn.Module`; arguments on the "meta" device are enough.

    The loss is a function from the module's result to a scalar; by default the module returns its
    loss.

    The answer is the joint graph of AOTAutograd as an `ExportedProgram`, in the operators that
    PyTorch runs one by one: operators with a kernel are not decomposed. Its inputs include
    parameters and buffers; its outputs are the loss and a gradient for every parameter that
    `backward()` gives one. So a parameter that the loss does not depend on has none, and one that
    modules share has one. All bits are those of `backward()`, but for recurrent layers (LSTM, GRU,
    RNN), which torch itself takes apart as it traces: their results agree to rounding, and they
    take longer.
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
        try:
            program = torch.export.export(WithLoss(), args)
            _freeze_without_gradient(program)
            return exported._decompose_exported_program(
                program,
                cia_to_decomp=_keep_whole(),
                python_decomp_table={},
                joint_loss_index=0,
                decompose_custom_triton_ops=False,
            )
        except (AssertionError, RuntimeError) as error:  # raised by AOTAutograd if it gives up
            reason = str(error).strip().partition("\n")[0]
            raise MemplanError(
                f"torch cannot trace a training step of the model: {reason}"
            ) from error


def _freeze_without_gradient(program: Any) -> None:
    """Mark inputs to which `backward()` gives no gradient: AOTAutograd expects one for the others.

    These are parameters that the loss does not depend on, and all names but one of a parameter that
    modules share.
    """
    torch = require("torch", extra="torch")
    fakes = require("torch._guards", extra="torch")
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    given = [node.meta.get("val") for node in nodes]
    # Buffers are written in place, which should not show in the values of the program.
    copies = [
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) else each
        for each in given
    ]
    trained = [each for each in copies if isinstance(each, torch.Tensor) and each.requires_grad]
    if not trained:
        raise MemplanError("no parameter of the model is trained: none has requires_grad")
    with fakes.detect_fake_mode(given), torch.enable_grad():
        loss = program.graph_module(*copies)[0]
        if not loss.requires_grad:
            raise MemplanError("no parameter of the model is trained: the loss depends on none")
        gradients = torch.autograd.grad(loss.sum(), trained, allow_unused=True)
    without = {id(each) for each, found in zip(trained, gradients, strict=True) if found is None}
    for node, copy in zip(nodes, copies, strict=True):
        if id(copy) in without:
            node.meta["val"] = node.meta["val"].detach()


def _keep_whole() -> dict[Any, Any]:
    """Return backward operators that a trace takes apart though PyTorch has kernels for them.

    These two backward operators alone have both a kernel and a rule that takes them apart, which
    gives other bits.
    """
    torch = require("torch", extra="torch")
    utils = require("torch._export.utils", extra="torch")
    aten = torch.ops.aten
    return dict.fromkeys(
        (aten.silu_backward.default, aten.mish_backward.default), utils._special_op_to_preserve_cia
    )
