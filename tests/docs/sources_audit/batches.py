"""Runs another batch size than those recorded."""

import torch
from net import make_model

from memplan.extensions.slab import Batches

model, _ = make_model()
with torch.no_grad(), Batches.record(model, lambda n: torch.randn(n, 3, 32, 32)) as fast:
    x = torch.randn(5, 3, 32, 32)
    print("equal:", torch.equal(fast(x), model(x)))
