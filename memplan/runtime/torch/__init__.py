"""PyTorch from one slab: record a forward pass, plan it, replay it (source 002).

    from memplan.runtime.torch import Slab, record

    trace = record(model, example_inputs)
    plan = memplan.solve(trace.problem())
    with Slab(plan, trace) as fast:
        y = fast(*example_inputs)

Needs the extra `torch`; a slab also needs a C++ compiler, once.
"""

from memplan.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise MissingExtraError("this needs the library torch: pip install 'memplan[torch]'") from None

from memplan.runtime.torch.batches import Batches
from memplan.runtime.torch.recorder import Recording, record
from memplan.runtime.torch.slab import Slab, Statistics

__all__ = ["Batches", "Recording", "Slab", "Statistics", "record"]
