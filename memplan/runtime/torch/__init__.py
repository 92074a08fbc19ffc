"""Runs PyTorch models in one slab: record a forward pass, plan it, replay it (MemoMalloc).

    from memplan.runtime.torch import Slab, record

    trace = record(model, example_inputs)
    plan = memplan.solve(trace.problem())
    with Slab(plan, trace) as fast:
        y = fast(*example_inputs)

This needs the extra `torch`; the first slab also needs a C++ compiler.
"""

from memplan.extras import require

require("torch", extra="torch")

from memplan.runtime.torch.batches import Batches  # noqa: E402 (needs it)
from memplan.runtime.torch.recorder import Recording, record  # noqa: E402
from memplan.runtime.torch.slab import Slab, Statistics  # noqa: E402

__all__ = ["Batches", "Recording", "Slab", "Statistics", "record"]
