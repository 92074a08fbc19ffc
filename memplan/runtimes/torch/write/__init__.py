"""Programs of PyTorch in another order, with operators that run again, or in bands."""

from memplan.runtimes.torch.write.again import recompute
from memplan.runtimes.torch.write.apply import put_in_bands
from memplan.runtimes.torch.write.writer import FxProgram, reorder

__all__ = ["FxProgram", "put_in_bands", "recompute", "reorder"]
