"""The interfaces of other planners over the solvers of memplan."""
