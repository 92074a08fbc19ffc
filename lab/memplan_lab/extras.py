"""Libraries that only parts of the laboratory need, each behind an extra of its package."""

from functools import partial

from memplan.base import extras

require = partial(extras.require, package="memplan-lab")
