"""Runs PyTorch models in one slab: record a forward pass, plan it, replay it (MemoMalloc).

    from memplan.extensions.slab import Slab, record

    trace = record(model, example_inputs)
    plan = memplan.solve(trace.problem())
    with Slab(plan, trace) as fast:
        y = fast(*example_inputs)

This needs the extra `torch`; the first slab also needs a C++ compiler.
"""

from memplan.base.extras import require

require("torch", extra="torch")

from memplan.extensions.slab.batches import Batches  # noqa: E402 (needs it)
from memplan.extensions.slab.slab import Slab, Statistics  # noqa: E402
from memplan.runtimes.torch.record import Recording, record  # noqa: E402

__all__ = ["Batches", "Recording", "Slab", "Statistics", "record"]
