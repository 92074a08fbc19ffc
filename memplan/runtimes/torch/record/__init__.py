"""Records one run of a PyTorch model: which memory it asks for, and when (MemoMalloc).

    from memplan.runtimes.torch.record import record

    trace = record(model, example_inputs)
    plan = memplan.solve(trace.problem())

This needs the extra `torch`.
"""

from memplan.base.extras import require

require("torch", extra="torch")

from memplan.runtimes.torch.record.recorder import Recording, record  # noqa: E402 (needs it)

__all__ = ["Recording", "record"]
