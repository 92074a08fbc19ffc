"""Headers in C: plans, schedules, moves between memories, sizes and paths."""
