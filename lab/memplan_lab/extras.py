"""Libraries that only parts of the laboratory need, each behind an extra of its package."""

from functools import partial

from memplan import extras

require = partial(extras.require, package="memplan-lab")
