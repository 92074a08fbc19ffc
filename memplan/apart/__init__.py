"""Plans in which sharing addresses costs: least penalty within a capacity."""

from memplan.apart.penalties import Penalties
from memplan.apart.planning import Apart, plan_apart
from memplan.apart.waits import Waits, plan_waits, with_waits

__all__ = ["Apart", "Penalties", "Waits", "plan_apart", "plan_waits", "with_waits"]
