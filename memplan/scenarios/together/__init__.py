"""Several programs in one arena."""

from memplan.scenarios.together.planning import Together, plan_together
from memplan.scenarios.together.programs import name_programs

__all__ = ["Together", "name_programs", "plan_together"]
