"""Plans in which sharing addresses costs: least penalty within a capacity."""

from memplan.machine.apart.penalties import Penalties
from memplan.machine.apart.planning import plan_apart

__all__ = ["Penalties", "plan_apart"]
