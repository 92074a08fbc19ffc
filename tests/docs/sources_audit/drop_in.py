"""Asks the module of the name of MiniMalloc's."""

import memplan.extensions.minimalloc as mm

problem = mm.from_csv_file("five.csv")
problem.capacity = 12
print(mm.Solver().solve(problem))
