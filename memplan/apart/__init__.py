"""Plans in which sharing addresses costs: least penalty within a capacity."""

from memplan.apart.penalties import Penalties
from memplan.apart.planning import Apart, plan_apart

__all__ = ["Apart", "Penalties", "plan_apart"]
